package folder

import (
	"path/filepath"
	"time"

	"bagpipe/layout"
	"bagpipe/layout/disk"
)

// Folders are the items' folders of a workspace, and the scratch folders of this engine.
type Folders struct {
	root     string
	Rounds   *disk.Rounds // of all that this process writes
	now      func() time.Time
	Spares   spareFolders
	Space    freeSpace
	verified verifiedSources
	Roots    Roots                                  // of catalogs; nil: there are none
	Away     func(catalog layout.Name) (why string) // the root of one that Roots knows, as a scan judges it; "": it is there
}

// New gives the folders of the workspace at root. least is the free space in bytes below
// which work pauses.
func New(root string, now func() time.Time, least func() uint64) *Folders {
	return &Folders{root: root, Rounds: &disk.Rounds{}, now: now, Space: freeSpace{root: root, now: now, least: least}}
}

func (fo *Folders) path(rel string) string { return filepath.Join(fo.root, filepath.FromSlash(rel)) }

// Begin says that the caller is about to write to the file system of the items, which
// scratch folders are on, too; see disk.Rounds.
func (fo *Folders) Begin() (*disk.Writing, error) {
	return fo.Rounds.Begin(fo.path(layout.ItemsDir))
}

// DropSpares removes the spare scratch folders, when the engine ends.
func (fo *Folders) DropSpares() error { return fo.Spares.drop() }
