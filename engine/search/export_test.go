package search

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"

	"bagpipe/engine/ledger"
	"bagpipe/engine/query"
)

// IsWide reports whether the index names so many items that facets are counted by a look at every record.
func (s *Searches) IsWide(ctx context.Context, q query.Query) bool {
	_, err := s.countFound(ctx, q)
	return errors.Is(err, errWide)
}

// Line is every item, read once, so that many questions can be held against each of them: a search without an index
// reads all records for each question.
type Line struct {
	searches *Searches
	items    []lineItem
}

type lineItem struct {
	*document
	records ledger.Records
}

// ReadAll reads every item.
func (s *Searches) ReadAll(ctx context.Context) (*Line, error) {
	v, err := s.ledger.Store.Tip()
	if err != nil {
		return nil, err
	}
	l := &Line{searches: s}
	var mu sync.Mutex // guards items
	err = s.eachDocument(ctx, v, true, func(d *document, r ledger.Records) {
		mu.Lock()
		defer mu.Unlock()
		r.Manifest, r.Execution = bytes.Clone(r.Manifest), bytes.Clone(r.Execution) // their memory is used again
		l.items = append(l.items, lineItem{d, r})
	})
	slices.SortFunc(l.items, func(a, b lineItem) int { return cmp.Compare(a.id, b.id) })
	return l, err
}

// Answer holds a question against every item: what fits, and what that has in common.
func (l *Line) Answer(q query.Query) (hits []Hit, facets []Facet) {
	counts, rest := counts{}, []Hit(nil)
	for _, d := range l.items {
		is, inLabel := d.fits(q)
		if !is || !l.searches.holds(q, d.records) {
			continue
		}
		if inLabel {
			hits = append(hits, d.hit(q))
		} else {
			rest = append(rest, d.hit(q))
		}
		for _, t := range d.terms {
			counts[t.key()]++
		}
	}
	return append(hits, rest...), counts.facets()
}
