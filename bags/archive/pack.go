package archive

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"bagpipe/bags/files"
	"bagpipe/layout"
	"bagpipe/layout/disk"
)

// PackFormats are the formats Pack writes.
func PackFormats() []Format { return []Format{Zip, Tar, TarGzip, TarZstd} }

// PackOptions say how to pack. The zero value is useful.
type PackOptions struct {
	Format       Format               // default: by the archive's name
	Reproducible bool                 // the same bytes from the same content: one time, no owner, plain permissions
	Time         time.Time            // every member's time of modification; with Reproducible 1980-01-01 unless given
	NoSync       bool                 // the caller syncs the archive
	Workers      int                  // default the cores
	Progress     func(files.Progress) // calls do not overlap

	// Bag packs the folder of a bag: without owners, each file with its own time unless
	// Time is given, and with control characters in names, which the bag's manifests
	// can list.
	Bag bool
	// Check looks at the whole archive before it gets its name; nil: nobody does.
	Check func(made string) error
}

// ErrPackFormat says that archives of the wanted format are not written, or that the
// archive's name does not say which is wanted.
var ErrPackFormat = errors.New("want a name that ends in .zip, .tar, .tar.gz or .tar.zst, or one of the formats zip, tar, tar.gz and tar.zst")

// PackedArchive says what was packed.
type PackedArchive struct {
	Format  Format `json:"format"`
	Files   int64  `json:"files"`
	Folders int64  `json:"folders"`
	Bytes   int64  `json:"bytes"` // of the files
	Size    int64  `json:"size"`  // of the archive
}

// firstZipTime is the earliest time a zip can hold.
var firstZipTime = time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC)

// Pack packs a folder (or one file) into the new archive dest. Members are in byte
// order below the folder's own name. Links and special files are refused, and so
// is a name that Extract would refuse. The archive appears when it is whole and is
// on the disk when Pack returns, unless o.NoSync is set.
func Pack(ctx context.Context, from, dest string, o PackOptions) (_ PackedArchive, err error) {
	if o.Format == None {
		o.Format = FormatOfName(filepath.Base(dest))
	}
	if !slices.Contains(PackFormats(), o.Format) {
		return PackedArchive{}, fmt.Errorf("%s: %w", dest, ErrPackFormat)
	}
	if o.Reproducible && o.Time.IsZero() {
		o.Time = firstZipTime
	}
	tree, err := packTree(ctx, from, o)
	if err != nil {
		return PackedArchive{}, err
	}
	s, err := files.NewScratch(dest)
	if err != nil {
		return PackedArchive{}, fmt.Errorf("pack %s: %w", from, err)
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	p := newPacker(tree, o)
	if err := p.writeTo(ctx, s.Made()); err != nil {
		return PackedArchive{}, fmt.Errorf("pack %s: %w", from, err)
	}
	if o.Check != nil {
		if err := o.Check(s.Made()); err != nil {
			return PackedArchive{}, err
		}
	}
	info, err := os.Lstat(s.Made())
	if err != nil {
		return PackedArchive{}, err
	}
	sync := disk.SyncTree
	if o.NoSync {
		sync = nil
	}
	if err := s.Publish(sync); err != nil {
		return PackedArchive{}, fmt.Errorf("pack %s: %w", from, err)
	}
	return PackedArchive{o.Format, int64(len(tree.Files)), int64(len(tree.Folders)), p.done.Bytes, info.Size()}, nil
}

// packTree lists what is packed, below the folder's own name, and checks it.
func packTree(ctx context.Context, from string, o PackOptions) (*files.Tree, error) {
	info, err := os.Stat(from)
	if err != nil {
		return nil, fmt.Errorf("pack: %w", err)
	}
	var tree *files.Tree
	switch {
	case info.Mode().IsRegular():
		abs, err := filepath.Abs(from)
		if err != nil {
			return nil, err
		}
		tree = &files.Tree{Dir: filepath.Dir(abs), Files: []files.Entry{topEntry(abs, info)}}
	case !info.IsDir():
		return nil, fmt.Errorf("pack %s: neither a file nor a folder", from)
	default:
		if tree, err = namedTree(ctx, from); err != nil {
			return nil, err
		}
	}
	as := strings.Clone
	if o.Bag {
		as = plainControls
	}
	return tree, packable(tree, o.Format, as)
}

// namedTree lists a folder below its own name.
func namedTree(ctx context.Context, dir string) (*files.Tree, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(abs)
	if err != nil {
		return nil, err
	}
	top := topEntry(abs, info)
	if top.Path == string(filepath.Separator) {
		return nil, fmt.Errorf("pack %s: a folder without a name cannot be packed", dir)
	}
	tree, err := files.Scan(ctx, abs)
	if err != nil {
		return nil, err
	}
	if err := tree.CheckRegular(); err != nil {
		return nil, err
	}
	putUnder(tree, top)
	return tree, nil
}

func topEntry(abs string, info fs.FileInfo) files.Entry {
	return files.Entry{Path: filepath.Base(abs), Size: info.Size(), Mode: info.Mode(), Time: info.ModTime()}
}

// putUnder moves a tree's entries below its own folder.
func putUnder(t *files.Tree, top files.Entry) {
	t.Dir = filepath.Dir(t.Dir)
	for _, es := range [][]files.Entry{t.Files, t.Folders} {
		for i := range es {
			es[i].Path = top.Path + "/" + es[i].Path
		}
	}
	t.Folders = append([]files.Entry{top}, t.Folders...)
}

// packable refuses the names that Extract would refuse; as gives a name as it is
// looked at.
func packable(t *files.Tree, f Format, as func(string) string) error {
	for _, es := range [][]files.Entry{t.Files, t.Folders} {
		for i := range es {
			p := es[i].Path
			_, rule, detail := checkName(as(p), f == Zip, Limits{}.WithDefaults())
			if rule == "" && f == Zip && !utf8.ValidString(p) {
				rule, detail = files.RuleNotUTF8, "a zip cannot say which code page a name is in; a tar keeps its bytes"
			}
			if rule != "" {
				return &files.Error{Archive: filepath.Base(t.Dir), Member: p, Rule: rule, Detail: detail}
			}
		}
	}
	return nil
}

// packer writes one archive.
type packer struct {
	tree   *files.Tree
	o      PackOptions
	done   files.Progress
	prefix string        // the packed folder's own name with its slash; "" for a single file
	files  *files.Opener // of that folder, so that no link leads out of it
}

func newPacker(t *files.Tree, o PackOptions) *packer {
	p := &packer{tree: t, o: o, done: files.Progress{TotalFiles: int64(len(t.Files)), TotalBytes: t.Bytes()}}
	if len(t.Folders) > 0 { // the folder itself is the first
		p.prefix = t.Folders[0].Path + "/"
	}
	return p
}

// entries gives folders and files in byte order of their paths, every folder
// before what is in it.
func (p *packer) entries() []files.Entry {
	all := slices.Concat(p.tree.Folders, p.tree.Files)
	slices.SortFunc(all, func(a, b files.Entry) int { return strings.Compare(a.Path, b.Path) })
	return all
}

func (p *packer) writeTo(ctx context.Context, path string) (err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, files.FilePerm)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	root, err := os.OpenRoot(filepath.Join(p.tree.Dir, filepath.FromSlash(p.prefix)))
	if err != nil {
		return err
	}
	defer root.Close()
	p.files = &files.Opener{Root: root}
	defer p.files.Close()
	if p.o.Format == Zip {
		return p.zip(ctx, f)
	}
	return p.tar(ctx, f)
}

func (p *packer) time(e *files.Entry) time.Time {
	if !p.o.Time.IsZero() {
		return p.o.Time.UTC()
	}
	return e.Time
}

func (p *packer) mode(e *files.Entry) fs.FileMode {
	if !p.o.Reproducible && !p.o.Bag {
		return e.Mode.Perm()
	}
	if e.Mode.IsDir() {
		return files.FolderPerm
	}
	return files.FilePerm | e.Mode&0o111
}

// copyFile copies exactly the bytes that were there when the folder was listed.
func (p *packer) copyFile(ctx context.Context, w io.Writer, e *files.Entry, buf []byte) error {
	f, err := p.files.Open(strings.TrimPrefix(e.Path, p.prefix))
	if err != nil {
		return fmt.Errorf("%s: %w", layout.EncodePath(e.Path), err)
	}
	defer f.Close()
	left := e.Size
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, err := f.Read(buf)
		if left -= int64(n); left < 0 || errors.Is(err, io.EOF) && left > 0 {
			return fmt.Errorf("%s: %w", layout.EncodePath(e.Path), files.ErrChanged)
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if _, err := w.Write(buf[:n]); err != nil {
			return err
		}
		p.report(int64(n), 0)
	}
}

func (p *packer) report(bytes, files int64) {
	p.done.Bytes += bytes
	p.done.Files += files
	if p.o.Progress != nil {
		p.o.Progress(p.done)
	}
}
