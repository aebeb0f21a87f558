package bags

import (
	"archive/tar"
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

	"bagpipe/layout/disk"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zip"
	"github.com/klauspost/compress/zstd"
)

// SerializeOptions say how to write a bag into an archive.
type SerializeOptions struct {
	Format Format    // Zip, Tar, TarGzip or TarZstd
	Time   time.Time // of every member; zero: each file's own
	Verify bool      // validate the archive before it gets its name
	NoSync bool

	Workers  int
	Progress func(Progress)
}

// Serialize writes the bag in dir into the archive at dest, which must not exist,
// in one folder named like the bag's own. Members are sorted, and have no owner;
// with a Time, two archives of one bag are the same bytes. dest is whole, or not
// there. A bag that is not complete is ErrNotValid, with the report.
func Serialize(ctx context.Context, dir, dest string, o SerializeOptions) (_ Report, err error) {
	fail := func(r Report, err error) (Report, error) { return r, fmt.Errorf("serialise bag %s: %w", dir, err) }
	r, err := Validate(ctx, dir, ValidateOptions{Level: Complete})
	if err != nil {
		return fail(r, err)
	}
	if !r.Complete || r.Errors > 0 {
		return fail(r, ErrNotValid)
	}
	if _, err := os.Lstat(dest); !errors.Is(err, fs.ErrNotExist) {
		return fail(r, fmt.Errorf("%s is there already", dest))
	}
	whole, err := filepath.Abs(dir)
	if err != nil {
		return fail(r, err)
	}
	f, err := os.CreateTemp(filepath.Dir(dest), ".bag-*-"+string(o.Format))
	if err != nil {
		return fail(r, err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	err = serialize(ctx, whole, f, o)
	if err == nil && !o.NoSync {
		err = f.Sync()
	}
	if err := errors.Join(err, f.Chmod(filePerm), f.Close()); err != nil {
		return fail(r, err)
	}
	if o.Verify {
		if r, err = Validate(ctx, f.Name(), ValidateOptions{Workers: o.Workers, Progress: o.Progress}); err != nil {
			return fail(r, err)
		}
		r.drop(CodeBaseName) // of the name it has until it is verified
		if !r.Valid {
			return fail(r, ErrNotValid)
		}
	}
	// A link, unlike a rename, replaces nothing.
	if err := os.Link(f.Name(), dest); err != nil {
		return fail(r, err)
	}
	if err := os.Remove(f.Name()); err != nil {
		return fail(r, err)
	}
	if !o.NoSync {
		return r, disk.SyncDir(filepath.Dir(dest))
	}
	return r, nil
}

// drop takes the warnings of one code out of a report.
func (r *Report) drop(c Code) {
	n := len(r.Findings)
	r.Findings = slices.DeleteFunc(r.Findings, func(f Finding) bool { return f.Code == c && f.Severity == SeverityWarning })
	r.Warnings -= n - len(r.Findings)
}

// bagPacker takes a bag's folders and files in their order.
type bagPacker interface {
	folder(name string, at time.Time) error
	file(name string, e *Entry, at time.Time, r io.Reader) error
	Close() error
}

func serialize(ctx context.Context, dir string, w io.Writer, o SerializeOptions) (err error) {
	tree, err := Scan(ctx, dir)
	if err != nil {
		return err
	}
	p, err := newBagPacker(w, o.Format)
	if err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	files := &opener{root: root}
	defer func() {
		files.close()
		err = errors.Join(err, root.Close())
	}()
	all := slices.Concat(tree.Folders, tree.Files)
	slices.SortFunc(all, func(a, b Entry) int { return strings.Compare(a.Path, b.Path) })
	base := baseName(dir)
	if err := p.folder(base+"/", o.at(time.Time{}, all)); err != nil {
		return err
	}
	so := Progress{TotalFiles: int64(len(tree.Files)), TotalBytes: tree.Bytes()}
	for i := range all {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := packEntry(p, files, base, &all[i], o); err != nil {
			return fmt.Errorf("%s: %w", encoded(all[i].Path), err)
		}
		if o.Progress != nil && !all[i].Mode.IsDir() {
			so.Files++
			so.Bytes += all[i].Size
			o.Progress(so)
		}
	}
	return p.Close()
}

func (o *SerializeOptions) at(own time.Time, all []Entry) time.Time {
	switch {
	case !o.Time.IsZero():
		return o.Time
	case own.IsZero() && len(all) > 0:
		return all[0].Time
	}
	return own
}

func packEntry(p bagPacker, files *opener, base string, e *Entry, o SerializeOptions) (err error) {
	name := base + "/" + e.Path
	if e.Mode.IsDir() {
		return p.folder(name+"/", o.at(e.Time, nil))
	}
	f, err := files.open(e.Path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.close()) }()
	return p.file(name, e, o.at(e.Time, nil), f)
}

func newBagPacker(w io.Writer, f Format) (bagPacker, error) {
	switch f {
	case Zip:
		return &zipPacker{zip.NewWriter(w)}, nil
	case Tar:
		return &tarPacker{tar.NewWriter(w), nil}, nil
	case TarGzip:
		z := gzip.NewWriter(w)
		return &tarPacker{tar.NewWriter(z), z}, nil
	case TarZstd:
		z, err := zstd.NewWriter(w)
		if err != nil {
			return nil, err
		}
		return &tarPacker{tar.NewWriter(z), z}, nil
	}
	return nil, fmt.Errorf("format %q is not written; zip, tar, tar.gz and tar.zst are", f)
}

type tarPacker struct {
	w *tar.Writer
	z io.Closer
}

func (p *tarPacker) folder(name string, at time.Time) error {
	return p.w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: name, Mode: int64(folderPerm), ModTime: at.Truncate(time.Second), Format: tarFormat(name)})
}

func (p *tarPacker) file(name string, e *Entry, at time.Time, r io.Reader) error {
	h := &tar.Header{
		Typeflag: tar.TypeReg, Name: name, Size: e.Size, Mode: int64(filePerm | e.Mode&0o111),
		ModTime: at.Truncate(time.Second), Format: tarFormat(name),
	}
	if err := p.w.WriteHeader(h); err != nil {
		return err
	}
	_, err := io.Copy(p.w, r)
	return err
}

// tarFormat is PAX, whose names are UTF-8 of any length; GNU for those that are
// not UTF-8.
func tarFormat(name string) tar.Format {
	if strings.ToValidUTF8(name, "") != name {
		return tar.FormatGNU
	}
	return tar.FormatPAX
}

func (p *tarPacker) Close() error {
	err := p.w.Close()
	if p.z != nil {
		err = errors.Join(err, p.z.Close())
	}
	return err
}

type zipPacker struct{ w *zip.Writer }

func (p *zipPacker) folder(name string, at time.Time) error {
	h := &zip.FileHeader{Name: name, Modified: at.UTC()}
	h.SetMode(fs.ModeDir | folderPerm)
	_, err := p.w.CreateHeader(h)
	return err
}

func (p *zipPacker) file(name string, e *Entry, at time.Time, r io.Reader) error {
	if strings.Contains(name, `\`) {
		return &Error{Archive: "zip", Member: name, Rule: RuleBackslash, Detail: "in a zip, a backslash means different files to different programs; choose a tar"}
	}
	h := &zip.FileHeader{Name: name, Method: zip.Deflate, Modified: at.UTC()}
	h.SetMode(filePerm | e.Mode&0o111)
	w, err := p.w.CreateHeader(h)
	if err != nil {
		return err
	}
	n, err := io.Copy(w, r)
	if err == nil && n != e.Size {
		return errChanged
	}
	return err
}

func (p *zipPacker) Close() error { return p.w.Close() }
