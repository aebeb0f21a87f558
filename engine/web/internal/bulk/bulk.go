package bulk

import (
	"context"
	"encoding/hex"
	"errors"
	"io"
	"net/url"
	"sync"
	"time"

	"bagpipe/engine/ask"
	"bagpipe/engine/fault"
	"bagpipe/engine/ledger"
	"bagpipe/engine/web/access"
	"bagpipe/engine/web/internal/desk"
	"bagpipe/layout"

	"golang.org/x/sync/errgroup"
)

// Most is how many items one act takes, and how long a preview holds.
const (
	Most     = 100_000
	holds    = time.Hour
	sideways = 64 // acts at once: they share a group of commits
	mostActs = 1000
)

// Row is one item, and what became of it.
type Row struct {
	Item    layout.ItemID `json:"item"`
	Label   string        `json:"label"`
	Refused string        `json:"refused,omitempty" doc:"why it is, or would be"`
	Done    bool          `json:"done" doc:"it was acted on, or refused"`
	stamp   string
}

// Act is an act on many items: seen, under way or done.
type Act struct {
	ID      string    `json:"id"`
	Act     string    `json:"act"`
	Step    string    `json:"step,omitempty"`
	By      string    `json:"by"`
	Begun   bool      `json:"begun" doc:"false: a preview"`
	Ended   bool      `json:"ended"`
	Stopped bool      `json:"stopped"`
	Done    int       `json:"done" doc:"items that were acted on, or refused"`
	Refused int       `json:"refused"`
	Rows    []Row     `json:"items"`
	At      time.Time `json:"at"`

	wanted desk.Wanted
	owner  string // its account's address in the history
	stop   context.CancelFunc
}

// Acts are the acts of one server.
type Acts struct {
	d  *desk.Desk
	mu sync.Mutex // guards acts, and what they hold
	// acts hold by their identifiers; a preview is one that was not begun.
	acts map[string]*Act
}

// New gives the acts of a server.
func New(d *desk.Desk) *Acts { return &Acts{d: d, acts: map[string]*Act{}} }

// Chosen are the items that are named, or, of none, those that fit what narrows a listing.
func (a *Acts) Chosen(ctx context.Context, names []string, filter url.Values) (items []layout.ItemID, err error) {
	if filter == nil {
		for _, name := range names {
			id, err := a.d.Object(ctx, name)
			if err != nil {
				return nil, err
			}
			items = append(items, id)
		}
		return items, nil
	}
	f, err := a.d.Filter(ctx, filter)
	if err != nil {
		return nil, err
	}
	rows, err := a.d.Ask.Items(f, ask.Page{Limit: Most + 1})
	for _, row := range rows {
		items = append(items, row.Item)
	}
	return items, err
}

// Preview notes which items would be acted on, as they are now, and which would be refused.
func (a *Acts) Preview(ctx context.Context, items []layout.ItemID, w desk.Wanted) (Act, error) {
	if _, err := a.d.Acts(ctx, access.Operator); err != nil {
		return Act{}, err
	}
	if err := w.Check(); err != nil {
		return Act{}, err
	}
	if len(items) == 0 {
		return Act{}, fault.New(fault.Invalid, "No item was chosen.")
	}
	if len(items) > Most {
		return Act{}, fault.New(fault.Invalid, "Too many items at once; narrow the list.")
	}
	random := make([]byte, 8)
	if _, err := io.ReadFull(a.d.Random, random); err != nil {
		return Act{}, err
	}
	who := desk.Who(ctx)
	act := &Act{ID: hex.EncodeToString(random), Act: w.Act, Step: string(w.Step), By: who.Name, At: a.d.Now(), wanted: w, owner: who.Email}
	for _, id := range items {
		if err := a.d.Reach(ctx, id); err != nil {
			return Act{}, err
		}
		m, err := a.d.Ask.Manifest(id)
		if err != nil {
			return Act{}, err
		}
		stamp, err := a.d.Ask.Stamp(id)
		if err != nil {
			return Act{}, err
		}
		act.Rows = append(act.Rows, Row{Item: id, Label: m.Label, stamp: stamp})
	}
	a.each(ledger.Rehearse(ctx), act)
	if err := ctx.Err(); err != nil {
		return Act{}, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for id, old := range a.acts {
		if a.d.Now().Sub(old.At) > holds && (old.Ended || !old.Begun) || len(a.acts) >= mostActs && !old.Begun {
			delete(a.acts, id)
		}
	}
	a.acts[act.ID] = act
	return act.copied(), nil
}

func (t *Act) copied() Act {
	c := *t
	c.Rows = append([]Row(nil), t.Rows...)
	return c
}

// find gives the account's own act. The lock is held.
func (a *Acts) find(ctx context.Context, id string) (*Act, error) {
	act := a.acts[id]
	if act == nil || act.owner != desk.Who(ctx).Email {
		return nil, fault.New(fault.NotFound, "There is no such act on many items; it may be over since long.")
	}
	return act, nil
}

// Show tells how far an act is.
func (a *Acts) Show(ctx context.Context, id string) (Act, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	act, err := a.find(ctx, id)
	if err != nil {
		return Act{}, err
	}
	return act.copied(), nil
}

// Begin does what was seen; again, it changes nothing. The work outlives ctx, but not the
// server.
func (a *Acts) Begin(ctx context.Context, id string) (Act, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	act, err := a.find(ctx, id)
	if err != nil || act.Begun {
		if err != nil {
			return Act{}, err
		}
		return act.copied(), nil
	}
	work, stop := context.WithCancel(context.WithoutCancel(ctx))
	act.Begun, act.stop, act.Refused = true, stop, 0
	for i := range act.Rows {
		act.Rows[i].Refused = ""
	}
	go a.work(work, act)
	return act.copied(), nil
}

// Stop lets no further item be begun.
func (a *Acts) Stop(ctx context.Context, id string) (Act, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	act, err := a.find(ctx, id)
	if err != nil {
		return Act{}, err
	}
	if act.stop != nil && !act.Ended {
		act.Stopped = true
		act.stop()
	}
	return act.copied(), nil
}

// work does what was seen.
func (a *Acts) work(ctx context.Context, act *Act) {
	a.each(ctx, act)
	a.mu.Lock()
	defer a.mu.Unlock()
	act.Ended = true
	act.stop()
}

// each acts on the items side by side, or rehearses it, until ctx ends.
func (a *Acts) each(ctx context.Context, act *Act) {
	var acting errgroup.Group
	acting.SetLimit(sideways)
	for i := range act.Rows {
		acting.Go(func() error {
			if ctx.Err() != nil {
				return nil
			}
			refused := a.one(context.WithoutCancel(ctx), act, act.Rows[i])
			a.mu.Lock()
			defer a.mu.Unlock()
			if act.Rows[i].Refused = refused; refused != "" {
				act.Refused++
			}
			if act.Begun {
				act.Done++
				act.Rows[i].Done = true
			}
			return nil
		})
	}
	_ = acting.Wait() // what is refused stands in its row
}

// one acts on an item that is still as it was seen, and tells why not.
func (a *Acts) one(ctx context.Context, act *Act, row Row) string {
	wanted := act.wanted
	wanted.Seen = row.stamp
	_, err := a.d.Do(ctx, row.Item, wanted)
	if err == nil || errors.Is(err, ledger.ErrRehearsed) {
		return ""
	}
	if !ledger.IsRefused(err) {
		a.d.Log.Warn("an act on one of many items failed", "item", string(row.Item), "error", err)
	}
	return err.Error()
}
