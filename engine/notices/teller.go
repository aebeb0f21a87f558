package notices

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"bagpipe/engine/ask"
	"bagpipe/engine/disposal"
	"bagpipe/engine/gitstore"
	"bagpipe/engine/index"
	"bagpipe/engine/ledger"
	"bagpipe/engine/notice"
	"bagpipe/engine/schedule"
	"bagpipe/engine/search"
	"bagpipe/engine/settings"
	"bagpipe/layout"
	"bagpipe/layout/disk"

	"github.com/gofrs/flock"
	"golang.org/x/sync/errgroup"
)

// Look is how often a run looks for news.
const Look = 2 * time.Second

const (
	dir       = layout.StateDir + "/notices"
	fewest    = time.Minute      // between two digests, where every: says nothing
	lookAgain = 30 * time.Second // though nothing was committed: for what stalls
	mostTold  = 200              // of a digest's news in full; of the rest the number
	tryFor    = 24 * time.Hour
	firstTry  = 30 * time.Second // between tries; then twice as long, up to mostWait
	mostWait  = time.Hour
	inAtom    = 50 // digests
	// mostHanded is how many digests are handed over at once.
	mostHanded = 16
)

// Teller tells what notify: asks for.
type Teller struct {
	ledger   *ledger.Ledger
	settings *settings.Source
	index    *index.Keeper
	ask      *ask.Answers
	Others

	turn sync.Mutex // held while it looks, and hands over
	seen gitstore.Hash
	at   time.Time            // of the last look
	next map[string]time.Time // by name: there is nothing to do before
	slow slow
}

// Others are rooms that are asked for news; nil: they have none.
type Others struct {
	Disposal *disposal.Keeper
	Search   *search.Searches
	Schedule *schedule.Keeper
}

// New gives the teller of a workspace.
func New(l *ledger.Ledger, s *settings.Source, i *index.Keeper, a *ask.Answers) *Teller {
	return &Teller{ledger: l, settings: s, index: i, ask: a, next: map[string]time.Time{}}
}

// News is one thing that a digest tells.
type News struct {
	Kind       string        `json:"kind"`
	Item       layout.ItemID `json:"item,omitempty"`
	Collection layout.Name   `json:"collection,omitempty"`
	Label      string        `json:"label,omitempty"`
	Step       string        `json:"step,omitempty"` // WORKFLOW/STEP
	Schedule   string        `json:"schedule,omitempty"`
	Message    string        `json:"message,omitempty"`
	Since      time.Time     `json:"since,omitzero"`
}

// Digest is what is told at once.
type Digest struct {
	ID        string         `json:"id"`
	Name      string         `json:"name"` // below notify:
	At        time.Time      `json:"at"`
	Workspace string         `json:"workspace"`
	Text      string         `json:"text"`   // in a line
	Counts    map[string]int `json:"counts"` // of the news, by kind
	News      []News         `json:"news"`   // the first of them
	Mended    []News         `json:"mended"` // the first of what was told and stands no more
}

// kept is .bagpipe/notices/NAME.json.
type kept struct {
	Commit  string          `json:"commit"` // up to which the history was read
	Events  map[string]News `json:"events"` // what the history tells and stands
	Told    map[string]News `json:"told"`
	At      time.Time       `json:"at,omitzero"` // of the last digest
	Pending *pending        `json:"pending,omitempty"`
	Hits    map[string]hits `json:"hits,omitempty"` // of each saved search
	Sent    []Digest        `json:"sent,omitempty"` // the last, for an Atom file
}

// pending is a digest that is to be handed over.
type pending struct {
	Digest Digest    `json:"digest"`
	First  time.Time `json:"first"`
	Next   time.Time `json:"next"`
	Tries  int       `json:"tries"`
	To     []string  `json:"to,omitempty"` // of a mail: those who did not get it yet; none: nobody did
}

// Tell tells each of notify: what is new and due; with now, whatever the intervals say.
func (t *Teller) Tell(ctx context.Context, now bool) error {
	all := t.settings.Current().Settings.Notify
	if len(all) == 0 || t.ledger.ReadOnly {
		return nil
	}
	t.turn.Lock()
	defer t.turn.Unlock()
	v, err := t.ledger.Store.Tip()
	if err != nil {
		return err
	}
	at := t.ledger.Now()
	if v.Commit() == t.seen && at.Sub(t.at) < lookAgain && !at.Before(t.at) && !now {
		return nil
	}
	if err := os.MkdirAll(t.ledger.Path(dir), 0o777); err != nil {
		return err
	}
	lock := flock.New(t.ledger.Path(dir + "/lock"))
	if ok, err := lock.TryLock(); err != nil || !ok {
		return err // another engine tells
	}
	names := slices.Sorted(maps.Keys(all))
	errs, nexts := make([]error, len(names)), make([]time.Time, len(names))
	var handing errgroup.Group // one that hangs does not hold up the others
	handing.SetLimit(mostHanded)
	for i, name := range names {
		if next := t.next[name]; !now && at.Before(next) && next.Sub(at) <= tryFor {
			nexts[i] = next
			continue
		}
		k, next, err := t.prepare(ctx, v, name, all[name], now)
		if errs[i], nexts[i] = err, next; err != nil || k == nil {
			continue
		}
		handing.Go(func() error {
			nexts[i], errs[i] = t.tell(ctx, name, all[name], k)
			return nil
		})
	}
	errs = append(errs, handing.Wait())
	t.seen, t.at = v.Commit(), at
	for i, name := range names {
		if t.next[name] = nexts[i]; !nexts[i].IsZero() { // the next look is soon
			t.seen = gitstore.Hash{}
		}
	}
	return errors.Join(append(errs, lock.Unlock())...)
}

// prepare gives what one is to be told now, with its digest; nil: nothing is, before next.
func (t *Teller) prepare(ctx context.Context, v gitstore.View, name string, n *notice.Wish, soon bool) (_ *kept, next time.Time, err error) {
	k, err := t.read(name)
	if err != nil {
		return nil, next, err
	}
	now := t.ledger.Now()
	if k.Pending == nil {
		due := k.At.Add(max(time.Duration(n.Every), fewest))
		switch {
		case n.IsQuiet(now):
			return nil, now.Add(fewest), nil
		case !soon && now.Before(due) && !now.Before(k.At):
			return nil, due, nil
		}
		if err := t.digest(ctx, v, name, n, k); err != nil || k.Pending == nil {
			return nil, next, errors.Join(err, t.write(name, k))
		}
		if err := t.write(name, k); err != nil { // with its identifier, before it is sent
			return nil, now, err
		}
	}
	if p := k.Pending; !soon && now.Before(p.Next) && !now.Before(p.First) {
		return nil, p.Next, nil
	}
	return k, next, nil
}

// tell hands a digest over; where that fails it is tried again at next.
func (t *Teller) tell(ctx context.Context, name string, n *notice.Wish, k *kept) (next time.Time, err error) {
	p, now := k.Pending, t.ledger.Now()
	err = t.handOver(ctx, n, k, p.Digest)
	var partly *PartlyError
	p.Tries++
	if errors.As(err, &partly) {
		p.To = partly.Later
	}
	switch {
	case err == nil || partly != nil && len(p.To) == 0:
		k.Pending = nil
	case now.Sub(p.First) >= tryFor:
		k.Pending = nil
		err = fmt.Errorf("notify %s was not told %q within a day, and is told no more of it: %w", name, p.Digest.Text, err)
	default:
		p.Next = now.Add(min(firstTry<<min(p.Tries-1, 10), mostWait))
		next = p.Next
		err = fmt.Errorf("notify %s was not told %q, which is tried again: %w", name, p.Digest.Text, err)
	}
	return next, errors.Join(err, t.write(name, k))
}

func (t *Teller) path(name string) string { return t.ledger.Path(dir + "/" + name + ".json") }

// read gives what was told; what is damaged is made anew, and told once more.
func (t *Teller) read(name string) (*kept, error) {
	k := &kept{}
	data, err := disk.ReadFile(t.path(name))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if err != nil || json.Unmarshal(data, k) != nil {
		k = &kept{}
	}
	if k.Events == nil {
		k.Events = map[string]News{}
	}
	if k.Told == nil {
		k.Told = map[string]News{}
	}
	return k, nil
}

func (t *Teller) write(name string, k *kept) error {
	data, err := layout.EncodeJSON(k)
	if err != nil {
		return err
	}
	if was, err := os.ReadFile(t.path(name)); err == nil && string(was) == string(data) {
		return nil
	}
	return disk.WriteFile(filepath.FromSlash(t.path(name)), data, 0o600)
}
