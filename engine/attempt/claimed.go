package attempt

import (
	"time"

	"bagpipe/engine/folder"
	"bagpipe/engine/ledger"
	"bagpipe/engine/state"
	"bagpipe/layout"
	"bagpipe/steps"
)

// claimed is an attempt that this engine has claimed, and what its end records.
type claimed struct {
	layout.AttemptRef
	by          Worker
	at          time.Time
	started     time.Time              // zero: the robot was not called
	progress    *state.Progress        // what the robot told last
	state.Yield                        // children are counted once they are registered
	placed      layout.Manifest        // of an item whose object stays in a catalog; zero: it does not
	opened      folder.Opened          // what the robot saw of it
	checks      []steps.Check          // what the robot found of the object's quality
	given       given                  // what the robot was given
	told        map[layout.ItemID]bool // the children that its program told of while it ran
	suspected   bool                   // its failure counts before it is committed
	claiming    time.Duration          // how long its claim took, where it was made with the end before it
	unended     error                  // why its end is not in the history; nil: it is
}

// Worker is who performs an attempt, as its record names it.
type Worker struct {
	Engine  layout.EngineID
	Runner  string
	Version string // of the program
	Request string // that the commit answers; "": none

	Name layout.Name // of a worker; "": the performer is none
}

// OnWorker is the key of an item's metadata that names the worker which is to do its placed steps.
const OnWorker = "onWorker"

// onWorker is what a manifest says of it; "": nothing.
func onWorker(m layout.Manifest) layout.Name {
	name, _ := m.Metadata[OnWorker].(string)
	if _, err := layout.ParseName(name); err != nil {
		return ""
	}
	return layout.Name(name)
}

// here is this process as the performer.
func here(l *ledger.Ledger) Worker {
	return Worker{Engine: l.ID, Runner: l.Runner(), Version: l.Version}
}

// robot is who causes the attempt's transitions.
func (c *claimed) robot(l *ledger.Ledger) ledger.Actor {
	who := l.ByRobot(c.Step)
	who.Agent, who.Request = string(c.Step)+" "+c.by.Runner, c.by.Request
	if c.by.Engine != l.ID {
		who.Version = c.by.Version
	}
	return who
}
