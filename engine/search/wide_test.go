package search_test

import (
	"context"
	"testing"

	"bagpipe/engine"
	"bagpipe/engine/query"
)

// The facets of a condition that a large part of the items may fit come from a look at every record, in
// the order in which they lie; of one that few may fit from theirs alone. They count what is found.
func TestFacetsOfWideConditions(t *testing.T) {
	l := newLibrary(t, 7, 600)
	l.do(false, func(e *engine.Engine) {
		l.commit(e, l.items, false)
		for where, wide := range map[string]bool{
			"type = map": true, "type in (map, orthophoto)": true, "type = map and metadata.sheets = 7": false, "type = nothing": false,
		} {
			q := query.Query{Where: where}
			if _, err := q.Check(); err != nil {
				t.Fatal(err)
			}
			if got := e.Search.IsWide(context.Background(), q); got != wide {
				t.Errorf("%s: wide is %v", where, got)
			}
			hits, facets := l.find(e, q, 0)
			n := 0
			for _, f := range facets {
				if f.Facet == "type" {
					n += f.Items
				}
			}
			if n != len(hits) || wide != (n > 100) {
				t.Errorf("%s: facets of %d items, found %d", where, n, len(hits))
			}
		}
	})
}
