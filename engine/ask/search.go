package ask

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"unicode"

	"bagpipe/engine/gitstore"
	"bagpipe/engine/ledger"
	"bagpipe/layout"

	"golang.org/x/sync/errgroup"
)

// Hit is where a text was found in an item.
type Hit struct {
	Item       layout.ItemID `json:"item"`
	Collection layout.Name   `json:"collection"`
	Label      string        `json:"label"`
	Fields     []string      `json:"fields"` // label, identifiers.KEY, metadata.KEY, source
	Files      []string      `json:"files"`  // paths, percent-encoded: the first of them
	More       int           `json:"moreFiles,omitempty"`
}

// hitFiles is how many files of an item are named.
const hitFiles = 5

// Search looks for a text in the labels, identifiers, metadata and names of files of all
// items that fit, whatever the case of its letters, and tells each item where it is found
// as soon as it is: visit is called by one goroutine at a time, and ends the search by
// answering false. It reads every record.
func (li *Lists) Search(ctx context.Context, f Filter, text string, visit func(Hit) bool) error {
	v, err := li.ledger.Store.Tip()
	if err != nil {
		return err
	}
	items, err := li.selected(f)
	if err != nil {
		return err
	}
	look := newNeedle(text)
	ids, hits := make(chan layout.ItemID), make(chan Hit)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		defer close(ids)
		for it := range items {
			select {
			case ids <- it.ID:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		return nil
	})
	readers, readCtx := errgroup.WithContext(ctx)
	for range runtime.GOMAXPROCS(0) {
		readers.Go(func() error { return look.search(readCtx, v, ids, hits) })
	}
	group.Go(func() error {
		defer close(hits)
		return readers.Wait()
	})
	enough := false
	group.Go(func() error {
		for hit := range hits {
			if !enough && !visit(hit) {
				enough = true
				return context.Canceled // ends the others
			}
		}
		return nil
	})
	if err := group.Wait(); err != nil && !enough {
		return err
	}
	return nil
}

// needle is a text that is looked for.
type needle struct {
	text string // in lower case
	raw  []byte // as it stands in JSON where nothing in it is escaped; nil: something is
}

func newNeedle(text string) needle {
	n := needle{text: strings.ToLower(text)}
	if !strings.ContainsFunc(text, func(r rune) bool {
		return r > unicode.MaxASCII || unicode.IsControl(r) || strings.ContainsRune(`"\%<>&`, r)
	}) {
		n.raw = []byte(n.text)
	}
	return n
}

func (n needle) search(ctx context.Context, v gitstore.View, ids <-chan layout.ItemID, hits chan<- Hit) error {
	for id := range ids {
		hit, found, err := n.in(v, id)
		if err != nil {
			return err
		}
		if !found {
			continue
		}
		select {
		case hits <- hit:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// in looks at one item. A record that cannot be read holds nothing.
func (n needle) in(v gitstore.View, id layout.ItemID) (hit Hit, found bool, err error) {
	rec, err := ledger.ReadRecords(v, id)
	if err != nil {
		return hit, false, err
	}
	if !n.mayHold(rec.Manifest) && !n.mayHold(rec.Inventory) {
		return hit, false, nil
	}
	m, err := layout.DecodeManifest(rec.Manifest)
	if err != nil {
		return hit, false, nil
	}
	hit = Hit{Item: id, Collection: m.Collection, Label: m.Label, Fields: []string{}, Files: []string{}}
	n.fields(&hit, m)
	if rec.Inventory != nil && n.mayHold(rec.Inventory) {
		if inventory, err := layout.DecodeInventory(rec.Inventory); err == nil {
			n.files(&hit, inventory)
		}
	}
	return hit, len(hit.Fields)+len(hit.Files) > 0, nil
}

// mayHold tells quickly of most records that the text is not in them.
func (n needle) mayHold(record []byte) bool {
	return n.raw == nil || bytes.Contains(bytes.ToLower(record), n.raw)
}

func (n needle) holds(text string) bool { return strings.Contains(strings.ToLower(text), n.text) }

func (n needle) fields(hit *Hit, m layout.Manifest) {
	if n.holds(m.Label) {
		hit.Fields = append(hit.Fields, "label")
	}
	if n.holds(shownName(m.Source.Name)) {
		hit.Fields = append(hit.Fields, "source")
	}
	for _, of := range []struct {
		name   string
		values any
	}{{"identifiers", m.Identifiers}, {"metadata", m.Metadata}} {
		data, err := json.Marshal(of.values)
		var values map[string]any
		if err != nil || json.Unmarshal(data, &values) != nil {
			continue
		}
		for _, key := range slices.Sorted(maps.Keys(values)) {
			if n.holds(fmt.Sprint(values[key])) {
				hit.Fields = append(hit.Fields, of.name+"."+key)
			}
		}
	}
}

func (n needle) files(hit *Hit, inventory layout.Inventory) {
	for _, p := range slices.Sorted(maps.Keys(inventory.Files)) {
		switch {
		case !n.holds(shownName(p)):
		case len(hit.Files) < hitFiles:
			hit.Files = append(hit.Files, p)
		default:
			hit.More++
		}
	}
}

// shownName is a name as it was dropped; what is no UTF-8 stays encoded.
func shownName(encoded string) string {
	if name, err := layout.DecodePath(encoded); err == nil {
		return name
	}
	return encoded
}
