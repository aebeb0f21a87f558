package guard

import (
	"context"
	"fmt"
	"path"
	"strings"

	"bagpipe/engine/gitstore"
	"bagpipe/engine/ledger"
	"bagpipe/layout"
)

// JoinTrees gives what is to change in the files of commit a so that they hold what those of
// b do; base is what both began from. It is a function of its arguments.
func JoinTrees(ctx context.Context, l *ledger.Ledger, base, a, b gitstore.Hash) (map[string][]byte, error) {
	ours, err := changes(ctx, l, base, a)
	if err != nil {
		return nil, err
	}
	theirs, err := changes(ctx, l, base, b)
	if err != nil {
		return nil, err
	}
	touched := map[layout.ItemID]bool{} // by a
	for p := range ours {
		if id, rest, ok := layout.ItemOfPath(p); ok && ledger.IsRecord(rest) {
			touched[id] = true
		}
	}
	var j joining
	if err := j.open(l, base, a, b); err != nil {
		return nil, err
	}
	files, both := map[string][]byte{}, map[layout.ItemID]bool{}
	for p, data := range theirs {
		id, rest, ok := layout.ItemOfPath(p)
		if ok && ledger.IsRecord(rest) && touched[id] {
			both[id] = true
			continue
		}
		mine, clash := ours[p]
		if !clash {
			files[p] = data
			continue
		}
		if files[p], err = j.file(ctx, p, mine, data); err != nil {
			return nil, err
		}
		if files[p] == nil && mine == nil {
			delete(files, p)
		}
	}
	for id := range both {
		if err := j.item(id, files); err != nil {
			return nil, err
		}
	}
	return files, j.bury(files)
}

// bury leaves out what would come back of items that were disposed of.
func (j *joining) bury(files map[string][]byte) error {
	buried := map[layout.ItemID]bool{}
	for p, data := range files {
		id, rest, ok := layout.ItemOfPath(p)
		if !ok || ledger.IsRecord(rest) || data == nil {
			continue
		}
		if _, known := buried[id]; !known {
			name := layout.ItemDir(id) + "/" + layout.ManifestJSON
			manifest := files[name]
			if manifest == nil {
				var err error
				if manifest, err = ledger.ReadOptional(j.a, name); err != nil {
					return err
				}
			}
			buried[id] = tombstone(manifest) != nil
		}
		if buried[id] {
			delete(files, p)
		}
	}
	return nil
}

// changes are the files that differ; nil is one that is gone.
func changes(ctx context.Context, l *ledger.Ledger, from, to gitstore.Hash) (map[string][]byte, error) {
	files := map[string][]byte{}
	err := l.Store.Diff(ctx, from, to, func(c gitstore.FileChange) error {
		if files[c.Path] = c.Data; c.Deleted {
			files[c.Path] = nil
		} else if c.Data == nil {
			files[c.Path] = []byte{}
		}
		return nil
	})
	return files, err
}

// joining reads the three commits of a join.
type joining struct {
	ledger     *ledger.Ledger
	base, a, b gitstore.View
}

func (j *joining) open(l *ledger.Ledger, base, a, b gitstore.Hash) (err error) {
	j.ledger = l
	for h, v := range map[gitstore.Hash]*gitstore.View{base: &j.base, a: &j.a, b: &j.b} {
		if *v, err = l.Store.At(h); err != nil {
			return err
		}
	}
	return nil
}

// ReadFile gives a file of either side: pinned definitions, whose names are their digests.
func (j *joining) ReadFile(name string) ([]byte, error) {
	if data, err := j.a.ReadFile(name); err == nil {
		return data, nil
	}
	return j.b.ReadFile(name)
}

// item joins the records of an item that both sides changed.
func (j *joining) item(id layout.ItemID, files map[string][]byte) error {
	var of [3]ledger.Records
	for i, v := range []gitstore.View{j.base, j.a, j.b} {
		var err error
		if of[i], err = ledger.ReadRecords(v, id); err != nil {
			return err
		}
	}
	united, err := JoinRecords(id, of[0], of[1], of[2], j.ledger.PlansAt(j))
	if err != nil {
		return fmt.Errorf("item %s: %w", id, err)
	}
	for p, data := range of[1].Changes(id, united) {
		files[p] = data
	}
	return nil
}

// file joins another file that both changed: what was removed on one side stays, records by
// key, the rest by lines; where that cannot be, one of the two is taken, the same at every site.
func (j *joining) file(ctx context.Context, p string, a, b []byte) ([]byte, error) {
	greater := a
	if string(a) < string(b) {
		greater = b
	}
	switch {
	case a == nil || b == nil || string(a) == string(b):
		return greater, nil
	case strings.HasPrefix(p, layout.PinnedDir+"/"):
		if layout.PinnedPath(ledger.DigestOf(a)) == p {
			return a, nil
		}
		return b, nil
	}
	was, err := ledger.ReadOptional(j.base, p)
	if err != nil {
		return nil, err
	}
	if p == layout.ControlsFile {
		return joinControls(was, a, b), nil
	}
	if path.Ext(p) == ".json" {
		if united, _, err := JoinJSON(was, a, b); err == nil {
			return united, nil
		}
		return greater, nil
	}
	united, clean, err := gitstore.MergeLines(ctx, was, a, b)
	if err != nil || clean {
		return united, err
	}
	return greater, nil
}
