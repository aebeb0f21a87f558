package state

import (
	"cmp"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"bagpipe/layout"
)

// The rules are: what cannot be read is refused always; what a person should not
// write (keys that conflict, a robot that is not there) is refused in a file that
// is edited, and not in a pinned one, which items rely on.

func (d *Definition) check(file string, y *layout.YAML, robots Robots) error {
	d.pinned = robots == nil
	if d.Schema != definitionSchema {
		return y.Errorf("$.schema", "expected schema: %d", definitionSchema)
	}
	if _, err := layout.ParseName(d.Name); err != nil {
		return y.Errorf("$.name", "%v", err)
	}
	if want := strings.TrimSuffix(filepath.Base(file), ".yaml"); d.Name != want && filepath.Base(filepath.Dir(file)) == layout.WorkflowsDir {
		return y.Errorf("$.name", "expected %q, the file's name", want)
	}
	if d.InFlight < 0 {
		return y.Errorf("$.inFlight", "expected a number from 0 (no limit) up")
	}
	if d.AfterFailure != "" && d.AfterFailure != StopAll && d.AfterFailure != Independent {
		return y.Errorf("$.afterFailure", "expected %s or %s", StopAll, Independent)
	}
	if err := d.Alert.check(y); err != nil {
		return err
	}
	if len(d.Steps) == 0 {
		return y.Errorf("$.steps", "expected at least one step")
	}
	seen := map[string]bool{}
	for i := range d.Steps {
		s := &d.Steps[i]
		at := fmt.Sprintf("$.steps[%d]", i)
		if _, err := layout.ParseName(s.Name); err != nil {
			return y.Errorf(at+".name", "%v", err)
		}
		if seen[s.Name] {
			return y.Errorf(at+".name", "step %q is there twice", s.Name)
		}
		seen[s.Name] = true
		if err := s.check(y, at, d.Name, i == 0, robots); err != nil {
			return err
		}
	}
	if err := d.link(y); err != nil {
		return err
	}
	return d.checkRoutes(y)
}

// checkRoutes wants each step that is chosen to require the step that chooses it.
func (d *Definition) checkRoutes(y *layout.YAML) error {
	for i := range d.Steps {
		s := &d.Steps[i]
		at := fmt.Sprintf("$.steps[%d].choose", i)
		if s.Choose != nil && s.Command == nil {
			return y.Errorf(at, "choose is for steps with command")
		}
		if s.Choose != nil && len(s.Choose) == 0 {
			return y.Errorf(at, "expected the steps to choose from: [STEP, …]")
		}
		for n, name := range s.Choose {
			if j := d.index(name); j < 0 || !slices.Contains(d.local[j], i) {
				return y.Errorf(fmt.Sprintf("%s[%d]", at, n), "expected a step that requires %q; %q does not", s.Name, name)
			}
			if slices.Index(s.Choose, name) < n {
				return y.Errorf(fmt.Sprintf("%s[%d]", at, n), "step %q is there twice", name)
			}
		}
	}
	return nil
}

func (a *Alert) check(y *layout.YAML) error {
	if a == nil {
		return nil
	}
	if (a.URL == "") == (a.Command == nil) {
		return y.Errorf("$.alert", "expected exactly one of command, url")
	}
	if a.Command != nil && (len(a.Command) == 0 || a.Command[0] == "") {
		return y.Errorf("$.alert.command", "expected a program and its arguments: [PROGRAM, ARGUMENT, …]")
	}
	if u, err := url.Parse(a.URL); a.URL != "" && (err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "") {
		return y.Errorf("$.alert.url", "expected an address that begins with http:// or https://")
	}
	return nil
}

func (s *Step) check(y *layout.YAML, at, workflow string, first bool, robots Robots) error {
	ways := 0
	for _, has := range []bool{s.Robot != "", s.Command != nil, s.Manual, s.External, s.Starts != ""} {
		if has {
			ways++
		}
	}
	switch {
	case first && ways > 0:
		return y.Errorf(at, "the first step is completed by starting the workflow: expected no robot, command, manual, external or starts")
	case first && (s.When != nil || s.NotBefore != nil):
		return y.Errorf(at, "the first step is completed by starting the workflow: expected no when or notBefore")
	case !first && ways != 1:
		return y.Errorf(at, "step %q: expected exactly one of robot, command, manual: true, external: true, starts", s.Name)
	case s.Command != nil && (len(s.Command) == 0 || s.Command[0] == ""):
		return y.Errorf(at+".command", "expected a program and its arguments: [PROGRAM, ARGUMENT, …]")
	case s.WarmUp != nil && s.Command == nil:
		return y.Errorf(at+".warmUp", "warmUp is for steps with command")
	case s.WarmUp != nil && (len(s.WarmUp) == 0 || s.WarmUp[0] == ""):
		return y.Errorf(at+".warmUp", "expected a program and its arguments: [PROGRAM, ARGUMENT, …]")
	case s.Persistent && s.Command == nil:
		return y.Errorf(at+".persistent", "persistent is for steps with command")
	case s.Batch != 0 && !s.Persistent:
		return y.Errorf(at+".batch", "batch is for steps with persistent: true")
	case s.Batch < 0 || s.Batch > 1000:
		return y.Errorf(at+".batch", "expected 1 to 1000")
	case s.Needs != "" && s.Needs != NeedsContent:
		return y.Errorf(at+".needs", "expected %s", NeedsContent)
	case first && s.Needs != "":
		return y.Errorf(at+".needs", "the first step is completed by starting the workflow: it needs nothing")
	case s.Env != nil && s.Command == nil:
		return y.Errorf(at+".env", "env is for steps with command")
	case s.Premis != "" && layout.PremisTerms()[s.Premis] == "":
		return y.Errorf(at+".premis", "expected a term of the Library of Congress for events, as migration or quarantine, not %q", s.Premis)
	case s.OnRequest && !s.Manual:
		return y.Errorf(at+".onRequest", "onRequest is for steps with manual: true")
	}
	for key, name := range map[string]string{"milestone": s.Milestone, "starts": s.Starts} {
		if _, err := layout.ParseName(name); name != "" && err != nil {
			return y.Errorf(at+"."+key, "%v", err)
		}
	}
	for i := range s.When {
		at := fmt.Sprintf("%s.when[%d]", at, i)
		if err := s.When[i].Check(y, at); err != nil {
			return err
		}
		if robots == nil {
			continue
		}
		if err := s.When[i].CheckQuality(y, at); err != nil {
			return err
		}
	}
	if err := s.CheckPolicy(y, at); err != nil || robots == nil {
		return err
	}
	if s.Starts != "" && s.Starts == workflow {
		return y.Errorf(at+".starts", "workflow %q would start itself; a person may start it anew", workflow)
	}
	if err := s.checkConflicts(y, at, first); err != nil {
		return err
	}
	return s.checkRobot(y, at, robots)
}

// CheckPolicy refuses values no policy can have; its errors are *layout.FileError.
func (s *Step) CheckPolicy(y *layout.YAML, at string) error {
	if s.Retries < 0 || s.Retries > 1000 {
		return y.Errorf(at+".retries", "expected 0 to 1000")
	}
	for key, n := range map[string]int{"instances": s.Instances, "limit": s.Limit, "poolSize": s.PoolSize, "prefetch": s.Prefetch} {
		if n < 0 {
			return y.Errorf(at+"."+key, "expected a number from 0 (no limit) up")
		}
	}
	for name := range s.Env {
		if name == "" || strings.ContainsAny(name, "=\x00") || strings.HasPrefix(name, "BAGPIPE_") {
			return y.Errorf(at+".env", "%q cannot be set; BAGPIPE_… is for what the engine tells", name)
		}
	}
	if s.Siblings != "" && s.Siblings != SiblingsGoOn && s.Siblings != SiblingsStop {
		return y.Errorf(at+".siblings", "expected %s or %s", SiblingsGoOn, SiblingsStop)
	}
	if f := s.OnChildFailure; f != "" && f != ChildTell && f != ChildFail && f != ChildSkip {
		return y.Errorf(at+".onChildFailure", "expected %s, %s or %s", ChildTell, ChildFail, ChildSkip)
	}
	if b := s.Backoff; b != nil && b.First > 0 && b.Most > 0 && b.Most < b.First {
		return y.Errorf(at+".backoff.most", "expected at least first")
	}
	t := s.Threshold
	switch {
	case t == nil:
	case t.Count < 0 || t.Window < 0:
		return y.Errorf(at+".threshold", "expected count and window from 0 up")
	case t.Window > 0 && t.Count > t.Window:
		return y.Errorf(at+".threshold.count", "%d failures cannot be among the last %d", t.Count, t.Window)
	case t.Action != ActionDisable && t.Action != ActionTerminate:
		return y.Errorf(at+".threshold.action", "expected %s or %s", ActionDisable, ActionTerminate)
	case t.Per != "" && t.Per != PerInstance && t.Per != PerEngine && t.Per != PerWorkspace:
		return y.Errorf(at+".threshold.per", "expected %s, %s or %s", PerInstance, PerEngine, PerWorkspace)
	}
	return nil
}

// checkConflicts refuses keys that say nothing, or the contrary, beside others.
func (s *Step) checkConflicts(y *layout.YAML, at string, first bool) error {
	robot := s.HasRobot()
	for _, k := range []struct {
		key string
		has bool
	}{
		{"timeout", s.Timeout > 0}, {"retries", s.Retries > 0}, {"backoff", s.Backoff != nil}, {"with", s.With != nil},
		{"threshold", s.Threshold != nil}, {"instances", s.Instances > 0}, {"limit", s.Limit > 0},
		{"parentLast", s.ParentLast}, {"siblings", s.Siblings != ""}, {"onChildFailure", s.OnChildFailure != ""}, {"poolSize", s.PoolSize > 0}, {"keepInputs", s.KeepInputs},
		{"prefetch", s.Prefetch > 0},
	} {
		if outside := s.Manual && (k.key == "retries" || k.key == "backoff"); outside { // a program may do it
			continue
		}
		if k.has && !robot {
			return y.Errorf(at+"."+k.key, "%s is for steps with robot or command", k.key)
		}
	}
	switch {
	case first && (s.Optional || s.ContinueOnFailure != "" || s.OnBatchComplete):
		return y.Errorf(at, "the first step is completed by starting the workflow: expected no optional, continueOnFailure or onBatchComplete")
	case s.WaitForFailed && !s.OnBatchComplete:
		return y.Errorf(at+".waitForFailed", "waitForFailed is for steps with onBatchComplete: true")
	case s.OnChildFailure != "" && !s.ParentLast:
		return y.Errorf(at+".onChildFailure", "onChildFailure is for steps with parentLast: true")
	case (s.ContinueOnFailure == ContinueAsk) != (s.OnError != nil):
		return y.Errorf(at, "continueOnFailure: ask and onError, the program that is asked, go together")
	case s.OnError != nil && !robot:
		return y.Errorf(at+".onError", "onError is for steps with robot or command")
	case s.OnError != nil && (len(s.OnError) == 0 || s.OnError[0] == ""):
		return y.Errorf(at+".onError", "expected a program and its arguments")
	case s.Optional && s.ContinueOnFailure != "":
		return y.Errorf(at+".continueOnFailure", "optional: true says that already")
	case s.Backoff != nil && s.Retries == 0:
		return y.Errorf(at+".backoff", "backoff is for steps with retries")
	case s.CoolDown > 0 && (s.Threshold == nil || s.Threshold.Action != ActionDisable):
		return y.Errorf(at+".coolDown", "coolDown is for steps with threshold: {action: %s}", ActionDisable)
	}
	return nil
}

func (s *Step) checkRobot(y *layout.YAML, at string, robots Robots) error {
	if s.Robot == "" {
		return nil
	}
	robot, ok := robots(s.Robot)
	if !ok {
		return y.Errorf(at+".robot", "no built-in robot %q", s.Robot)
	}
	for name := range s.With {
		if !slices.Contains(robot.Parameters, name) {
			return y.Errorf(at+".with."+name, "robot %s takes no parameter %q; it takes: %s", s.Robot, name, cmp.Or(strings.Join(robot.Parameters, ", "), "none"))
		}
	}
	if key := s.childKey(); robot.Childless && key != "" {
		return y.Errorf(at+"."+key, "%s is for steps that make children; robot %s makes none", key, s.Robot)
	}
	if robot.Check == nil {
		return nil
	}
	if parameter, err := robot.Check(s.With); err != nil {
		return y.Errorf(at+".with."+parameter, "%v", err)
	}
	return nil
}

// childKey is the first key given that says how children are dealt with.
func (s *Step) childKey() string {
	switch {
	case s.ParentLast:
		return "parentLast"
	case s.Siblings != "":
		return "siblings"
	case s.OnChildFailure != "":
		return "onChildFailure"
	case s.PoolSize > 0:
		return "poolSize"
	}
	return ""
}
