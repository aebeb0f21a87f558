package search

import (
	"crypto/rand"
	"slices"
	"testing"

	"bagpipe/engine/ledger"
	"bagpipe/engine/query"
	"bagpipe/layout"
)

// A condition that wants a whole text, or a number, leaves the items that have it at its path, in whatever member of a list, and no
// item that has its words alone, or elsewhere.
func TestKeysOfWholeTexts(t *testing.T) {
	id, err := layout.NewItemID(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	for where, fits := range map[string][3]bool{
		`metadata.title = "flood plain"`:              {true, false, false},
		`metadata.title in ("flood plain", "plains")`: {true, false, false},
		`label = "flood plain"`:                       {true, false, false},
		`metadata.title = "plain flood"`:              {false, false, false}, // it stands elsewhere
		`metadata.sheets.0.title = "plain flood"`:     {false, false, true},
		`metadata.sheets.0.year = 1945`:               {false, true, true},
		`metadata.sheets.1.year in (1944, x)`:         {false, false, false},
		`metadata.sheets.0.year > 1944`:               {true, true, true}, // which no key tells
		`metadata.title = ""`:                         {true, true, true}, // an empty text is no field, and has no key
		`metadata.title in ("", "flood plain")`:       {true, true, true},
	} {
		q := query.Query{Where: where}
		if _, err := q.Check(); err != nil {
			t.Fatal(err)
		}
		a := newAsked("", nil, q)
		if err := a.findTerms(t.Context()); err != nil {
			t.Fatal(err)
		}
		for i, m := range []layout.Manifest{
			{Label: "flood plain", Metadata: map[string]any{"title": "flood plain"}},
			{Label: "flood plain of x", Source: layout.Source{Name: "flood plain"}, Metadata: map[string]any{"title": "the flood plain", "sheets": []any{map[string]any{"year": 1945}}}},
			{Label: "x", Metadata: map[string]any{"sheets": []any{map[string]any{"title": "plain flood", "year": " 1945.0"}}}},
		} {
			m.Item, m.Version, m.Collection, m.Lane = id, 1, "maps", "normal"
			data, err := m.Encode(nil)
			if err != nil {
				t.Fatal(err)
			}
			sums := read(id, ledger.Records{Manifest: data}).row().sums
			has := !slices.ContainsFunc(a.sums, func(any []uint32) bool {
				return !slices.ContainsFunc(any, func(sum uint32) bool { return slices.Contains(sums, sum) })
			})
			if has != fits[i] {
				t.Errorf("%s: of item %d the records are read: %v", where, i, has)
			}
		}
	}
}
