package search_test

import (
	"testing"

	"bagpipe/engine"
	"bagpipe/engine/gitstore"
	"bagpipe/engine/query"
	"bagpipe/layout"

	"github.com/google/go-cmp/cmp"
)

// TestAFolderOfACatalogIsFound: what lies in a catalog is found by the folders above it.
func TestAFolderOfACatalogIsFound(t *testing.T) {
	l := newLibrary(t, 1, 2)
	l.do(false, func(e *engine.Engine) {
		for i, p := range []string{"Fl%0Aut/Karten 1954/scan.tif", "scan.tif"} {
			m := layout.Manifest{Item: l.items[i], Version: 1, Collection: "maps", Label: "scan.tif", Lane: "normal",
				Source: layout.Source{Name: "scan.tif", Place: &layout.Place{Catalog: "scans", Path: p}}}
			data, err := m.Encode(nil)
			l.must(err)
			dir := layout.ItemDir(l.items[i]) + "/"
			_, err = e.Ledger.Store.Commit(t.Context(), func(gitstore.Reader) (*gitstore.Change, error) {
				return &gitstore.Change{Files: map[string][]byte{dir + layout.ManifestJSON: data, dir + layout.ExecutionJSON: []byte("{}")},
					Message: "x\n", Author: gitstore.Signature{Name: "A", Email: "a@b"}}, nil
			})
			l.must(err)
		}
		for text, fields := range map[string][]string{"karten": {"folder"}, `"ut karten 1954"`: {"folder"}, "1954 scan": {"folder", "label", "source"}, `"1954 scan"`: nil, "scans": nil} {
			q := query.Query{Text: text}
			_, err := q.Check()
			l.must(err)
			hits, _ := l.find(e, q, 0)
			if fields == nil {
				if len(hits) > 0 {
					t.Errorf("%s: found %v", text, hits)
				}
				continue
			}
			if len(hits) != 1 || hits[0].Item != l.items[0] {
				t.Fatalf("%s: found %v", text, hits)
			}
			if diff := cmp.Diff(fields, hits[0].Fields); diff != "" {
				t.Errorf("%s: %s", text, diff)
			}
		}
	})
}
