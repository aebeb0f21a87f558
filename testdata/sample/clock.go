package sample

import (
	"sync/atomic"
	"time"
)

// Clock is a clock that a test moves while others read it.
type Clock struct{ at atomic.Pointer[time.Time] }

// NewClock gives one that stands at a time.
func NewClock(at time.Time) *Clock {
	c := &Clock{}
	c.at.Store(&at)
	return c
}

// Now is where it stands.
func (c *Clock) Now() time.Time { return *c.at.Load() }

// Move moves it; one goroutine does.
func (c *Clock) Move(by time.Duration) {
	at := c.Now().Add(by)
	c.at.Store(&at)
}
