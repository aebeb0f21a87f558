package inbox

import (
	"fmt"
	"os"
	"path/filepath"

	"bagpipe/engine/inbox/internal/content"
	"bagpipe/layout"
	"bagpipe/layout/disk"

	"golang.org/x/sys/unix"
)

// terms are what holds of all drops in a folder.
type terms struct {
	batch   layout.Name // the folder is that of this batch
	whole   *marker     // of the batch
	closed  string      // why nothing may be added to the batch
	paused  string      // why nothing is taken for now
	foreign bool        // on a network file system
	fixed   string      // why nothing may be moved out of it
	sticky  bool        // only owners may move what is theirs
}

// mayMove tells why entries of a folder of drops may not be renamed; empty: they may,
// where it is sticky by their owners alone.
func mayMove(dir string) (why string, sticky bool) {
	if err := unix.Access(dir, unix.W_OK|unix.X_OK); err != nil {
		return fmt.Sprintf("%s may not be written to by %s", layout.EncodePath(filepath.Base(dir)), disk.AccountName(os.Geteuid())), false
	}
	var st unix.Stat_t
	err := unix.Stat(dir, &st)
	return "", err == nil && st.Mode&unix.S_ISVTX != 0 && int(st.Uid) != os.Geteuid()
}

// stays tells why a drop may not leave its place, and why its original may not be
// removed; empty: nothing forbids it.
func (t terms) stays(d Drop, s content.Survey) (unmoved, unremoved string) {
	switch st := s.Access.Owner; {
	case st == nil:
		return "", ""
	case t.fixed != "":
		unmoved = t.fixed
	case int(st.Uid) == os.Geteuid() || os.Geteuid() == 0:
	case t.sticky:
		unmoved = "its folder lets only its owner move it (sticky bit)"
	case s.Kind == Folder && !d.IsSet() && unix.Access(d.Path, unix.W_OK) != nil:
		unmoved = fmt.Sprintf("%s may not write to it, which moving a folder needs", disk.AccountName(os.Geteuid()))
	}
	if unremoved = unmoved; unremoved == "" && s.Access.Fixed != "" {
		unremoved = fmt.Sprintf("%s may not remove what is in %s", disk.AccountName(os.Geteuid()), layout.EncodePath(s.Access.Fixed))
	}
	return unmoved, unremoved
}
