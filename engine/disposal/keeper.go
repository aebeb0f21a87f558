package disposal

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"bagpipe/engine/fault"
	"bagpipe/engine/gitstore"
	"bagpipe/engine/guard"
	"bagpipe/engine/index"
	"bagpipe/engine/ledger"
	"bagpipe/engine/queue"
	"bagpipe/engine/settings"
	"bagpipe/engine/state"
	"bagpipe/engine/warrant"
	"bagpipe/layout"
	"bagpipe/steps/target"
)

// Rooms are what a Keeper is made of.
type Rooms struct {
	Ledger   *ledger.Ledger
	Settings *settings.Source
	Guard    *guard.Guard
	Index    *index.Keeper // loaded by whoever calls
	Targets  *target.Pool
	// Withdraw takes back what other systems hold of an item. It may be called again.
	Withdraw func(ctx context.Context, id layout.ItemID, why string) error
	// IsGone reports whether a scan found an item's object gone from its catalog.
	IsGone func(id layout.ItemID, p layout.Place) (bool, error)
}

// Keeper proposes disposals and carries them out.
type Keeper struct {
	Rooms
	who   ledger.Actor            // has approved proposals carried out
	after func(what string) error // for tests: fails where a crash is to be
}

// New gives a keeper.
func New(r Rooms) *Keeper {
	return &Keeper{Rooms: r, who: r.Ledger.ByPerson(), after: func(string) error { return nil }}
}

// ByEngine gives a keeper that a schedule calls: the engine is the author of what it carries out.
func ByEngine(k *Keeper) *Keeper {
	as := *k
	as.who = k.Ledger.ByEngine()
	return &as
}

// Draft is what is to be proposed.
type Draft struct {
	Items     []layout.ItemID
	Reason    string
	Authority string

	rules map[layout.ItemID]string // of retention
}

// Propose commits a proposal, by the acting person, and gives its key. An item that may not be
// disposed of, or that another open proposal names, refuses it.
func (k *Keeper) Propose(ctx context.Context, d Draft) (key string, err error) {
	return k.propose(ctx, d, k.Ledger.ByPerson())
}

func (k *Keeper) propose(ctx context.Context, d Draft, who ledger.Actor) (key string, err error) {
	if len(d.Items) == 0 || strings.TrimSpace(d.Reason) == "" {
		return "", fault.New(fault.Invalid, "a proposal names items and a reason")
	}
	if err := k.Guard.LookAtFew(ctx); err != nil {
		return "", err
	}
	open, err := k.open(ctx)
	if err != nil {
		return "", err
	}
	p := warrant.Proposal{Schema: 1, Items: map[layout.ItemID]warrant.Described{}, Reason: ledger.Clip(ledger.Printable(d.Reason), ledger.MaxMessage),
		Authority: ledger.OneLine(d.Authority, 500), By: who.Agent, At: k.Ledger.Now()}
	for _, id := range d.Items {
		v, rec, err := k.Ledger.ReadTip(id, "")
		if err != nil {
			return "", err
		}
		if other := open[id]; other != "" {
			return "", fault.New(fault.Refused, fmt.Sprintf("item %s is in proposal %s already", id.Short(), other))
		}
		if err := k.mayGo(ctx, v, rec); err != nil {
			return "", err
		}
		p.Items[id] = warrant.Described{Collection: rec.Manifest.Collection, Label: rec.Manifest.Label, Rule: d.rules[id]}
	}
	data, err := layout.EncodeJSON(p)
	if err != nil {
		return "", err
	}
	intent, err := k.Ledger.IntentKey()
	if err != nil {
		return "", err
	}
	key = string(intent)
	return key, k.commit(ctx, who, warrant.Path(key), data, "dispose: proposed "+layout.Count(len(p.Items), "item"), p.Reason, key)
}

// open maps the items of proposals that may still be carried out to their keys.
func (k *Keeper) open(ctx context.Context) (map[layout.ItemID]string, error) {
	rows, err := k.List(ctx)
	open := map[layout.ItemID]string{}
	for _, r := range rows {
		if r.Status == Refused || r.Status == Done {
			continue
		}
		for id := range r.Items {
			open[id] = r.Key
		}
	}
	return open, err
}

func (k *Keeper) commit(ctx context.Context, who ledger.Actor, path string, data []byte, subject, text, key string) error {
	if k.Ledger.ReadOnly {
		return gitstore.ErrReadOnly
	}
	_, err := k.Ledger.Store.Commit(ctx, func(gitstore.Reader) (*gitstore.Change, error) {
		return &gitstore.Change{Files: map[string][]byte{path: data}, Author: who.Author,
			Message: who.Sign(ledger.Message(subject, text, []ledger.Trailer{{"Bagpipe-Disposal", key}, {"Bagpipe-Agent", who.Agent}}))}, nil
	})
	return err
}

// Say commits a person's word on a proposal: warrant.Approved or warrant.Refused.
func (k *Keeper) Say(ctx context.Context, who ledger.Actor, key, says, text string) error {
	row, err := k.Row(ctx, key)
	if err != nil {
		return err
	}
	switch {
	case row.Status == Refused || row.Status == Done:
		return fault.New(fault.Refused, fmt.Sprintf("proposal %s is %s", row.Key, row.Status))
	case who.Author.Email == "":
		return fault.New(fault.Refused, "who has a word in it has an address by which Git knows them")
	case says == warrant.Refused && row.begun():
		return fault.New(fault.Refused, fmt.Sprintf("proposal %s is being carried out", row.Key))
	}
	data, err := layout.EncodeJSON(warrant.Voice{Schema: 1, Proposal: row.Digest, Says: says, Text: ledger.Clip(ledger.Printable(text), ledger.MaxMessage)})
	if err != nil {
		return err
	}
	if says == warrant.Approved && row.isProposer(who.Author.Email) {
		return fault.New(fault.Refused, fmt.Sprintf("proposal %s is your own: who proposes does not approve", row.Key))
	}
	if says == warrant.Approved && slices.ContainsFunc(row.Approved, func(s warrant.Said) bool { return s.Person == row.people(who.Author.Email) }) {
		return fault.New(fault.Refused, fmt.Sprintf("you approved proposal %s already; one person counts once", row.Key))
	}
	return k.commit(ctx, who, warrant.VoicePath(row.Key, who.Author.Email), data, fmt.Sprintf("dispose: %s %s", says, row.Key), text, row.Key)
}

// How a proposal stands.
const (
	Proposed = "proposed"
	Approved = "approved"
	Refused  = "refused"
	Begun    = "begun" // some of its items are disposed of, or about to be
	Done     = "done"
)

// Row is a proposal, and how it stands.
type Row struct {
	*warrant.Standing
	Status string                       `json:"status"`
	Waits  map[layout.ItemID]string     `json:"waits"` // what keeps an item from being disposed of
	Gone   map[layout.ItemID]*time.Time `json:"gone"`  // items that were disposed of; nil: it was begun

	people func(address string) string
}

func (r *Row) begun() bool { return len(r.Gone) > 0 }

func (r *Row) isProposer(address string) bool { return r.people(address) == r.Proposer }

// List gives all proposals, the oldest first. One that cannot be read is told of, and left out.
func (k *Keeper) List(ctx context.Context) (rows []*Row, err error) {
	v, err := k.Ledger.Store.Tip()
	if err != nil {
		return nil, err
	}
	keys, err := warrant.Keys(v)
	if err != nil {
		return nil, err
	}
	return k.rowsAt(ctx, v, keys), nil
}

// Newest gives the last proposals, the newest first, and how many there are.
func Newest(ctx context.Context, k *Keeper, most int) (rows []*Row, all int, err error) {
	v, err := k.Ledger.Store.Tip()
	if err != nil {
		return nil, 0, err
	}
	keys, err := warrant.Keys(v)
	if err != nil {
		return nil, 0, err
	}
	rows = k.rowsAt(ctx, v, keys[max(0, len(keys)-most):])
	slices.Reverse(rows)
	return rows, len(keys), ctx.Err()
}

func (k *Keeper) rowsAt(ctx context.Context, v gitstore.View, keys []string) (rows []*Row) {
	for _, key := range keys {
		r, err := k.rowAt(ctx, v, key)
		if err != nil {
			k.Ledger.Warn(err.Error())
			continue
		}
		rows = append(rows, r)
	}
	return rows
}

// Row gives one proposal, by its key or the one beginning of it that fits.
func (k *Keeper) Row(ctx context.Context, key string) (*Row, error) {
	v, err := k.Ledger.Store.Tip()
	if err != nil {
		return nil, err
	}
	keys, err := warrant.Keys(v)
	if err != nil {
		return nil, err
	}
	keys = slices.DeleteFunc(keys, func(k string) bool { return key == "" || !strings.HasPrefix(k, key) && !strings.HasSuffix(k, key) })
	switch len(keys) {
	case 0:
		return nil, fault.New(fault.NotFound, fmt.Sprintf("no proposal %q in %s/", key, layout.DisposalsDir))
	case 1:
		return k.rowAt(ctx, v, keys[0])
	}
	return nil, fault.New(fault.Invalid, fmt.Sprintf("%d proposals are called %q: %s", len(keys), key, strings.Join(keys, ", ")))
}

func (k *Keeper) rowAt(ctx context.Context, v gitstore.View, key string) (*Row, error) {
	s, err := warrant.Read(ctx, k.Ledger.Store, v, key)
	if err != nil {
		return nil, err
	}
	policy, err := warrant.PolicyAt(v)
	if err != nil {
		return nil, err
	}
	people, err := warrant.People(v)
	if err != nil {
		return nil, err
	}
	r := &Row{Standing: s, Status: Approved, Waits: map[layout.ItemID]string{}, Gone: map[layout.ItemID]*time.Time{}, people: people}
	left := 0
	for id := range s.Items {
		rec, err := k.Ledger.Read(v, id, "")
		if fault.Is(err, fault.NotFound) {
			r.Waits[id] = "there is no such item"
			continue
		}
		if err != nil {
			return nil, err
		}
		in, disposed := state.Disposal(rec.Execution)
		disposed = disposed && string(in.Target) == key
		switch d := rec.Manifest.Disposed; {
		case d != nil && disposed:
			r.Gone[id] = &d.At
			continue
		case disposed:
			r.Gone[id] = nil
		}
		left++
		if why := s.Lacks(policy, id, rec.Committed.Manifest, rec.Committed.Execution, k.Ledger.Now()); why != "" && !disposed {
			r.Status = Proposed
			r.Waits[id] = why
		}
	}
	switch {
	case left == 0 && len(r.Gone) > 0:
		r.Status = Done
	case len(r.Gone) > 0:
		r.Status = Begun
	case len(s.Refused) > 0:
		r.Status = Refused
	}
	return r, nil
}

// mayGo refuses the disposal of an item that has to stay for now.
func (k *Keeper) mayGo(ctx context.Context, v gitstore.View, rec *ledger.Record) error {
	id, refused := rec.Manifest.Item, func(format string, args ...any) error {
		return fault.New(fault.Refused, fmt.Sprintf("item %s (%s/%s) stays: ", rec.Manifest.Item.Short(), rec.Manifest.Collection, ledger.OneLine(rec.Manifest.Label, 100))+fmt.Sprintf(format, args...))
	}
	if rec.Manifest.Disposed != nil {
		return refused("it was disposed of already, at %s", layout.FormatTime(rec.Manifest.Disposed.At))
	}
	if _, is := state.Disposal(rec.Execution); is {
		return refused("its disposal is begun already")
	}
	if holds := rec.Execution.Holds(); len(holds) > 0 {
		return refused("it is held %s", rec.Execution.HoldText(holds[0]))
	}
	if busy := rec.Execution.Underway(); busy != "" {
		return refused("%s is under way; end it, or deactivate it", busy)
	}
	if p := rec.Manifest.Source.Place; p != nil {
		switch gone, err := k.IsGone(id, *p); {
		case err != nil:
			return err
		case gone:
		case k.Settings.Current().Catalogs[p.Catalog] == nil:
			return refused("its object lay in catalog %s, which was removed before a scan found the object gone; add the catalog again under its name and with its root, and scan once the object is removed", p.Catalog)
		default:
			return refused("its object lies in catalog %s, and is not Bagpipe's to remove; remove it there, and scan", p.Catalog)
		}
	}
	if child := k.heldChild(id); child != nil {
		return refused("its part %s is held %s", child.ID.Short(), child.HeldBy)
	}
	if p := rec.Manifest.Parent; p != nil {
		whole, err := k.Ledger.Read(v, p.Item, "")
		if err != nil && !fault.Is(err, fault.NotFound) {
			return err
		}
		if err == nil && whole.Execution.Underway() != "" {
			return refused("item %s, of which it is a part, is under way", p.Item.Short())
		}
	}
	return k.copiesMayGo(ctx, v, rec, refused)
}

// heldChild is a part of an item, at any depth, that is held; nil: none is.
func (k *Keeper) heldChild(id layout.ItemID) *queue.Item {
	for _, child := range k.Index.Loaded().Children(id) {
		if child.Held {
			return child
		}
		if below := k.heldChild(child.ID); below != nil {
			return below
		}
	}
	return nil
}

// copiesMayGo asks the targets that have a copy, or a part to be read, whether they are there, and let it go.
func (k *Keeper) copiesMayGo(ctx context.Context, v gitstore.View, rec *ledger.Record, refused func(string, ...any) error) error {
	d, err := ledger.ReadDeposits(v, rec.Manifest.Item)
	if err != nil {
		return err
	}
	for name, versions := range d.Targets {
		t, err := k.target(name, true)
		if err != nil {
			return refused("target %s: %v", name, err)
		}
		for _, c := range versions {
			if c.Retention.After(k.Ledger.Now()) {
				return refused("target %s does not let its copy go before %s", name, layout.FormatTime(c.Retention))
			}
			if err := reachable(ctx, t, c); err != nil {
				return refused("target %s: %v", name, err)
			}
		}
	}
	shelves, err := k.shelves(v, rec.Manifest.Item, false)
	if err != nil {
		return err
	}
	for _, name := range shelves {
		if _, err := k.target(name, true); err != nil {
			return refused("target %s: %v", name, err)
		}
	}
	return nil
}
