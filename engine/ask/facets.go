package ask

import (
	"cmp"
	"slices"
	"time"

	"bagpipe/engine/index"
	"bagpipe/engine/queue"
	"bagpipe/engine/state"

	"github.com/tidwall/gjson"
)

// Facet is how many of the items that fit have something in common.
type Facet struct {
	Facet string `json:"facet"` // workflow, step, status, collection, lane, batch, milestone, failure, format or age
	Value string `json:"value"`
	Items int    `json:"items"`
}

// ages are the steps of the facet age: since when an item has not moved.
var ages = []struct {
	most time.Duration
	name string
}{{time.Hour, "under an hour"}, {24 * time.Hour, "under a day"}, {7 * 24 * time.Hour, "under a week"}, {30 * 24 * time.Hour, "under 30 days"}, {1 << 62, "longer"}}

// Facets counts the items that fit by what they have in common, the largest first.
func (li *Lists) Facets(f Filter) ([]Facet, error) {
	items, err := li.selected(f)
	if err != nil {
		return nil, err
	}
	now := li.ledger.Now()
	counts := map[Facet]int{}
	add := func(facet, value string) { counts[Facet{Facet: facet, Value: value}]++ }
	for it := range items {
		li.facetsOf(it, now, add)
	}
	out := make([]Facet, 0, len(counts))
	for facet, n := range counts {
		facet.Items = n
		out = append(out, facet)
	}
	order := []string{"workflow", "step", "status", "failure", "collection", "lane", "batch", "milestone", "format", "age"}
	slices.SortFunc(out, func(a, b Facet) int {
		return cmp.Or(cmp.Compare(slices.Index(order, a.Facet), slices.Index(order, b.Facet)), -cmp.Compare(a.Items, b.Items), cmp.Compare(a.Value, b.Value))
	})
	return out, nil
}

// facetsOf gives what an item has in common with others.
func (li *Lists) facetsOf(it *queue.Item, now time.Time, add func(facet, value string)) {
	row := li.row(it)
	add("collection", string(it.Collection))
	add("lane", string(it.Lane))
	if it.Batch != "" {
		add("batch", it.Batch)
	}
	for m := range it.Milestones {
		add("milestone", string(m))
	}
	name, _ := state.Numbered(row.Workflow)
	add("workflow", name+" "+string(row.Status))
	add("status", string(row.Status))
	if row.Step != "" {
		add("step", name+"/"+string(row.Step))
	}
	for _, x := range Failings(it) {
		add("failure", likeness(x))
	}
	if i := slices.Index(li.index.FacetsHeld(), index.FormatsPath); i >= 0 && i < len(it.Facets) {
		for _, id := range gjson.Parse(it.Facets[i]).Array() {
			add("format", id.Str)
		}
	}
	for _, path := range li.settings.Current().Settings.Web.Facets {
		for _, value := range li.valuesAt(it, path) {
			add(path, value)
		}
	}
	for _, age := range ages {
		if now.Sub(row.Since) < age.most {
			add("age", age.name)
			break
		}
	}
}

// longValue stands for a value that the index does not hold.
const longValue = "(a long value)"

// valuesAt are the values at a path of web: facets:, of which an array has several; the index
// holds them.
func (li *Lists) valuesAt(it *queue.Item, path string) (values []string) {
	if plain := index.PlainPaths[path]; plain != nil {
		return []string{plain(it)}
	}
	i := slices.Index(li.index.FacetsHeld(), path)
	if i < 0 || i >= len(it.Facets) {
		return nil
	}
	if it.Facets[i] == index.LongFacet {
		return []string{longValue}
	}
	at := gjson.Parse(it.Facets[i])
	if !at.Exists() || at.Type == gjson.Null {
		return nil
	}
	if !at.IsArray() {
		return []string{at.String()}
	}
	for _, v := range at.Array() {
		if s := v.String(); !slices.Contains(values, s) {
			values = append(values, s)
		}
	}
	return values
}
