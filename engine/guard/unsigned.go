package guard

import (
	"context"
	"fmt"
	"slices"

	"bagpipe/engine/gitstore"
	"bagpipe/engine/ledger"
	"bagpipe/engine/state"
	"bagpipe/engine/trust"
	"bagpipe/layout"
)

// StayOut says why the commits of this workspace stay out at others; "": they do not. It reads the settings and the list at
// the tip, and signs nothing.
func (g *Guard) StayOut() (why string, err error) {
	l := g.ledger
	v, err := l.Store.Tip()
	if err != nil || l.Clone || g.Requires == nil || !slices.Contains(g.Requires(v), Sites) {
		return "", err
	}
	list, err := ledger.ReadOptional(v, layout.SignersFile)
	signers := trust.ParseSigners(list)
	if err != nil || signers.None() { // then nobody's signature is asked for
		return "", err
	}
	const stay = ", and sites must sign (" + layout.SettingsFile + ", trust: require:): at others its commits stay out, or hold the items"
	which, file := gitstore.SigningOf(l.Root)
	if which == "" {
		return "this workspace does not sign" + stay, nil
	}
	key, err := trust.OpenKey(file)
	switch {
	case err != nil:
		return fmt.Sprintf("this workspace cannot sign: %v", err) + stay, nil //nolint:nilerr // it is told
	case !signers.Lists(key):
		return "this workspace signs by a key that is not listed in " + layout.SignersFile + stay, nil
	}
	return "", nil
}

// putsBack reports whether a commit is a Bagpipe's answer that leaves a setting as it was before a commit that is to be signed
// and is not: that needs no signature, or two sites that do not sign put back what the other one put back.
func (x *examiner) putsBack(ctx context.Context, c gitstore.Commit, p string, now []byte) (bool, error) {
	if !ledger.ByBagpipe(c) {
		return false, nil
	}
	for _, t := range c.Trailers {
		h, err := gitstore.ParseHash(t.Value)
		if t.Key != answersTrailer || err != nil {
			continue
		}
		if base, err := x.g.ledger.Store.Base(ctx, h, c.Hash); err != nil || base != h { // it is not in the history
			continue
		}
		wrong, err := x.g.commit(h)
		if err != nil || len(wrong.Parents) == 0 {
			return false, err
		}
		was, err := x.committed(wrong.Parents[0], p)
		if err != nil {
			return false, err
		}
		list, err := x.listAt(wrong.Parents[0])
		if err != nil {
			return false, err
		}
		if string(was) == string(now) && (was == nil) == (now == nil) && vouch(x.g.ledger, trust.ParseSigners(list), h) != nil {
			return true, nil
		}
	}
	return false, nil
}

// onlyHolds reports whether a commit is a Bagpipe's answer that only holds an item for what it answers: who must sign and does
// not is held for that, and the hold of that in turn is not.
func onlyHolds(c gitstore.Commit, before, now ledger.Records) bool {
	x, errX := state.Decode(before.Execution)
	y, errY := state.Decode(now.Execution)
	if !ledger.ByBagpipe(c) || errX != nil || errY != nil {
		return false
	}
	held := 0
	for k, in := range y.Intents {
		if _, there := x.Intents[k]; there {
			continue
		}
		if in.Kind != state.HoldIntent || !slices.ContainsFunc(c.Trailers, func(t gitstore.Trailer) bool { return t.Key == answersTrailer && t.Value == string(in.Target) }) {
			return false
		}
		held++
		delete(y.Intents, k)
	}
	now.Execution, before.Execution = y.Encode(), x.Encode()
	return held > 0 && now.Same(before)
}
