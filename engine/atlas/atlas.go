package atlas

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"bagpipe/engine/fault"
	"bagpipe/engine/folder"
	"bagpipe/engine/gitstore"
	"bagpipe/engine/ledger"
	"bagpipe/engine/stac"
	"bagpipe/layout"
	"bagpipe/layout/disk"
)

// Options say what a catalog holds. The zero Options are all items, with links to their files
// where they stand.
type Options struct {
	Collections []layout.Name `json:"collections,omitempty"` // none: all
	Href        string        `json:"href,omitempty"`        // what an item's files are below, as HREF/ID/PATH; "": their place on this disk
	Rebuild     bool          `json:"-"`                     // all is worded anew, also where nothing says what the catalog was made of
}

// Exported counts what an export did.
type Exported struct {
	Items    int      `json:"items"`
	Written  int      `json:"written"`
	Removed  int      `json:"removed"`
	Problems []string `json:"problems,omitempty"` // items that cannot be worded
}

const noteFile = ".bagpipe-stac.json"

// noteSchema is 4 since the note says where what the links lead to lies. A catalog of another schema is worded anew.
const noteSchema = 4

// note is what a catalog was made of.
type note struct {
	Schema  int                      `json:"schema"`
	Tree    string                   `json:"tree"` // of the history; "": an export is under way, or was killed
	Options Options                  `json:"options"`
	Items   map[layout.ItemID]member `json:"items"`
	Failed  []layout.ItemID          `json:"failed,omitempty"` // could not be worded, and are tried again
	Roots   map[layout.Name]string   `json:"roots,omitempty"`  // that links lead to, seen from the catalog: of a workspace's catalogs; "": the workspace
}

// STAC brings the static catalog in dir up to date, and makes it where there is none.
func STAC(ctx context.Context, l *ledger.Ledger, fo *folder.Folders, dir string, o Options) (out Exported, err error) {
	v, err := l.Store.Tip()
	if err != nil {
		return out, err
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return out, err
	}
	if err := disk.MkdirAll(dir, 0o777); err != nil {
		return out, err
	}
	unlock, err := disk.LockDir(dir)
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	was, err := readNote(dir)
	if err != nil && (!o.Rebuild || !isOurs(dir)) {
		return out, err
	}
	slices.Sort(o.Collections)
	x := &export{folder: fo, workspace: l.Root, dir: dir, options: o, was: was.Items, now: map[layout.ItemID]member{}, roots: map[layout.Name]string{}}
	since, err := was.since(o, x.seen)
	if err != nil {
		return out, err
	}
	var differing []layout.ItemID
	if !since.IsZero() {
		if differing = append(x.differing(), was.Failed...); len(differing) > manyDiffer {
			since, differing = gitstore.Hash{}, nil
		}
	}
	if !since.IsZero() {
		for id, m := range was.Items {
			x.now[id] = m
		}
		maps.Copy(x.roots, was.Roots)
	}
	if err := writeNote(dir, note{Options: was.Options, Items: was.Items}); err != nil {
		return out, err
	}
	err = v.Folders(ctx, since, layout.ItemsDir, ledger.ItemDepth, x.visit)
	for _, id := range differing {
		if err != nil {
			break
		}
		var r ledger.Records
		if r, err = ledger.ReadRecords(v, id); err == nil {
			err = x.take(id, r.Manifest, r.Inventory)
		}
	}
	if err != nil {
		return x.out, err
	}
	if err := x.finish(); err != nil {
		return x.out, err
	}
	return x.out, writeNote(dir, note{Tree: v.Tree().String(), Options: o, Items: x.now, Failed: x.failed, Roots: x.roots})
}

// readNote reads what dir was made of. A folder of something else is refused, and a catalog whose note is not there or
// cannot be read.
func readNote(dir string) (n note, err error) {
	data, err := os.ReadFile(filepath.Join(dir, noteFile))
	if errors.Is(err, fs.ErrNotExist) {
		entries, err := os.ReadDir(dir)
		switch {
		case err != nil || len(entries) == 0:
			return n, err
		case isOurs(dir):
			return n, fault.New(fault.Refused, layout.EncodePath(dir)+" has a catalog, and not the "+noteFile+" that says what it was made of", fault.Remedy{Verb: fault.RebuildSTAC, Name: dir})
		}
		return n, fault.New(fault.Refused, layout.EncodePath(dir)+" holds something else already")
	}
	if err == nil {
		if err = json.Unmarshal(data, &n); err != nil {
			return note{}, &fault.Error{Kind: fault.Damaged, Text: layout.EncodePath(filepath.Join(dir, noteFile)) + " cannot be read", Err: err, Remedies: []fault.Remedy{{Verb: fault.RebuildSTAC, Name: dir}}}
		}
	}
	return n, err
}

// isOurs reports whether a folder's catalog is one that an export made.
func isOurs(dir string) bool {
	data, err := os.ReadFile(filepath.Join(dir, catalogFile))
	return err == nil && stac.IsCatalog(data, catalogID)
}

func writeNote(dir string, n note) error {
	n.Schema = noteSchema
	data, err := layout.EncodeJSON(n)
	if err != nil {
		return err
	}
	if err := disk.SyncFS(dir); err != nil { // the note speaks of all that is there
		return err
	}
	return disk.WriteFile(filepath.Join(dir, noteFile), data, 0o666)
}

// since is the tree from which on items are looked at; zero: all. seen says where something lies that links lead to.
func (n note) since(o Options, seen func(layout.Name) string) (gitstore.Hash, error) {
	for name, was := range n.Roots {
		if seen(name) != was {
			return gitstore.Hash{}, nil
		}
	}
	if o.Rebuild || n.Schema != noteSchema || n.Tree == "" || !slices.Equal(n.Options.Collections, o.Collections) || n.Options.Href != o.Href {
		return gitstore.Hash{}, nil
	}
	return gitstore.ParseHash(n.Tree)
}

// export is one under way.
type export struct {
	folder    *folder.Folders
	workspace string
	dir       string
	options   Options
	was       map[layout.ItemID]member

	mu     sync.Mutex // guards what is below
	roots  map[layout.Name]string
	now    map[layout.ItemID]member
	failed []layout.ItemID
	out    Exported
}

// visit words an item that is new or changed.
func (x *export) visit(f gitstore.Folder) error {
	id, rest, ok := layout.ItemOfPath(f.Path)
	if !ok || rest != "" {
		return nil
	}
	manifest, err := f.ReadFile(layout.ManifestJSON)
	if err != nil {
		return err
	}
	inventory, err := f.ReadFile(layout.InventoryJSON)
	if err != nil {
		return err
	}
	return x.take(id, manifest, inventory)
}

// manyDiffer is from how many documents on that are not as they were written all records are read in the order in which they
// lie: by themselves they take ten times as long.
const manyDiffer = 1000

// differing gives the items whose documents are not there, or of another size or time than when they were written. What
// changed a document's bytes and kept both is not seen.
func (x *export) differing() (ids []layout.ItemID) {
	for id, m := range x.was {
		info, err := os.Lstat(x.itemFile(id, m.Collection))
		if err != nil || !info.Mode().IsRegular() || info.Size() != m.Size || !info.ModTime().Equal(m.Written) {
			ids = append(ids, id)
		}
	}
	return ids
}

// take words an item, and notes what its collection says of it.
func (x *export) take(id layout.ItemID, manifest, inventory []byte) error {
	m, err := member{}, error(nil)
	if manifest != nil {
		m, err = x.word(id, manifest, inventory)
	}
	var pathErr *fs.PathError
	var linkErr *os.LinkError
	if errors.As(err, &pathErr) || errors.As(err, &linkErr) {
		return fmt.Errorf("write the STAC catalog: %w", err)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	delete(x.now, id)
	if err != nil {
		x.out.Problems, x.failed = append(x.out.Problems, fmt.Sprintf("item %s: %v", id.Short(), err)), append(x.failed, id)
	}
	if m.Collection != "" {
		x.now[id] = m
	}
	return nil
}

// write writes a file, a document of the catalog, where its bytes differ, so that a crash leaves the one or the other.
func (x *export) write(path string, data []byte) error {
	if old, err := os.ReadFile(path); err == nil && string(old) == string(data) {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return err
	}
	if err := os.WriteFile(path+".part", data, 0o666); err != nil {
		return err
	}
	if err := os.Rename(path+".part", path); err != nil {
		return err
	}
	x.mu.Lock()
	x.out.Written++
	x.mu.Unlock()
	return nil
}
