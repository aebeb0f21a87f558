package sync

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"bagpipe/engine/fault"
	"bagpipe/engine/gitstore"
	"bagpipe/engine/ledger"
	"bagpipe/engine/settings"
	"bagpipe/layout"
	"bagpipe/steps"
)

// The rules are: a site pushes its history as site/NAME, where nobody else writes, so that
// its push loses no race. It joins the branches of the others, and the remote's main, and then
// moves that main forward if it can; another site may have been quicker, and joins what this
// one pushed. What has been joined is looked at by the guard before it is pushed on. A crash
// leaves objects that no branch needs, or joined histories that are not pushed yet: the next
// sync goes on.

// Report is what a sync with one remote came to.
type Report struct {
	Remote string   `json:"remote"`
	Joined []string `json:"joined"` // branches of the remote with something new
	Pushed []string `json:"pushed"` // branches and anchors
	// Refused are branches and anchors that the remote did not take, and why.
	Refused map[string]string `json:"refused"`
	Failed  string            `json:"failed,omitempty"` // why it was not, or not wholly, synced with
	// Offered are the branches for/NAME, here and there, that were looked at.
	Offered []Offered `json:"offered"`
}

const mainBranch = "main"

// Sync fetches from every remote, joins, and pushes; a remote that fails keeps no other from
// that. again looks anew at the branches for/NAME that were refused before.
func (s *Syncer) Sync(ctx context.Context, again bool) (reports []Report, err error) {
	l := s.ledger
	if l.Site.Name == "" {
		return nil, fault.New(fault.Refused, "this workspace has no name among those that share its history", fault.Remedy{Verb: fault.NameSite})
	}
	remotes, err := gitstore.Remotes(ctx, l.Root)
	if err != nil {
		return nil, err
	}
	if len(remotes) == 0 {
		return nil, fault.New(fault.Refused, "this workspace has no remote", fault.Remedy{Verb: fault.AddRemote})
	}
	var errs []error
	for _, remote := range remotes {
		if ctx.Err() != nil {
			return reports, ctx.Err()
		}
		r, err := s.with(ctx, remote, again)
		if err != nil {
			r.Failed = err.Error()
			errs = append(errs, fmt.Errorf("sync with %s: %w", remote, err))
		}
		reports = append(reports, r)
	}
	return reports, errors.Join(errs...)
}

// with syncs with one remote.
func (s *Syncer) with(ctx context.Context, remote string, again bool) (Report, error) {
	r := Report{Remote: remote, Joined: []string{}, Pushed: []string{}, Refused: map[string]string{}, Offered: []Offered{}}
	own := layout.SitesBranches + string(s.ledger.Site.Name)
	fetched, err := gitstore.Fetch(ctx, s.ledger.Root, remote, own, s.silence())
	if ctx.Err() != nil {
		return r, ctx.Err()
	}
	errs := []error{err}
	for _, b := range fetched.Rewritten {
		errs = append(errs, fault.New(fault.Refused, fmt.Sprintf("branch %s was rewritten there, and is not taken", b),
			fault.Remedy{Verb: fault.PutBackBranch, Name: s.ledger.Root, From: remote, To: b}))
	}
	if back, pushed := fetched.Tips[own]; pushed {
		did, err := s.takeBack(ctx, back)
		if err != nil {
			return r, errors.Join(append(errs, err)...)
		}
		if did {
			r.Joined = append(r.Joined, own)
		}
	}
	apart, wait, errTake := s.takeAll(ctx, &r, fetched.Tips)
	errs = append(errs, errTake)
	if err != nil || apart {
		return r, errors.Join(errs...)
	}
	err = s.guard.LookAtFew(ctx)
	if err == nil && len(r.Joined) > 0 {
		err = ledger.LookAtMark(ctx, s.ledger)
	}
	if err != nil {
		return r, errors.Join(append(errs, err)...)
	}
	offered, err := s.TakeOffers(ctx, again)
	r.Offered = append(r.Offered, offered...)
	if err != nil {
		return r, errors.Join(append(errs, err)...)
	}
	if err := s.push(ctx, &r, own, fetched.Tips, wait); err != nil {
		return r, errors.Join(append(errs, err)...)
	}
	s.dropRemote(ctx, remote, offered)
	return r, errors.Join(errs...)
}

// silence is how long a remote may say nothing, by the settings at the tip.
func (s *Syncer) silence() time.Duration {
	v, err := s.ledger.Store.Tip()
	if err != nil {
		return 0
	}
	return settings.SilenceAt(v)
}

// takeAll takes what the branches of a remote have; apart: they are all of another history. One that is not taken
// keeps no other from that, and main waits with its commits.
func (s *Syncer) takeAll(ctx context.Context, r *Report, tips map[string]gitstore.Hash) (apart, mainWaits bool, err error) {
	var errs []error
	unrelated := 0
	for _, name := range slices.Sorted(maps.Keys(tips)) {
		did, err := s.takeSite(ctx, tips[name])
		switch {
		case errors.Is(err, errUnrelated):
			unrelated++
			err = fault.New(fault.Refused, fmt.Sprintf("%s: %v", name, err), fault.Remedy{Verb: fault.DropBranch, Name: s.ledger.Root, From: r.Remote, To: name})
			errs = append(errs, err)
		case err != nil:
			errs = append(errs, fmt.Errorf("%s: %w", name, err))
		case did:
			r.Joined = append(r.Joined, name)
		}
		mainWaits = mainWaits || err != nil && name == mainBranch
	}
	if unrelated > 0 && unrelated == len(tips) {
		return true, true, fault.New(fault.Refused, "its history is unrelated to that of this workspace: nothing is joined, and nothing pushed there", fault.Remedy{Verb: fault.RemoveRemote, Name: r.Remote})
	}
	return false, mainWaits, errors.Join(errs...)
}

// errUnrelated is a history that has no commit in common with this workspace's.
var errUnrelated = errors.New("unrelated to that of this workspace")

// join gives the commit that holds what two do: the later of the two, or a join commit.
func (s *Syncer) join(ctx context.Context, a, b gitstore.Hash) (gitstore.Hash, error) {
	base, err := s.ledger.Store.Base(ctx, a, b)
	switch {
	case err != nil:
		return a, err
	case base.IsZero():
		return a, fmt.Errorf("the history of %s is %w", b.String()[:12], errUnrelated)
	case base == a:
		return b, nil
	case base == b:
		return a, nil
	}
	joined, err := s.guard.Joiner.Commit(ctx, base, a, b)
	if err != nil {
		return a, fmt.Errorf("join %s and %s: %w", a.String()[:12], b.String()[:12], err)
	}
	return joined, nil
}

// take brings a commit of others into the branch, and reports whether that was new. ask is called before with
// the tip and what it is to become; its error keeps the branch where it is.
func (s *Syncer) take(ctx context.Context, theirs gitstore.Hash, ask func(ctx context.Context, tip, to gitstore.Hash) error) (did bool, err error) {
	known := map[gitstore.Hash]gitstore.Hash{} // joins by the tip they began from
	onto := func(ctx context.Context, tip gitstore.Hash) (gitstore.Hash, error) {
		to, ok := known[tip]
		if !ok {
			var err error
			if to, err = s.join(ctx, tip, theirs); err != nil {
				return to, err
			}
			if to != tip {
				err = ask(ctx, tip, to)
			}
			if err := errors.Join(err, ledger.MakeItemFolders(s.ledger, to)); err != nil {
				return to, err
			}
			known[tip] = to
		}
		did = to != tip
		return to, nil
	}
	v, err := s.ledger.Store.Tip()
	if err != nil {
		return false, err
	}
	if to, err := onto(ctx, v.Commit()); err != nil || to == v.Commit() { // while others go on
		return false, err
	}
	_, err = s.ledger.Store.Land(ctx, onto)
	return did, err
}

// takeBack is take of this site's own branch, which is ahead of this workspace where that was
// restored from an older backup. Nobody else writes there.
func (s *Syncer) takeBack(ctx context.Context, own gitstore.Hash) (bool, error) {
	v, err := s.ledger.Store.Tip()
	if err != nil {
		return false, err
	}
	base, err := s.ledger.Store.Base(ctx, v.Commit(), own)
	switch {
	case err != nil:
		return false, err
	case base != own && base != v.Commit():
		return false, fault.New(fault.Refused, fmt.Sprintf("another workspace is at work as site %s, such as a copy of this one; one of them has to go", s.ledger.Site.Name))
	}
	return s.takeSite(ctx, own)
}

// keepOurs notes where this site stood before a join in which settings cannot be used: those of then stay in
// force here.
func (s *Syncer) keepOurs(ctx context.Context, tip, to gitstore.Hash) error {
	var of [2]gitstore.View
	for i, h := range []gitstore.Hash{tip, to} {
		var err error
		if of[i], err = s.ledger.Store.At(h); err != nil {
			return err
		}
	}
	if anew, err := settings.BreaksAnew(of[0], of[1], s.ledger.Root, steps.Builtins()); !anew || err != nil {
		return err
	}
	return gitstore.KeepOurs(ctx, s.ledger.Root, tip)
}

// push writes to the remote what it does not have, to main unless that waits.
func (s *Syncer) push(ctx context.Context, r *Report, own string, tips map[string]gitstore.Hash, mainWaits bool) error {
	v, err := s.ledger.Store.Tip()
	if err != nil {
		return err
	}
	var branches []string
	for _, b := range []string{own, mainBranch} {
		if tips[b] != v.Commit() && !(b == mainBranch && mainWaits) {
			branches = append(branches, b)
		}
	}
	took, refused, err := gitstore.Push(ctx, s.ledger.Root, r.Remote, s.silence(), branches...)
	r.Pushed, r.Refused = append(r.Pushed, took...), refused
	if err != nil {
		return err
	}
	if why, no := r.Refused[own]; no {
		return fault.New(fault.Refused, fmt.Sprintf("%s does not take branch %s: %s", r.Remote, own, strings.TrimSpace(why)))
	}
	return nil
}
