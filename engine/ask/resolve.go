package ask

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"

	"bagpipe/engine/fault"
	"bagpipe/engine/gitstore"
	"bagpipe/engine/index"
	"bagpipe/engine/ledger"
	"bagpipe/layout"
)

// ambiguous refuses a reference that fits several items.
func ambiguous(ref string, items []layout.ItemID) error {
	const most = 5
	var shown []string
	for _, id := range items[:min(len(items), most)] {
		shown = append(shown, string(id))
	}
	if len(items) > most {
		shown = append(shown, "…")
	}
	give := "give more of the identifier"
	if !slices.ContainsFunc(items, func(id layout.ItemID) bool { return strings.HasPrefix(string(id), ref) }) {
		give = "give the identifier of the one that is meant, or its beginning"
	}
	return fault.New(fault.Invalid, fmt.Sprintf("%q fits %d items: %s; %s", ref, len(items), strings.Join(shown, ", "), give))
}

// Resolve finds the one item that ref names: an identifier, a unique prefix of
// one, a label, or one that people know it by. An identifier needs no search, a prefix of four digits or
// more only its folder.
func (de *Details) Resolve(ctx context.Context, ref string) (layout.ItemID, error) {
	v, err := de.ledger.Store.Tip()
	if err != nil {
		return "", err
	}
	id, mistyped := layout.ParseItemID(ref)
	if mistyped == nil {
		if ok, err := de.ledger.Exists(id); err != nil || ok {
			return id, err
		}
	}
	found, err := de.search(ctx, v, ref)
	if err != nil {
		return "", err
	}
	if from, ok := de.guard.Since(); ok && len(found) == 0 {
		// It may have been removed since by a push; whoever acts on it brings it back.
		if v, err = de.ledger.Store.At(from); err == nil {
			found, err = de.search(ctx, v, ref)
		}
		if err != nil {
			return "", err
		}
	}
	if len(found) == 0 {
		if found, err = ledger.FindRetired(ctx, v, ref); err != nil {
			return "", err
		}
	}
	switch len(found) {
	case 0:
		if layout.IsItemPrefix(ref) && len(ref) == layout.ItemIDLen && mistyped != nil {
			return "", mistyped
		}
		if folder := strings.TrimRight(ref, "/"); folder != ref && folder != "" { // as shells complete the name of a folder
			return de.Resolve(ctx, folder)
		}
		return "", ledger.NoItem(ref)
	case 1:
		return found[0], nil
	}
	return "", ambiguous(ref, found)
}

// shortest is how many digits of an identifier stand for it where a label fits, too.
const shortest = 4

// search finds the items a reference that is no identifier may mean. A label that
// is also the beginning of one item's identifier is ambiguous: acting on the wrong
// item would not be noticed. One that begins many identifiers, or is shorter than anybody
// shortens them, can only be meant as the label. Eight digits, as listings show them, are
// not looked for among labels, which takes reading every manifest.
func (de *Details) search(ctx context.Context, v gitstore.View, ref string) (found []layout.ItemID, err error) {
	if layout.IsItemPrefix(ref) {
		if found, err = prefixed(v, ref); err != nil {
			return nil, err
		}
		if len(found) == 1 && len(ref) >= len(found[0].Short()) {
			return found, nil
		}
	}
	named := de.lists.labelled(v, ref)
	if len(named) == 0 {
		named, err = labelled(ctx, v, ref)
	}
	switch {
	case err != nil:
		return nil, err
	case len(named) == 0:
		return found, nil
	case len(found) > 1 || len(ref) < shortest:
		return named, nil
	}
	found = append(found, named...)
	slices.Sort(found)
	return slices.Compact(found), nil
}

// isCalled reports whether an item is known by a label, which is a path's where it is encoded, too: by its own, an identifier, or the
// place of its object, CATALOG/PATH.
func isCalled(m layout.Manifest, label, encoded string) bool {
	if m.Label == label || m.Label == encoded || m.Identified(label) {
		return true
	}
	if p := m.Source.Place; p != nil {
		at := string(p.Catalog) + "/" + p.Path
		return at == label || at == encoded
	}
	return false
}

// prefixed lists the items whose identifiers begin with prefix, by walking only
// the folders that can hold them.
func prefixed(v gitstore.View, prefix string) (found []layout.ItemID, err error) {
	var walk func(dir string, depth int) error
	walk = func(dir string, depth int) error {
		entries, err := v.List(dir)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		for _, entry := range entries {
			switch {
			case !entry.IsDir:
			case depth < 4:
				if depth < len(prefix) && entry.Name != prefix[depth:depth+1] {
					continue
				}
				if err := walk(dir+"/"+entry.Name, depth+1); err != nil {
					return err
				}
			case strings.HasPrefix(entry.Name, prefix):
				if id, err := layout.ParseItemID(entry.Name); err == nil {
					found = append(found, id)
				}
			}
		}
		return nil
	}
	return found, walk(layout.ItemsDir, 0)
}

// labelled is the function of this name by the table, where one is kept: of the items that the table
// knows. Of none the records have the word.
func (li *Lists) labelled(v gitstore.View, label string) (found []layout.ItemID) {
	if !li.quick.on {
		return nil
	}
	const most = 1000
	lines := []string{strings.ToLower(label), strings.ToLower(layout.EncodePath(label)), strings.ToLower(index.LongFacet)}
	if _, value, ok := strings.Cut(label, ":"); ok {
		lines = append(lines, strings.ToLower(value))
	}
	some, all := li.tallyOf().WithLine(most, lines...)
	if !all {
		return nil
	}
	encoded := layout.EncodePath(label)
	for _, id := range some {
		data, err := v.ReadFile(layout.ItemDir(id) + "/" + layout.ManifestJSON)
		if err != nil {
			continue // it is gone
		}
		if m, err := layout.DecodeManifest(data); err == nil && isCalled(m, label, encoded) {
			found = append(found, m.Item)
		}
	}
	slices.Sort(found)
	return found
}

func labelled(ctx context.Context, v gitstore.View, label string) (found []layout.ItemID, err error) {
	encoded := layout.EncodePath(label) // as a drop's name becomes a label
	var mu sync.Mutex                   // guards found
	err = v.Folders(ctx, gitstore.Hash{}, layout.ItemsDir, ledger.ItemDepth, func(folder gitstore.Folder) error {
		data, err := folder.ReadFile(layout.ManifestJSON)
		if err != nil {
			return err
		}
		m, err := layout.DecodeManifest(data)
		if err == nil && isCalled(m, label, encoded) {
			mu.Lock()
			defer mu.Unlock()
			found = append(found, m.Item)
		}
		return nil
	})
	slices.Sort(found)
	return found, err
}
