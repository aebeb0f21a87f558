package guard

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"bagpipe/engine/gitstore"
	"bagpipe/engine/ledger"
	"bagpipe/engine/state"
	"bagpipe/layout"
)

// JoinMessage words the commit that joins two, whichever of them comes first.
func JoinMessage(a, b gitstore.Hash, diverged ...string) string {
	if b.String() < a.String() {
		a, b = b, a
	}
	subject := fmt.Sprintf("join: %s and %s", a.String()[:12], b.String()[:12])
	trailers := []ledger.Trailer{{"Bagpipe-Agent", "bagpipe join"}}
	for i, d := range diverged {
		if i == maxDiverged {
			break
		}
		trailers = append(trailers, ledger.Trailer{"Bagpipe-Diverged", d})
	}
	return ledger.Message(subject, "", trailers)
}

// maxDiverged bounds the divergences that a join's message names.
const maxDiverged = 100

// Diverged names the steps, as ITEM WORKFLOW/STEP, that were done with other outputs on either
// side of a join, by the files that it has of the items that both changed.
func Diverged(l *ledger.Ledger, at gitstore.Reader, files map[string][]byte, both map[layout.ItemID]bool) (all []string) {
	plans := l.PlansAt(at)
	for p, data := range files {
		id, rest, ok := layout.ItemOfPath(p)
		if !ok || !both[id] || rest != layout.ExecutionJSON || !bytes.Contains(data, []byte(`"outputs"`)) {
			continue
		}
		x, err := state.Decode(data)
		if err != nil {
			continue
		}
		for _, d := range state.Divergences(x, plans, "") {
			all = append(all, string(id)+" "+d.Workflow+"/"+string(d.Step))
		}
	}
	slices.Sort(all)
	return all
}

// Joiner joins commits, and remembers the join that it made last.
type Joiner struct {
	ledger *ledger.Ledger
	mu     sync.Mutex // guards last
	last   joined
}

// joined is a commit that is the join of its parents, and the items whose records both changed.
type joined struct {
	commit gitstore.Hash
	both   map[layout.ItemID]bool
}

// Commit writes the commit that joins two: a function of them, byte for byte, whichever
// comes first. base is what both began from.
func (j *Joiner) Commit(ctx context.Context, base, a, b gitstore.Hash) (gitstore.Hash, error) {
	if b.String() < a.String() {
		a, b = b, a
	}
	l := j.ledger
	over, err := changedMore(ctx, l, base, a, b)
	if err != nil {
		return a, err
	}
	files, both, err := joinTrees(ctx, joining{ledger: l}, base, a, b, over)
	if err != nil {
		return a, err
	}
	v, err := l.Store.At(over)
	if err != nil {
		return a, err
	}
	made, err := l.Store.JoinCommit(ctx, [2]gitstore.Hash{a, b}, over, files, JoinMessage(a, b, Diverged(l, v, files, both)...))
	if err == nil {
		j.mu.Lock()
		j.last = joined{made, both}
		j.mu.Unlock()
	}
	return made, err
}

// both gives the items whose records both parents of a join changed; false: the commit is no
// join, or not that of its parents.
func (j *Joiner) both(ctx context.Context, c gitstore.Commit) (both map[layout.ItemID]bool, is bool, err error) {
	if len(c.Parents) != 2 || c.Committer.Email != gitstore.JoinerEmail {
		return nil, false, nil
	}
	j.mu.Lock()
	last := j.last
	j.mu.Unlock()
	if last.commit == c.Hash {
		return last.both, true, nil
	}
	both, is, before, err := isJoin(ctx, j.ledger, c)
	if before {
		both = nil // what the join of now has of them is no measure
	}
	return both, is, err
}

// IsJoin reports whether a commit with two parents holds what the Joiner makes of them, or made, and gives
// the items whose records both parents changed.
func IsJoin(ctx context.Context, l *ledger.Ledger, c gitstore.Commit) (both map[layout.ItemID]bool, is bool, err error) {
	both, is, _, err = isJoin(ctx, l, c)
	return both, is, err
}

// isJoin is IsJoin; before: it joins manifests as joins did before.
func isJoin(ctx context.Context, l *ledger.Ledger, c gitstore.Commit) (both map[layout.ItemID]bool, is, before bool, err error) {
	if len(c.Parents) != 2 {
		return nil, false, false, nil
	}
	a, b := c.Parents[0], c.Parents[1]
	base, err := l.Store.Base(ctx, a, b)
	if err != nil || base.IsZero() || b.String() < a.String() {
		return nil, false, false, err
	}
	over, err := changedMore(ctx, l, base, a, b)
	if err != nil {
		return nil, false, false, err
	}
	overs := []gitstore.Hash{over, a} // joins before were made over a
	if over == a {
		overs = overs[:1]
	}
	for _, before := range []bool{false, true} {
		for _, over := range overs {
			both, is, err = isJoinOver(ctx, joining{ledger: l, before: before}, c, base, over)
			if errors.Is(err, errTwoLists) {
				return nil, false, false, nil
			}
			if is || err != nil {
				return both, is, before, err
			}
		}
	}
	return both, false, false, nil
}

func isJoinOver(ctx context.Context, j joining, c gitstore.Commit, base, over gitstore.Hash) (both map[layout.ItemID]bool, is bool, err error) {
	l := j.ledger
	reading := gitstore.NewScanning(l.Store, false)
	defer func() { err = errors.Join(err, reading.Close()) }()
	read := reading.Scan()
	was, err := read.At(over)
	if err != nil {
		return nil, false, err
	}
	now, err := read.At(c.Hash)
	if err != nil {
		return nil, false, err
	}
	var want, found map[string][]byte
	var sides errgroup.Group
	sides.Go(func() (err error) {
		want, both, err = joinTrees(ctx, j, base, c.Parents[0], c.Parents[1], over)
		return err
	})
	sides.Go(func() (err error) {
		found, err = changes(ctx, read, was, now, nil, func(string) bool { return true })
		return err
	})
	if err := sides.Wait(); err != nil {
		return nil, false, err
	}
	is, err = holds(l, read, c, was, found, want)
	return both, is, err
}

// holds reports whether what a commit changed of one of its parents is what was to be changed.
func holds(l *ledger.Ledger, read *gitstore.Scan, c gitstore.Commit, was gitstore.View, is, want map[string][]byte) (bool, error) {
	now, err := read.At(c.Hash)
	if err != nil {
		return false, err
	}
	same := func(p string, expected, data []byte) bool {
		return (data == nil) == (expected == nil) && (bytes.Equal(data, expected) || bytes.Equal(data, asBefore(l.PlansAt(now), p, expected)) ||
			bytes.Equal(data, oneOf(read, c, p, expected)))
	}
	for p, data := range is {
		if expected, there := want[p]; !there || !same(p, expected, data) {
			return false, nil
		}
		delete(want, p)
	}
	if len(want) == 0 {
		return true, nil
	}
	for p, data := range want { // those that are there as they are to be
		old, err := ledger.ReadOptional(was, p)
		if err != nil || !same(p, data, old) {
			return false, err
		}
	}
	return true, nil
}

// asBefore is an execution record as joins before wrote it, see state.EncodeBefore; nil of any
// other file.
func asBefore(plans state.Plans, path string, data []byte) []byte {
	if _, rest, ok := layout.ItemOfPath(path); !ok || rest != layout.ExecutionJSON {
		return nil
	}
	x, err := state.Decode(data)
	if err != nil {
		return nil
	}
	x.Recompute(plans)
	return state.EncodeBefore(x)
}

// oneOf is a file that one parent has, where joins before took it as it is: of settings of which both parents
// had changed the same lines the greater, of the manifests of two versions the later; nil of any other file.
func oneOf(read *gitstore.Scan, c gitstore.Commit, path string, joined []byte) []byte {
	_, rest, isItem := layout.ItemOfPath(path)
	if manifest := isItem && rest == layout.ManifestJSON; !manifest && (!isWritten(path) || layout.Conflict(joined) == 0) {
		return nil
	}
	var of [2][]byte
	for i, parent := range c.Parents {
		v, err := read.At(parent)
		if err != nil {
			return nil
		}
		if of[i], err = v.ReadFile(path); err != nil {
			return nil
		}
	}
	if !isItem {
		return slices.MaxFunc(of[:], bytes.Compare)
	}
	va, vb := versionOf(ledger.Records{Manifest: of[0]}), versionOf(ledger.Records{Manifest: of[1]})
	switch {
	case va > vb:
		return of[0]
	case vb > va:
		return of[1]
	}
	return nil
}
