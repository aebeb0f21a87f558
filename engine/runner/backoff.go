package runner

import "time"

// Backoff says how long to wait before a failed step is tried again.
type Backoff struct {
	First time.Duration // before the second try; doubled from then on
	Most  time.Duration
}

// Wait gives the pause after the failures-th failure in a row, spread by jitter
// (0 to 1) over the upper half of the interval, so that steps which failed
// together are not tried again together.
func (b Backoff) Wait(failures int, jitter float64) time.Duration {
	d := max(b.First, time.Millisecond)
	for i := 1; i < failures && d < b.Most; i++ {
		d *= 2
	}
	d = min(d, max(b.Most, b.First))
	return d/2 + time.Duration(jitter*float64(d)/2)
}
