package ask

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"bagpipe/engine/index"
	"bagpipe/engine/queue"
	"bagpipe/engine/state"

	"github.com/tidwall/gjson"
)

// Facet is how many of the items that fit have something in common.
type Facet struct {
	Facet string `json:"facet"` // workflow, step, status, collection, lane, batch, milestone, failure, format, age or held
	Value string `json:"value"`
	Items int    `json:"items"`
}

// facetNames are the facets that every workspace has, in the order in which they are told.
var facetNames = []string{"workflow", "step", "status", "failure", "collection", "lane", "batch", "milestone", "format", "age", "held"}

// ages are the parts of the facet age: since when an item has not moved.
var ages = []struct {
	most time.Duration
	name string
}{{time.Hour, "under an hour"}, {24 * time.Hour, "under a day"}, {7 * 24 * time.Hour, "under a week"}, {30 * 24 * time.Hour, "under 30 days"}, {1 << 62, "longer"}}

// isHeld is the one value of the facet held.
const isHeld = "yes"

// Facets counts the items that fit by what they have in common, the largest first.
func (li *Lists) Facets(f Filter) ([]Facet, error) {
	_, out, err := li.count(f, false)
	return out, err
}

// CountItems counts the items that fit, and by what they have in common. Of a facet with chosen
// values, the values are counted as if none were: each tells what it would add.
func (li *Lists) CountItems(f Filter) (items int, facets []Facet, err error) {
	return li.count(f, true)
}

func (li *Lists) count(f Filter, beside bool) (items int, out []Facet, err error) {
	if f.More != nil && len(f.More.Chosen) > 0 && beside && !li.quick.holds(f) {
		return countBeside(li, f)
	}
	counts := map[Facet]int{}
	if t, w, ok, err := li.tallied(f, beside); err != nil {
		return 0, nil, err
	} else if ok {
		items = t.count(w, counts)
	} else {
		fitting, err := li.selected(f)
		if err != nil {
			return 0, nil, err
		}
		c := countingOf(li)
		for it := range fitting {
			items++
			c.facetsOf(it, func(facet, value string) { counts[Facet{Facet: facet, Value: value}]++ })
		}
	}
	out = make([]Facet, 0, len(counts))
	for facet, n := range counts {
		facet.Items = n
		out = append(out, facet)
	}
	slices.SortFunc(out, func(a, b Facet) int {
		return cmp.Or(cmp.Compare(slices.Index(facetNames, a.Facet), slices.Index(facetNames, b.Facet)), cmp.Compare(a.Facet, b.Facet), -cmp.Compare(a.Items, b.Items), cmp.Compare(a.Value, b.Value))
	})
	return items, out, nil
}

// countBeside counts once for each facet with chosen values.
func countBeside(li *Lists, f Filter) (items int, out []Facet, err error) {
	if items, out, err = li.count(f, false); err != nil {
		return 0, nil, err
	}
	for name := range f.More.Chosen {
		more := *f.More
		more.Chosen = maps.Clone(more.Chosen)
		delete(more.Chosen, name)
		without := f
		without.More = &more
		_, all, err := li.count(without, false)
		if err != nil {
			return 0, nil, err
		}
		out = slices.DeleteFunc(out, func(x Facet) bool { return x.Facet == name })
		for _, x := range all {
			if x.Facet == name {
				out = append(out, x)
			}
		}
	}
	return items, out, nil
}

// counting knows at which paths the index holds values, at one moment.
type counting struct {
	now     time.Time
	formats int      // -1: it does not hold them
	known   int      // identifiers; likewise
	paths   []string // of web: facets:
	held    []int    // likewise
}

func countingOf(li *Lists) counting {
	held := li.index.FacetsHeld()
	c := counting{now: li.ledger.Now(), formats: slices.Index(held, index.FormatsPath), known: slices.Index(held, index.KnownPath), paths: li.settings.Current().Settings.Web.Facets}
	for _, path := range c.paths {
		c.held = append(c.held, slices.Index(held, path))
	}
	return c
}

// facetsOf gives what an item has in common with others.
func (c *counting) facetsOf(it *queue.Item, add func(facet, value string)) {
	since := c.apart(it, add)
	add("age", ages[ageOf(c.now.Sub(since))].name)
}

func ageOf(d time.Duration) int {
	return slices.IndexFunc(ages, func(a struct {
		most time.Duration
		name string
	}) bool {
		return d < a.most
	})
}

// apart gives all facets but the age, and since when the item stands as it does: they follow from
// the item alone.
func (c *counting) apart(it *queue.Item, add func(facet, value string)) (since time.Time) {
	row := standing(it)
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
	if it.Held {
		add("held", isHeld)
	}
	for _, x := range Failings(it) {
		add("failure", likeness(x))
	}
	for _, id := range jsonAt(it, c.formats).Array() {
		add("format", id.Str)
	}
	for i, path := range c.paths {
		for _, value := range valuesAt(it, path, c.held[i]) {
			add(path, value)
		}
	}
	return row.Since
}

// jsonAt is what the index holds at one of its paths.
func jsonAt(it *queue.Item, i int) gjson.Result {
	if i < 0 || i >= len(it.Facets) {
		return gjson.Result{}
	}
	return gjson.Parse(it.Facets[i])
}

// textOf is what a text is looked for in, in small letters: the label, and what people know the
// item by.
func (c *counting) textOf(it *queue.Item) string {
	text := strings.ToLower(it.Label)
	if c.known >= 0 && c.known < len(it.Facets) && it.Facets[c.known] == index.LongFacet {
		text += "\n" + index.LongFacet
	}
	jsonAt(it, c.known).ForEach(func(_, value gjson.Result) bool {
		text += "\n" + strings.ToLower(value.String())
		return true
	})
	return text
}

// longValue stands for a value that the index does not hold.
const longValue = "(a long value)"

// valuesAt are the values at a path of web: facets:, of which an array has several; the index
// holds them in its i-th place.
func valuesAt(it *queue.Item, path string, i int) (values []string) {
	if plain := index.PlainPaths[path]; plain != nil {
		return []string{plain(it)}
	}
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
