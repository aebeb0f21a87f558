package queue

import (
	"fmt"
	"slices"
	"strings"

	"bagpipe/engine/condition"
	"bagpipe/layout"
)

const namedSchema = 1

// Named is a queue that somebody gave a name: queues/NAME.yaml.
type Named struct {
	Schema      int      `yaml:"schema"`
	Name        string   `yaml:"name"`
	Description string   `yaml:"description"`
	Steps       []string `yaml:"steps"` // WORKFLOW/STEP, /STEP or WORKFLOW; none: every step
	Where       string   `yaml:"where"`
	Order       []string `yaml:"order"` // paths; -PATH: the highest first
	Limit       int      `yaml:"limit"` // of the list, and of what a run does; 0: all

	where *condition.Where
}

// ParseNamed reads and checks a named queue; its errors are *layout.FileError.
func ParseNamed(file string, data []byte) (*Named, error) {
	y, err := layout.ParseYAML(file, data)
	if err != nil {
		return nil, err
	}
	q := &Named{}
	if err := y.Decode(q); err != nil {
		return nil, err
	}
	if q.Schema != namedSchema {
		return nil, y.Errorf("$.schema", "expected schema: %d", namedSchema)
	}
	if _, err := layout.ParseName(q.Name); err != nil {
		return nil, y.Errorf("$.name", "%v", err)
	}
	if strings.TrimSuffix(file[strings.LastIndexByte(file, '/')+1:], ".yaml") != q.Name {
		return nil, y.Errorf("$.name", "expected the file's name without .yaml, not %q", q.Name)
	}
	for i, s := range q.Steps {
		if _, err := ParseSteps(s); err != nil {
			return nil, y.Errorf(fmt.Sprintf("$.steps[%d]", i), "%v", err)
		}
	}
	if q.Where != "" {
		if q.where, err = condition.Parse(q.Where); err != nil {
			return nil, y.Errorf("$.where", "where: %v", err)
		}
	}
	for i, o := range q.Order {
		if condition.CheckPath(strings.TrimPrefix(o, "-")) != nil {
			return nil, y.Errorf(fmt.Sprintf("$.order[%d]", i), "expected a path such as created or -metadata.year, not %q", o)
		}
	}
	if q.Limit < 0 {
		return nil, y.Errorf("$.limit", "expected a number from 0 (all) up")
	}
	return q, nil
}

// Condition is what the queue asks of an item; nil: nothing.
func (q *Named) Condition() *condition.Where { return q.where }

// Whole reports whether the queue is of whole steps, in the usual order: what a schedule can
// work on beside everything else.
func (q *Named) Whole() bool { return q.where == nil && len(q.Order) == 0 && len(q.Steps) > 0 }

// Paths are those that the queue's condition and order ask for.
func (q *Named) Paths() []string {
	paths := slices.Clone(q.where.Paths())
	for _, o := range q.Order {
		paths = append(paths, strings.TrimPrefix(o, "-"))
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}

// Wants reports whether the queue is of a step.
func (q *Named) Wants(s StepID) bool {
	return len(q.Steps) == 0 || slices.ContainsFunc(q.Steps, func(text string) bool {
		steps, err := ParseSteps(text)
		return err == nil && steps.Has(s)
	})
}

// Steps is a step of a workflow, of every workflow, or all of a workflow's.
type Steps StepID

// ParseSteps reads WORKFLOW/STEP, /STEP or WORKFLOW.
func ParseSteps(s string) (Steps, error) {
	workflow, step, _ := strings.Cut(s, "/")
	out := Steps{Workflow: workflow, Step: layout.Name(step)}
	for _, name := range []string{workflow, step} {
		if name == "" {
			continue
		}
		if _, err := layout.ParseName(name); err != nil {
			return out, fmt.Errorf("expected WORKFLOW/STEP, /STEP or WORKFLOW, not %q", s)
		}
	}
	if workflow == "" && step == "" {
		return out, fmt.Errorf("expected WORKFLOW/STEP, /STEP or WORKFLOW, not %q", s)
	}
	return out, nil
}

// Has reports whether a step is one of them.
func (s Steps) Has(id StepID) bool {
	return (s.Workflow == "" || s.Workflow == id.Workflow) && (s.Step == "" || s.Step == id.Step)
}
