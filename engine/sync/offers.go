package sync

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"bagpipe/engine/audit"
	"bagpipe/engine/fault"
	"bagpipe/engine/gitstore"
	"bagpipe/engine/guard"
	"bagpipe/engine/ledger"
	"bagpipe/engine/settings"
	"bagpipe/layout"
	"bagpipe/layout/disk"
	"bagpipe/steps"
)

// The rules are: a branch for/NAME asks that its commits be joined with the history. One
// process at a time looks at them. What a branch holds is looked at before anything changes;
// it is joined and the branch removed, or the branch stays as it is, and why is remembered in
// .bagpipe, by branch and commit. A crash leaves a branch that is joined already, which the
// next look removes.

const (
	offersLock = layout.StateDir + "/offers.lock"
	refusals   = layout.StateDir + "/offers.json"
	// offersAtOnce is how many branches one call looks at, and are listed; the next call goes on.
	offersAtOnce = 1000
)

// Offered is a branch for/NAME, and what became of it.
type Offered struct {
	Branch  string `json:"branch"`
	Remote  string `json:"remote,omitempty"` // "": this workspace's own
	Commit  string `json:"commit"`
	Refused string `json:"refused,omitempty"` // why it stays; "": it is joined, or nobody looked yet
}

func (o Offered) key() string { return o.Remote + ":" + o.Branch }

// Offers lists the branches that stand there, with why those that were looked at stay; of this
// workspace's own that are named, those alone.
func Offers(ctx context.Context, root string, own ...string) (all []Offered, err error) {
	known := readRefusals(root)
	there, err := gitstore.Offers(ctx, root, offersAtOnce, own...)
	for _, o := range there {
		next := Offered{Branch: o.Branch, Remote: o.Remote, Commit: o.Commit.String()}
		if was, ok := known[next.key()]; ok && was.Commit == next.Commit {
			next.Refused = was.Refused
		}
		all = append(all, next)
	}
	return all, err
}

// TakeOffers joins the branches for/NAME: those that were refused before only where again
// says so. It gives what became of those that it looked at. Branches of a remote are
// removed there by dropRemote, once the remote has what they held.
func (s *Syncer) TakeOffers(ctx context.Context, again bool) (looked []Offered, err error) {
	root := s.ledger.Root
	unlock, err := disk.LockFile(s.ledger.Path(offersLock), 0o666)
	if err != nil {
		return nil, fmt.Errorf("wait for who joins branches: %w", err)
	}
	defer func() { err = errors.Join(err, unlock()) }()
	there, err := gitstore.Offers(ctx, root, 0) // of many, the first may stay for good
	if err != nil || len(there) == 0 {
		return nil, err
	}
	known, kept := readRefusals(root), map[string]Offered{}
	for _, o := range there {
		next := Offered{Branch: o.Branch, Remote: o.Remote, Commit: o.Commit.String()}
		was, ok := known[next.key()]
		if ok && was.Commit == next.Commit && !again {
			kept[next.key()] = was
			continue
		}
		if len(looked) == s.atOnce {
			if ok && was.Commit == next.Commit {
				kept[next.key()] = was
			}
			continue
		}
		if next.Refused, err = s.takeOffer(ctx, o); err != nil {
			return looked, fmt.Errorf("%s: %w", o.Branch, err)
		}
		if next.Refused != "" {
			kept[next.key()] = next
		} else if o.Remote == "" {
			_ = gitstore.DropOffer(ctx, root, o) // it was pushed to again: the next look joins that
		}
		looked = append(looked, next)
	}
	if len(looked) > 0 {
		err = writeRefusals(s.ledger, kept)
	}
	return looked, err
}

// takeOffer joins one branch, or says why not.
func (s *Syncer) takeOffer(ctx context.Context, o gitstore.Offer) (refused string, err error) {
	v, err := s.ledger.Store.Tip()
	if err != nil {
		return "", err
	}
	base, err := s.ledger.Store.Base(ctx, v.Commit(), o.Commit)
	switch {
	case err != nil:
		return "", err
	case base.IsZero():
		return "its history is unrelated to that of this workspace", nil
	case base == o.Commit:
		return "", nil
	}
	if refused, err = s.unlawful(ctx, v.Commit(), base, o.Commit); refused != "" || err != nil {
		return refused, err
	}
	err = s.readable(ctx, base, o.Commit)
	if err == nil {
		_, err = s.take(ctx, o.Commit, s.sound)
	}
	if err != nil {
		if fault.Is(err, fault.Refused) || fault.Is(err, fault.Invalid) {
			return err.Error(), nil
		}
		return "", err
	}
	return "", s.guard.LookAtFew(ctx)
}

// unlawful says what in the commits that lead to theirs, and not to ours, is to stay out.
func (s *Syncer) unlawful(ctx context.Context, ours, base, theirs gitstore.Hash) (string, error) {
	commits, err := s.ledger.Store.Beyond(ctx, theirs, ours)
	if err != nil {
		return "", err
	}
	breaches, _, err := s.guard.Review(ctx, base, ours, commits)
	if err != nil {
		return "", err
	}
	v, err := s.ledger.Store.At(ours)
	if err != nil {
		return "", err
	}
	order := make(map[gitstore.Hash]int, len(commits))
	for i, h := range commits {
		order[h] = i
	}
	slices.SortFunc(breaches, func(a, b guard.Breach) int { // one is told, the same at each look
		return cmp.Or(order[a.Commit.Hash]-order[b.Commit.Hash], strings.Compare(string(a.Item), string(b.Item)))
	})
	for _, b := range breaches {
		if b.Peaceful {
			late, err := s.guard.TooLate(v, b)
			if err != nil {
				return "", err
			}
			if late == "" {
				continue
			}
			b.What = []string{": " + late}
		}
		where := "commit " + b.Commit.Hash.String()[:12] + " "
		if b.Item != "" {
			where += "of item " + b.Item.Short() + " "
		}
		if b.Peaceful {
			where = strings.TrimSuffix(where, " ")
		}
		return where + ledger.Printable(ledger.OneLine(strings.Join(b.What, "; "), 500)), nil
	}
	found, err := audit.New(s.ledger, s.guard).Condemned(ctx, commits)
	if err != nil || len(found) == 0 {
		return "", err
	}
	where := "commit " + found[0].Commit[:12] + " "
	if found[0].Item != "" {
		where += "of item " + found[0].Item.Short() + " "
	}
	return ledger.Printable(ledger.OneLine(where+"would be told of by every audit: "+found[0].Text, 600)), nil
}

// sound refuses settings that cannot be used once a branch is joined: those of the branch, or lines that
// the history has changed as well.
func (s *Syncer) sound(ctx context.Context, tip, to gitstore.Hash) error {
	if same, err := s.sameSettings(tip, to); err != nil {
		return err
	} else if same {
		large, err := gitstore.LargeRecordBetween(ctx, s.ledger.Store, tip, to)
		if large != "" {
			err = fault.New(fault.Refused, settings.TooLarge(large).Error())
		}
		return err
	}
	mistakes, _, err := settings.CheckPushed(ctx, s.ledger.Root, tip.String(), to.String(), steps.Builtins(), s.ledger.Now())
	if err != nil || len(mistakes) == 0 {
		return err
	}
	var at *layout.FileError
	if errors.As(mistakes[0], &at) && at.Text == settings.TwoVersions { // they stand in no file that the person has
		return fault.New(fault.Refused, fmt.Sprintf("%s:%d: the history has changed these lines, too: merge it into the branch, and push that again", at.File, at.Line))
	}
	return fault.New(fault.Refused, mistakes[0].Error())
}

// sameSettings reports whether two commits differ in the records of items alone.
func (s *Syncer) sameSettings(a, b gitstore.Hash) (bool, error) {
	var of [2][]gitstore.Entry
	for i, h := range []gitstore.Hash{a, b} {
		v, err := s.ledger.Store.At(h)
		if err == nil {
			of[i], err = v.List("")
		}
		if err != nil {
			return false, err
		}
		of[i] = slices.DeleteFunc(of[i], func(e gitstore.Entry) bool { return e.Name == layout.ItemsDir })
	}
	return slices.Equal(of[0], of[1]), nil
}

// dropRemote removes at a remote the branches that are joined, which it has been told of.
func (s *Syncer) dropRemote(ctx context.Context, remote string, looked []Offered) {
	var gone []gitstore.Offer
	for _, o := range looked {
		if commit, err := gitstore.ParseHash(o.Commit); err == nil && o.Remote == remote && o.Refused == "" {
			gone = append(gone, gitstore.Offer{Branch: o.Branch, Remote: remote, Commit: commit})
		}
	}
	gitstore.DropRemoteOffers(ctx, s.ledger.Root, remote, s.silence(), gone)
	for _, o := range gone {
		_ = gitstore.DropOffer(ctx, s.ledger.Root, o)
	}
}

func readRefusals(root string) map[string]Offered {
	var all map[string]Offered
	data, err := os.ReadFile(root + "/" + refusals)
	if err != nil || json.Unmarshal(data, &all) != nil {
		return map[string]Offered{} // they are looked at again
	}
	return all
}

// writeRefusals is not synced: an older one costs a look.
func writeRefusals(l *ledger.Ledger, all map[string]Offered) error {
	data, err := json.Marshal(all)
	if err != nil {
		return err
	}
	name := l.Path(refusals)
	if len(all) == 0 {
		return layout.RemoveIfThere(name)
	}
	temp := name + "." + string(l.ID)
	if err := os.WriteFile(temp, data, 0o666); err != nil {
		return errors.Join(err, layout.RemoveIfThere(temp))
	}
	return os.Rename(temp, name)
}
