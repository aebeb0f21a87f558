package settings

import (
	"cmp"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"bagpipe/engine/remote/wire"
	"bagpipe/engine/state"
	"bagpipe/layout"
	"bagpipe/steps"
)

// WorkerSettings say which steps go to workers on other machines. As deployment they count
// for items in flight, too.
type WorkerSettings struct {
	Lease layout.Duration      `yaml:"lease"` // 0: DefaultLease
	Lost  int                  `yaml:"lost"`  // attempts in a row that may be lost before the step fails; 0: DefaultLost
	Steps map[string]Placement `yaml:"steps"` // by WORKFLOW/STEP or /STEP
}

// Placement says which workers may do a step.
type Placement struct {
	Labels  map[string]string `yaml:"labels"`  // that a worker must have, all
	Name    string            `yaml:"name"`    // of the worker; "": any
	Version string            `yaml:"version"` // of the program, as its worker tells it; "": any
	Only    bool              `yaml:"only"`    // never on the engine's machine
	Send    []string          `yaml:"send"`    // folders: source, content, derived; none: all three
	Lease   layout.Duration   `yaml:"lease"`
	Wait    layout.Duration   `yaml:"wait"`  // for a worker that could do it; then the step is not available. 0: without end
	Alone   bool              `yaml:"alone"` // the robot acts outside: it is ended where the engine is not heard
	Leased  bool              `yaml:"-"`     // lease was given for this step
}

const (
	// DefaultLease is how long a worker may be silent.
	DefaultLease = 30 * time.Second
	// DefaultLost keeps a robot that kills its host from touring all of them.
	DefaultLost = 3
	leastLease  = time.Second
	mostLease   = 24 * time.Hour
)

// Placed gives the placement of a step; ok is false of one that stays on this machine.
func (s *WorkerSettings) Placed(workflow, step string) (p Placement, ok bool) {
	if p, ok = s.Steps[workflow+"/"+step]; !ok {
		p, ok = s.Steps["/"+step]
	}
	p.Leased = p.Lease != 0
	if ok && p.Lease == 0 {
		p.Lease = cmp.Or(s.Lease, layout.Duration(DefaultLease))
	}
	return p, ok
}

// MostLost is how many attempts in a row may be lost with their workers.
func (s *WorkerSettings) MostLost() int { return cmp.Or(s.Lost, DefaultLost) }

// WantOf gives what a placed step asks of a worker of an engine of this build: a built-in robot is to be of the same.
func (p Placement) WantOf(s *state.Step, build string) wire.Want {
	want := wire.Want{Robot: layout.Name(RobotOf(s)), Builtin: s.Command == nil, Version: p.Version, Labels: p.Labels, Name: layout.Name(p.Name)}
	if want.Builtin {
		want.Version = build
	}
	return want
}

// sendable are the folders that a placement may name.
var sendable = []string{layout.SourceDir, layout.ContentDir, layout.DerivedDir}

func (s *WorkerSettings) check(y *layout.YAML) error {
	if s.Lost < 0 {
		return y.Errorf("$.workers.lost", "expected a number from 1")
	}
	if err := checkLease(y, "$.workers.lease", s.Lease); err != nil {
		return err
	}
	for _, key := range slices.Sorted(maps.Keys(s.Steps)) {
		at := fmt.Sprintf("$.workers.steps.'%s'", key)
		workflow, step, slash := strings.Cut(key, "/")
		if !slash || step == "" {
			return y.Errorf("$.workers.steps", "%q: expected WORKFLOW/STEP, or /STEP for the steps of that name", key)
		}
		p := s.Steps[key]
		for _, name := range []string{workflow, step, p.Name} {
			if _, err := layout.ParseName(name); name != "" && err != nil {
				return y.Errorf(at, "%v", err)
			}
		}
		if err := checkLease(y, at+".lease", p.Lease); err != nil {
			return err
		}
		if p.Wait < 0 || p.Wait > 0 && !p.Only {
			return y.Errorf(at+".wait", "expected a time, for a step with only: true")
		}
		for _, folder := range p.Send {
			if !slices.Contains(sendable, folder) {
				return y.Errorf(at+".send", "%q: expected %s", folder, strings.Join(sendable, ", "))
			}
		}
	}
	return nil
}

func checkLease(y *layout.YAML, at string, lease layout.Duration) error {
	if d := time.Duration(lease); d != 0 && (d < leastLease || d > mostLease) {
		return y.Errorf(at, "expected %s to %s", leastLease, mostLease)
	}
	return nil
}

// Asks are what built-in robots ask, where it is in force, that stays with the engine.
type Asks struct {
	LeavesOut  bool // rules name what is left out of drops
	Checks     bool // rules have objects checked
	Signatures bool // the workspace has its own signatures of formats
}

// StaysHere says why a step cannot be done by a worker; "" where it can. asks is what is in force.
func StaysHere(s *state.Step, robots map[layout.Name]steps.Builtin, asks Asks) string {
	each, _ := s.With["each"].(string)
	builtin := s.Robot
	if s.Command != nil {
		builtin = ""
	}
	switch {
	case s.Starts != "":
		return "it starts a workflow"
	case s.Manual:
		return "a person does it"
	case !s.HasRobot():
		return "it is the first step"
	case s.Persistent:
		return "its program is kept running"
	case robots[layout.Name(builtin)].Deposits:
		return "it works in the store"
	case robots[layout.Name(builtin)].Here != "":
		return robots[layout.Name(builtin)].Here
	case builtin == "split" && each == "object":
		return "it asks the rules"
	case builtin == "unpack" && asks.LeavesOut:
		return "it leaves out what the rules name"
	case builtin == "validate" && asks.Checks:
		return "it makes the checks of the rules"
	case builtin == "identify" && asks.Signatures:
		return "the workspace has its own signatures of formats"
	}
	return ""
}

// RobotOf is the name by which robots:, and workers, know who does a step.
func RobotOf(step *state.Step) string {
	if len(step.Command) > 0 {
		return filepath.Base(step.Command[0])
	}
	return step.Robot
}
