package attempt

import (
	"context"
	"io"
	"math/rand/v2"
	"time"

	"bagpipe/engine/ledger"
	"bagpipe/engine/state"
	"bagpipe/layout"
	"bagpipe/steps/live"
	"bagpipe/steps/target"
)

// Attempts makes attempts at the steps that are ready.
type Attempts struct {
	rooms
	performer Performer
	cancels   cancels
	Recovery  *Recovery
	Targets   *target.Pool // closed by who closes the engine
	Live      *live.Instances
	Premis    func(ctx context.Context, to io.Writer, id layout.ItemID) error // writes what was done with an item; nil: bags go without it
	// PlaceMoved is told of objects in place that are not as they were catalogued; nil: nobody is.
	PlaceMoved func(layout.Place)
}

// New gives the attempts of this engine; robots run on this machine.
func New(r Rooms) *Attempts {
	in := rooms{ledger: r.Ledger, settings: r.Settings, folder: r.Folder, guard: r.Guard, control: r.Control, index: r.Index, recognition: r.Recognition, robots: r.Robots}
	programs := &live.Instances{Dir: in.liveDir(), Now: r.Ledger.Now, Backoff: func(failures int) time.Duration {
		return r.Settings.Current().Settings.Backoff().Wait(failures, rand.Float64())
	}}
	a := &Attempts{rooms: in, Recovery: &Recovery{in}, Targets: &target.Pool{Now: r.Ledger.Now, Notes: r.Ledger.Path(layout.StateDir + "/targets")}, Live: programs}
	a.Targets.Used = func(name layout.Name) (bool, error) { return used(in, name) }
	a.performer = a.local()
	return a
}

// used reports whether an item has a copy on a target.
func used(in rooms, name layout.Name) (bool, error) {
	v, err := in.ledger.Store.Tip()
	if err != nil {
		return false, err
	}
	for it := range in.index.Loaded().Items() {
		if d, err := ledger.ReadDeposits(v, it.ID); err == nil && len(d.Targets[name]) > 0 { // fixity status tells of one that cannot be read
			return true, nil
		}
	}
	return false, nil
}

// local performs on this machine.
func (a *Attempts) local() local {
	return local{robots: a.robots, folder: a.folder, live: a.Live, root: a.ledger.Root, sick: func(ref state.Ref, s *state.Step, why string) {
		if err := a.control.TripFor(context.Background(), ref, s, why); err != nil {
			a.ledger.Log.Error("take a step out", "err", err)
		}
	}}
}

// CloseRules ends the programs of rules; nothing may be recognised.
func (a *Attempts) CloseRules() { a.recognition.Close() }
