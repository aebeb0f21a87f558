package recognise

import (
	"context"
	"slices"
	"strings"
)

// The rules are: files that lie side by side below a known folder are one object where they would be one as a drop
// that is split: a rule's sets have them together by their names, all that is wanted is there, and the rules take a folder
// that holds them alone.

// MayHaveSets reports whether rules may have files of the folder together, by how the names in it and below end.
func (h *Shelf) MayHaveSets() bool {
	rules, err := h.setRules()
	return err == nil && len(rules) > 0
}

// setRules are the rules that may have files of the folder together, in their order.
func (h *Shelf) setRules() ([]*Rule, error) {
	asks, err := h.other()
	if err != nil {
		return nil, err
	}
	l := h.known(h.path)
	var rules []*Rule
	for _, r := range asks.rules {
		if !joins(r, h.root.Collection) || l != nil && slices.ContainsFunc(h.b.sieve.needs[r], func(wanted Endings) bool { return !l.Endings().meets(wanted) }) {
			continue
		}
		rules = append(rules, r)
	}
	return rules, nil
}

// Sets finds the files of the folder that belong together, among these names, which are sorted.
func (h *Shelf) Sets(ctx context.Context, names []string) (all []Together, err error) {
	rules, err := h.setRules()
	if err != nil {
		return nil, err
	}
	var ends Endings
	for _, name := range names {
		h.b.EndsOf(name, &ends)
	}
	for _, r := range rules {
		if slices.ContainsFunc(h.b.sieve.needs[r], func(wanted Endings) bool { return !ends.meets(wanted) }) {
			continue // what it asks for lies in folders inside
		}
		found, taken := h.b.join(ctx, r, h.root.Collection, h.dir, names, false)
		all = append(all, found...)
		names = slices.DeleteFunc(slices.Clone(names), func(name string) bool { return taken[name] })
	}
	return all, ctx.Err()
}

// Set recognises files of the folder as if they were alone in a folder of their name.
func (h *Shelf) Set(ctx context.Context, t Together) (*Outcome, error) {
	c := h.above
	c.Path, c.Name, c.Files = h.dir, t.Name, t.Files
	return h.b.Recognise(ctx, c, h.o)
}

// holdsSets reports whether rules have the files that lie directly in a folder together as several objects.
func (f *facts) holdsSets(ctx context.Context, rules []*Rule) bool {
	l := f.listing(ctx)
	if f.c.Files != nil || l.err != nil || l.cut || l.top != "" {
		return false
	}
	names := slices.DeleteFunc(slices.Clone(l.files), func(name string) bool { return strings.Contains(name, "/") })
	b, sets := &Book{inside: *f.lists, turn: f.turn}, 0
	for _, r := range rules {
		if sets < 2 && joins(r, f.c.Collection) {
			found, taken := b.join(ctx, r, f.c.Collection, f.c.Path, names, false)
			sets += len(found)
			names = slices.DeleteFunc(names, func(name string) bool { return taken[name] })
		}
	}
	return sets > 1
}
