package export

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

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
}

// New gives the exports of a workspace.
func New(l *ledger.Ledger, s *settings.Source) *Exports { return &Exports{l, s} }

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
	inventory *layout.Inventory // nil: not made yet
	deposits  layout.Deposits
	plans     map[string]*state.Definition // by digest
	isDefault string                       // the workflow that the collection's drops get
}

func (r *record) id() string   { return "bagpipe:" + string(r.Manifest.Item) }
func (r *record) version() int { return max(r.Manifest.Version, 1) }

// Write writes items, in the order given, into one document. table names the table of CSV and
// JSONL.
func (x *Exports) Write(w io.Writer, f Format, table string, items []layout.ItemID) (err error) {
	v, err := x.ledger.Store.Tip()
	if err != nil {
		return err
	}
	out := bufio.NewWriter(w)
	var doc document
	switch f {
	case Turtle:
		doc = &turtle{out: out}
	case JSONLD:
		doc = &jsonld{out: out}
	case PREMIS, METS:
		doc = &xmlDocument{xmlWriter: xmlWriter{out: out}, mets: f == METS}
	case CSV, JSONL:
		if doc, err = newTable(out, table, f == JSONL); err != nil {
			return err
		}
	default:
		return fmt.Errorf("format %q is not known", f)
	}
	for _, id := range items {
		r, err := x.read(v, id)
		if err != nil {
			return err
		}
		if err := doc.item(r); err != nil {
			return fmt.Errorf("export item %s: %w", id.Short(), err)
		}
	}
	if err := doc.end(); err != nil {
		return err
	}
	return out.Flush()
}

// document takes items one by one.
type document interface {
	item(*record) error
	end() error
}

func (x *Exports) read(v gitstore.View, id layout.ItemID) (*record, error) {
	rec, err := x.ledger.Read(v, id, "")
	if err != nil {
		return nil, err
	}
	r := &record{Record: rec, plans: map[string]*state.Definition{}, isDefault: x.settings.Current().Settings.Collection(rec.Manifest.Collection).Workflow}
	if rec.Manifest.Inventory != nil {
		data, err := v.ReadFile(layout.ItemDir(id) + "/" + layout.InventoryJSON)
		if err != nil {
			return nil, fmt.Errorf("item %s: %w", id.Short(), err)
		}
		inventory, err := layout.DecodeInventory(data)
		if err != nil {
			return nil, fmt.Errorf("item %s: %w", id.Short(), err)
		}
		r.inventory = &inventory
	}
	if r.deposits, err = ledger.ReadDeposits(v, id); err != nil {
		return nil, err
	}
	for name, w := range rec.Execution.Workflows {
		plan, err := x.ledger.PinnedPlan(v, w.Digest)
		if err != nil {
			return nil, err
		}
		r.plans[w.Digest] = plan
		rec.Execution.Compute(name, plan)
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

func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}
