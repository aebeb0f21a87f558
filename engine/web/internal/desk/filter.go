package desk

import (
	"context"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"bagpipe/engine/ask"
	"bagpipe/engine/condition"
	"bagpipe/engine/fault"
	"bagpipe/engine/state"
	"bagpipe/layout"
)

// Within are the collections that who asks is confined to; none: all.
func Within(ctx context.Context) (within []layout.Name) {
	for _, c := range Who(ctx).Collections {
		within = append(within, layout.Name(c))
	}
	return within
}

// Filter reads what narrows a listing: the options of the command line by their names, q for
// a text, and facet=NAME:VALUE, which may be given several times.
func (d *Desk) Filter(ctx context.Context, q url.Values) (f ask.Filter, err error) {
	f = ask.Filter{Collection: layout.Name(q.Get("collection")), Workflow: q.Get("workflow"), Step: layout.Name(q.Get("step")), Status: state.Status(q.Get("status")),
		Lane: layout.Name(q.Get("lane")), Batch: q.Get("batch"), Milestone: layout.Name(q.Get("reached")), Message: q.Get("failure"), Held: q.Get("held") == "true"}
	if f.Older, err = Duration(q.Get("older")); err != nil {
		return f, err
	}
	if f.Where, err = Where(q.Get("where")); err != nil {
		return f, err
	}
	if parent := q.Get("parent"); parent != "" {
		if f.Parent, err = d.Item(ctx, parent); err != nil {
			return f, err
		}
	}
	more := ask.More{Within: Within(ctx), Text: q.Get("q"), Chosen: map[string][]string{}}
	for _, chosen := range q["facet"] {
		name, value, ok := strings.Cut(chosen, ":")
		if !ok {
			return f, fault.New(fault.Invalid, fmt.Sprintf("facet %q: expected NAME:VALUE", chosen))
		}
		more.Chosen[name] = append(more.Chosen[name], value)
	}
	if q.Get("list") != "" {
		more.Only = d.listed(ctx, q.Get("list"))
	}
	if more.Only != nil || len(more.Within) > 0 || more.Text != "" || len(more.Chosen) > 0 {
		f.More = &more
	}
	return f, nil
}

// mostListed is how many items a pasted list names.
const mostListed = 500

// listed are the items of a pasted list; Unlisted gives the rest of it.
func (d *Desk) listed(ctx context.Context, text string) map[layout.ItemID]bool {
	only := map[layout.ItemID]bool{}
	for _, name := range namesOf(text) {
		if id, err := d.Object(ctx, name); err == nil {
			only[id] = true
		}
	}
	return only
}

// Unlisted are the names of a pasted list that no one item has.
func (d *Desk) Unlisted(ctx context.Context, text string) (unknown []string) {
	for _, name := range namesOf(text) {
		if _, err := d.Object(ctx, name); err != nil {
			unknown = append(unknown, name)
		}
	}
	return unknown
}

// namesOf parts a list at the ends of lines and at commas.
func namesOf(text string) (names []string) {
	for _, name := range strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\r' || r == ',' }) {
		if name = strings.TrimSpace(name); name != "" && len(names) < mostListed {
			names = append(names, name)
		}
	}
	return names
}

// Where reads a condition; nil: there is none.
func Where(text string) (*condition.Where, error) {
	if text == "" {
		return nil, nil
	}
	w, err := condition.Parse(text)
	if err != nil {
		return nil, fault.New(fault.Invalid, fmt.Sprintf("where %q: %v", text, err))
	}
	return w, nil
}

// Duration reads a length of time as 90m, 36h or 3d; "" is none.
func Duration(text string) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	t, err := layout.ParseDuration(text)
	if err != nil {
		return 0, fault.New(fault.Invalid, err.Error())
	}
	return t, nil
}

// Number reads a whole number from 0 to most; "" is otherwise.
func Number(name, text string, most, otherwise int) (int, error) {
	if text == "" {
		return otherwise, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || n > most {
		return 0, fault.New(fault.Invalid, fmt.Sprintf("%s %q: expected a number from 0 to %d", name, text, most))
	}
	return n, nil
}
