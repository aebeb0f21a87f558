package claim

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"bagpipe/layout"
)

// Seat is the place of one process among the living engines. The process takes the
// seat at its first act, so that a command that only reads leaves no file.
type Seat struct {
	root string
	id   layout.EngineID
	host Host
	now  func() time.Time

	none error // why no process has one here; nil: it may take one

	mu   sync.Mutex // guards self
	self *Engine    // nil until the first act
}

// NewSeat names the place; nothing is written. now must carry a monotonic reading: the
// age of other engines' files decides whether those engines live, and a clock that is
// set must not kill them.
func NewSeat(root string, id layout.EngineID, h Host, now func() time.Time) *Seat {
	return &Seat{root: root, id: id, host: h, now: now}
}

// Bar has the seat refused with an error, before anybody takes it: a clone, which has none, would be a workspace by that.
func (s *Seat) Bar(why error) { s.none = why }

// Engine registers this process as a living engine, once.
func (s *Seat) Engine() (*Engine, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.none != nil {
		return nil, s.none
	}
	if s.self != nil {
		return s.self, nil
	}
	self, err := Register(s.root, s.id, s.host, s.now)
	if err != nil {
		return nil, fmt.Errorf("register engine %s: %w", s.id, err)
	}
	s.self = self
	return self, nil
}

// Alive reports whether an engine lives. This engine does.
func (s *Seat) Alive(id layout.EngineID) (bool, error) {
	if id == s.id {
		return true, nil
	}
	self, err := s.Engine()
	if err != nil {
		return true, err
	}
	return self.Alive(id)
}

// MayBeAlive reports whether the engine may still be running.
func (s *Seat) MayBeAlive(id layout.EngineID) bool {
	lives, err := s.Alive(id)
	return err != nil || lives
}

// Beat shows other hosts that this engine lives.
func (s *Seat) Beat() error {
	self, err := s.Engine()
	if err != nil {
		return err
	}
	return self.Beat()
}

// Check answers ErrLost when other engines take this one for dead, and nil for any
// other trouble with its file.
func (s *Seat) Check() error {
	self, err := s.Engine()
	if err != nil {
		return err
	}
	if err := self.Check(); errors.Is(err, ErrLost) {
		return err
	}
	return nil
}

// Close gives the seat back; taken reports whether this process ever took it.
func (s *Seat) Close() (taken bool, err error) {
	s.mu.Lock()
	self := s.self
	s.self = nil
	s.mu.Unlock()
	if self == nil {
		return false, nil
	}
	return true, self.Close()
}
