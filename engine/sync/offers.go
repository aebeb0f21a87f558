package sync

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"time"

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
// .bagpipe, by branch and commit, with what that depends on: it is not judged anew while that is the same. A crash leaves a branch that is joined already, which the
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

// refusal is why a branch stays, as it is remembered.
type refusal struct {
	Offered
	Item    layout.ItemID `json:"item,omitempty"` // whose records at the tip it depends on, too
	Against string        `json:"against"`        // the digest of what else it depends on
	At      time.Time     `json:"at"`             // when it was judged
}

// judgedFor is how long a refusal is believed by who asks again: it may depend on files of this machine, too.
const judgedFor = time.Hour

// isOf reports whether the refusal is of a branch as it stands.
func (r refusal) isOf(o Offered) bool { return r.key() == o.key() && r.Commit == o.Commit }

// Offers lists the branches that stand there, with why those that were looked at stay; of this
// workspace's own that are named, those alone.
func Offers(ctx context.Context, root string, own ...string) (all []Offered, err error) {
	known := readRefusals(root)
	there, err := gitstore.Offers(ctx, root, offersAtOnce, own...)
	for _, o := range there {
		next := Offered{Branch: o.Branch, Remote: o.Remote, Commit: o.Commit.String()}
		if was := known[next.key()]; was.isOf(next) {
			next.Refused = was.Refused
		}
		all = append(all, next)
	}
	return all, err
}

// TakeOffers joins the branches for/NAME: those that were refused before only where again
// says so, and where what they were refused for may be another now. It gives what became of those that it looked at, and
// where again says so of those that stay as they were. Branches of a remote are
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
	known, kept, asked := readRefusals(root), map[string]refusal{}, 0
	s.pushed = settings.NewPushed(root, steps.Builtins())
	var remembered []Offered
	for _, o := range there {
		next := Offered{Branch: o.Branch, Remote: o.Remote, Commit: o.Commit.String()}
		was := known[next.key()]
		if was.isOf(next) {
			same := !again
			if again {
				if same, err = s.same(was); err != nil {
					return looked, err
				}
			}
			if same || asked == s.atOnce {
				kept[next.key()] = was
			}
			if same && again && len(remembered) < s.atOnce {
				remembered = append(remembered, was.Offered)
			}
			if same {
				continue
			}
		}
		if asked == s.atOnce {
			continue
		}
		asked++
		v, err := s.ledger.Store.Tip() // or a later one is judged against, and then this branch once more
		if err != nil {
			return looked, err
		}
		var of layout.ItemID
		if next.Refused, of, err = s.takeOffer(ctx, o); err != nil {
			return looked, fmt.Errorf("%s: %w", o.Branch, err)
		}
		if next.Refused != "" {
			now := refusal{Offered: next, Item: of, At: s.ledger.Now()}
			if now.Against, err = s.against(v, of); err != nil {
				return looked, err
			}
			kept[next.key()] = now
		} else if o.Remote == "" {
			_ = gitstore.DropOffer(ctx, root, o) // it was pushed to again: the next look joins that
		}
		looked = append(looked, next)
	}
	if len(looked) > 0 || len(kept) != len(known) {
		err = writeRefusals(s.ledger, kept)
	}
	return append(looked, remembered...), err
}

// same reports whether all that a refusal depends on is as it was.
func (s *Syncer) same(r refusal) (bool, error) {
	if age := s.ledger.Now().Sub(r.At); age < 0 || age > judgedFor {
		return false, nil
	}
	v, err := s.ledger.Store.Tip()
	if err != nil {
		return false, err
	}
	now, err := s.against(v, r.Item)
	return now == r.Against, err
}

// against is the digest of what a refusal depends on beside its branch: the program, the tip but for the records of items and
// batches, and the records of the item, if one is named.
func (s *Syncer) against(v gitstore.View, item layout.ItemID) (string, error) {
	entries, err := v.List("")
	if err != nil {
		return "", err
	}
	records := []string{layout.ItemsDir, layout.BatchesDir, layout.RetiredDir, layout.AnchorsDir, layout.DisposalsDir, path.Dir(layout.ControlsFile)}
	entries = slices.DeleteFunc(entries, func(e gitstore.Entry) bool { return slices.Contains(records, e.Name) })
	if item != "" {
		of, err := v.List(layout.ItemDir(item))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
		entries = append(entries, of...)
	}
	sum := sha256.New()
	fmt.Fprintln(sum, s.ledger.Version)
	for _, e := range entries {
		fmt.Fprintln(sum, e.Name, e.Hash)
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// takeOffer joins one branch, or says why not, and the item whose records at the tip that depends on, if it does.
func (s *Syncer) takeOffer(ctx context.Context, o gitstore.Offer) (refused string, of layout.ItemID, err error) {
	v, err := s.ledger.Store.Tip()
	if err != nil {
		return "", "", err
	}
	base, err := s.ledger.Store.Base(ctx, v.Commit(), o.Commit)
	switch {
	case err != nil:
		return "", "", err
	case base.IsZero():
		return "its history is unrelated to that of this workspace", "", nil
	case base == o.Commit:
		return "", "", nil
	}
	if refused, of, err = s.unlawful(ctx, v.Commit(), base, o.Commit); refused != "" || err != nil {
		return refused, of, err
	}
	err = s.readable(ctx, base, o.Commit)
	if err == nil {
		_, err = s.take(ctx, o.Commit, s.sound)
	}
	if err != nil {
		if fault.Is(err, fault.Refused) || fault.Is(err, fault.Invalid) {
			return err.Error(), "", nil
		}
		return "", "", err
	}
	return "", "", s.guard.LookAtFew(ctx)
}

// unlawful says what in the commits that lead to theirs, and not to ours, is to stay out; of an item where that is so
// because of its records now.
func (s *Syncer) unlawful(ctx context.Context, ours, base, theirs gitstore.Hash) (string, layout.ItemID, error) {
	commits, err := s.ledger.Store.Beyond(ctx, theirs, ours)
	if err != nil {
		return "", "", err
	}
	breaches, _, err := s.guard.Review(ctx, base, ours, commits)
	if err != nil {
		return "", "", err
	}
	v, err := s.ledger.Store.At(ours)
	if err != nil {
		return "", "", err
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
				return "", "", err
			}
			if late == "" {
				continue
			}
			b.What = []string{": " + late}
		}
		of := layout.ItemID("")
		if b.Peaceful {
			of = b.Item
		}
		where := "commit " + b.Commit.Hash.String()[:12] + " "
		if b.Item != "" {
			where += "of item " + b.Item.Short() + " "
		}
		if b.Peaceful {
			where = strings.TrimSuffix(where, " ")
		}
		return where + ledger.Printable(ledger.OneLine(strings.Join(b.What, "; "), 500)), of, nil
	}
	found, err := audit.New(s.ledger, s.guard).Condemned(ctx, commits)
	if err != nil || len(found) == 0 {
		return "", "", err
	}
	where := "commit " + found[0].Commit[:12] + " "
	if found[0].Item != "" {
		where += "of item " + found[0].Item.Short() + " "
	}
	return ledger.Printable(ledger.OneLine(where+"would be told of by every audit: "+found[0].Text, 600)), "", nil
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
	mistakes, _, err := s.pushed.Check(ctx, tip.String(), to.String(), s.ledger.Now())
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

func readRefusals(root string) map[string]refusal {
	var all map[string]refusal
	data, err := os.ReadFile(root + "/" + refusals)
	if err != nil || json.Unmarshal(data, &all) != nil {
		return map[string]refusal{} // they are looked at again
	}
	return all
}

// writeRefusals is not synced: an older one costs a look.
func writeRefusals(l *ledger.Ledger, all map[string]refusal) error {
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
