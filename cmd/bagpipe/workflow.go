package main

import (
	"fmt"
	"os"
	"strings"

	"bagpipe/engine"
	"bagpipe/engine/state"
	"bagpipe/steps"
)

type workflowCmd struct {
	List  workflowListCmd  `cmd:"" help:"List the definitions in force."`
	Show  workflowShowCmd  `cmd:"" help:"Print a definition as it is in force."`
	Check workflowCheckCmd `cmd:"" help:"Tell what is wrong with a definition; needs no workspace."`
}

type workflowListCmd struct {
	JSON bool `name:"json" help:"Print JSON."`
}

func (c *workflowListCmd) Run(a *app) error {
	return a.with(func(e *engine.Engine) error {
		rows := e.WorkflowList()
		if c.JSON {
			return a.json(rows)
		}
		t := newTable("workflow", "steps", "description")
		for _, r := range rows {
			t.row(r.Name, strings.Join(r.Steps, " → "), r.Description)
		}
		return t.print(a.out)
	})
}

type workflowShowCmd struct {
	Name string `arg:"" help:"The workflow's name."`
}

func (c *workflowShowCmd) Run(a *app) error {
	return a.with(func(e *engine.Engine) error {
		text, _, err := e.WorkflowText(c.Name)
		if err != nil {
			return err
		}
		_, err = a.out.Write(text)
		return err
	})
}

type workflowCheckCmd struct {
	File string `arg:"" help:"A definition, such as workflows/accession.yaml."`
}

func (c *workflowCheckCmd) Run(a *app) error {
	data, err := os.ReadFile(c.File)
	if err != nil {
		return err
	}
	d, err := state.ParseDefinition(c.File, data, engine.Known(steps.Builtins()))
	if err != nil {
		return err
	}
	fmt.Fprintf(a.out, "%s: valid: workflow %s, %d steps\n", c.File, d.Name, len(d.Steps))
	return nil
}
