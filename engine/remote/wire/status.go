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
	Offers   map[string]int  `json:"offers"` // by what is asked for
	Workers  []WorkerStatus  `json:"workers"`
	Unheard  int             `json:"unheard"` // adopted attempts whose workers have not come back
	Transfer string          `json:"transfer"`
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
	Done    int               `json:"done"`
	Failed  int               `json:"failed"`
	Since   time.Time         `json:"since"`
	Beat    time.Time         `json:"beat"`
	Shared  bool              `json:"shared"`
}

// RunningStatus is an attempt that a worker has.
type RunningStatus struct {
	Item     layout.ItemID `json:"item"`
	Workflow string        `json:"workflow"`
	Step     layout.Name   `json:"step"`
	Attempt  string        `json:"attempt"`
}
