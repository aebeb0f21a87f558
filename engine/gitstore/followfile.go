package gitstore

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"bagpipe/engine/gitstore/internal/odb"
)

// write brings one file in line. What stands there and is in no commit was
// written by a person: it is kept beside.
func (f *follower) write(path string, p *pendingFile) error {
	name := filepath.Join(f.s.root, filepath.FromSlash(path))
	if !p.deleted {
		if done, err := f.amend(name, p.data); done || err != nil {
			return err
		}
	}
	same, err := f.keepEdited(path, name, p)
	if err != nil {
		return err
	}
	if same {
		return nil
	}
	if p.deleted {
		if err := f.s.fs.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR) {
			return err
		}
		return nil
	}
	return f.replace(name, p.data)
}

// amend gives a file that is there the new bytes in its place, if it can and the file is
// as it was committed.
func (f *follower) amend(name string, data []byte) (done bool, err error) {
	same := false
	done, err = f.s.fs.Amend(name, func(old []byte) []byte {
		if same = bytes.Equal(old, data); same {
			return nil
		}
		if committed, err := f.isCommitted(old); err != nil || !committed {
			return nil
		}
		return data
	})
	return done || same, err
}

// isCommitted tells whether bytes are a committed file's, or what a power cut left of one
// that was not synced: then zeros are at its end.
func (f *follower) isCommitted(data []byte) (bool, error) {
	data = bytes.TrimRight(data, "\x00")
	if len(data) == 0 {
		return true, nil
	}
	return f.s.db.Has(odb.Name(odb.TypeBlob, data))
}

// bringInLine is write of a file that is likely to be as committed, blob: then the
// bytes committed are not even read.
func (f *follower) bringInLine(path string, blob Hash) error {
	p := &pendingFile{deleted: blob.IsZero()}
	name := filepath.Join(f.s.root, filepath.FromSlash(path))
	if !p.deleted {
		data, err := f.readPlain(name)
		if err == nil && odb.Name(odb.TypeBlob, data) == blob {
			return f.removeTemp(tempOf(name)) // of a crash after the file was swapped in
		}
		if p.data, err = f.s.readBlob(path, blob); err != nil {
			return err
		}
	}
	if err := f.write(path, p); err != nil {
		return err
	}
	return f.removeTemp(tempOf(name)) // of a crash before it was, where the file is amended now
}

// What stands there is a link, a pipe or a device; or a folder.
var (
	errNotPlain = errors.New("not a plain file")
	errFolder   = errors.New("a folder")
)

// readPlain reads no link, pipe or device: that may never end.
func (f *follower) readPlain(name string) ([]byte, error) {
	info, err := f.s.fs.Lstat(name)
	switch {
	case err != nil:
		return nil, err
	case info.IsDir():
		return nil, errFolder
	case !info.Mode().IsRegular():
		return nil, errNotPlain
	}
	return f.s.fs.ReadFile(name)
}

// keepEdited looks at the file as it is. same: it needs no writing.
func (f *follower) keepEdited(path, name string, p *pendingFile) (same bool, err error) {
	data, err := f.readPlain(name)
	switch {
	case errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR):
		return p.deleted, nil
	case errors.Is(err, errFolder) && p.deleted: // it is in nobody's way
		return true, nil
	case errors.Is(err, errNotPlain), errors.Is(err, errFolder):
		return false, f.keep(path, name)
	case err != nil:
		return false, err
	case !p.deleted && bytes.Equal(data, p.data):
		return true, nil
	}
	committed, err := f.isCommitted(data)
	if err != nil || committed {
		return false, err
	}
	return false, f.keep(path, name)
}

// keep keeps what a person put in a file's place beside it, and says so.
func (f *follower) keep(path, name string) error {
	kept, err := f.keepBeside(name)
	if err != nil {
		return fmt.Errorf("keep the edited %s: %w", path, err)
	}
	if f.s.opts.Edited == nil {
		f.s.log.Warn("a followed file was edited in place; the edit is kept beside it, and the file is as committed again",
			"path", path, "kept", kept)
	} else {
		f.s.opts.Edited(path, strings.TrimSuffix(path, filepath.Base(path))+filepath.Base(kept))
	}
	return nil
}

// keepBeside gives the edited file a second name; it is replaced at its first. A folder,
// which can have one name alone, is moved there.
func (f *follower) keepBeside(name string) (string, error) {
	kept := name + ".edited-" + f.s.opts.Now().UTC().Format("20060102T150405Z")
	for n := 1; ; n++ {
		try := kept
		if n > 1 {
			try = fmt.Sprintf("%s.%d", kept, n)
		}
		err := f.s.fs.Link(name, try)
		if err != nil && f.isFolder(name) {
			err = f.moveFolder(name, try)
		}
		if !errors.Is(err, fs.ErrExist) || n > 1000 {
			return try, err
		}
	}
}

func (f *follower) isFolder(name string) bool {
	info, err := f.s.fs.Lstat(name)
	return err == nil && info.IsDir()
}

// moveFolder moves a folder to a name that is free. A crash after it leaves no file in
// its place, which the next look at the file writes.
func (f *follower) moveFolder(name, to string) error {
	if _, err := f.s.fs.Lstat(to); !errors.Is(err, fs.ErrNotExist) {
		return cmp.Or(err, fs.ErrExist)
	}
	return f.s.fs.Rename(name, to)
}

func tempOf(name string) string {
	return filepath.Join(filepath.Dir(name), "."+filepath.Base(name)+".tmp")
}

func (f *follower) removeTemp(temp string) error {
	err := f.s.fs.Remove(temp)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return nil
	}
	return err
}

// replace writes a file beside its place and swaps it in. A crash may leave the
// temporary file, which the next replacement of the same file overwrites, and the
// next look at the file removes.
func (f *follower) replace(name string, data []byte) error {
	temp := tempOf(name)
	err := f.writeTemp(temp, data)
	if errors.Is(err, fs.ErrNotExist) {
		if err := f.mkdirs(filepath.Dir(name)); err != nil {
			return err
		}
		err = f.writeTemp(temp, data)
	}
	if err == nil {
		err = f.swapIn(temp, name)
	}
	if err != nil {
		err = errors.Join(err, f.removeTemp(temp))
	}
	return err
}

// swapIn gives the temporary file its name. Renamed over a file, ext4 would write its
// bytes out at once, which takes as long as all the rest.
func (f *follower) swapIn(temp, name string) error {
	err := f.s.fs.Exchange(temp, name)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, errors.ErrUnsupported) {
		return f.s.fs.Rename(temp, name)
	}
	if err != nil {
		return err
	}
	return f.s.fs.Remove(temp)
}

// writeTemp never writes to a file that is there: one that a crash left after the swap
// is the old version, which may have another name by now: that of an edit that was kept
// beside, or in somebody's copy of hard links.
func (f *follower) writeTemp(temp string, data []byte) (err error) {
	const flags = os.O_CREATE | os.O_EXCL | os.O_WRONLY
	file, err := f.s.fs.OpenFile(temp, flags, 0o644)
	if errors.Is(err, fs.ErrExist) {
		if err := f.s.fs.Remove(temp); err != nil {
			return err
		}
		file, err = f.s.fs.OpenFile(temp, flags, 0o644)
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	_, err = file.Write(data)
	return err
}

func (f *follower) mkdirs(dir string) error {
	err := f.s.fs.Mkdir(dir, 0o755)
	if errors.Is(err, fs.ErrNotExist) {
		if err := f.mkdirs(filepath.Dir(dir)); err != nil {
			return err
		}
		err = f.s.fs.Mkdir(dir, 0o755)
	}
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
}
