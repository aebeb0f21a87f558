package export

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"

	"bagpipe/engine/gitstore"
	"bagpipe/engine/ledger"
	"bagpipe/engine/settings"
	"bagpipe/engine/state"
	"bagpipe/layout"
)

// Exports writes the records of a workspace's items.
type Exports struct {
	ledger   *ledger.Ledger
	settings *settings.Source

	// Past gives what the history before a view had of the copies of items; nil: nothing is known of it.
	Past func(ctx context.Context, v gitstore.View, items []layout.ItemID) PastOf
}

// PastOf gives the deposits.json of all looks at an item's copies before its present records: in no order, some of them
// several times. Several goroutines call it.
type PastOf func(layout.Manifest, layout.Deposits) ([]layout.Deposits, error)

// New gives the exports of a workspace.
func New(l *ledger.Ledger, s *settings.Source) *Exports { return &Exports{ledger: l, settings: s} }

// Format is a form of export.
type Format string

// The formats.
const (
	Turtle Format = "turtle"
	JSONLD Format = "jsonld"
	PREMIS Format = "premis"
	METS   Format = "mets"
	CSV    Format = "csv"
	JSONL  Format = "jsonl"
)

// Single reports whether a document of the format holds one item alone.
func (f Format) Single() bool { return f == PREMIS || f == METS }

// Ending is what a file of the format ends in.
func (f Format) Ending() string {
	return map[Format]string{Turtle: ".ttl", JSONLD: ".jsonld", PREMIS: ".premis.xml", METS: ".mets.xml", CSV: ".csv", JSONL: ".jsonl"}[f]
}

// record is an item as committed.
type record struct {
	*ledger.Record
	listed    []byte            // the inventory as committed, until load; nil: not made yet
	inventory *layout.Inventory // nil: not made yet, or not loaded
	deposits  layout.Deposits
	past      []layout.Deposits            // of looks before
	plans     map[string]*state.Definition // by digest
	isDefault string                       // the workflow that the collection's drops get
}

func (r *record) id() string   { return "bagpipe:" + string(r.Manifest.Item) }
func (r *record) version() int { return max(r.Manifest.Version, 1) }

// load makes the inventory of what was committed.
func (r *record) load() error {
	if r.listed == nil {
		return nil
	}
	inventory, err := layout.DecodeInventory(r.listed)
	if err != nil {
		return fmt.Errorf("item %s: %w", r.Manifest.Item.Short(), err)
	}
	r.inventory, r.listed = &inventory, nil
	return nil
}

// Write writes items, in the order given, into one document. table names the table of CSV and
// JSONL.
func (x *Exports) Write(ctx context.Context, w io.Writer, f Format, table string, items []layout.ItemID) error {
	out := bufio.NewWriterSize(w, 16<<10) // a small item's PREMIS, which is in each bag
	doc, err := newDocument(out, f, table)
	if err != nil {
		return err
	}
	err = x.each(ctx, f, table, items, func(read func(layout.ItemID) (*record, error), some []layout.ItemID) error {
		return inOrder(ctx, some, read, func(id layout.ItemID, r *record) error {
			if err := doc.item(r); err != nil {
				return fmt.Errorf("export item %s: %w", id.Short(), err)
			}
			return nil
		})
	})
	if err == nil {
		err = doc.end()
	}
	if err != nil {
		return err
	}
	return out.Flush()
}

// document takes items one by one.
type document interface {
	item(*record) error
	end() error
}

func newDocument(out *bufio.Writer, f Format, table string) (document, error) {
	switch f {
	case Turtle:
		return &turtle{out: out}, nil
	case JSONLD:
		return &jsonld{out: out}, nil
	case PREMIS, METS:
		return &xmlDocument{xmlWriter: xmlWriter{out: out}, mets: f == METS}, nil
	case CSV, JSONL:
		return newTable(out, table, f == JSONL)
	}
	return nil, fmt.Errorf("format %q is not known", f)
}

// manyItems are read from packs that are mapped meanwhile.
const manyItems = 32

// mostTogether is for how many items the history is passed once, with some 40 bytes in memory for each look at a copy of
// theirs.
const mostTogether = 100_000

// each gives some items at a time, and how they are read, as they are all at one moment.
func (x *Exports) each(ctx context.Context, f Format, table string, items []layout.ItemID, do func(read func(layout.ItemID) (*record, error), some []layout.ItemID) error) error {
	v, err := x.ledger.Store.Tip()
	if err != nil {
		return err
	}
	if len(items) >= manyItems {
		end := v.ReadMany()
		defer func() { _ = end() }() // it takes nothing from what was read
	}
	for some := range slices.Chunk(items, mostTogether) {
		var past PastOf
		if x.Past != nil && (f.Single() || table == fixityTable) {
			past = x.Past(ctx, v, some)
		}
		err := do(func(id layout.ItemID) (*record, error) { return x.read(v, id, past) }, some)
		if err != nil {
			return err
		}
	}
	return nil
}

// committed reads an item's records, which were read at once, from memory.
type committed struct {
	gitstore.Reader
	files map[string][]byte // by path
}

func (c committed) ReadFile(name string) ([]byte, error) {
	data, is := c.files[name]
	switch {
	case !is:
		return c.Reader.ReadFile(name)
	case data == nil:
		return nil, &fs.PathError{Op: "read committed", Path: name, Err: fs.ErrNotExist}
	}
	return data, nil
}

// read reads an item at a view; past may be nil.
func (x *Exports) read(v gitstore.View, id layout.ItemID, past PastOf) (*record, error) {
	all, err := ledger.ReadRecords(v, id)
	if err != nil {
		return nil, err
	}
	dir := layout.ItemDir(id)
	from := committed{v, map[string][]byte{path.Join(dir, layout.ExecutionJSON): all.Execution, path.Join(dir, layout.ManifestJSON): all.Manifest, path.Join(dir, layout.DepositsJSON): all.Deposits}}
	rec, err := x.ledger.Read(from, id, "")
	if err != nil {
		return nil, err
	}
	r := &record{Record: rec, plans: map[string]*state.Definition{}, isDefault: x.settings.Current().Settings.Collection(rec.Manifest.Collection).Workflow}
	if rec.Manifest.Inventory != nil {
		r.listed = all.Inventory
	}
	if r.deposits, err = ledger.ReadDeposits(from, id); err != nil {
		return nil, err
	}
	if past != nil {
		if r.past, err = past(rec.Manifest, r.deposits); err != nil {
			return nil, fmt.Errorf("item %s: %w", id.Short(), err)
		}
	}
	for _, w := range rec.Execution.Workflows {
		if r.plans[w.Digest], err = x.ledger.PinnedPlan(v, w.Digest); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// done is one ended attempt.
type done struct {
	run, step string
	key       layout.AttemptKey
	plan      *state.Step
	first     bool
	state.Attempt
}

// ended lists the attempts that ended, by time, then by run, step and key.
func (r *record) ended() (all []done) {
	for _, run := range slices.Sorted(maps.Keys(r.Execution.Workflows)) {
		w := r.Execution.Workflows[run]
		plan := r.plans[w.Digest]
		for name, s := range w.Steps {
			for key, a := range s.Attempts {
				if a.Ended.IsZero() {
					continue
				}
				all = append(all, done{run, string(name), key, plan.Step(name), len(plan.Steps) > 0 && plan.Steps[0].Name == string(name), a})
			}
		}
	}
	slices.SortFunc(all, func(a, b done) int {
		return cmp.Or(a.Ended.Compare(b.Ended), cmp.Compare(a.run, b.run), cmp.Compare(a.step, b.step), cmp.Compare(a.key.N, b.key.N), cmp.Compare(a.key.Engine, b.key.Engine))
	})
	return all
}

// copied is one copy on a target.
type copied struct {
	target  layout.Name
	version int
	layout.DepositCopy
}

func (r *record) copies() (all []copied) {
	for _, name := range slices.Sorted(maps.Keys(r.deposits.Targets)) {
		for _, version := range slices.Sorted(maps.Keys(r.deposits.Targets[name])) {
			all = append(all, copied{name, version, r.deposits.Targets[name][version]})
		}
	}
	return all
}
