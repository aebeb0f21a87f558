package ask

import (
	"slices"
	"strings"

	"bagpipe/engine/ask/internal/tally"
	"bagpipe/engine/queue"
	"bagpipe/engine/state"
	"bagpipe/layout"
)

// More narrows a listing further: by what several values may be given of. It stands apart,
// as a Filter can be compared.
type More struct {
	Within []layout.Name          // the collections that the asker reaches; none: all
	Text   string                 // whatever the case, somewhere in the label or in what people know the item by, or the beginning of its identifier
	Chosen map[string][]string    // of each facet, as Facets lists it, one of the values
	Only   map[layout.ItemID]bool // nil: all
}

func (m *More) fits(c *counting, it *queue.Item) bool {
	if len(m.Within) > 0 && !slices.Contains(m.Within, it.Collection) {
		return false
	}
	if m.Only != nil && !m.Only[it.ID] {
		return false
	}
	if text := strings.ToLower(m.Text); text != "" && !strings.HasPrefix(string(it.ID), text) && !strings.Contains(c.textOf(it), text) {
		return false
	}
	if len(m.Chosen) == 0 {
		return true
	}
	has := map[string]bool{}
	c.facetsOf(it, func(facet, value string) {
		if slices.Contains(m.Chosen[facet], value) {
			has[facet] = true
		}
	})
	return len(has) == len(m.Chosen)
}

// KeepTally lets counts and lists be answered from a table that is kept from now on: it takes some
// hundred bytes an item, and answers a hundred times as fast. It is called before anything is asked.
func (li *Lists) KeepTally() { li.quick.on = true }

// holds reports whether the table tells which items fit.
func (q *quick) holds(f Filter) bool { return q.on && f.Parent == "" }

// standColumn has, of each run of an item, how all of its steps stand.
const standColumn = "\x00stand"

// tallyOf is the table as things are now; its columns are the facets by their names.
func (li *Lists) tallyOf() quickTable {
	q := &li.quick
	q.mu.Lock()
	c := countingOf(li)
	names := []string{standColumn}
	for _, name := range append(slices.Clone(facetNames), c.paths...) {
		if name != "age" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if loaded := li.index.Loaded(); q.index != loaded || !slices.Equal(q.names, names) {
		q.index, q.names = loaded, names
		q.table = tally.New(loaded.View, queue.Pages, names, func(it *queue.Item) tally.Row { return c.rowOf(it, names) })
	}
	t := quickTable{q.table, names}
	q.mu.Unlock()
	t.Follow()
	return t
}

func (c *counting) rowOf(it *queue.Item, columns []string) tally.Row {
	r := tally.Row{Created: it.Created.UnixMilli(), Kin: it.Parent != nil, Text: c.textOf(it), Has: make([][]string, len(columns))}
	r.Has[0] = standsOf(it)
	r.Since = c.apart(it, func(facet, value string) {
		if i := slices.Index(columns, facet); i >= 0 {
			r.Has[i] = append(r.Has[i], value)
		}
	}).UnixMilli()
	return r
}

// standSplit parts the words of a stand.
const standSplit = "\x1f"

// standsOf tells of each run: its workflow, its own name, its status, and each step with its
// status. Of an item without runs it tells whether its records can be read.
func standsOf(it *queue.Item) (stands []string) {
	if len(it.Runs) == 0 {
		return []string{standSplit + map[bool]string{true: "broken"}[it.Broken != ""]}
	}
	for r := range it.Runs {
		run := &it.Runs[r]
		words := []string{run.Plan.Name, run.Name, string(run.Status)}
		for i := range run.Steps {
			words = append(words, run.Plan.Steps[i].Name, string(run.Steps[i].Status))
		}
		stands = append(stands, strings.Join(words, standSplit))
	}
	return stands
}

// fitsStand is fits as far as workflows, steps and statuses go, of what standsOf tells; of a filter
// for failures, it tells which items may fit.
func (f Filter) fitsStand(stand string) bool {
	words := strings.Split(stand, standSplit)
	if len(words) == 2 {
		return f.Step == "" && f.Workflow == "" && (f.Status == "" || f.Status == map[bool]state.Status{true: state.Failed, false: state.Waiting}[words[1] != ""])
	}
	if f.Workflow != "" && f.Workflow != words[0] && f.Workflow != words[1] {
		return false
	}
	if f.Step == "" {
		return f.Status == "" || f.Status == state.Status(words[2])
	}
	for i := 3; i+1 < len(words); i += 2 {
		if words[i] == string(f.Step) {
			return f.Status == "" || f.Status == state.Status(words[i+1])
		}
	}
	return false
}

// tallied gives the table, and what of it fits; false: the items themselves must be looked at.
func (li *Lists) tallied(f Filter, beside bool) (t quickTable, w tally.Wanted, ok bool, err error) {
	if !li.quick.holds(f) {
		return t, w, false, nil
	}
	if err := li.CheckFilter(f); err != nil {
		return t, w, false, err
	}
	a, err := li.Asker(f.Asked)
	if err != nil {
		return t, w, false, err
	}
	li.index.Loaded().Settle(a.Now)
	t = li.tallyOf()
	w.Ages = tally.Ages{Now: a.Now.UnixMilli(), Chosen: beside}
	for _, age := range ages {
		w.Ages.Most = append(w.Ages.Most, age.most.Milliseconds())
	}
	let := func(column string, chosen bool, values ...string) {
		w.Lets = append(w.Lets, tally.Let{Column: t.Column(column), Chosen: chosen && beside, Fits: func(has []string) bool {
			return slices.ContainsFunc(has, func(v string) bool { return slices.Contains(values, v) })
		}})
	}
	for column, value := range map[string]string{"collection": string(f.Collection), "lane": string(f.Lane), "batch": f.Batch, "milestone": string(f.Milestone), "held": map[bool]string{true: isHeld}[f.Held]} {
		if value != "" {
			let(column, false, value)
		}
	}
	if f.Workflow != "" || f.Step != "" || f.Status != "" {
		w.Lets = append(w.Lets, tally.Let{Fits: func(stands []string) bool { return slices.ContainsFunc(stands, f.fitsStand) }})
	}
	if m := f.More; m != nil {
		if len(m.Within) > 0 {
			w.Lets = append(w.Lets, tally.Let{Column: t.Column("collection"), Fits: func(has []string) bool { return slices.Contains(m.Within, layout.Name(has[0])) }})
		}
		w.Text, w.Only = strings.ToLower(m.Text), m.Only
		for name, values := range m.Chosen {
			if name != "age" {
				let(name, true, values...)
				continue
			}
			for _, age := range ages {
				w.Ages.Only = append(w.Ages.Only, slices.Contains(values, age.name))
			}
		}
	}
	if f.Message != "" || f.Older > 0 || f.Where != nil {
		rest := f
		rest.More = nil
		w.Also = func(id layout.ItemID) bool {
			it := li.index.Loaded().Item(id)
			return it != nil && rest.fits(it, a.Now) && (f.Where == nil || a.holds(f.Where, it))
		}
	}
	return t, w, true, nil
}

// count adds up facets.
func (t quickTable) count(w tally.Wanted, counts map[Facet]int) (items int) {
	items, all := t.Count(w)
	for _, c := range all {
		switch {
		case c.Column < 0:
			counts[Facet{Facet: "age", Value: ages[c.Part].name}] += c.Items
		case t.names[c.Column] != standColumn:
			counts[Facet{Facet: t.names[c.Column], Value: c.Value}] += c.Items
		}
	}
	return items
}

// list gives the items of an index that fit, the oldest first, behind one; nil: all but the first skip.
func (t quickTable) list(of *queue.Index, w tally.Wanted, last *queue.Item, skip int) func(yield func(*queue.Item) bool) {
	return func(yield func(*queue.Item) bool) {
		const first, more = 128, 16
		for most := first; ; most *= more {
			var after tally.Place
			if last != nil {
				after = tally.Place{Item: last.ID, Created: last.Created.UnixMilli(), Kin: last.Parent != nil}
			}
			places := t.Oldest(w, after, most+skip)
			whole := len(places) < most+skip
			begin := min(skip, len(places))
			for begin > 0 && begin < len(places) && places[begin].SameInstant(places[begin-1]) {
				begin--
			}
			places = places[begin:]
			skipped := begin
			var same []*queue.Item // kin of one instant have an order of their own
			for i, p := range places {
				if it := of.Item(p.Item); it != nil {
					same = append(same, it)
				}
				if i+1 < len(places) && p.SameInstant(places[i+1]) {
					continue
				}
				slices.SortStableFunc(same, queue.CompareAge)
				for _, it := range same {
					if last != nil && queue.CompareAge(it, last) <= 0 {
						continue
					}
					if skipped < skip {
						skipped++
						continue
					}
					if !yield(it) {
						return
					}
				}
				if len(same) > 0 {
					last, skip = same[len(same)-1], skipped
				}
				same = same[:0]
			}
			if whole {
				return
			}
		}
	}
}
