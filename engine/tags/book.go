package tags

import (
	"context"
	"slices"
	"time"

	"bagpipe/engine/query"
	"bagpipe/layout"

	"github.com/paulmach/orb"
	"github.com/tidwall/gjson"
)

// Book is the vocabularies and places in force, by name. The zero Book tags times alone.
type Book struct {
	Vocabularies map[string]*Vocabulary
	Places       map[string]*Places
}

// NewBook gives a book without a word.
func NewBook() *Book {
	return &Book{Vocabularies: map[string]*Vocabulary{}, Places: map[string]*Places{}}
}

// Of gives the tags of an object by kind, sorted, from its manifest; its error is that of ctx.
func (b *Book) Of(ctx context.Context, manifest []byte) (map[string][]string, error) {
	all := map[string]map[string]bool{}
	of := func(kind string) map[string]bool {
		if all[kind] == nil {
			all[kind] = map[string]bool{}
		}
		return all[kind]
	}
	for _, text := range names(manifest) {
		words := query.Words(text)
		for _, v := range b.Vocabularies {
			v.in(words, of(v.Kind))
		}
	}
	if s, ok := query.Time(manifest); ok {
		times(s, of(Time))
	}
	if footprint := query.Footprint(manifest); footprint != nil {
		footprint = simple(footprint)
		for _, p := range b.Places {
			if err := p.in(ctx, footprint, of(Place)); err != nil {
				return nil, err
			}
		}
	}
	tags := map[string][]string{}
	for kind, some := range all {
		for tag := range some {
			tags[kind] = append(tags[kind], tag)
		}
		slices.Sort(tags[kind])
	}
	for kind, some := range tags {
		if tags[kind] = some[:min(len(some), maxTags)]; len(some) == 0 {
			delete(tags, kind)
		}
	}
	return tags, nil
}

// maxTags bounds what a manifest gets of one kind; far above what tells one object from another.
const maxTags = 200

// names are the texts that business tags are found in.
func names(manifest []byte) (all []string) {
	for _, at := range []string{"label", "source.name", "source.place.path"} {
		text := gjson.GetBytes(manifest, at).Str
		if name, err := layout.DecodePath(text); err == nil && at != "label" {
			text = name
		}
		all = append(all, text)
	}
	return all
}

// times are the years of a span and, of less than a year, its months.
func times(s query.Span, to map[string]bool) {
	for year := s.Start.Year(); year <= s.End.Year() && len(to) < maxTags; year++ {
		to[time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC).Format("2006")] = true
	}
	if s.End.Sub(s.Start) > 364*24*time.Hour {
		return
	}
	for at := time.Date(s.Start.Year(), s.Start.Month(), 1, 0, 0, 0, 0, time.UTC); !at.After(s.End); at = at.AddDate(0, 1, 0) {
		to[at.Format("2006-01")] = true
	}
}

// widest is the middle of the widest way between two points where a line enters and leaves.
func widest(at []float64, y float64) (p orb.Point, ok bool) {
	slices.Sort(at)
	most := 0.0
	for i := 0; i+1 < len(at); i += 2 {
		if wide := at[i+1] - at[i]; wide > most {
			p, ok, most = orb.Point{at[i] + wide/2, y}, true, wide
		}
	}
	return p, ok
}
