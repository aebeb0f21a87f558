package search

import (
	"cmp"
	"slices"

	"bagpipe/engine/query"
	"bagpipe/layout"
)

// Hit is an item that fits, and where its words stand.
type Hit struct {
	Item       layout.ItemID `json:"item"`
	Collection layout.Name   `json:"collection"`
	Label      string        `json:"label"`
	Fields     []string      `json:"fields"` // label, identifiers.NAME, metadata.NAME, source, folder
	Files      []string      `json:"files"`  // percent-encoded: the first of them
	More       int           `json:"moreFiles,omitempty"`
}

// hitFiles is how many files of an item are named.
const hitFiles = 5

// hit tells where the words of a query stand.
func (d *document) hit(q query.Query) Hit {
	h := Hit{Item: d.id, Collection: d.collection, Label: d.label, Fields: []string{}, Files: []string{}}
	for _, f := range d.fields {
		if hasAny(q.Words, f.text) && !slices.Contains(h.Fields, f.name) {
			h.Fields = append(h.Fields, f.name)
		}
	}
	slices.Sort(h.Fields)
	for _, name := range d.files {
		switch {
		case !hasAny(q.Words, shownName(name)):
		case len(h.Files) < hitFiles:
			h.Files = append(h.Files, name)
		default:
			h.More++
		}
	}
	return h
}

func hasAny(asked []query.Phrase, text string) bool {
	if len(asked) == 0 {
		return false
	}
	words := query.Words(text)
	return slices.ContainsFunc(asked, func(p query.Phrase) bool { return p.In(words) })
}

// fits reports whether the item is one that is looked for, but for its condition; first
// that its label has all words, so that it comes before others.
func (d *document) fits(q query.Query) (is, first bool) {
	switch {
	case q.Collection != "" && string(d.collection) != q.Collection,
		q.BBox != nil && !(d.located && d.bounds.Meets(*q.BBox)),
		q.Timed() && !(d.timed && d.span.Meets(q.Span)),
		q.Alike != "" && d.alike != q.Alike,
		!d.tagged(q.Tags),
		!d.fitsAlso(q):
		return false, false
	}
	return d.worded(q.Words)
}

// fitsAlso reports whether the item lies in the second place, time or collection of a query.
func (d *document) fitsAlso(q query.Query) bool {
	if q.Also == nil {
		return true
	}
	is, _ := d.fits(*q.Also)
	return is
}

func (d *document) tagged(asked []string) bool {
	for _, tag := range asked {
		if !slices.ContainsFunc(d.terms, func(t term) bool { return t.facet == facetTag && query.TagFits(tag, t.value) }) {
			return false
		}
	}
	return true
}

func (d *document) worded(asked []query.Phrase) (is, first bool) {
	if len(asked) == 0 {
		return true, true
	}
	var texts [][]string
	for _, f := range d.fields {
		texts = append(texts, query.Words(f.text))
	}
	for _, name := range d.files {
		texts = append(texts, query.Words(shownName(name)))
	}
	first = true
	for _, p := range asked {
		if !slices.ContainsFunc(texts, p.In) {
			return false, false
		}
		first = first && p.In(texts[0])
	}
	return true, first
}

// Facet is how many of the items that fit have something in common.
type Facet struct {
	Facet string `json:"facet"` // collection, type, tag, year or format
	Value string `json:"value"`
	Items int    `json:"items"`
}

// ordered puts facets in the order of their kinds, the largest first.
func ordered(all []Facet) []Facet {
	kinds := []string{facetCollection, facetType, facetTag, facetYear, facetFormat}
	slices.SortFunc(all, func(a, b Facet) int {
		return cmp.Or(cmp.Compare(slices.Index(kinds, a.Facet), slices.Index(kinds, b.Facet)), -cmp.Compare(a.Items, b.Items), cmp.Compare(a.Value, b.Value))
	})
	return all
}
