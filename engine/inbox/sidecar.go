package inbox

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"bagpipe/engine/inbox/internal/content"
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
	in, _, err := content.OpenRegular(from, filepath.Base(from))
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

// marker is a file beside a drop that says that the drop is whole.
type marker struct {
	path string
	at   time.Time // of its last change
	seen string    // which file it is, in which state
}

// covers tells whether a drop has not changed since the marker was set.
func (m *marker) covers(d Drop) bool { return m != nil && !d.Since.After(m.at) }

// stateOf tells a file in one state from any other file, and from itself once it is
// touched.
func stateOf(st *unix.Stat_t) string {
	return fmt.Sprintf("%d.%d", st.Ino, time.Unix(st.Ctim.Unix()).UnixNano())
}

// removeMarker removes the marker of a drop that is done with, unless it has been
// set anew since: then it is that of the next drop of this name.
func removeMarker(path, seen string) error {
	var st unix.Stat_t
	if path == "" || unix.Lstat(path, &st) != nil || stateOf(&st) != seen {
		return nil
	}
	return layout.RemoveIfThere(path)
}
