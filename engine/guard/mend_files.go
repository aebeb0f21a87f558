package guard

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"bagpipe/engine/gitstore"
	"bagpipe/engine/ledger"
	"bagpipe/engine/state"
	"bagpipe/engine/trust"
	"bagpipe/layout"
)

// pinned notes definitions that are not what their names say, and were.
func (x *examiner) pinned(c gitstore.Commit, main gitstore.Hash, at *branch, changed []string) error {
	for _, p := range changed {
		digest, ok := pinnedDigest(p)
		if !ok {
			continue
		}
		data, err := x.readPinned(c.Hash, digest)
		if err != nil {
			return err
		}
		if data != nil && ledger.DigestOf(data) == digest {
			delete(at.files, p)
			continue
		}
		if at.files[p] != nil || main.IsZero() {
			continue
		}
		if data, err = x.readPinned(main, digest); err != nil {
			return err
		}
		if data != nil && ledger.DigestOf(data) == digest {
			at.files[p] = &fileVerdict{data: data, commit: c}
		}
	}
	return nil
}

func (x *examiner) readPinned(at gitstore.Hash, digest string) ([]byte, error) {
	v, err := x.view(at)
	if err != nil {
		return nil, err
	}
	return ledger.ReadOptional(v, layout.PinnedPath(digest))
}

func pinnedDigest(p string) (digest string, ok bool) {
	hex, ok := strings.CutPrefix(p, layout.PinnedDir+"/")
	hex, isYAML := strings.CutSuffix(hex, ".yaml")
	return "sha256:" + hex, ok && isYAML
}

// answerFiles puts pinned definitions and settings back. The turn is the caller's.
func (g *Guard) answerFiles(ctx context.Context) error {
	g.mu.Lock()
	files := maps.Clone(g.files)
	g.mu.Unlock()
	for _, p := range slices.Sorted(maps.Keys(files)) {
		answer := func(ctx context.Context, p string, v *fileVerdict) error { return answerSetting(ctx, g, p, v) }
		if digest, ok := pinnedDigest(p); ok {
			answer = func(ctx context.Context, _ string, v *fileVerdict) error { return g.answerOnePinned(ctx, digest, v) }
		}
		if err := answer(ctx, p, files[p]); err != nil {
			return err
		}
		g.mu.Lock()
		delete(g.files, p)
		g.mu.Unlock()
	}
	return nil
}

func (g *Guard) answerOnePinned(ctx context.Context, digest string, v *fileVerdict) error {
	p := layout.PinnedPath(digest)
	did := false
	_, err := g.ledger.Store.Commit(ctx, func(r gitstore.Reader) (*gitstore.Change, error) {
		did = false
		now, err := ledger.ReadOptional(r, p)
		if err != nil || now != nil && ledger.DigestOf(now) == digest {
			return nil, err
		}
		did = true
		who := g.ledger.ByEngine()
		return &gitstore.Change{Files: map[string][]byte{p: v.data}, Author: who.Author,
			Message: ledger.Message("definition: restored "+p, breach{commit: v.commit}.by()+" changed or removed it; items in flight need it as it was",
				[]ledger.Trailer{{"Bagpipe-Definition", digest}, {"Bagpipe-Answers", v.commit.Hash.String()}, {"Bagpipe-Agent", who.Agent}})}, nil
	})
	if err != nil {
		return fmt.Errorf("restore %s: %w", p, err)
	}
	if did {
		g.ledger.Warn(fmt.Sprintf("%s was changed or removed by %s; it has been restored, as items in flight need it. A changed workflow goes into %s/NAME.yaml.",
			p, breach{commit: v.commit}.by(), layout.WorkflowsDir))
	}
	return nil
}

// mending reads a commit as it should be.
type mending struct {
	gitstore.Reader
	files map[string]*fileVerdict
}

func (m mending) ReadFile(name string) ([]byte, error) {
	if v := m.files[name]; v != nil && v.data != nil {
		return v.data, nil
	}
	return m.Reader.ReadFile(name)
}

// isSetting reports whether a file beside the items is one that people write. For the list of those
// who sign see readLists.
func isSetting(p string) bool {
	for _, engines := range []string{layout.ItemsDir, layout.RetiredDir, layout.PinnedDir, layout.BatchesDir, layout.FiringsDir, layout.AnchorsDir} {
		if strings.HasPrefix(p, engines+"/") {
			return false
		}
	}
	return p != layout.SignersFile
}

// settings notes the files that people write, and that a commit changed which was to be signed and is not.
func (x *examiner) settings(ctx context.Context, s against, changed []string) error {
	if x.g.Requires == nil || s.main.IsZero() {
		return nil
	}
	asked := map[string]bool{} // whether the commit changed it
	for p := range s.at.files {
		asked[p] = false
	}
	joins := s.c.Committer.Email == gitstore.JoinerEmail && len(s.others) > 0
	taken := false // some parent has a file that is to be put back
	for _, b := range s.others {
		for p := range b.files {
			asked[p], taken = false, true
		}
	}
	if x.wrong == "" && !taken && len(s.at.files) == 0 {
		return nil
	}
	for _, p := range changed {
		asked[p] = true
	}
	for p, did := range asked {
		if !isSetting(p) {
			continue
		}
		now, err := x.committed(s.c.Hash, p)
		if err != nil {
			return err
		}
		want, of, err := x.settingBefore(s, p)
		if err != nil {
			return err
		}
		back := false
		if x.wrong != "" && did && of == nil {
			if back, err = x.putsBack(ctx, s.c, p, now); err != nil {
				return err
			}
		}
		switch {
		case string(now) == string(want) && (now == nil) == (want == nil), back:
			delete(s.at.files, p)
		case x.wrong != "" && did && of == nil:
			s.at.files[p] = &fileVerdict{data: want, commit: s.c, why: x.wrong}
		case x.wrong == "" && did && !joins, of == nil: // who signed it saw it
			delete(s.at.files, p)
		default:
			s.at.files[p] = &fileVerdict{data: want, commit: of.commit, why: of.why}
		}
	}
	return nil
}

// settingBefore gives a file as the commit's parents make it; of is the first verdict on it there.
func (x *examiner) settingBefore(s against, p string) (want []byte, of *fileVerdict, err error) {
	read := func(h gitstore.Hash, b *branch) ([]byte, error) {
		if v := b.files[p]; v != nil {
			if of == nil {
				of = v
			}
			return v.data, nil
		}
		return x.committed(h, p)
	}
	if want, err = read(s.main, s.at); err != nil {
		return nil, nil, err
	}
	for h, b := range s.others {
		theirs, err := read(h, b)
		if err != nil {
			return nil, nil, err
		}
		was, err := x.committed(x.bases[h], p)
		if err != nil {
			return nil, nil, err
		}
		if string(want) == string(was) {
			want = theirs
		}
	}
	return want, of, nil
}

func (x *examiner) committed(h gitstore.Hash, p string) ([]byte, error) {
	if h.IsZero() {
		return nil, nil
	}
	v, err := x.view(h)
	if err != nil {
		return nil, err
	}
	return ledger.ReadOptional(v, p)
}

// answerSetting puts a file back that a commit changed which was to be signed, unless it was changed since.
func answerSetting(ctx context.Context, g *Guard, p string, v *fileVerdict) error {
	wrong, err := g.ledger.Store.At(v.commit.Hash)
	if err != nil {
		return err
	}
	bad, err := ledger.ReadOptional(wrong, p)
	if err != nil {
		return err
	}
	did := false
	_, err = g.ledger.Store.Commit(ctx, func(r gitstore.Reader) (*gitstore.Change, error) {
		now, err := ledger.ReadOptional(r, p)
		did = err == nil && bytes.Equal(now, bad) && !bytes.Equal(now, v.data)
		if !did {
			return nil, err
		}
		who := g.ledger.ByEngine()
		return &gitstore.Change{Files: map[string][]byte{p: v.data}, Author: who.Author,
			Message: ledger.Message("answer: restored "+ledger.Clip(p, 200), breach{commit: v.commit}.by()+" changed it "+v.why,
				[]ledger.Trailer{{answersTrailer, v.commit.Hash.String()}, {"Bagpipe-Agent", who.Agent}})}, nil
	})
	if err != nil {
		return fmt.Errorf("restore %s: %w", p, err)
	}
	if did {
		g.ledger.Warn(fmt.Sprintf("%s was changed by %s %s; it has been restored", p, breach{commit: v.commit}.by(), v.why))
	}
	return nil
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
