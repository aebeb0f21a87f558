package packed

import (
	"slices"
	"sync"

	"bagpipe/engine/state"
)

// Names numbers what many items have in common: the names of collections, lanes,
// runs, engines and so on, and the definitions they run by. A number is never given
// twice, so that a packed item stays readable.
type Names struct {
	mu    sync.RWMutex // guards all below
	texts []string
	ofTxt map[string]uint64
	plans []*state.Definition
	byDig map[*state.Definition]uint64
}

// NewNames gives names of which none has a number but the empty one.
func NewNames() *Names {
	return &Names{texts: []string{""}, ofTxt: map[string]uint64{"": 0}, byDig: map[*state.Definition]uint64{}}
}

// Number gives the number of a text, a new one if it has none.
func (n *Names) Number(s string) uint64 {
	n.mu.RLock()
	i, ok := n.ofTxt[s]
	n.mu.RUnlock()
	if ok {
		return i
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if i, ok = n.ofTxt[s]; ok {
		return i
	}
	i = uint64(len(n.texts))
	n.texts = append(n.texts, s)
	n.ofTxt[s] = i
	return i
}

// Has reports whether a text has a number.
func (n *Names) Has(s string) bool {
	n.mu.RLock()
	defer n.mu.RUnlock()
	_, ok := n.ofTxt[s]
	return ok
}

// Text is the text of a number; one nobody was given is empty.
func (n *Names) Text(i uint64) string {
	n.mu.RLock()
	defer n.mu.RUnlock()
	if i >= uint64(len(n.texts)) {
		return ""
	}
	return n.texts[i]
}

func (n *Names) planNumber(d *state.Definition) uint64 {
	n.mu.RLock()
	i, ok := n.byDig[d]
	n.mu.RUnlock()
	if ok {
		return i
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if i, ok = n.byDig[d]; ok {
		return i
	}
	// One definition may have been read twice; the record needs only one of them.
	if at := slices.IndexFunc(n.plans, func(p *state.Definition) bool { return p.Digest == d.Digest && p.Name == d.Name }); at >= 0 {
		n.byDig[d] = uint64(at)
		return uint64(at)
	}
	i = uint64(len(n.plans))
	n.plans = append(n.plans, d)
	n.byDig[d] = i
	return i
}

// Plan is the definition of a number; nil: the number was not given.
func (n *Names) Plan(i uint64) *state.Definition {
	n.mu.RLock()
	defer n.mu.RUnlock()
	if i >= uint64(len(n.plans)) {
		return nil
	}
	return n.plans[i]
}

// All gives the texts and the definitions by their numbers.
func (n *Names) All() ([]string, []*state.Definition) {
	n.mu.RLock()
	defer n.mu.RUnlock()
	return slices.Clone(n.texts), slices.Clone(n.plans)
}
