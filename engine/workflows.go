package engine

import (
	"fmt"

	"bagpipe/engine/state"
)

// WorkflowRow is one definition in force.
type WorkflowRow struct {
	Name        string   `json:"name"`
	Description string   `json:"description"`
	Digest      string   `json:"digest"`
	Steps       []string `json:"steps"`
}

// WorkflowList lists the definitions in force by name.
func (e *Engine) WorkflowList() []WorkflowRow {
	c := e.current()
	rows := []WorkflowRow{}
	for _, name := range e.Workflows() {
		d := c.workflows[name].def
		row := WorkflowRow{Name: d.Name, Description: d.Description, Digest: d.Digest}
		for i := range d.Steps {
			row.Steps = append(row.Steps, d.Steps[i].Name)
		}
		rows = append(rows, row)
	}
	return rows
}

// WorkflowText gives a definition in force as it is written.
func (e *Engine) WorkflowText(name string) ([]byte, *state.Definition, error) {
	w := e.current().workflows[name]
	if w == nil {
		return nil, nil, fmt.Errorf("no workflow %q; bagpipe workflow list shows them", name)
	}
	return w.data, w.def, nil
}
