package doctor

import (
	"cmp"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"bagpipe/engine/settings"
	"bagpipe/layout"
	"bagpipe/layout/disk"
	"bagpipe/steps/target"
)

// targets looks at those of the settings. Of servers it says that it asks none.
func (d *Doctor) targets() {
	s := d.settings.Current().Settings
	for _, name := range slices.Sorted(maps.Keys(s.Targets)) {
		c, _ := s.Target(d.ledger.Root, name, "")
		if about := "target " + name; c.Kind == target.KindFolder {
			d.folderTarget(about, c.Path, s.Free(), forBags(s, name))
		} else {
			d.say(about, Unseen, "a server (%s): one that does not answer would be waited for", c.Kind)
		}
	}
}

// forBags reports whether the bags of a collection go to a target: else what is delivered alone does, or nothing yet.
func forBags(s *settings.Settings, name string) bool {
	for _, collection := range append(slices.Collect(maps.Keys(s.Collections)), "default") {
		if names, _ := s.Goals(layout.Name(collection)); slices.Contains(names, name) {
			return true
		}
	}
	return false
}

// folderTarget looks at a target in a folder of this machine.
func (d *Doctor) folderTarget(about, dir string, least uint64, bags bool) {
	shown := layout.EncodePath(dir)
	if _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) {
		d.say(about, Poor, "%s is not there: the first copy makes it; where copies were made, is it mounted?", shown)
		return
	}
	if _, err := os.Lstat(filepath.Join(dir, layout.StoreFile)); err != nil && bags {
		d.say(about, Wrong, "%s has no %s: is it mounted? If it is a new target, make that file in it, empty", shown, layout.StoreFile)
		return
	}
	if err := unix.Access(dir, unix.W_OK|unix.X_OK); err != nil {
		d.say(about, Wrong, "%s cannot be written to: %v", shown, err)
		return
	}
	free, err := disk.Free(dir)
	same, apart := disk.SameFileSystem(d.ledger.Root, dir)
	if err := cmp.Or(err, apart); err != nil {
		d.say(about, Wrong, "%v", err)
		return
	}
	where := "on a file system of its own"
	if same {
		where = "on the file system of the workspace"
	}
	state := Good
	if free < least {
		state = Poor
	}
	d.say(about, state, "%s can be written to, %s, %s free", shown, where, layout.FormatSize(free))
}
