package gitstore

import (
	"sync"
	"time"
)

// Figures are what a store has committed since it was opened.
type Figures struct {
	Commits, Groups int
	Largest         int           // commits in one group
	Building        time.Duration // making commits
	Publishing      time.Duration // writing and syncing packs, and the branch
}

// figures counts; used by the owner, read by anybody.
type figures struct {
	mu sync.Mutex // guards f
	f  Figures
}

func (c *figures) add(commits int, building, publishing time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.f.Commits += commits
	c.f.Groups++
	c.f.Largest = max(c.f.Largest, commits)
	c.f.Building += building
	c.f.Publishing += publishing
}

// Figures tells what was committed so far.
func (s *Store) Figures() Figures {
	s.known.figures.mu.Lock()
	defer s.known.figures.mu.Unlock()
	return s.known.figures.f
}
