package steps

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"bagpipe/bags/files"
	"bagpipe/layout"
)

// object lists the object as it stands, under the names that its inventory has.
func object(ctx context.Context, c *Call) (*files.Tree, error) {
	tree, err := c.tree(ctx)
	if err != nil || tree.Dir == c.Content || len(c.Beside) > 0 || c.Inventory == nil {
		return tree, err
	}
	known, err := layout.DecodeInventory(c.Inventory)
	if err != nil {
		return nil, err
	}
	return Known(tree, c.Content, &known), nil
}

// tree lists the object under the names that it has.
func (c *Call) tree(ctx context.Context) (*files.Tree, error) {
	if len(c.Beside) > 0 {
		return ObjectTree(ctx, c.Place, c.Beside...)
	}
	return ObjectTree(ctx, c.Content)
}

// Known lets the file of an object that is one loose file be called as its inventory calls it: in
// a catalog it may be renamed, and stays the item that it was. Any other tree it gives as it is.
// What reads an object by its inventory gets its list here.
func Known(t *files.Tree, content string, inventory *layout.Inventory) *files.Tree {
	if t.Dir == content || len(t.Files) != 1 || len(inventory.Files) != 1 {
		return t
	}
	for name := range inventory.Files {
		if raw, err := layout.DecodePath(name); err == nil && raw != t.Files[0].Path && filepath.IsLocal(raw) {
			t.Stands, t.Files[0].Path = t.Files[0].Path, raw
		}
	}
	return t
}

// mayLink reports whether hard links of the object may be made: it is the item's own.
func (c *Call) mayLink() bool {
	return c.Place == "" || c.Content != c.Place && len(c.Beside) == 0
}

// ObjectTree lists an object. A drop that is one loose file and was never unpacked is a
// tree of that file, and of those beside it that are the object together with it.
func ObjectTree(ctx context.Context, content string, beside ...string) (*files.Tree, error) {
	info, err := os.Lstat(content)
	if err != nil {
		return nil, fmt.Errorf("list content: %w", err)
	}
	if info.IsDir() {
		return files.Scan(ctx, content)
	}
	tree := fileTree(content, info)
	for _, name := range beside {
		path := filepath.Join(tree.Dir, name)
		if info, err = os.Lstat(path); err != nil {
			return nil, fmt.Errorf("list content: %w", err)
		}
		one := fileTree(path, info)
		tree.Files, tree.Others = append(tree.Files, one.Files...), append(tree.Others, one.Others...)
	}
	slices.SortFunc(tree.Files, func(a, b files.Entry) int { return strings.Compare(a.Path, b.Path) })
	return tree, nil
}

func fileTree(path string, info os.FileInfo) *files.Tree {
	e := files.Entry{Path: filepath.Base(path), Size: info.Size(), Mode: info.Mode(), Time: info.ModTime()}
	t := &files.Tree{Dir: filepath.Dir(path)}
	if info.Mode().IsRegular() {
		t.Files = []files.Entry{e}
	} else {
		t.Others = []files.Entry{e}
	}
	return t
}

// failure says whose an error is: a broken rule of content is the producer's, a
// full disk is named as one, and the rest is the machine's.
func failure(err error) error {
	var broken *files.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &broken):
		return &Failure{Kind: Content, Err: broken}
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return SystemFailure("no space left on the disk: %w", err)
	}
	return err
}

// progress hands bytes on.
func (c *Call) progress() func(files.Progress) {
	if c.Progress == nil {
		return nil
	}
	return func(p files.Progress) { c.Progress(p.Bytes, p.TotalBytes) }
}

// MakeScratch makes the scratch folder of a robot that is Seldom in need of one; it may be there.
func (c *Call) MakeScratch() error { return os.MkdirAll(c.Scratch, 0o777) }

// logf writes a line to the attempt's log. A log that cannot be written does not
// fail the step: its owner notices.
func (c *Call) logf(format string, args ...any) {
	if c.Log != nil {
		fmt.Fprintf(c.Log, format+"\n", args...)
	}
}

// bagDir is where the bag robot's bag stands in the item's folder.
func (c *Call) bagDir() string { return BagDir(c.Dir, c.Item) }

// BagDir is where the bag robot puts the bag of an item whose folder is dir.
func BagDir(dir string, item layout.ItemID) string {
	return filepath.Join(dir, layout.DerivedDir, "bag", string(item))
}

// version is that of the item; without a manifest, as in tests of robots, the first.
func (c *Call) version() (int, error) {
	if len(c.Manifest) == 0 {
		return 1, nil
	}
	m, err := c.manifest()
	return m.Version, err
}

// manifest is what the item's manifest says, to be read only.
func (c *Call) manifest() (layout.Manifest, error) {
	if c.Decoded != nil {
		return *c.Decoded, nil
	}
	return layout.DecodeManifest(c.Manifest)
}
