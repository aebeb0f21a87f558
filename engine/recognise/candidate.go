package recognise

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"

	"bagpipe/bags/archive"
	"bagpipe/bags/files"
	"bagpipe/layout"
	"bagpipe/layout/disk"

	"github.com/antchfx/xmlquery"
	"github.com/tidwall/gjson"
)

// Kinds of drops.
const (
	KindFolder  = "folder"
	KindArchive = "archive"
	KindBag     = "bag"
	KindFile    = "file"
)

// Candidate is what is to be recognised: a path, and where it was dropped.
type Candidate struct {
	Path       string
	Name       string      // as dropped; may be another than the path's
	Collection layout.Name // it was dropped in
	File       bool        // it is known to be no folder
	Inbox      string      // the folder it was dropped in, which may have a metadata.rule; "": none
	InPlace    bool        // Inbox is the root of a catalog: rule files are named by where they lie below it
	Above      []Folder    // those between Inbox and it that may have one, too, and whose names are keywords; the nearest first
	Files      []string    // files in the folder Path that are looked at as if they were alone in a folder of this name; nil: Path itself is
}

// Folder is one that candidates lie in.
type Folder struct {
	Path string
	Name string // as dropped
}

// FoldersTo gives the folders on the way from root, which is not one of them, to a folder below
// it, the nearest first.
func FoldersTo(root, rel string) (all []Folder) {
	for ; rel != "" && rel != "."; rel = path.Dir(rel) {
		all = append(all, Folder{filepath.Join(root, filepath.FromSlash(rel)), path.Base(rel)})
	}
	return all
}

// look tells a folder, a bag, an archive and any other file apart. A file is opened once: its first
// bytes are kept for what asks for its type.
func (f *facts) look() error {
	info, err := os.Lstat(f.c.Path)
	switch {
	case err != nil:
		return err
	case info.Mode().IsRegular():
		return f.readFirst(disk.OpenRaw(f.c.Path))
	case !info.IsDir():
		return fmt.Errorf("%s is no file or folder", layout.EncodePath(filepath.Base(f.c.Path)))
	}
	f.kind, f.size = KindFolder, info.Size()
	if _, err := os.Lstat(filepath.Join(f.c.Path, "bagit.txt")); err == nil {
		f.kind = KindBag
	}
	return nil
}

// readFirst reads as much of a file that was opened as its kind and type are told by.
func (f *facts) readFirst(r disk.Raw, size int64, err error) error {
	if errors.Is(err, fs.ErrInvalid) || errors.Is(err, syscall.ELOOP) {
		err = fs.ErrNotExist // as the file that it was
	}
	if err != nil {
		return err
	}
	defer r.Close() // read only: nothing can be lost
	var buf [mimeHead]byte
	n := 0
	for n < min(len(buf), int(size)) {
		some, err := r.Read(buf[n:])
		if n += some; errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
	}
	f.size, f.kind, f.first = size, KindFile, append(make([]byte, 0, n), buf[:n]...)
	format, sure := archive.SniffFirst(filepath.Base(f.c.Path), f.first)
	if !sure {
		if format, err = archive.Sniff(f.c.Path); err != nil {
			return err
		}
	}
	if format != archive.None {
		f.kind = KindArchive
	}
	return nil
}

// facts are what is known of a candidate, found out when it is first asked for, and
// once.
type facts struct {
	c      Candidate
	lists  *List
	limits archive.Limits
	turn   chan struct{} // listings under way
	kind   string
	size   int64

	namesOnly bool // no size is asked for

	names     *listing
	objects   []string // the files that name several sets
	mimes     []string
	documents map[string]*document

	first  []byte // of a file: as much as its type is told by; nil: not read yet
	listed Listed // of a folder: what is known without a look at it; nil: nothing
	sieve  *sieve
}

// document is one XML or JSON file that was read.
type document struct {
	data []byte
	xml  *xmlquery.Node
	err  error // of reading or parsing it
}

// isFolder reports whether the candidate is a folder on disk.
func (f *facts) isFolder() bool { return f.kind == KindFolder || f.kind == KindBag }

// base are the variables that are there from the beginning.
func (f *facts) base() vars {
	name := layout.EncodePath(f.c.Name)
	stem, extension := name, ""
	switch {
	case f.kind == KindArchive:
		stem = archive.FolderName(name)
		extension = strings.TrimPrefix(strings.TrimPrefix(name, stem), ".")
	case !f.isFolder() && path.Ext(name) != name:
		extension = strings.TrimPrefix(path.Ext(name), ".")
		stem = strings.TrimSuffix(name, path.Ext(name))
	}
	return vars{"name": name, "stem": stem, "extension": strings.ToLower(extension), "kind": f.kind, "collection": string(f.c.Collection)}
}

// head gives the first bytes of a file inside a folder, or of the file itself with "".
func (f *facts) head(rel string, n int64) ([]byte, error) {
	if rel == "" && f.first != nil && (n <= int64(len(f.first)) || len(f.first) < mimeHead) {
		return f.first[:min(n, int64(len(f.first)))], nil
	}
	r, err := f.open(rel)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return io.ReadAll(io.LimitReader(r, n))
}

// open opens a file below the candidate, or itself with "". No link is followed, and
// nothing that is no regular file is opened.
func (f *facts) open(rel string) (_ *os.File, err error) {
	dir, name := f.c.Path, rel
	if rel == "" {
		dir, name = filepath.Split(f.c.Path)
	}
	root, err := os.OpenRoot(filepath.Clean(dir))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	r, err := root.OpenFile(filepath.FromSlash(name), os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	if info, err := r.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, errors.Join(errors.New("is no regular file"), err, r.Close())
	}
	return r, nil
}

// mime gives the types of the file: the most exact one first, then what it is a kind of.
func (f *facts) mime() ([]string, error) {
	if f.mimes == nil {
		data, err := f.head("", mimeHead)
		if err != nil {
			return nil, err
		}
		f.mimes = mimesOf(data)
	}
	return f.mimes, nil
}

func mimesOf(data []byte) []string {
	types := files.Types(data)
	for i := range types {
		types[i], _, _ = strings.Cut(types[i], ";")
	}
	return types
}

// mimeFits tells which of the types wanted it is; what everything is counts only
// where nothing better is known.
func mimeFits(wanted Texts, types []string) bool {
	for i, t := range types {
		if t == "application/octet-stream" && i > 0 {
			break
		}
		for _, w := range wanted {
			kind, any := strings.CutSuffix(w, "/*")
			if strings.EqualFold(w, t) || any && strings.HasPrefix(t, strings.ToLower(kind)+"/") {
				return true
			}
		}
	}
	return false
}

// document reads a file inside, or the dropped file itself with "".
func (f *facts) document(rel string) *document {
	if d := f.documents[rel]; d != nil {
		return d
	}
	if f.documents == nil {
		f.documents = map[string]*document{}
	}
	d := &document{}
	f.documents[rel] = d
	switch {
	case f.kind == KindArchive:
		d.err = errors.New("what stands in a file within an archive is not known before it is unpacked")
	case rel == "" && f.isFolder():
		d.err = errors.New("a folder is no document; name a file in it")
	default:
		d.data, d.err = f.head(rel, maxDocument+1)
	}
	if errors.Is(d.err, fs.ErrNotExist) {
		d.err = fs.ErrNotExist
	}
	if len(d.data) > maxDocument {
		d.data, d.err = nil, fmt.Errorf("is larger than %d bytes, and not looked into", maxDocument)
	}
	return d
}

// xmlValue gives what an XPath finds in a file.
func (f *facts) xmlValue(rel string, x *xpath) (string, bool, error) {
	d := f.document(rel)
	if d.err == nil && d.xml == nil {
		d.xml, d.err = parseXML(d.data)
	}
	if d.err != nil {
		return "", false, d.err
	}
	return x.value(d.xml)
}

// jsonValue gives what stands at a path of a file.
func (f *facts) jsonValue(rel, at string) (text string, ok bool, err error) {
	d := f.document(rel)
	if d.err != nil {
		return "", false, d.err
	}
	data := bytes.TrimPrefix(d.data, []byte("\xef\xbb\xbf"))
	if !gjson.ValidBytes(data) {
		return "", false, errors.New("is no JSON")
	}
	defer caught(&err)
	v := gjson.GetBytes(data, at)
	if !v.Exists() || v.Type == gjson.Null {
		return "", false, nil
	}
	return fold(v.String()), true, nil
}
