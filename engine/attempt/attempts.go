package attempt

// Attempts makes attempts at the steps that are ready.
type Attempts struct {
	rooms
	performer Performer
	Recovery  *Recovery
}

// New gives the attempts of this engine; robots run on this machine.
func New(r Rooms) *Attempts {
	in := rooms{ledger: r.Ledger, settings: r.Settings, folder: r.Folder, guard: r.Guard, control: r.Control, index: r.Index, recognition: r.Recognition, robots: r.Robots}
	return &Attempts{rooms: in, performer: local{robots: r.Robots, folder: r.Folder}, Recovery: &Recovery{in}}
}
