package atlas

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"bagpipe/engine/fault"
	"bagpipe/engine/folder"
	"bagpipe/engine/gitstore"
	"bagpipe/engine/ledger"
	"bagpipe/layout"
	"bagpipe/layout/disk"
)

// Options say what a catalog holds. The zero Options are all items, with links to their files
// where they stand.
type Options struct {
	Collections []layout.Name `json:"collections,omitempty"` // none: all
	Href        string        `json:"href,omitempty"`        // what an item's files are below, as HREF/ID/PATH; "": their place on this disk
}

// Exported counts what an export did.
type Exported struct {
	Items    int      `json:"items"`
	Written  int      `json:"written"`
	Removed  int      `json:"removed"`
	Problems []string `json:"problems,omitempty"` // items that cannot be worded
}

const noteFile = ".bagpipe-stac.json"

// noteSchema is 2 since links are worded by records alone. A catalog of schema 1 may have wrong
// ones, and is worded anew.
const noteSchema = 2

// note is what a catalog was made of.
type note struct {
	Schema  int                      `json:"schema"`
	Tree    string                   `json:"tree"` // of the history; "": an export is under way, or was killed
	Options Options                  `json:"options"`
	Items   map[layout.ItemID]member `json:"items"`
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
	if err != nil {
		return out, err
	}
	slices.Sort(o.Collections)
	since, err := was.since(o)
	if err != nil {
		return out, err
	}
	x := &export{folder: fo, dir: dir, options: o, was: was.Items, now: map[layout.ItemID]member{}}
	if !since.IsZero() {
		for id, m := range was.Items {
			x.now[id] = m
		}
	}
	if err := writeNote(dir, note{Options: was.Options, Items: was.Items}); err != nil {
		return out, err
	}
	err = v.Folders(ctx, since, layout.ItemsDir, ledger.ItemDepth, x.visit)
	if err != nil {
		return x.out, err
	}
	if err := x.finish(); err != nil {
		return x.out, err
	}
	return x.out, writeNote(dir, note{Tree: v.Tree().String(), Options: o, Items: x.now})
}

// readNote reads what dir was made of. A folder of something else is refused.
func readNote(dir string) (n note, err error) {
	data, err := os.ReadFile(filepath.Join(dir, noteFile))
	if errors.Is(err, fs.ErrNotExist) {
		entries, err := os.ReadDir(dir)
		if err == nil && len(entries) > 0 {
			err = fault.New(fault.Refused, layout.EncodePath(dir)+" holds something else already")
		}
		return n, err
	}
	if err == nil {
		err = json.Unmarshal(data, &n)
	}
	if err != nil {
		return n, fmt.Errorf("read %s: %w", filepath.Join(dir, noteFile), err)
	}
	return n, nil
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

// since is the tree from which on items are looked at; zero: all.
func (n note) since(o Options) (gitstore.Hash, error) {
	if n.Schema != noteSchema || n.Tree == "" || !slices.Equal(n.Options.Collections, o.Collections) || n.Options.Href != o.Href {
		return gitstore.Hash{}, nil
	}
	return gitstore.ParseHash(n.Tree)
}

// export is one under way.
type export struct {
	folder  *folder.Folders
	dir     string
	options Options
	was     map[layout.ItemID]member

	mu  sync.Mutex // guards what is below
	now map[layout.ItemID]member
	out Exported
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
	m, err := member{}, error(nil)
	if manifest != nil {
		m, err = x.word(id, manifest, inventory)
	}
	var pathErr *fs.PathError
	if errors.As(err, &pathErr) {
		return err
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	delete(x.now, id)
	if err != nil {
		x.out.Problems = append(x.out.Problems, fmt.Sprintf("item %s: %v", id.Short(), err))
	}
	if m.Collection != "" {
		x.now[id] = m
	}
	return nil
}

// write writes a file where its bytes differ, so that a crash leaves the one or the other.
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
