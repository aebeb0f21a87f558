package sync

// AtOnce sets how many branches a call of TakeOffers looks at.
func (s *Syncer) AtOnce(n int) { s.atOnce = n }
