package settings

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"bagpipe/engine/state"
	"bagpipe/layout"
	"bagpipe/steps"
)

// The rules are: the graph of steps, their robots and parameters are pinned with the item;
// how a step is run is deployment, and the newest settings count, for items in flight, too.
// Each value is looked for in this order, and the first place that gives it counts:
//
//	steps: WORKFLOW/STEP   the step of one workflow
//	steps: /STEP           the steps of that name, of all workflows
//	robots: NAME           the steps that this robot, or the program of this name, does
//	the definition         as pinned
//	steps: defaults        where none of the others says anything

// Deployment says how a step is run; nil and zero leave it to the next place.
type Deployment struct {
	Instances  *int              `yaml:"instances"`
	Limit      *int              `yaml:"limit"`
	Prefetch   *int              `yaml:"prefetch"`
	Timeout    *layout.Duration  `yaml:"timeout"`
	Retries    *int              `yaml:"retries"`
	Backoff    *state.Backoff    `yaml:"backoff"`
	Threshold  *state.Threshold  `yaml:"threshold"`
	KeepInputs *bool             `yaml:"keepInputs"`
	Env        map[string]string `yaml:"env"` // merged name by name
}

// deployDefaults is the key of what holds for all steps that say nothing; the other keys
// of steps: have a slash.
const deployDefaults = "defaults"

// Deployed gives a step of a workflow as it is to be run now: s itself where the settings
// say nothing of it, else a copy. s may be nil.
func (s *Settings) Deployed(workflow string, step *state.Step) *state.Step {
	if len(s.Steps)+len(s.Robots) == 0 || step == nil || !step.HasRobot() && !step.Manual {
		return step
	}
	out := *step
	s.Steps[deployDefaults].fill(&out) // with an Env of its own
	s.Robots[RobotOf(step)].set(&out)
	s.Steps["/"+step.Name].set(&out)
	s.Steps[workflow+"/"+step.Name].set(&out)
	return &out
}

// set puts what d says in the place of what the step says.
func (d Deployment) set(s *state.Step) {
	put(&s.Instances, d.Instances)
	put(&s.Limit, d.Limit)
	put(&s.Prefetch, d.Prefetch)
	put(&s.Timeout, d.Timeout)
	put(&s.Retries, d.Retries)
	put(&s.KeepInputs, d.KeepInputs)
	if d.Backoff != nil {
		s.Backoff = d.Backoff
	}
	if d.Threshold != nil {
		s.Threshold = d.Threshold
	}
	for name, value := range d.Env {
		if s.Env == nil {
			s.Env = map[string]string{}
		}
		s.Env[name] = steps.Variable(name, value, s.Env[name])
	}
}

func put[T any](to, from *T) {
	if from != nil {
		*to = *from
	}
}

// fill is set where the step says nothing.
func (d Deployment) fill(s *state.Step) {
	own := Deployment{Backoff: s.Backoff, Threshold: s.Threshold, Env: s.Env,
		Instances: given(s.Instances), Limit: given(s.Limit), Prefetch: given(s.Prefetch), Timeout: given(s.Timeout), Retries: given(s.Retries), KeepInputs: given(s.KeepInputs)}
	s.Env = nil
	d.set(s)
	own.set(s)
}

// given is nil for a zero value, which says nothing.
func given[T comparable](v T) *T {
	if v == *new(T) {
		return nil
	}
	return &v
}

// DeploysThresholds reports whether some step's threshold is set here.
func DeploysThresholds(s *Settings) bool {
	for _, places := range []map[string]Deployment{s.Steps, s.Robots} {
		for _, d := range places {
			if d.Threshold != nil {
				return true
			}
		}
	}
	return false
}

// PoolWarnings tells where fewer items are let at a step, by its limit, the workflow's
// inFlight or the poolSize of the step that makes its items, than instances of it run.
// others gives the definitions beside d, for the children's.
func PoolWarnings(s *Settings, d *state.Definition, others map[string]*state.Definition) (warnings []string) {
	warn := func(workflow string, step *state.Step, n int, key string) {
		if step.Instances > n && n > 0 {
			warnings = append(warnings, fmt.Sprintf("%s/%s: instances: %d of it cannot all be at work: %s: %d", workflow, step.Name, step.Instances, key, n))
		}
	}
	for i := range d.Steps {
		step := s.Deployed(d.Name, &d.Steps[i])
		warn(d.Name, step, step.Limit, "its limit")
		warn(d.Name, step, d.InFlight, "inFlight of its workflow")
		warn(d.Name, step, s.Limits.InFlight, "limits: inFlight of the workspace")
		child, _ := step.With["workflow"].(string)
		if other := others[child]; other != nil {
			for j := range other.Steps {
				warn(other.Name, s.Deployed(other.Name, &other.Steps[j]), step.PoolSize, "poolSize of "+d.Name+"/"+step.Name)
			}
		}
	}
	return append(warnings, SideBySide(d)...)
}

// PoolWarningsIn is PoolWarnings by the settings and definitions that lie in the folder
// root. What is not there, or broken, says nothing.
func PoolWarningsIn(root string, d *state.Definition, robots map[layout.Name]steps.Builtin) []string {
	k := &checker{robots: robots}
	s, err := k.settingsAt(folderTree(root))
	if err != nil || s == nil {
		s = &Settings{}
	}
	defs, _ := k.definitionsAt(folderTree(root))
	return PoolWarnings(s, d, defs)
}

// checkDeployment checks the values below steps: and robots:.
func checkDeployment(s *Settings, y *layout.YAML) error {
	for key, d := range s.Steps {
		workflow, step, slash := strings.Cut(key, "/")
		if key != deployDefaults && !slash {
			return y.Errorf("$.steps", "%q: expected WORKFLOW/STEP, /STEP for the steps of that name, or %s", key, deployDefaults)
		}
		for _, name := range []string{workflow, step} {
			if _, err := layout.ParseName(name); name != "" && err != nil {
				return y.Errorf("$.steps", "%q: %v", key, err)
			}
		}
		if slash && step == "" {
			return y.Errorf("$.steps", "%q: expected a step after the slash", key)
		}
		if err := d.check(y, fmt.Sprintf("$.steps.'%s'", key)); err != nil {
			return err
		}
	}
	for name, d := range s.Robots {
		if err := d.check(y, fmt.Sprintf("$.robots.'%s'", name)); err != nil {
			return err
		}
	}
	return nil
}

func (d Deployment) check(y *layout.YAML, at string) error {
	var s state.Step
	d.set(&s)
	return s.CheckPolicy(y, at)
}

// crossCheckDeployment refuses steps and robots that there are not: a slip of the pen
// would leave a step as it was.
func (k *checker) crossCheckDeployment(y *layout.YAML, s *Settings, defs map[string]*state.Definition) error {
	for _, key := range slices.Sorted(maps.Keys(s.Steps)) {
		workflow, step, slash := strings.Cut(key, "/")
		if slash && !anyStep(defs, func(w string, s *state.Step) bool { return s.Name == step && (workflow == "" || w == workflow) }) {
			return y.Errorf(fmt.Sprintf("$.steps.'%s'", key), "no workflow in workflows/ has %q", key)
		}
		if err := refuseSecrets(y, fmt.Sprintf("$.steps.'%s'", key), s.Steps[key].Env); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Robots)) {
		if _, built := k.robots[layout.Name(name)]; !built && !anyStep(defs, func(_ string, s *state.Step) bool { return RobotOf(s) == name }) {
			return y.Errorf(fmt.Sprintf("$.robots.'%s'", name), "no built-in robot %q, and no step has a program of that name", name)
		}
		if err := refuseSecrets(y, fmt.Sprintf("$.robots.'%s'", name), s.Robots[name].Env); err != nil {
			return err
		}
	}
	return nil
}

func anyStep(defs map[string]*state.Definition, is func(workflow string, s *state.Step) bool) bool {
	for _, d := range defs {
		if slices.ContainsFunc(d.Steps, func(s state.Step) bool { return is(d.Name, &s) }) {
			return true
		}
	}
	return false
}

// Deployed gives a step as the settings in force have it; see Settings.Deployed.
func (so *Source) Deployed(workflow string, step *state.Step) *state.Step {
	return so.Current().Settings.Deployed(workflow, step)
}

// crossCheckPlacements refuses a step that there is not, and one that must stay here.
func (k *checker) crossCheckPlacements(y *layout.YAML, s *Settings, defs map[string]*state.Definition) error {
	for _, key := range slices.Sorted(maps.Keys(s.Workers.Steps)) {
		workflow, step, _ := strings.Cut(key, "/")
		at, found := fmt.Sprintf("$.workers.steps.'%s'", key), false
		for _, d := range defs {
			for i := range d.Steps {
				if d.Steps[i].Name != step || workflow != "" && d.Name != workflow {
					continue
				}
				found = true
				if why := StaysHere(&d.Steps[i], k.robots, Asks{}); why != "" {
					return y.Errorf(at, "%s/%s is done on the engine's machine: %s", d.Name, step, why)
				}
			}
		}
		if !found {
			return y.Errorf(at, "no workflow in workflows/ has %q", key)
		}
	}
	return nil
}
