package guard

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"bagpipe/engine/gitstore"
	"bagpipe/engine/ledger"
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
		answer := g.answerSetting
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
