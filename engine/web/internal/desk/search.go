package desk

import (
	"context"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"bagpipe/engine/fault"
	"bagpipe/engine/query"
	"bagpipe/engine/search"
	"bagpipe/layout"
)

// Sought reads what is looked for: the options of the command line by their names, q for the
// words, and tag, which may be given several times.
func (d *Desk) Sought(ctx context.Context, v url.Values) (q query.Query, err error) {
	q = query.Query{Text: v.Get("q"), From: v.Get("from"), Until: v.Get("until"), Where: v.Get("where"), Collection: v.Get("collection"),
		Tags: slices.DeleteFunc(slices.Clone(v["tag"]), func(tag string) bool { return strings.TrimSpace(tag) == "" })}
	if box := v.Get("bbox"); box != "" {
		if q.BBox, err = query.ParseBox(box); err != nil {
			return q, fault.New(fault.Invalid, "bbox: "+err.Error())
		}
	}
	if key, err := q.Check(); err != nil {
		return q, fault.New(fault.Invalid, key+": "+err.Error())
	}
	if ref := v.Get("alike"); ref != "" {
		id, err := d.Item(ctx, ref)
		if err != nil {
			return q, err
		}
		if q.Alike, err = d.Search.Alike(id); err == nil && q.Alike == "" {
			err = fault.New(fault.Refused, fmt.Sprintf("item %s has no inventory yet: its size is not known", id.Short()))
		}
		if err != nil {
			return q, err
		}
	}
	now := d.Settings.Current()
	if q.Collection != "" && !d.Settings.IsCollection(now.Settings, q.Collection) {
		return q, fault.New(fault.NotFound, fmt.Sprintf("no collection %q", q.Collection))
	}
	name := v.Get("saved")
	if name == "" {
		return q, nil
	}
	saved := now.Searches[name]
	if saved == nil {
		return q, fault.Unknown("search", name, " in "+layout.SearchesDir+"/", maps.Keys(now.Searches))
	}
	if q, err = saved.Narrowed(q); err != nil {
		err = fault.New(fault.Invalid, err.Error())
	}
	return q, err
}

// Find gives the first items that are looked for, of those that the account reaches; more
// reports whether there are others.
func (d *Desk) Find(ctx context.Context, q query.Query, most int) (hits []search.Hit, more bool, err error) {
	who := Who(ctx)
	if len(who.Collections) == 1 && q.Collection == "" {
		q.Collection = who.Collections[0]
	}
	hits = []search.Hit{}
	err = d.Search.Find(ctx, q, most+1, func(h search.Hit) bool {
		switch {
		case ctx.Err() != nil: // nobody waits for it
			return false
		case !who.Reaches(string(h.Collection)):
			return true
		}
		if more = len(hits) == most; !more {
			hits = append(hits, h)
		}
		return !more
	})
	if err == nil {
		err = ctx.Err()
	}
	return hits, more, err
}
