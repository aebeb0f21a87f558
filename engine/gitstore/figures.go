package gitstore

import (
	"sync"
	"time"
)

// Figures are what a store has committed since it was opened.
type Figures struct {
	Commits, Groups int
	Largest         int // commits in one group
	Took
}

// Took is how long groups were made durable, by what was done.
type Took struct {
	Building time.Duration // commits, trees and the pack's objects
	Packing  time.Duration // writing the pack and its index
	Syncing  time.Duration // of the two, of the branch's new value and of their folder
	Moving   time.Duration // the branch, with a sync of its folder
}

// figures counts; used by the owner, read by anybody.
type figures struct {
	mu sync.Mutex // guards f
	f  Figures
}

func (c *figures) add(commits int, took Took) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.f.Commits += commits
	c.f.Groups++
	c.f.Largest = max(c.f.Largest, commits)
	c.f.Building += took.Building
	c.f.Packing += took.Packing
	c.f.Syncing += took.Syncing
	c.f.Moving += took.Moving
}

// Figures tells what was committed so far.
func (s *Store) Figures() Figures {
	s.known.figures.mu.Lock()
	defer s.known.figures.mu.Unlock()
	return s.known.figures.f
}
