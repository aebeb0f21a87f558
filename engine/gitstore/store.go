package gitstore

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"bagpipe/engine/gitstore/internal/follow"
	"bagpipe/engine/gitstore/internal/history"
	"bagpipe/engine/gitstore/internal/maintain"
	"bagpipe/engine/gitstore/internal/ref"
	"bagpipe/engine/gitstore/internal/repo"
)

// Store is one repository and its branch. Its methods may be called by any goroutine.
type Store struct {
	repo       *repo.Repo
	opts       Options
	known      known
	owner      *owner
	maintainer *maintain.Maintainer
	follower   *follow.Follower // nil without Options.Follow
	ancestry   *history.Ancestry

	stop     chan struct{} // closed by Close
	stopOnce sync.Once
	running  sync.WaitGroup // the owner, the announcer and the follower
	senders  sync.RWMutex   // held for reading while a request is handed over
	closed   bool           // guarded by senders
	closeErr error
}

// known is the state that the owner shares with the readers.
type known struct {
	tip  atomic.Pointer[Hash] // where the owner knows the branch to be
	view atomic.Pointer[View] // at the commit published last
	next atomic.Pointer[View] // at the commit that the owner is moving the branch to; nil: it moves none

	figures figures
}

// Open opens the store of the workspace root. It scans nothing; the leftovers of dead
// processes (half packs, locks) are cleared.
func Open(root string, o Options) (*Store, error) {
	s, err := open(root, o)
	if err != nil {
		return nil, fmt.Errorf("open store of %s: %w", root, err)
	}
	return s, nil
}

func open(root string, o Options) (*Store, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	r, err := repo.Open(root, o.FS, o.Now, o.Log, o.Clone)
	if err != nil {
		return nil, err
	}
	s := &Store{repo: r, opts: o, ancestry: history.NewAncestry(r), stop: make(chan struct{})}
	s.known.tip.Store(&Hash{})
	s.maintainer = maintain.New(r, func() Hash { return *s.known.tip.Load() })
	if err := ref.MendHead(r); err != nil {
		return nil, errors.Join(err, r.DB.Close())
	}
	s.owner = newOwner(r, o, &s.known, s.stop, s.advance, &s.maintainer.Graph.Own)
	if err := begin(s); err != nil {
		return nil, errors.Join(err, r.DB.Close(), s.owner.locker.Close())
	}
	return s, nil
}

// NotBare is a repository with a checkout, on which no store is opened.
type NotBare = repo.NotBare

// begin clears up, finds the tip and starts the goroutines.
func begin(s *Store) error {
	if s.opts.ReadOnly {
		tip, err := ref.Read(s.repo)
		s.known.tip.Store(&tip)
		return err
	}
	if err := clearLeftovers(s.repo); err != nil {
		return err
	}
	if err := s.owner.findTip(); err != nil {
		return err
	}
	if s.opts.Follow != nil {
		s.follower = follow.New(follow.Options{
			Repo: s.repo, Wants: s.opts.Follow, Gone: goneFrom(s), Edited: s.opts.Edited, Stop: s.stop,
			Tip: func() (Hash, error) {
				v, err := s.Tip()
				return v.commit, err
			},
		}, *s.known.tip.Load())
		s.running.Go(s.follower.Run)
	}
	s.running.Go(s.owner.announcer.run)
	s.running.Go(func() {
		s.owner.run()
		if s.follower != nil {
			s.follower.Finish()
		}
	})
	return nil
}

// goneFrom visits what was shown, and is not committed, at a commit.
func goneFrom(s *Store) func(at Hash, visit func(path string) error) error {
	return func(at Hash, visit func(path string) error) error {
		if s.opts.Gone == nil {
			return nil
		}
		v, err := s.At(at)
		if err != nil {
			return err
		}
		return s.opts.Gone(v, visit)
	}
}

// advance tells of one move of the branch.
func (s *Store) advance(a Advance) {
	if s.opts.Advanced != nil {
		s.opts.Advanced(a)
	}
	if s.follower != nil {
		s.follower.Add(a.From, a.To, a.Changes, a.More)
	}
}

// Close lets the edits that were handed in be committed and the followed files be written,
// and stops. It may be called twice.
func (s *Store) Close() error {
	s.stopOnce.Do(func() {
		s.senders.Lock()
		s.closed = true
		s.senders.Unlock()
		close(s.stop)
		s.running.Wait()
		keepFew(s)
		s.closeErr = errors.Join(s.repo.DB.Close(), s.owner.locker.Close())
	})
	return s.closeErr
}

// ManyPacks is how many packs are joined when a store closes. A run joins them beside its work, and pages do; commands that
// leave one each would come to tens of thousands, which every reader has to list, and of which git can open no more at once.
const ManyPacks = 1000

// keepFew joins the packs where there are many of them.
func keepFew(s *Store) {
	packs := s.Packs()
	if s.opts.ReadOnly || packs < ManyPacks {
		return
	}
	if packs > 10*ManyPacks {
		s.repo.Log.Warn("the history lies in very many packs, which are joined now", "packs", packs)
	}
	if _, err := s.Join(context.Background()); err != nil {
		s.repo.Log.Warn("join the store's packs", "err", err)
	}
}

// Report is the result of maintenance.
type Report = maintain.Report

// Join joins small packs and brings the commit-graph up to date. A store at work needs it
// every few thousand commits.
func (s *Store) Join(ctx context.Context) (Report, error) { return s.maintainer.Join(ctx) }

// Maintain is Join; and when the packs added since the last time are more than a share of
// the rest, all packs become one, in which a file's versions are stored as differences.
func (s *Store) Maintain(ctx context.Context) (Report, error) { return s.maintainer.Maintain(ctx) }

// Compact packs everything anew by git repack, which looks for differences everywhere; it
// takes long, and memory in proportion.
func (s *Store) Compact(ctx context.Context) (Report, error) { return s.maintainer.Compact(ctx) }

// Packs tells how many packs there are.
func (s *Store) Packs() int { return s.repo.DB.Packs() }

// CaughtUp waits until the followed files are on disk as they were committed when it was
// called, or newer. It does not wait for another process that follows, nor for room on a
// full disk: it gives the disk's error, and the next start writes the files.
func (s *Store) CaughtUp(ctx context.Context) error {
	if s.follower == nil {
		return nil
	}
	return s.follower.CaughtUp(ctx)
}

// Shown gives the files as they were committed when the workspace last showed them all, which a
// killed process leaves behind the branch; where that is not known, as they are at the tip.
func Shown(s *Store) (View, error) {
	if at := follow.Shown(s.repo); !at.IsZero() {
		return s.At(at)
	}
	return s.Tip()
}

// Repair brings the followed files in line with the branch: those that changed since the
// mark in .bagpipe, or all when there is none. Edited ones are kept beside and reported.
// Repair is called once, at start; until then no mark is written. When another process
// follows, there is nothing to do.
func (s *Store) Repair(ctx context.Context) error { return s.repair(ctx, false) }

// RepairAll is Repair for every followed file, whatever the mark says: it finds those that
// were edited in place since.
func (s *Store) RepairAll(ctx context.Context) error { return s.repair(ctx, true) }

// RepairRest begins RepairAll and does not wait; CaughtUp waits for its end.
func (s *Store) RepairRest() {
	if s.follower != nil {
		s.follower.Repair(true)
	}
}

func (s *Store) repair(ctx context.Context, all bool) error {
	if s.follower == nil {
		return nil
	}
	if err := s.Refresh(ctx); err != nil {
		return fmt.Errorf("repair followed files: %w", err)
	}
	s.follower.Repair(all)
	if err := s.CaughtUp(ctx); err != nil {
		return fmt.Errorf("repair followed files: %w", err)
	}
	return nil
}
