package inbox

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"bagpipe/layout"
	"bagpipe/layout/disk"

	"golang.org/x/sys/unix"
)

// The rules are: NAME.metadata.json and NAME.metadata.csv are about the drop NAME
// beside them. They stay where they are until its item is committed, and are then
// moved to items/…/ID/sidecars/, unless they have changed since the drop was taken: then
// they are the next drop's of this name. With a rejected drop they stay. metadata.csv is about
// all drops beside it, and stays.

// SharedSidecar is the table that is about the drops beside it.
const SharedSidecar = "metadata.csv"

// sidecarSuffixes are what is put behind a drop's name.
var sidecarSuffixes = [...]string{".metadata.json", ".metadata.csv"}

// isSidecar tells what a file is about; about is empty for a table about several.
func (p *place) isSidecar(e fs.DirEntry) (about string, yes bool) {
	if !p.set.Sidecars || !e.Type().IsRegular() {
		return "", false
	}
	if e.Name() == SharedSidecar {
		return "", true
	}
	for _, suffix := range sidecarSuffixes {
		if base, ok := strings.CutSuffix(e.Name(), suffix); ok && base != "" {
			return base, true
		}
	}
	return "", false
}

func (p *place) noteSidecar(e fs.DirEntry) {
	about, yes := p.isSidecar(e)
	path := filepath.Join(p.dir, e.Name())
	switch {
	case yes && about == "":
		p.shared = path
	case yes && p.names[about]: // entries come sorted: csv before json
		p.sidecars[about] = append(p.sidecars[about], path)
	}
}

// sidecarGrows tells of a side-car that is still being written.
func (p *place) sidecarGrows(d Drop) string {
	for _, path := range append([]string{d.Shared}, d.Sidecars...) {
		var st unix.Stat_t
		if path == "" || unix.Lstat(path, &st) != nil {
			continue
		}
		age := p.box.opt.Now().Sub(later(time.Unix(st.Mtim.Unix()), time.Unix(st.Ctim.Unix())))
		if !p.foreign && age >= 0 && age < p.set.Quiet {
			return filepath.Base(path) + " is still growing"
		}
	}
	return ""
}

// keepSidecars moves the side-cars of a committed item to it. Doing it twice is
// fine.
func (b *Box) keepSidecars(t Taken) error {
	if len(t.Sidecars) == 0 {
		return nil
	}
	dir := filepath.Join(b.path(layout.ItemDir(t.home())), layout.SidecarsDir)
	for i, path := range t.Sidecars {
		seen := carSeen(path)
		if seen == "" || i < len(t.carsSeen) && seen != t.carsSeen[i] {
			continue
		}
		if err := disk.MkdirAll(dir, dirPerm); err != nil {
			return err
		}
		to := filepath.Join(dir, filepath.Base(path))
		err := renameNew(path, to)
		if isEXDEV(err) || err != nil && removeOwn(t, err) == nil {
			err = removeOwn(t, moveAcross(path, to))
		}
		if errors.Is(err, fs.ErrExist) {
			continue // of the next drop of this name: it keeps it
		}
		if err != nil {
			return err
		}
		if err := errors.Join(disk.SyncDir(dir), disk.SyncDir(filepath.Dir(path))); err != nil {
			return err
		}
	}
	return nil
}

// carsSeen tells which files these are, in which state; "": it is not there.
func carsSeen(paths []string) (seen []string) {
	for _, path := range paths {
		seen = append(seen, carSeen(path))
	}
	return seen
}

func carSeen(path string) string {
	var st unix.Stat_t
	if unix.Lstat(path, &st) != nil {
		return ""
	}
	return stateOf(&st)
}

// moveAcross copies a file to another file system, durably, and removes it.
func moveAcross(from, to string) error {
	in, _, err := openRegular(from, filepath.Base(from))
	if err != nil {
		return err
	}
	data, err := io.ReadAll(in)
	if err = errors.Join(err, in.Close()); err != nil {
		return err
	}
	if err := disk.WriteFile(to, data, filePerm); err != nil {
		return err
	}
	return os.Remove(from)
}
