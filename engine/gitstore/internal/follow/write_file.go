package follow

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	"bagpipe/engine/gitstore/internal/odb"
	"bagpipe/engine/gitstore/internal/repo"
	"bagpipe/engine/gitstore/internal/trees"
)

// writer writes files of the workspace as they were committed.
type writer struct {
	repo   *repo.Repo
	edited func(path, keptAs string)

	// mu guards above: folders that held a new folder before, and so are there.
	mu    sync.Mutex
	above map[string]bool
}

// mostAbove bounds writer.above: the folders right above items are 65,536.
const mostAbove = 100_000

// write brings one file in line.
func (w *writer) write(path string, p *pending) error {
	name := filepath.Join(w.repo.Root, filepath.FromSlash(path))
	if !p.deleted {
		done, err := w.amend(name, p.data)
		if errors.Is(err, fs.ErrNotExist) {
			return w.replace(name, p.data, w.repo.FS.Rename)
		}
		if done || err != nil {
			return err
		}
	}
	same, err := w.keepEdited(path, name, p)
	if err != nil {
		return err
	}
	if same {
		return nil
	}
	if p.deleted {
		return w.repo.Remove(name)
	}
	return w.replace(name, p.data, w.swapIn)
}

// writeAll writes the files of a folder, and says of each how it ended.
func (w *writer) writeAll(d *folder) {
	if w.writeNew(d) {
		return
	}
	for i, p := range d.files {
		d.errs[i] = w.write(d.paths[i], p)
	}
}

// writeNew writes the files of a folder that is not there yet, which gets its name when they are in it. Where
// it is there, or that cannot be done, nothing is. A crash may leave the temporary folder as replace may a file.
func (w *writer) writeNew(d *folder) (done bool) {
	dir := filepath.Join(w.repo.Root, filepath.FromSlash(path.Dir(d.paths[0])))
	if len(d.files) == 1 || d.removes() {
		return false
	}
	if !w.makesAbove(filepath.Dir(dir)) {
		if _, err := w.repo.FS.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
			return false
		}
	}
	temp := tempOf(dir)
	err := w.mkdirEmpty(temp)
	for i, p := range d.files {
		if err == nil {
			err = w.writeTemp(filepath.Join(temp, path.Base(d.paths[i])), p.data)
		}
	}
	if err == nil {
		err = w.repo.FS.Rename(temp, dir)
	}
	if err != nil {
		_ = w.clear(temp) // what could not be written is told of by who writes it file by file
	}
	return err == nil
}

// makesAbove reports whether it made the folder that a new one is to be in: then nothing is in it. Most are asked for
// once a process, and are not made when they are asked for again.
func (w *writer) makesAbove(dir string) bool {
	w.mu.Lock()
	known := w.above[dir]
	if !known {
		if len(w.above) >= mostAbove {
			clear(w.above)
		}
		w.above[dir] = true
	}
	w.mu.Unlock()
	return !known && w.mkdir(dir) == nil
}

// mkdirEmpty makes a temporary folder anew.
func (w *writer) mkdirEmpty(temp string) error {
	err := w.repo.FS.Mkdir(temp, 0o755)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		err = w.mkdirs(filepath.Dir(temp))
	case errors.Is(err, fs.ErrExist):
		err = w.clear(temp)
	default:
		return err
	}
	if err != nil {
		return err
	}
	return w.repo.FS.Mkdir(temp, 0o755)
}

// clear removes a temporary folder, where there is one.
func (w *writer) clear(temp string) error {
	entries, err := w.repo.FS.ReadDir(temp)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		err = errors.Join(err, w.repo.Remove(filepath.Join(temp, e.Name())))
	}
	return errors.Join(err, w.repo.Remove(temp))
}

// amend gives a file that is as it was committed the new bytes in its place, where the file
// system can.
func (w *writer) amend(name string, data []byte) (done bool, err error) {
	same := false
	done, err = w.repo.FS.Amend(name, func(old []byte) []byte {
		if same = bytes.Equal(old, data); same {
			return nil
		}
		if committed, err := w.isCommitted(old); err != nil || !committed {
			return nil
		}
		return data
	})
	return done || same, err
}

// isCommitted reports whether bytes are a committed file's, or the rest of one that a power
// cut left unsynced: then zeros are at its end.
func (w *writer) isCommitted(data []byte) (bool, error) {
	data = bytes.TrimRight(data, "\x00")
	if len(data) == 0 {
		return true, nil
	}
	return w.repo.DB.Has(odb.Name(odb.TypeBlob, data))
}

// bringInLine is write of a file that is likely to be as committed, blob: then the
// committed bytes are not even read.
func (w *writer) bringInLine(path string, blob odb.Hash) error {
	p := &pending{deleted: blob.IsZero()}
	name := filepath.Join(w.repo.Root, filepath.FromSlash(path))
	if !p.deleted {
		data, err := w.readPlain(name)
		if err == nil && odb.Name(odb.TypeBlob, data) == blob {
			return w.repo.Remove(tempOf(name)) // of a crash after the file was swapped in
		}
		if p.data, err = trees.ReadBlob(w.repo.DB, path, blob); err != nil {
			return err
		}
	}
	if err := w.write(path, p); err != nil {
		return err
	}
	// Of a crash before it was, where the file is amended now, or its folder was to be made.
	return errors.Join(w.repo.Remove(tempOf(name)), w.clear(tempOf(filepath.Dir(name))))
}

// In the file's place stands a link, a pipe or a device; or a folder.
var (
	errNotPlain = errors.New("not a plain file")
	errFolder   = errors.New("a folder")
)

// readPlain reads a file, but no link, pipe or device: reading them may never end.
func (w *writer) readPlain(name string) ([]byte, error) {
	info, err := w.repo.FS.Lstat(name)
	switch {
	case err != nil:
		return nil, err
	case info.IsDir():
		return nil, errFolder
	case !info.Mode().IsRegular():
		return nil, errNotPlain
	}
	return w.repo.FS.ReadFile(name)
}

// keepEdited looks at the file as it is, and keeps a person's bytes beside. same reports
// that the file needs no writing.
func (w *writer) keepEdited(path, name string, p *pending) (same bool, err error) {
	data, err := w.readPlain(name)
	switch {
	case errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR):
		return p.deleted, nil
	case errors.Is(err, errFolder) && p.deleted: // it is in nobody's way
		return true, nil
	case errors.Is(err, errNotPlain), errors.Is(err, errFolder):
		return false, w.keep(path, name)
	case err != nil:
		return false, err
	case !p.deleted && bytes.Equal(data, p.data):
		return true, nil
	}
	committed, err := w.isCommitted(data)
	if err != nil || committed {
		return false, err
	}
	return false, w.keep(path, name)
}

// keep keeps the file that a person put in a committed file's place, and tells of it.
func (w *writer) keep(path, name string) error {
	kept, err := w.keepBeside(name)
	if err != nil {
		return fmt.Errorf("keep the edited %s: %w", path, err)
	}
	if w.edited == nil {
		w.repo.Log.Warn("a followed file was edited in place; the edit is kept beside it, and the file is as committed again",
			"path", path, "kept", kept)
	} else {
		w.edited(path, strings.TrimSuffix(path, filepath.Base(path))+filepath.Base(kept))
	}
	return nil
}

// keepBeside gives the edited file a second name; it is replaced at its first. A folder,
// which can have one name alone, is moved there.
func (w *writer) keepBeside(name string) (string, error) {
	kept := name + ".edited-" + w.repo.Now().UTC().Format("20060102T150405Z")
	for n := 1; ; n++ {
		try := kept
		if n > 1 {
			try = fmt.Sprintf("%s.%d", kept, n)
		}
		err := w.repo.FS.Link(name, try)
		if err != nil && w.isFolder(name) {
			err = w.moveFolder(name, try)
		}
		if !errors.Is(err, fs.ErrExist) || n > 1000 {
			return try, err
		}
	}
}

func (w *writer) isFolder(name string) bool {
	info, err := w.repo.FS.Lstat(name)
	return err == nil && info.IsDir()
}

// moveFolder moves a folder to a name that is free. A crash after it leaves no file in
// its place, which the next look at the file writes.
func (w *writer) moveFolder(name, to string) error {
	if _, err := w.repo.FS.Lstat(to); !errors.Is(err, fs.ErrNotExist) {
		return cmp.Or(err, fs.ErrExist)
	}
	return w.repo.FS.Rename(name, to)
}

func tempOf(name string) string {
	return filepath.Join(filepath.Dir(name), "."+filepath.Base(name)+".tmp")
}

// replace writes a file beside its place and gives it its name. A crash may leave the
// temporary file, which the next replacement of the same file overwrites, and the
// next look at the file removes.
func (w *writer) replace(name string, data []byte, put func(temp, name string) error) error {
	temp := tempOf(name)
	err := w.writeTemp(temp, data)
	if errors.Is(err, fs.ErrNotExist) {
		if err := w.mkdirs(filepath.Dir(name)); err != nil {
			return err
		}
		err = w.writeTemp(temp, data)
	}
	if err == nil {
		err = put(temp, name)
	}
	if err != nil {
		err = errors.Join(err, w.repo.Remove(temp))
	}
	return err
}

// swapIn gives the temporary file its name. At a rename over a file ext4 writes the bytes
// out at once, which takes as long as all the rest.
func (w *writer) swapIn(temp, name string) error {
	err := w.repo.FS.Exchange(temp, name)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, errors.ErrUnsupported) {
		return w.repo.FS.Rename(temp, name)
	}
	if err != nil {
		return err
	}
	return w.repo.FS.Remove(temp)
}

// writeTemp never writes to a file that is there: a temporary file that a crash left after
// the swap is the old version, which may have another name by now, of an edit that was kept
// beside or in a person's copy of hard links.
func (w *writer) writeTemp(temp string, data []byte) error {
	err := w.repo.FS.WriteNew(temp, data, 0o644)
	if !errors.Is(err, fs.ErrExist) {
		return err
	}
	if err := w.repo.FS.Remove(temp); err != nil {
		return err
	}
	return w.repo.FS.WriteNew(temp, data, 0o644)
}

// mkdirs makes a folder, and those above it, unless it is there.
func (w *writer) mkdirs(dir string) error {
	if err := w.mkdir(dir); !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

// mkdir makes a folder that is not there, and those above it.
func (w *writer) mkdir(dir string) error {
	err := w.repo.FS.Mkdir(dir, 0o755)
	if errors.Is(err, fs.ErrNotExist) {
		if err := w.mkdirs(filepath.Dir(dir)); err != nil {
			return err
		}
		err = w.repo.FS.Mkdir(dir, 0o755)
	}
	return err
}
