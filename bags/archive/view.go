package archive

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"bagpipe/bags/archive/internal/notes"
	"bagpipe/bags/archive/internal/volume"
	"bagpipe/bags/files"
	"bagpipe/layout"
)

// How an archive is read where it stands. The rules are:
//
//   - nothing is unpacked. The archive is listed first, and then its members are
//     opened and hashed: those of a zip or a plain tar on all cores, as they can be
//     found again; those of a compressed tar in their order, by decompressing it again;
//   - members of a compressed tar that the caller wants to open are kept in a temporary
//     file that has no name any more, so memory does not grow with the archive;
//   - a member that Extract would refuse ends the listing, with two exceptions: control
//     characters in names are taken, and links and special files are listed as such.

// spoolMost bounds the members kept of a compressed tar.
const spoolMost = 4 << 30

// View is the listing of an archive whose members can be opened and hashed where they
// are. Used by one goroutine.
type View struct {
	Name     string
	Format   Format
	Members  []Member // all but folders
	Folders  []string // as they appeared, those that only lie above files included
	Warnings []string

	notes  notes.Notes
	src    *volume.File
	from   viewed // nil where the listing was broken off
	keep   func(path string) bool
	limits Limits
	input  int64
	total  int64 // bytes of the members so far
	paths  admission
}

// viewed opens and hashes the members of a listed archive.
type viewed interface {
	open(path string) (io.ReadCloser, error)
	hash(ctx context.Context, plan []files.Planned, o files.HashOptions, each func(files.Hashed) error) error
	close() error
}

// OpenView lists the archive f, which belongs to the view from then on. keep tells of
// which files of a compressed tar Open will be asked. A broken rule is an *Error, and
// comes with a view of what was listed before it.
func OpenView(ctx context.Context, f *os.File, l Limits, keep func(path string) bool) (*View, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	name := filepath.Base(f.Name())
	v := &View{Name: name, notes: notes.Notes{Archive: name}, src: &volume.File{F: f}, keep: keep, limits: l.WithDefaults(), input: info.Size()}
	v.paths = newAdmission(v.Name, v.limits, func(_, p string, dir bool) {
		if dir {
			v.Folders = append(v.Folders, p)
		}
	})
	v.paths.controls = true
	v.Format = sniff(v.src, v.Name)
	v.paths.zipped = v.Format == Zip
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	v.from, err = v.list(ctx)
	v.Warnings = v.notes.Warnings
	if cause := v.src.Failure(); cause != nil {
		err = cause
	}
	var broken *files.Error
	if err != nil && !errors.As(err, &broken) {
		return nil, errors.Join(err, v.Close())
	}
	return v, err
}

func (v *View) list(ctx context.Context) (viewed, error) {
	switch v.Format {
	case Zip:
		return v.listZip()
	case Tar, TarGzip, TarZstd, TarBzip2, TarXz, TarLz4:
		return v.listTar(ctx)
	case SevenZip, Rar:
		return nil, v.notes.Broken("", files.RuleNotArchive, "bags are read in zips and tars as they are; unpack this "+string(v.Format)+" first", nil)
	}
	return nil, v.notes.Broken("", files.RuleNotArchive, "neither zip nor tar, plain or compressed", nil)
}

// add admits the member that is stored under this name: a file, a folder, or (with a
// mode that says so) a link or special file. It gives the path of all but a folder.
func (v *View) add(stored string, m Member) (string, error) {
	dir := m.Mode.IsDir()
	p, err := v.paths.admit(stored, dir)
	if err != nil || p == "" {
		return "", err
	}
	if rule, detail := v.limits.OverFile(m.Size); rule != "" {
		return "", v.notes.Broken(stored, rule, detail, nil)
	}
	if v.total += m.Size; v.total < 0 || m.Size < 0 {
		return "", v.notes.Broken(stored, files.RuleSize, "the archive gives an impossible size", nil)
	}
	if rule, detail := v.limits.overBytes(v.total, v.input); rule != "" {
		return "", v.notes.Broken(stored, rule, detail, nil)
	}
	if dir {
		return "", nil
	}
	m.Path = p
	v.Members = append(v.Members, m)
	return p, nil
}

// Stat reports whether a path is in the archive, and whether it is a folder.
func (v *View) Stat(p string) (folder, ok bool) {
	folder, ok = v.paths.isDir[p]
	return folder, ok
}

// Top lists the names at the archive's top, in no order.
func (v *View) Top() (names []string) {
	for p := range v.paths.isDir {
		if !strings.Contains(p, "/") {
			names = append(names, p)
		}
	}
	return names
}

// Open gives a member's bytes: any of a zip or a plain tar, those of a compressed tar
// that were kept.
func (v *View) Open(p string) (io.ReadCloser, error) {
	if v.from == nil {
		return nil, &fs.PathError{Op: "open", Path: layout.EncodePath(p), Err: fs.ErrNotExist}
	}
	return v.from.open(p)
}

// Hash reads the planned members once and hands their digests on.
func (v *View) Hash(ctx context.Context, plan []files.Planned, o files.HashOptions, each func(files.Hashed) error) error {
	if v.from == nil {
		return nil
	}
	return v.from.hash(ctx, plan, o, each)
}

// Close closes the archive.
func (v *View) Close() error {
	if v.from == nil {
		return v.src.F.Close()
	}
	return errors.Join(v.from.close(), v.src.F.Close())
}
