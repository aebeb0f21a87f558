package desk

import (
	"slices"
	"sync"
	"time"
)

// Presence remembers who has what open, for a little while after a page told it last. Its lock
// guards the map.
type Presence struct {
	mu   sync.Mutex
	seen map[string]map[string]time.Time // by what is open, by who
}

// stays is for how long somebody counts who says nothing more.
const stays = time.Minute

// Note tells that somebody has something open, and gives who else has.
func (p *Presence) Note(what, who string, now time.Time) (others []string) {
	const most = 10_000
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.seen == nil || len(p.seen) >= most {
		p.seen = map[string]map[string]time.Time{}
	}
	if p.seen[what] == nil {
		p.seen[what] = map[string]time.Time{}
	}
	p.seen[what][who] = now
	for other, at := range p.seen[what] {
		switch {
		case now.Sub(at) > stays:
			delete(p.seen[what], other)
		case other != who:
			others = append(others, other)
		}
	}
	slices.Sort(others)
	return others
}
