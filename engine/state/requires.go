package state

import (
	"fmt"
	"strings"

	"bagpipe/layout"
)

// Ref names a step of another workflow of the same item.
type Ref struct {
	Workflow string // the definition's name
	Step     layout.Name
}

func (r Ref) String() string { return r.Workflow + "/" + string(r.Step) }

// link resolves what each step requires.
func (d *Definition) link(y *layout.YAML) error {
	d.local, d.foreign = make([][]int, len(d.Steps)), make([][]Ref, len(d.Steps))
	for i := range d.Steps {
		if err := d.linkStep(y, i); err != nil {
			return err
		}
	}
	if loop := d.findLoop(); loop >= 0 {
		return y.Errorf(fmt.Sprintf("$.steps[%d].requires", loop), "step %q waits for itself through what it requires", d.Steps[loop].Name)
	}
	return nil
}

func (d *Definition) linkStep(y *layout.YAML, i int) error {
	s := &d.Steps[i]
	switch {
	case s.Requires == nil && i > 0:
		d.local[i] = []int{i - 1}
		return nil
	case s.Requires == nil:
		return nil
	case i == 0 && len(*s.Requires) > 0:
		return y.Errorf("$.steps[0].requires", "the first step requires nothing")
	}
	seen := map[string]bool{}
	for j, name := range *s.Requires {
		at := fmt.Sprintf("$.steps[%d].requires[%d]", i, j)
		if seen[name] && !d.pinned {
			return y.Errorf(at, "%q is there twice", name)
		}
		seen[name] = true
		workflow, step, foreign := strings.Cut(name, "/")
		switch {
		case foreign && workflow == d.Name:
			return y.Errorf(at, "%q is a step of this workflow: write %q", name, step)
		case foreign:
			ref, err := parseRef(workflow, step)
			if err != nil {
				return y.Errorf(at, "expected STEP or WORKFLOW/STEP: %v", err)
			}
			d.foreign[i] = append(d.foreign[i], ref)
		case name == s.Name:
			return y.Errorf(at, "step %q requires itself", name)
		case d.index(name) < 0:
			return y.Errorf(at, "no step %q in this workflow; a step of another one is WORKFLOW/STEP", name)
		default:
			d.local[i] = append(d.local[i], d.index(name))
		}
	}
	return nil
}

func parseRef(workflow, step string) (Ref, error) {
	if _, err := layout.ParseName(workflow); err != nil {
		return Ref{}, err
	}
	name, err := layout.ParseName(step)
	return Ref{Workflow: workflow, Step: name}, err
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
		for _, r := range d.local[i] {
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
