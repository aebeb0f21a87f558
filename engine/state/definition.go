package state

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"bagpipe/layout"
)

const definitionSchema = 1

// Definition is a workflow as written in workflows/NAME.yaml.
type Definition struct {
	Schema      int    `yaml:"schema"`
	Name        string `yaml:"name"`
	Description string `yaml:"description"`
	Steps       []Step `yaml:"steps"`

	// Digest is sha256:HEX of the file's bytes; it names the pinned copy.
	Digest string `yaml:"-"`
}

// Step is one step of a definition.
type Step struct {
	Name        string          `yaml:"name"`
	Description string          `yaml:"description"`
	Milestone   string          `yaml:"milestone"`
	Robot       string          `yaml:"robot"`
	Command     []string        `yaml:"command"`
	Manual      bool            `yaml:"manual"`
	OnRequest   bool            `yaml:"onRequest"` // manual, and only where the collection's approvals list it
	Requires    *[]string       `yaml:"requires"`  // absent: the step before; empty: starts at once
	Optional    bool            `yaml:"optional"`
	Timeout     layout.Duration `yaml:"timeout"` // 0: none
	Retries     int             `yaml:"retries"` // of system failures, by itself
	With        map[string]any  `yaml:"with"`
}

// Robots tells whether there is a built-in robot of that name, and which
// parameters it takes under with:.
type Robots func(robot string) (parameters []string, ok bool)

// ParseDefinition reads and checks a definition. robots nil takes any, as for a
// pinned one, whose robot may have gone since. Its errors are *layout.FileError
// and name line and column.
func ParseDefinition(file string, data []byte, robots Robots) (*Definition, error) {
	y, err := layout.ParseYAML(file, data)
	if err != nil {
		return nil, err
	}
	var d Definition
	if err := y.Decode(&d); err != nil {
		return nil, err
	}
	if err := d.check(file, y, robots); err != nil {
		return nil, err
	}
	sum := sha256.Sum256(data)
	d.Digest = "sha256:" + hex.EncodeToString(sum[:])
	return &d, nil
}

func (d *Definition) check(file string, y *layout.YAML, robots Robots) error {
	if d.Schema != definitionSchema {
		return y.Errorf("$.schema", "expected schema: %d", definitionSchema)
	}
	if _, err := layout.ParseName(d.Name); err != nil {
		return y.Errorf("$.name", "%v", err)
	}
	if want := strings.TrimSuffix(filepath.Base(file), ".yaml"); d.Name != want && filepath.Base(filepath.Dir(file)) == layout.WorkflowsDir {
		return y.Errorf("$.name", "expected %q, the file's name", want)
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
		if err := s.check(y, at, i == 0, robots); err != nil {
			return err
		}
	}
	return d.checkRequires(y)
}

func (s *Step) check(y *layout.YAML, at string, first bool, robots Robots) error {
	ways := 0
	for _, has := range []bool{s.Robot != "", s.Command != nil, s.Manual} {
		if has {
			ways++
		}
	}
	switch {
	case first && ways > 0:
		return y.Errorf(at, "the first step is completed by starting the workflow: expected no robot, command or manual")
	case !first && ways != 1:
		return y.Errorf(at, "step %q: expected exactly one of robot, command, manual: true", s.Name)
	case s.Command != nil && (len(s.Command) == 0 || s.Command[0] == ""):
		return y.Errorf(at+".command", "expected a program and its arguments: [PROGRAM, ARGUMENT, …]")
	case s.OnRequest && !s.Manual:
		return y.Errorf(at+".onRequest", "onRequest is for steps with manual: true")
	case s.Retries < 0 || s.Retries > 1000:
		return y.Errorf(at+".retries", "expected 0 to 1000")
	case s.Milestone != "":
		if _, err := layout.ParseName(s.Milestone); err != nil {
			return y.Errorf(at+".milestone", "%v", err)
		}
	}
	if s.Robot == "" || robots == nil {
		return nil
	}
	parameters, ok := robots(s.Robot)
	if !ok {
		return y.Errorf(at+".robot", "no built-in robot %q", s.Robot)
	}
	for name := range s.With {
		if !slices.Contains(parameters, name) {
			return y.Errorf(at+".with."+name, "robot %s takes no parameter %q; it takes: %s", s.Robot, name, cmp.Or(strings.Join(parameters, ", "), "none"))
		}
	}
	return nil
}

func (d *Definition) checkRequires(y *layout.YAML) error {
	for i, s := range d.Steps {
		if s.Requires == nil {
			continue
		}
		at := fmt.Sprintf("$.steps[%d].requires", i)
		if i == 0 && len(*s.Requires) > 0 {
			return y.Errorf(at, "the first step requires nothing")
		}
		for j, r := range *s.Requires {
			if r == s.Name {
				return y.Errorf(fmt.Sprintf("%s[%d]", at, j), "step %q requires itself", r)
			}
			if d.index(r) < 0 {
				return y.Errorf(fmt.Sprintf("%s[%d]", at, j), "no step %q in this workflow", r)
			}
		}
	}
	if loop := d.findLoop(); loop >= 0 {
		return y.Errorf(fmt.Sprintf("$.steps[%d].requires", loop), "step %q waits for itself through what it requires", d.Steps[loop].Name)
	}
	return nil
}

// findLoop gives the index of a step that reaches itself, or -1.
func (d *Definition) findLoop() int {
	const visiting, done = 1, 2
	mark := make([]int, len(d.Steps))
	var visit func(i int) bool
	visit = func(i int) bool {
		switch mark[i] {
		case visiting:
			return true
		case done:
			return false
		}
		mark[i] = visiting
		for _, r := range d.Prerequisites(i) {
			if visit(r) {
				return true
			}
		}
		mark[i] = done
		return false
	}
	for i := range d.Steps {
		if visit(i) {
			return i
		}
	}
	return -1
}

func (d *Definition) index(step string) int {
	return slices.IndexFunc(d.Steps, func(s Step) bool { return s.Name == step })
}

// Step finds a step by name; nil when there is none.
func (d *Definition) Step(name layout.Name) *Step {
	if i := d.index(string(name)); i >= 0 {
		return &d.Steps[i]
	}
	return nil
}

// Prerequisites are the indices of the steps that step i needs.
func (d *Definition) Prerequisites(i int) []int {
	s := d.Steps[i]
	switch {
	case i == 0:
		return nil
	case s.Requires == nil:
		return []int{i - 1}
	}
	out := make([]int, len(*s.Requires))
	for j, r := range *s.Requires {
		out[j] = d.index(r)
	}
	return out
}
