package schedule

import (
	"context"
	"fmt"
	"time"

	"bagpipe/engine/gitstore"
	"bagpipe/engine/ledger"
	"bagpipe/engine/settings"
)

// beginAtOnce is how many schedules begin with one commit.
const beginAtOnce = 1000

// beginNew begins the schedules that were never seen, where there are several, many with each
// commit: thousands come with one push. Those whose states cannot be read are left to their
// claims, which tell of it.
func (k *Keeper) beginNew(ctx context.Context, names []string) error {
	var unseen []string
	k.mu.Lock()
	for _, name := range names {
		if k.seen[name] == nil {
			unseen = append(unseen, name)
		}
	}
	k.mu.Unlock()
	if len(unseen) < 2 || k.ledger.ReadOnly {
		return nil
	}
	for len(unseen) > 0 {
		some := unseen[:min(len(unseen), beginAtOnce)]
		unseen = unseen[len(some):]
		if _, err := k.ledger.Store.Commit(ctx, func(r gitstore.Reader) (*gitstore.Change, error) {
			return begun(r, k.settings.Current(), some, k.ledger.Now(), k.ledger.ByEngine())
		}); err != nil {
			return fmt.Errorf("begin %d schedules: %w", len(some), err)
		}
	}
	return k.refresh()
}

// begun is the commit by which schedules begin; nil: all have begun.
func begun(r gitstore.Reader, book *settings.Snapshot, names []string, now time.Time, who ledger.Actor) (*gitstore.Change, error) {
	files, trailers := map[string][]byte{}, []ledger.Trailer(nil)
	for _, name := range names {
		s := book.Schedules[name]
		if st, err := read(r, name); s == nil || st != nil || err != nil {
			continue
		}
		st := newState(name, now)
		st.adopt(s.Timing(), now)
		data, err := st.encode()
		if err != nil {
			return nil, err
		}
		files[path(name)] = data
		trailers = append(trailers, ledger.Trailer{"Bagpipe-Schedule", name})
	}
	if len(files) == 0 {
		return nil, nil
	}
	trailers = append(trailers, ledger.Trailer{"Bagpipe-Agent", who.Agent})
	return &gitstore.Change{Files: files, Author: who.Author,
		Message: ledger.Message(fmt.Sprintf("schedule: %s %d schedules", Started, len(files)), "", trailers)}, nil
}

// newState is that of a schedule which begins now.
func newState(name string, now time.Time) *State {
	return &State{Name: name, Status: Started, Since: now, Through: now, Firings: map[time.Time]Firing{}}
}
