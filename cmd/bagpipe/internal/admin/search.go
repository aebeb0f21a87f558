package admin

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"bagpipe/cmd/bagpipe/internal/screen"
	"bagpipe/engine"
	"bagpipe/engine/fault"
	"bagpipe/engine/query"
	"bagpipe/engine/search"
	"bagpipe/layout"
	"bagpipe/layout/disk"

	"github.com/goccy/go-yaml"
)

// question is what a search asks.
type question struct {
	Text       []string `arg:"" optional:"" help:"Words, whatever their case and accents; in quotes, one after the other."`
	BBox       string   `name:"bbox" placeholder:"W,S,E,N" help:"Only items that lie there, in degrees; W greater than E: across the 180th meridian."`
	From       string   `placeholder:"TIME" help:"Only items from then or later: a year, month, day or time."`
	Until      string   `placeholder:"TIME" help:"Only items from then or earlier, all of a year, month or day."`
	Tag        []string `sep:"none" placeholder:"TAG" help:"Only items that have the tag, TAG or KIND:TAG; again: all of them."`
	Where      string   `placeholder:"CONDITION" help:"Only items of which this condition holds."`
	Collection string   `placeholder:"NAME" help:"Only this collection."`
	Alike      string   `placeholder:"ITEM" help:"Only items of the name and total size that this one has."`
	Saved      string   `placeholder:"NAME" help:"Ask the question of searches/NAME.yaml, narrowed by all else."`
}

// Search finds items by what is written in them, where and when they are from.
type Search struct {
	question
	Save   string `placeholder:"NAME" help:"Keep the question as searches/NAME.yaml."`
	Facets bool   `help:"Count the values that the items have in common instead."`
	Limit  int    `placeholder:"N" default:"100" help:"At most N items, with --facets values of each kind; 0: all."`
	JSON   bool   `name:"json" help:"Print JSON, one object a line."`
}

// Validate is called by kong.
func (c *Search) Validate() error {
	if c.Limit < 0 {
		return errors.New("--limit: expected a number from 0 up")
	}
	if len(c.Text) > 0 && strings.TrimSpace(strings.Join(c.Text, "")) == "" {
		return errors.New("expected a text to look for")
	}
	for _, name := range []string{c.Save, c.Saved} {
		if _, err := layout.ParseName(name); name != "" && err != nil {
			return err
		}
	}
	q, err := c.query()
	if c.Save != "" && c.Alike != "" {
		return errors.New("--save: what is alike to an item is not kept")
	}
	if err != nil || !q.Empty() || c.Saved != "" || c.Alike != "" {
		return err
	}
	if c.Save != "" {
		return errors.New("--save: expected something to look for")
	}
	return nil
}

// query is what the options ask for.
func (c *question) query() (q query.Query, err error) {
	q = query.Query{Text: strings.Join(c.Text, " "), From: c.From, Until: c.Until, Tags: c.Tag, Where: c.Where, Collection: c.Collection}
	if c.BBox != "" {
		if q.BBox, err = query.ParseBox(c.BBox); err != nil {
			return q, fmt.Errorf("--bbox: %w", err)
		}
	}
	key, err := q.Check()
	switch {
	case err != nil && key == "text":
		return q, err
	case err != nil:
		return q, fmt.Errorf("--%s: %w", strings.TrimSuffix(strings.TrimRight(key, "0123456789[]"), "s"), err)
	}
	return q, nil
}

// Run prints each item as it is found.
func (c *Search) Run(ctx context.Context, on *screen.Screen, open Open) error {
	q, err := c.query()
	if err != nil {
		return err
	}
	return open.plain(ctx, func(e *engine.Engine) error {
		if q.Empty() && c.Saved == "" && c.Alike == "" && !c.Facets {
			return c.list(e, on)
		}
		if q, err = c.known(ctx, e, q); err != nil {
			return err
		}
		if c.Save != "" {
			if err := c.save(ctx, e, q); err != nil {
				return err
			}
		}
		e.Search.Building = func() { on.Talk("building the search index…") }
		if c.Facets {
			return c.facets(ctx, e, on, q)
		}
		return c.find(ctx, e, on, q)
	})
}

// known is the question with what was saved, of a collection that there is.
func (c *question) known(ctx context.Context, e *engine.Engine, q query.Query) (_ query.Query, err error) {
	if c.Alike != "" {
		id, err := e.Ask.Resolve(ctx, c.Alike)
		if err != nil {
			return q, err
		}
		if q.Alike, err = e.Search.Alike(id); err != nil {
			return q, err
		}
		if q.Alike == "" {
			return q, fault.New(fault.Refused, fmt.Sprintf("item %s has no inventory yet: its size is not known", id.Short()))
		}
	}
	if q.Collection != "" && !e.Settings.IsCollection(e.Settings.Current().Settings, q.Collection) {
		return q, fault.New(fault.NotFound, fmt.Sprintf("no collection %q", q.Collection))
	}
	if c.Saved == "" {
		return q, nil
	}
	return saved(e, c.Saved, q)
}

// saved is a saved search, narrowed by what else is asked for.
func saved(e *engine.Engine, name string, by query.Query) (query.Query, error) {
	s := e.Settings.Current().Searches[name]
	if s == nil {
		return by, fault.Unknown("search", name, " in "+layout.SearchesDir+"/", maps.Keys(e.Settings.Current().Searches))
	}
	return s.Narrowed(by)
}

// save writes the question where people edit it, and commits it.
func (c *Search) save(ctx context.Context, e *engine.Engine, q query.Query) error {
	if q.Also != nil {
		return fault.New(fault.Refused, fmt.Sprintf("%s is not kept: a saved search has one place, one time and one collection", q))
	}
	file := layout.SearchesDir + "/" + c.Save + ".yaml"
	data, err := yaml.Marshal(query.Saved{Schema: 1, Name: c.Save, Query: q})
	if err != nil {
		return err
	}
	path := e.Ledger.Path(file)
	if _, err := os.Lstat(path); err == nil {
		return fault.New(fault.Refused, file+" is there already; remove it first, or give another name")
	}
	if err := disk.MkdirAll(e.Ledger.Path(layout.SearchesDir), 0o777); err != nil {
		return err
	}
	if err := disk.WriteFile(path, data, 0o666); err != nil {
		return err
	}
	return e.Settings.Sync(ctx)
}

// list prints the searches that were saved.
func (c *Search) list(e *engine.Engine, on *screen.Screen) error {
	all := e.Settings.Current().Searches
	if len(all) == 0 {
		return screen.WrongUse("expected something to look for: words, --bbox, --from, --until, --tag, --where, --collection or --saved")
	}
	t := screen.NewTable("search", "looks for")
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if c.JSON {
			if err := on.JSONLine(struct {
				Name string `json:"name"`
				query.Query
			}{name, all[name].Query}); err != nil {
				return err
			}
		}
		t.Row(name, all[name].String())
	}
	if c.JSON {
		return nil
	}
	return t.Print(on.Out)
}

func (c *Search) facets(ctx context.Context, e *engine.Engine, on *screen.Screen, q query.Query) error {
	all, err := e.Search.Facets(ctx, q)
	if err != nil {
		return err
	}
	t := screen.NewTable("facet", "value", "items")
	shown, more := 0, false
	for i, f := range all {
		if i > 0 && f.Facet != all[i-1].Facet {
			shown = 0
		}
		if shown++; c.Limit > 0 && shown > c.Limit {
			more = true
			continue
		}
		if c.JSON {
			if err := on.JSONLine(f); err != nil {
				return err
			}
		}
		t.Row(f.Facet, f.Value, f.Items)
	}
	if more {
		defer on.Talk("… and more; --limit 0 counts all")
	}
	switch {
	case c.JSON:
		return nil
	case len(all) == 0 && q.Empty():
		on.Talk("no items")
		return nil
	case len(all) == 0:
		on.Talk("nothing has %s", q)
		return nil
	}
	return t.Print(on.Out)
}

func (c *Search) find(ctx context.Context, e *engine.Engine, on *screen.Screen, q query.Query) error {
	found, more := 0, false
	asked := c.Limit
	if asked > 0 {
		asked++
	}
	err := e.Search.Find(ctx, q, asked, func(h search.Hit) bool {
		if more = c.Limit > 0 && found == c.Limit; more {
			return false
		}
		found++
		c.print(on, h)
		return true
	})
	switch {
	case err != nil:
		return err
	case found == 0:
		on.Talk("nothing has %s", q)
	case more:
		on.Talk("… and more; --limit 0 finds all")
	}
	return nil
}

func (c *Search) print(on *screen.Screen, h search.Hit) {
	if c.JSON {
		if err := on.JSONLine(h); err != nil {
			on.Talk("bagpipe: %v", err)
		}
		return
	}
	fmt.Fprintf(on.Out, "%s  %s/%s", h.Item.Short(), h.Collection, h.Label)
	if len(h.Fields) > 0 {
		fmt.Fprintf(on.Out, "  (%s)", strings.Join(h.Fields, ", "))
	}
	fmt.Fprintln(on.Out)
	for _, f := range h.Files {
		fmt.Fprintf(on.Out, "    %s\n", f)
	}
	if h.More > 0 {
		fmt.Fprintf(on.Out, "    … and %s more\n", screen.Count(h.More, "file"))
	}
}
