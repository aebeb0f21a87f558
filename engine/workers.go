package engine

import (
	"bagpipe/engine/attempt"
	"bagpipe/engine/remote"
)

// Workers wires the room of the workers on other machines. The run that is given them has
// placed steps done by them.
func (e *Engine) Workers(place remote.Place, report func(text string)) (*remote.Remote, error) {
	guests, err := e.Ledger.Seat.Engine()
	if err != nil {
		return nil, err
	}
	abroad := attempt.Abroad{Attempts: e.Attempt}
	return remote.New(remote.Rooms{Attempts: abroad, Settings: e.Settings, Robots: abroad.Robots(), Guests: guests, Plans: e.Index.PlansInUse,
		Nudge: func() {
			if index := e.Index.Loaded(); index != nil { // a worker may come before the index is there
				index.Nudge()
			}
		}, Version: e.Ledger.Version, Log: e.Ledger.Log, Now: e.Ledger.Clock,
		Room: e.Folder.Space.Low, Report: report, Alarm: report}, place), nil
}
