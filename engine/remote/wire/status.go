package wire

import (
	"time"

	"bagpipe/layout"
)

// StatusFile is where an engine that serves workers tells how they stand, and StatusSchema the
// newest form of it.
const (
	StatusFile   = layout.StateDir + "/remote/status.json"
	StatusSchema = 1
)

// Status is how the workers of an engine stand, as .bagpipe/remote/status.json tells.
type Status struct {
	Schema   int             `json:"schema"`
	Engine   layout.EngineID `json:"engine"`
	At       time.Time       `json:"at"`
	Build    string          `json:"build"` // of the engine
	URL      string          `json:"url"`
	Epoch    string          `json:"epoch"`
	Offers   map[string]int  `json:"offers"`            // by what is asked for
	Classes  map[string]Took `json:"classes,omitempty"` // likewise, since the engine began
	Workers  []WorkerStatus  `json:"workers"`
	Unheard  int             `json:"unheard"` // adopted attempts whose workers have not come back
	Transfer string          `json:"transfer"`
	Trouble  string          `json:"trouble,omitempty"` // why nothing is granted
	Warning  string          `json:"warning,omitempty"` // of the NATS server
	Plain    bool            `json:"plain,omitempty"`
	Refused  int             `json:"refused,omitempty"` // messages: malformed, of another's attempt, too late, or of one that may not come
}

// Ends are how many attempts a worker ended, and how many of its messages were refused.
type Ends struct {
	Done    int `json:"done"`
	Failed  int `json:"failed"`
	Refused int `json:"refused,omitempty"`
}

// Took is how long attempts took altogether, in seconds: from the offer to the grant, to fetch what the robot
// is given, its run, and to send what it made.
type Took struct {
	Attempts int     `json:"attempts"`
	Wait     float64 `json:"wait"`
	Fetch    float64 `json:"fetch"`
	Run      float64 `json:"run"`
	Send     float64 `json:"send"`
}

// Add adds another's.
func (t Took) Add(o Took) Took {
	return Took{t.Attempts + o.Attempts, t.Wait + o.Wait, t.Fetch + o.Fetch, t.Run + o.Run, t.Send + o.Send}
}

// WorkerStatus is one worker.
type WorkerStatus struct {
	Name layout.Name `json:"name"`
	Machine
	Build   string            `json:"build"`
	Engine  layout.EngineID   `json:"engine"`
	State   string            `json:"state"`
	Slots   int               `json:"slots"`
	Labels  map[string]string `json:"labels,omitempty"`
	Robots  []Robot           `json:"robots"`
	Running []RunningStatus   `json:"running"`
	Ends
	Suspect string    `json:"suspect,omitempty"` // why it is suspended
	Took    Took      `json:"took"`
	Since   time.Time `json:"since"`
	Beat    time.Time `json:"beat"`
	Shared  bool      `json:"shared"`
}

// RunningStatus is an attempt that a worker has.
type RunningStatus struct {
	Item     layout.ItemID `json:"item"`
	Workflow string        `json:"workflow"`
	Step     layout.Name   `json:"step"`
	Attempt  string        `json:"attempt"`
}
