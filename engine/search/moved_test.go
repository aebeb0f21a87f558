package search_test

import (
	"slices"
	"testing"

	"bagpipe/engine"
	"bagpipe/engine/gitstore"
	"bagpipe/engine/query"
	"bagpipe/engine/search"
	"bagpipe/layout"
)

// TestIndexMovesOnMeanwhile: while one search shows what it found, another brings the index to a later tip. Each item
// that fits, before and after, is found once.
func TestIndexMovesOnMeanwhile(t *testing.T) {
	all := query.Box{-180, -90, 180, 90}
	for name, c := range map[string]struct {
		box   *query.Box
		label string // that the second item gets meanwhile
	}{
		"another document":     {&all, "three"},
		"a word in the label":  {nil, "alpha three"},
		"both, and none twice": {&all, "alpha three"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLibrary(t, 1, 3)
			label := func(e *engine.Engine, id layout.ItemID, label string) {
				m := layout.Manifest{Item: id, Version: 1, Collection: "maps", Label: label, Lane: "normal", Source: layout.Source{Name: "x"}, Metadata: map[string]any{
					"title": "alpha", "space": map[string]any{"wgs84": map[string]any{"bounds": []any{1, 2, 3, 4}}}}}
				data, err := m.Encode(nil)
				l.must(err)
				dir := layout.ItemDir(id) + "/"
				_, err = e.Ledger.Store.Commit(t.Context(), func(gitstore.Reader) (*gitstore.Change, error) {
					return &gitstore.Change{Files: map[string][]byte{dir + layout.ManifestJSON: data, dir + layout.ExecutionJSON: []byte("{}")},
						Message: "x\n", Author: gitstore.Signature{Name: "A", Email: "a@b"}}, nil
				})
				l.must(err)
			}
			l.do(false, func(e *engine.Engine) {
				label(e, l.items[0], "alpha one")
				label(e, l.items[1], "two")
				label(e, l.items[2], "two")
				q := query.Query{Text: "alpha", BBox: c.box}
				_, err := q.Check()
				l.must(err)
				var found []layout.ItemID
				l.must(e.Search.Find(t.Context(), q, 0, func(h search.Hit) bool {
					if found = append(found, h.Item); len(found) == 1 {
						label(e, l.items[1], c.label)
						l.find(e, query.Query{}, 0)
					}
					return true
				}))
				if found[0] != l.items[0] {
					t.Errorf("%s was found first", found[0])
				}
				slices.Sort(found)
				if want := slices.Sorted(slices.Values(l.items)); !slices.Equal(found, want) {
					t.Errorf("found %s; there are %s", found, want)
				}
			})
		})
	}
}
