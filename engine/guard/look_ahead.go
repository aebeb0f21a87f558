package guard

import (
	"context"
	"runtime"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"bagpipe/engine/gitstore"
	"bagpipe/layout"
)

// The rules are: what a commit with one parent did to records as they are committed rests on the
// two commits alone. So several lookers look at the commits of a long window ahead of the examiner,
// and at the items of a commit that touched many; the verdicts follow one by one, in the order of
// the commits. An item that should be otherwise than it is committed is looked at anew.

const (
	mostLookers = 4 // each remembers some 50 MB of objects
	// itemsAtOnce bounds the records in memory of a commit that touched very many items.
	itemsAtOnce = 512
)

// pace is how much a Guard looks at, and how the lookers share it.
type pace struct {
	// most bounds the commits of one window; beyond it only its ends are
	// compared. Who made what between is not known then: that is left to an audit.
	most    int
	stretch int // commits that a looker takes at once, of a window of two or more such: neighbours share most of their trees
	many    int // items of a commit from which on they are looked at side by side
}

// usualPace is that of any Guard but in tests.
var usualPace = pace{most: 50_000, stretch: 64, many: 32}

// lookersHere is how many lookers work side by side.
func lookersHere() int { return min(mostLookers, runtime.GOMAXPROCS(0)) }

// foreseen is what a commit did to its parent's records; the zero foreseen: nobody looked.
type foreseen struct {
	touched map[layout.ItemID]bool
	files   []string                 // beside the items
	looked  map[layout.ItemID]looked // of few items
	err     error
}

// lookAhead begins to look at the commits of a long window, and gives what was found of the i-th,
// which is asked once, in order. stop ends it.
func lookAhead(ctx context.Context, x *examiner, commits []gitstore.Commit) (ahead func(i int) foreseen, stop func()) {
	stretch := x.g.pace.stretch
	if len(commits) < 2*stretch {
		return func(int) foreseen { return foreseen{} }, func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	found := make([]chan []foreseen, (len(commits)+stretch-1)/stretch)
	for i := range found {
		found[i] = make(chan []foreseen, 1)
	}
	lead := make(chan struct{}, 2*lookersHere()) // stretches that are begun, and not asked for
	var next atomic.Int64
	var looking errgroup.Group
	for range lookersHere() {
		l := &looker{g: x.g, read: x.reading.Scan()}
		looking.Go(func() error {
			for {
				select {
				case lead <- struct{}{}:
				case <-ctx.Done():
					return nil
				}
				n := int(next.Add(1)) - 1
				if n >= len(found) {
					return nil
				}
				found[n] <- l.stretch(ctx, commits[n*stretch:min((n+1)*stretch, len(commits))])
			}
		})
	}
	var at []foreseen
	ahead = func(i int) foreseen {
		if i%stretch == 0 {
			select {
			case at = <-found[i/stretch]:
				<-lead
			case <-ctx.Done():
				return foreseen{err: ctx.Err()}
			}
		}
		return at[i%stretch]
	}
	return ahead, func() {
		cancel()
		_ = looking.Wait() // none fails
	}
}

// stretch looks at some commits that follow one another.
func (x *looker) stretch(ctx context.Context, commits []gitstore.Commit) []foreseen {
	found := make([]foreseen, len(commits))
	for i, c := range commits {
		if len(c.Parents) == 1 && ctx.Err() == nil {
			found[i] = x.foresee(ctx, c)
		}
	}
	return found
}

// foresee looks at a commit with one parent.
func (x *looker) foresee(ctx context.Context, c gitstore.Commit) (f foreseen) {
	x.begin()
	parent := c.Parents[0]
	if f.touched, f.files, f.err = x.changed(ctx, parent, c.Hash); f.err != nil || len(f.touched) >= x.g.pace.many {
		return f
	}
	f.looked = map[layout.ItemID]looked{}
	for id := range f.touched {
		if f.looked[id], f.err = x.look(ctx, c, parent, version{at: parent}, nil, id); f.err != nil {
			return f
		}
	}
	return f
}

// against is a commit that is held against its parents.
type against struct {
	c      gitstore.Commit
	main   gitstore.Hash
	at     *branch
	others map[gitstore.Hash]*branch
}

// lookAll gives what the commit did to each of some items; known is what was found ahead.
func (x *examiner) lookAll(ctx context.Context, s against, ids []layout.ItemID, known map[layout.ItemID]looked) ([]looked, error) {
	done := make([]looked, len(ids))
	var rest []int // of ids
	for i, id := range ids {
		l, ok := known[id]
		if was := s.at.items[id]; ok && (was == nil || was.stands && x.seed.items[id] != was) {
			done[i] = l
		} else {
			rest = append(rest, i)
		}
	}
	one := func(l *looker, i int) (err error) {
		done[i], err = l.look(ctx, s.c, s.main, s.at.want(ids[i], s.main), s.others, ids[i])
		return err
	}
	if len(rest) < x.g.pace.many {
		for _, i := range rest {
			if err := one(x.looker, i); err != nil {
				return nil, err
			}
		}
		return done, nil
	}
	for len(x.beside) < lookersHere() {
		x.beside = append(x.beside, &looker{g: x.g, read: x.reading.Scan()})
	}
	var next atomic.Int64
	looking, ctx := errgroup.WithContext(ctx)
	for _, l := range x.beside {
		l.begin()
		l.bases = x.bases // which nobody changes meanwhile
		looking.Go(func() error {
			for n := int(next.Add(1)) - 1; n < len(rest) && ctx.Err() == nil; n = int(next.Add(1)) - 1 {
				if err := one(l, rest[n]); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return done, looking.Wait()
}
