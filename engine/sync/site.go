package sync

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"bagpipe/engine/claim"
	"bagpipe/engine/fault"
	"bagpipe/engine/gitstore"
	"bagpipe/engine/guard"
	"bagpipe/engine/ledger"
	"bagpipe/engine/settings"
	"bagpipe/layout"
)

// Syncer joins this workspace's history with those of others.
type Syncer struct {
	ledger *ledger.Ledger
	guard  *guard.Guard
	atOnce int              // branches that one call of TakeOffers looks at
	pushed *settings.Pushed // of the call of TakeOffers that goes on
}

// New makes a Syncer.
func New(l *ledger.Ledger, g *guard.Guard) *Syncer {
	return &Syncer{ledger: l, guard: g, atOnce: offersAtOnce}
}

// Name gives the workspace its name among those that share its history, for good. No engine
// may run, as it would work on under no name. The configuration has the mark first, the
// history the name, the configuration the name last: a crash between leaves it unnamed, and
// the next call goes on.
func (s *Syncer) Name(ctx context.Context, name layout.Name) error {
	l := s.ledger
	if l.Site.Name == name {
		return nil
	}
	if l.Site.Name != "" {
		return fault.New(fault.Refused, fmt.Sprintf("this workspace is site %s; its commits and attempts bear that name", l.Site.Name))
	}
	engines, err := claim.NewObserver(l.Root, l.Host, l.Clock).Engines()
	if err != nil {
		return err
	}
	for _, e := range engines {
		if e.Alive && e.ID != l.ID {
			return fault.New(fault.Busy, fmt.Sprintf("engine %s (%s:%d) is at work; name the workspace while none is", e.ID, e.Host, e.PID))
		}
	}
	mark := layout.Mark(gitstore.SiteMark(l.Root))
	if mark == "" {
		if mark, err = layout.NewMark(l.Random); err != nil {
			return err
		}
		if err := gitstore.Configure(ctx, l.Root, "siteMark", string(mark)); err != nil {
			return err
		}
	}
	_, clone := gitstore.SiteOf(l.Root)
	if err := s.register(ctx, layout.Site{Name: name, Mark: mark, Clone: clone}); err != nil {
		return err
	}
	return gitstore.Configure(ctx, l.Root, "site", string(name))
}

// Restored gives the workspace the name of a site whose history it was restored from. What the
// site had pushed since the backup was made is fetched first; alone says that there is no
// remote, and that no other copy of the history has more. did is false where it is that site already.
func (s *Syncer) Restored(ctx context.Context, name layout.Name, alone bool) (did bool, err error) {
	if s.ledger.Site.Name != "" {
		return false, s.Name(ctx, name)
	}
	return true, s.restore(ctx, name, alone)
}

func (s *Syncer) restore(ctx context.Context, name layout.Name, alone bool) error {
	l := s.ledger
	remotes, err := gitstore.Remotes(ctx, l.Root)
	if err != nil {
		return err
	}
	if len(remotes) == 0 && !alone {
		return fault.New(fault.Refused, fmt.Sprintf("site %s may have done more since this copy was made; name a remote that has it, or say that there is none", name), fault.Remedy{Verb: fault.AddRemote})
	}
	for _, remote := range remotes {
		own := layout.SitesBranches + string(name)
		f, err := gitstore.Fetch(ctx, l.Root, remote, own, s.silence())
		if err != nil {
			return fmt.Errorf("fetch from %s: %w", remote, err)
		}
		for _, tip := range slices.Sorted(maps.Keys(f.Tips)) {
			_, err := s.takeSite(ctx, f.Tips[tip])
			if errors.Is(err, errUnrelated) && tip != own && tip != mainBranch { // the next sync tells of it
				err = nil
			}
			if err != nil {
				return fmt.Errorf("%s: %w", tip, err)
			}
		}
	}
	v, err := l.Store.Tip()
	if err != nil {
		return err
	}
	data, err := ledger.ReadOptional(v, layout.SitePath(name))
	if err != nil {
		return err
	}
	site, err := layout.DecodeSite(data)
	if data == nil || err != nil {
		return errors.Join(ledger.UnknownSite(v, name), err)
	}
	if site.Clone {
		if err := gitstore.Configure(ctx, l.Root, "clone", "true"); err != nil {
			return err
		}
	}
	return errors.Join(gitstore.Configure(ctx, l.Root, "siteMark", string(site.Mark)), gitstore.Configure(ctx, l.Root, "site", string(name)))
}

// SetKey notes by which key this site's commits are signed; a workspace without a name has
// nowhere to note it.
func (s *Syncer) SetKey(ctx context.Context, key string) error {
	name := s.ledger.Site.Name
	if name == "" {
		return nil
	}
	path, who := layout.SitePath(name), s.ledger.ByPerson()
	_, err := s.ledger.Store.Commit(ctx, func(r gitstore.Reader) (*gitstore.Change, error) {
		old, err := ledger.ReadOptional(r, path)
		if err != nil || old == nil {
			return nil, err
		}
		site, err := layout.DecodeSite(old)
		if err != nil || site.Key == key {
			return nil, err
		}
		site.Key = key
		data, err := site.Encode(old)
		return &gitstore.Change{Files: map[string][]byte{path: data}, Author: who.Author,
			Message: ledger.Message("site: "+string(name)+" signs by another key", "", []ledger.Trailer{{"Bagpipe-Agent", who.Agent}})}, err
	})
	return err
}

// register commits a site, unless another workspace has its name.
func (s *Syncer) register(ctx context.Context, site layout.Site) error {
	path, who := layout.SitePath(site.Name), s.ledger.ByPerson()
	var refusal error
	_, err := s.ledger.Store.Commit(ctx, func(r gitstore.Reader) (*gitstore.Change, error) {
		refusal = nil
		old, err := ledger.ReadOptional(r, path)
		if err != nil {
			return nil, err
		}
		if old != nil {
			was, err := layout.DecodeSite(old)
			if err == nil && was.Mark != site.Mark {
				refusal = fault.New(fault.Refused, fmt.Sprintf("another workspace is site %s, by %s; take another name", site.Name, path))
				err = refusal
			}
			return nil, err
		}
		data, err := site.Encode(nil)
		return &gitstore.Change{Files: map[string][]byte{path: data}, Author: who.Author,
			Message: ledger.Message("site: named "+string(site.Name), "", []ledger.Trailer{{"Bagpipe-Agent", who.Agent}})}, err
	})
	if refusal != nil {
		return refusal
	}
	return err
}
