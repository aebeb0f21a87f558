package admin

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"time"

	"bagpipe/cmd/bagpipe/internal/screen"
	"bagpipe/engine"
	"bagpipe/engine/catalog"
	"bagpipe/engine/roots"
	"bagpipe/layout"
)

// Catalog knows folders whose objects are items and stay where they are.
type Catalog struct {
	Add    catalogAdd    `cmd:"" help:"Catalogue a folder where it is: its objects become items, and nothing is written there."`
	Scan   catalogScan   `cmd:"" help:"Bring catalogs up to date: new objects become items, changed ones their next versions."`
	Status catalogStatus `cmd:"" default:"withargs" help:"Say how catalogs stand."`
	List   catalogList   `cmd:"" help:"List the entries of a catalog: its items, or all."`
	Remove catalogRemove `cmd:"" help:"Forget a catalog; its items and its records in the history stay."`
}

type catalogAdd struct {
	Name       string `arg:"" help:"The catalog's name."`
	Dir        string `arg:"" help:"Its root."`
	Collection string `default:"default" placeholder:"NAME" help:"The collection of its items; default."`
	Workflow   string `placeholder:"NAME" help:"Their workflow; without it as rules and collection say."`
	Network    bool   `help:"Go by sizes and modification times alone, as on network mounts: trust: [size, mtime]."`
}

// Run adds one.
func (c *catalogAdd) Run(ctx context.Context, on *screen.Screen, open Open) error {
	name, err := layout.ParseName(c.Name)
	if err != nil {
		return screen.WrongUse("NAME: " + err.Error())
	}
	root, err := filepath.Abs(c.Dir)
	if err != nil {
		return err
	}
	collection, err := layout.ParseName(c.Collection)
	if err != nil {
		return screen.WrongUse("--collection: " + err.Error())
	}
	return open.plain(ctx, func(e *engine.Engine) error {
		k := &roots.Catalog{Name: name, Root: root, Collection: collection, Workflow: c.Workflow}
		if c.Network {
			k.Trust = []string{"size", "mtime"}
		}
		if err := e.Catalog.Add(ctx, k); err != nil {
			return err
		}
		fmt.Fprintf(on.Out, "%s/%s.yaml\n", layout.CatalogsDir, name)
		return nil
	})
}

type catalogScan struct {
	Name       []string `arg:"" optional:"" help:"Catalogs; default: all."`
	Deep       bool     `help:"List every folder and compare every file: the default."`
	Shallow    bool     `help:"List only folders whose own time moved; files rewritten in place are not seen."`
	Check      bool     `help:"Only tell of missing and moved objects; record nothing."`
	Full       bool     `help:"Recognise all anew, items that are there as well."`
	AcceptGone bool     `help:"Take all missing objects for gone, however many they are: the root is the right one."`
	JSON       bool     `name:"json" help:"Print JSON, one object a line."`
	Quiet      bool     `short:"q" help:"Print no progress."`
}

// Validate is called by kong.
func (c *catalogScan) Validate() error {
	if c.Check && (c.Full || c.AcceptGone) {
		return fmt.Errorf("--check records nothing: without --full and --accept-gone")
	}
	if c.Deep && c.Shallow {
		return fmt.Errorf("--deep and --shallow exclude each other")
	}
	if c.Shallow && c.Full {
		return fmt.Errorf("--shallow and --full exclude each other")
	}
	return nil
}

// Run scans, and ends with exit code 4 when something wants a person.
func (c *catalogScan) Run(ctx context.Context, on *screen.Screen, open Open) error {
	return open.with(ctx, func(e *engine.Engine) error {
		if err := e.Ledger.Store.Repair(ctx); err != nil { // what a scan that was killed did not show
			return err
		}
		trouble := false
		names := c.Name
		if len(names) == 0 {
			for name := range e.Settings.Current().Catalogs {
				names = append(names, string(name))
			}
			slices.Sort(names)
		}
		if len(names) == 0 {
			on.Talk("no catalogs; add one with: bagpipe catalog add NAME DIR")
		}
		var failed []error
		for _, name := range names {
			r, err := e.Catalog.Scan(ctx, layout.Name(name), catalog.Options{Shallow: c.Shallow, Check: c.Check, Full: c.Full,
				AcceptGone: c.AcceptGone, Told: c.progress(on, name)})
			if err != nil && ctx.Err() == nil && len(names) > 1 {
				failed = append(failed, fmt.Errorf("%s: %w", name, err))
				continue // the others are scanned
			}
			if err != nil {
				return err
			}
			trouble = trouble || r.Trouble()
			if c.JSON {
				if err := on.JSONLine(r); err != nil {
					return err
				}
				continue
			}
			c.print(on, r)
		}
		if trouble && len(failed) == 0 {
			return screen.ExitSomeFailed
		}
		return errors.Join(failed...)
	})
}

// progress tells now and then how far a scan is.
func (c *catalogScan) progress(on *screen.Screen, name string) func(catalog.Progress) {
	const first, every = 3 * time.Second, 10 * time.Second
	next := time.Now().Add(first)
	return func(p catalog.Progress) {
		if now := time.Now(); !c.Quiet && now.After(next) {
			next = now.Add(every)
			reading := ""
			if p.Reading != nil {
				reading = fmt.Sprintf("; reading %s, %s", p.Reading.Path, layout.FormatSize(uint64(p.Reading.Size)))
			}
			on.Talk("%s: %s: %s, %s%s", name, p.Stage, screen.Count(p.Folders, "folder"), screen.CountVerb(p.Entries, "entry", "entries"), reading)
		}
	}
}

func (c *catalogScan) print(on *screen.Screen, r *catalog.Report) {
	if r.Away != "" {
		fmt.Fprintf(on.Out, "%s: away: %s\n", r.Catalog, r.Away)
		return
	}
	entries := func(n int) string { return screen.CountVerb(n, "entry", "entries") }
	line := fmt.Sprintf("%s: %s, %s", r.Catalog, screen.Count(r.Folders, "folder"), entries(r.Entries))
	if c.Check {
		below := ""
		if r.Absent > len(r.Missing) {
			below = fmt.Sprintf(", with all below them %d", r.Absent)
		}
		fmt.Fprintf(on.Out, "%s; missing: %d%s, moved: %d\n", line, len(r.Missing), below, r.Moved)
		for _, path := range r.Missing {
			fmt.Fprintln(on.Out, "  "+path)
		}
		printReasons(on, r.Unread)
		return
	}
	fmt.Fprintf(on.Out, "%s; new: %d, versions: %d, moved: %d, gone: %d\n", line, r.New, r.Versions, r.Moved, r.Gone)
	if r.Anew > 0 {
		fmt.Fprintf(on.Out, "  %s described anew, as the rules are others\n", screen.Count(r.Anew, "item"))
	}
	printReasons(on, r.Unread)
	printReasons(on, r.Problems)
	if r.Unconfirmed > 0 {
		on.Talk("%s not there; if that is right: bagpipe catalog scan %s --accept-gone", screen.CountVerb(r.Unconfirmed, "entry is", "entries are"), r.Catalog)
	}
	if r.Later > 0 {
		on.Talk("%s looked at again by the next scan", screen.CountVerb(r.Later, "object is", "objects are"))
	}
	if c.Shallow {
		on.Talk("files that were rewritten in place are not seen by a shallow scan")
	}
}

func printReasons(on *screen.Screen, of map[string]string) {
	for _, path := range slices.Sorted(maps.Keys(of)) {
		fmt.Fprintf(on.Out, "  %s: %s\n", path, of[path])
	}
}

type catalogStatus struct {
	Name string `arg:"" optional:"" help:"A catalog; default: all."`
	JSON bool   `name:"json" help:"Print JSON."`
}

// Run prints how catalogs stand.
func (c *catalogStatus) Run(ctx context.Context, on *screen.Screen, open Open) error {
	return open.plain(ctx, func(e *engine.Engine) (err error) {
		var rows []catalog.Row
		if c.Name == "" {
			rows, err = e.Catalog.Rows()
		} else {
			rows = make([]catalog.Row, 1)
			rows[0], err = e.Catalog.Row(layout.Name(c.Name))
		}
		if err != nil {
			return err
		}
		if c.JSON {
			return on.JSON(append([]catalog.Row{}, rows...))
		}
		if len(rows) == 0 {
			on.Talk("no catalogs; add one with: bagpipe catalog add NAME DIR")
			return nil
		}
		t := screen.NewTable("catalog", "root", "state", "folders", "files", "items", "gone", "unread", "unconfirmed", "scanned")
		for _, r := range rows {
			state := "here"
			if r.Away != "" {
				state = "away"
			}
			t.Row(string(r.Name), layout.EncodePath(r.Root), state, number(r.Folders), number(r.Files), number(r.Items), number(r.Gone),
				number(r.States[catalog.Unread]+r.Waiting), number(r.States[catalog.Unconfirmed]), when(r.Scanned))
		}
		err = t.Print(on.Out)
		for _, r := range rows {
			hint(on, r)
		}
		return err
	})
}

// hint says what a catalog wants of a person.
func hint(on *screen.Screen, r catalog.Row) {
	if r.Away == "" && r.Scanned.IsZero() {
		on.Talk("%s was never scanned: bagpipe catalog scan %s", r.Name, r.Name)
	}
	for _, line := range CatalogLines(r.Trouble()) {
		on.Talk("%s", line)
	}
}

// CatalogLines say what a catalog wants of a person.
func CatalogLines(t catalog.Trouble) (lines []string) {
	say := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	if t.Away != "" {
		say("%s: %s", t.Catalog, t.Away)
	}
	if t.Unconfirmed > 0 {
		say("%s: %s entries that are not there; bagpipe catalog scan %s --check lists them; if that is right: bagpipe catalog scan %s --accept-gone", t.Catalog, screen.CountVerb(t.Unconfirmed, "folder has", "folders have"), t.Catalog, t.Catalog)
	}
	if t.Unlisted > 0 {
		say("%s: no scan has come to %s yet; to go on: bagpipe catalog scan %s", t.Catalog, screen.Count(t.Unlisted, "folder"), t.Catalog)
	}
	if t.Failed != "" {
		say("%s: the last scan failed: %s", t.Catalog, t.Failed)
	}
	if t.Waiting > 0 {
		say("%s: %s not be looked into; bagpipe catalog list %s --json says why", t.Catalog, screen.CountVerb(t.Waiting, "entry could", "entries could"), t.Catalog)
	}
	if t.Unread > 0 {
		say("%s: %s not read; a scan says why: bagpipe catalog scan %s", t.Catalog, screen.CountVerb(t.Unread, "folder was", "folders were"), t.Catalog)
	}
	return lines
}

// told prints what was done, where it was.
func told(err error, on *screen.Screen, format string, args ...any) error {
	if err == nil {
		_, err = fmt.Fprintf(on.Out, format+"\n", args...)
	}
	return err
}

func number(n int) screen.Figure { return screen.Figure(fmt.Sprint(n)) }

type catalogList struct {
	Name string `arg:"" optional:"" help:"A catalog; default: all."`
	Path string `arg:"" optional:"" help:"A folder below its root."`
	All  bool   `help:"List all entries, not items alone."`
	Gone bool   `help:"List entries that are gone."`
	JSON bool   `name:"json" help:"Print JSON, one object a line."`
}

// Run lists what one catalog knows, or each.
func (c *catalogList) Run(ctx context.Context, on *screen.Screen, open Open) error {
	return open.plain(ctx, func(e *engine.Engine) error {
		names := []layout.Name{layout.Name(c.Name)}
		if c.Name == "" {
			if names = slices.Sorted(maps.Keys(e.Settings.Current().Catalogs)); len(names) == 0 {
				on.Talk("no catalogs; add one with: bagpipe catalog add NAME DIR")
				return nil
			}
		}
		rows := 0
		for _, name := range names {
			if err := e.Catalog.Entries(name, catalog.Which{Below: c.Path, All: c.All, Gone: c.Gone}, func(row catalog.Entry) { c.print(on, name, row, &rows) }); err != nil {
				return err
			}
		}
		if rows == 0 && !c.JSON {
			on.Talk("nothing to list; --all lists all entries")
		}
		return nil
	})
}

// listed is an entry in a list of several catalogs.
type listed struct {
	Catalog layout.Name `json:"catalog"`
	catalog.Entry
}

// print is a row, the catalog first where several are listed; not a table's, as there may be millions.
func (c *catalogList) print(on *screen.Screen, name layout.Name, row catalog.Entry, rows *int) {
	if c.JSON && c.Name == "" {
		_ = on.JSONLine(listed{name, row}) // to a closed pipe, as when only the first lines are wanted
		return
	}
	if c.JSON {
		_ = on.JSONLine(row) // likewise
		return
	}
	const columns = "%-8s %-7s %-7s %-11s %s\n"
	path, title, item := row.Path, "PATH", "-"
	if c.Name == "" {
		path, title = fmt.Sprintf("%-11s %s", name, row.Path), fmt.Sprintf("%-11s %s", "CATALOG", "PATH")
	}
	if row.Item != "" {
		item = row.Item.Short()
	}
	if *rows++; *rows == 1 {
		fmt.Fprintf(on.Out, columns, "ITEM", "KIND", "VERDICT", "STATE", title)
	}
	fmt.Fprintf(on.Out, columns, item, row.Kind, row.Verdict, row.State, path)
}

type catalogRemove struct {
	Name string `arg:"" help:"The catalog's name."`
}

// Run forgets one.
func (c *catalogRemove) Run(ctx context.Context, on *screen.Screen, open Open) error {
	return open.plain(ctx, func(e *engine.Engine) error {
		return told(e.Catalog.Remove(ctx, layout.Name(c.Name)), on, "%s: removed", c.Name)
	})
}
