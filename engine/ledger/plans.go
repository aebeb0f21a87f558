package ledger

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"sync"

	"bagpipe/engine/fault"
	"bagpipe/engine/gitstore"
	"bagpipe/engine/state"
	"bagpipe/layout"
)

// PlansAt gives the definitions of records read at r.
func (l *Ledger) PlansAt(r gitstore.Reader) state.Plans {
	return func(digest string) *state.Definition {
		d, err := l.PinnedPlan(r, digest)
		if err != nil {
			return nil
		}
		return d
	}
}

type Definition struct {
	Path string
	Data []byte
	Def  *state.Definition
}

// DigestOf is sha256:HEX of data.
func DigestOf(data []byte) string {
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// planCache holds pinned definitions, which never change, by digest.
type planCache struct {
	mu   sync.Mutex
	m    map[string]*state.Definition
	none map[string]bool // not in the history either
}

// missingPlan is the error of a pinned definition that is not there, or not what its
// digest says.
func missingPlan(digest string, err error) *fault.Error {
	return &fault.Error{Kind: fault.Damaged, Text: "the pinned definition " + layout.PinnedPath(digest), Err: err}
}

// PinnedPlan reads a pinned definition, from memory when it was read before. One that a
// push removed or changed is read from the history.
func (l *Ledger) PinnedPlan(r gitstore.Reader, digest string) (*state.Definition, error) {
	c := &l.plans
	if d := c.known(digest); d != nil {
		return d, nil
	}
	data, err := r.ReadFile(layout.PinnedPath(digest))
	if err == nil && DigestOf(data) == digest {
		return c.add(digest, data)
	}
	missing := missingPlan(digest, err)
	if err == nil {
		missing.Err = errors.New("was changed after it was pinned")
	}
	data, err = l.pinnedBefore(digest)
	if err != nil {
		return nil, errors.Join(missing, err)
	}
	if data == nil {
		return nil, missing
	}
	return c.add(digest, data)
}

// pinnedBefore finds a definition in the history by its digest; nil when it never
// was there.
func (l *Ledger) pinnedBefore(digest string) ([]byte, error) {
	if _, err := layout.ParseDigest(digest); err != nil || l.plans.isNone(digest) {
		return nil, nil
	}
	p := layout.PinnedPath(digest)
	for c, err := range l.Store.History(context.Background(), gitstore.HistoryOptions{Path: p}) {
		if err != nil {
			return nil, fmt.Errorf("look for %s in the history: %w", p, err)
		}
		for _, at := range append([]gitstore.Hash{c.Hash}, c.Parents...) {
			v, err := l.Store.At(at)
			if err != nil {
				return nil, err
			}
			data, err := ReadOptional(v, p)
			if err != nil {
				return nil, err
			}
			if data != nil && DigestOf(data) == digest {
				return data, nil
			}
		}
	}
	l.plans.setNone(digest)
	return nil, nil
}

func (c *planCache) isNone(digest string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.none[digest]
}

// setNone spares the next search. One that is pinned later is found at the tip.
func (c *planCache) setNone(digest string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.none == nil || len(c.none) > 1000 {
		c.none = map[string]bool{}
	}
	c.none[digest] = true
}

func (c *planCache) known(digest string) *state.Definition {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.m[digest]
}

func (c *planCache) add(digest string, data []byte) (*state.Definition, error) {
	// A robot this version does not have makes its step fail, not the item's
	// record unreadable.
	d, err := state.ParseDefinition(layout.PinnedPath(digest), data, nil)
	if err != nil {
		return nil, missingPlan(digest, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.m == nil {
		c.m = map[string]*state.Definition{}
	}
	c.m[digest] = d
	return d, nil
}
