package runner

import "slices"

// seats are places whose number may change; who asks first sits first. The pool's lock
// guards them.
type seats struct {
	n     int // how many there are
	taken int // may be more than n, after their number fell
	line  []chan struct{}
}

// ask gives a channel that is closed once the caller has a place.
func (s *seats) ask() chan struct{} {
	seat := make(chan struct{})
	s.line = append(s.line, seat)
	s.seat()
	return seat
}

// giveUp takes back an ask, also one that has been granted meanwhile.
func (s *seats) giveUp(seat chan struct{}) {
	if i := slices.Index(s.line, seat); i >= 0 {
		s.line = slices.Delete(s.line, i, i+1)
		return
	}
	s.leave()
}

func (s *seats) leave() { s.taken--; s.seat() }

func (s *seats) resize(n int) { s.n = n; s.seat() }

func (s *seats) seat() {
	for s.taken < s.n && len(s.line) > 0 {
		close(s.line[0])
		s.line = slices.Delete(s.line, 0, 1)
		s.taken++
	}
}
