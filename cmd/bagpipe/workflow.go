package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"bagpipe/cmd/bagpipe/internal/screen"
	"bagpipe/engine"
	"bagpipe/engine/settings"
	"bagpipe/engine/state"
	"bagpipe/layout"
	"bagpipe/steps"
	"bagpipe/templates"
)

type workflowCmd struct {
	List  workflowListCmd  `cmd:"" default:"withargs" help:"List the definitions in force."`
	Show  workflowShowCmd  `cmd:"" help:"Print a definition as it is in force."`
	Check workflowCheckCmd `cmd:"" help:"Check a definition; needs no workspace."`
	Graph workflowGraphCmd `cmd:"" help:"Draw a definition, for Mermaid or Graphviz."`

	Migrate    workflowMigrateCmd    `cmd:"" help:"Move items to the definition in force."`
	Deactivate workflowDeactivateCmd `cmd:"" help:"Take a workflow of an item out of all queues."`
	Activate   workflowActivateCmd   `cmd:"" help:"Let a workflow go on that is inactive, or was stopped by an internal error."`
	Schema     workflowSchemaCmd     `cmd:"" help:"Print the JSON Schema of definitions; needs no workspace."`
}

type workflowListCmd struct {
	JSON bool `name:"json" help:"Print JSON."`
}

func (c *workflowListCmd) Run(ctx context.Context, a *app) error {
	return a.with(ctx, func(e *engine.Engine) error {
		rows := e.Ask.WorkflowList()
		if c.JSON {
			return a.JSON(rows)
		}
		t := screen.NewTable("workflow", "steps", "description")
		for _, r := range rows {
			t.Row(r.Name, strings.Join(r.Steps, " → "), r.Description)
		}
		return t.Print(a.Out)
	})
}

type workflowShowCmd struct {
	Name string `arg:"" help:"The workflow's name."`
	JSON bool   `name:"json" help:"Print JSON: the name, the digest and the text."`
}

func (c *workflowShowCmd) Run(ctx context.Context, a *app) error {
	return a.with(ctx, func(e *engine.Engine) error {
		text, d, err := e.Ask.WorkflowText(c.Name)
		if err != nil {
			return err
		}
		if c.JSON {
			return a.JSON(map[string]string{"name": d.Name, "digest": d.Digest, "text": string(text)})
		}
		_, err = a.Out.Write(text)
		return err
	})
}

type workflowCheckCmd struct {
	File string `arg:"" help:"A definition, such as workflows/accession.yaml, or the name of one of the workspace."`
	JSON bool   `name:"json" help:"Print JSON."`
}

// checked is what a check found.
type checked struct {
	File     string   `json:"file"`
	Valid    bool     `json:"valid"`
	Workflow string   `json:"workflow,omitempty"`
	Steps    []string `json:"steps,omitempty"`
	Warnings []string `json:"warnings,omitempty"`
	found
}

// found is what is wrong with a file, and where.
type found struct {
	Error  string `json:"error,omitempty"`
	Line   int    `json:"line,omitempty"`
	Column int    `json:"column,omitempty"`
}

func foundIn(wrong error) found {
	var fe *layout.FileError
	if errors.As(wrong, &fe) {
		return found{fe.Text, fe.Line, fe.Column}
	}
	return found{Error: wrong.Error()}
}

func (c *workflowCheckCmd) Run(a *app) error {
	data, err := os.ReadFile(c.File)
	if errors.Is(err, fs.ErrNotExist) && filepath.Base(c.File) == c.File {
		if root, found := engine.Find(a.workspaceDir()); found == nil {
			named := filepath.Join(root, layout.WorkflowsDir, c.File+".yaml")
			if of, errNamed := os.ReadFile(named); errNamed == nil {
				c.File, data, err = named, of, nil
			} else if !strings.Contains(c.File, ".") {
				return fmt.Errorf("there is no file %s, and no workflow of that name in %s", layout.EncodePath(c.File), layout.EncodePath(filepath.Dir(named)))
			}
		}
	}
	if err != nil {
		return err
	}
	d, err := c.parse(data)
	if c.JSON {
		return c.printJSON(a, d, err)
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(a.Out, "%s: valid: workflow %s, %s\n", c.File, d.Name, screen.Count(len(d.Steps), "step"))
	for _, w := range c.warnings(d) {
		a.Talk("warning: %s: %s", c.File, w)
	}
	return nil
}

// warnings tells what is allowed and hardly meant; of a file in a folder workflows, by the
// settings beside that folder.
func (c *workflowCheckCmd) warnings(d *state.Definition) []string {
	file, err := filepath.Abs(c.File)
	if err != nil || filepath.Base(filepath.Dir(file)) != layout.WorkflowsDir {
		return settings.PoolWarnings(new(settings.Settings), d, nil)
	}
	return settings.PoolWarningsIn(filepath.Dir(filepath.Dir(file)), d, steps.Builtins())
}

// parse reads the definition by the name its file has in the file system, as a file in
// a folder workflows must be called as the workflow, also when it is checked from there.
func (c *workflowCheckCmd) parse(data []byte) (*state.Definition, error) {
	file, err := filepath.Abs(c.File)
	if err != nil {
		return nil, err
	}
	d, err := state.ParseDefinition(file, data, settings.Known(steps.Builtins()))
	if err == nil && filepath.Base(filepath.Dir(file)) == layout.WorkflowsDir {
		err = checkStarts(file, data, d)
	}
	var fe *layout.FileError
	if errors.As(err, &fe) {
		fe.File = c.File
	}
	return d, err
}

// checkStarts wants the workflows that a definition's steps start beside it.
func checkStarts(file string, data []byte, d *state.Definition) error {
	for i := range d.Steps {
		starts := d.Steps[i].Starts
		if starts == "" {
			continue
		}
		other := filepath.Join(filepath.Dir(file), starts+".yaml")
		if _, err := os.Stat(other); !errors.Is(err, fs.ErrNotExist) {
			continue
		}
		y, err := layout.ParseYAML(file, data)
		if err != nil {
			return err
		}
		return y.Errorf(fmt.Sprintf("$.steps[%d].starts", i), "no workflow %q beside this one", starts)
	}
	return nil
}

func (c *workflowCheckCmd) printJSON(a *app, d *state.Definition, wrong error) error {
	out := checked{File: c.File, Valid: wrong == nil}
	if wrong != nil {
		out.found = foundIn(wrong)
		return errors.Join(a.JSON(out), screen.ExitError)
	}
	out.Workflow = d.Name
	for i := range d.Steps {
		out.Steps = append(out.Steps, d.Steps[i].Name)
	}
	out.Warnings = c.warnings(d)
	return a.JSON(out)
}

type workflowGraphCmd struct {
	Name   string `arg:"" help:"The workflow's name."`
	Format string `enum:"mermaid,dot" default:"mermaid" help:"mermaid, or dot for Graphviz."`
	JSON   bool   `name:"json" help:"Print JSON: the name, the format and the text."`
}

func (c *workflowGraphCmd) Run(ctx context.Context, a *app) error {
	return a.with(ctx, func(e *engine.Engine) error {
		text, err := e.Ask.WorkflowGraph(c.Name, c.Format)
		if err != nil {
			return err
		}
		if c.JSON {
			return a.JSON(map[string]string{"name": c.Name, "format": c.Format, "text": text})
		}
		_, err = fmt.Fprint(a.Out, text)
		return err
	})
}

type workflowSchemaCmd struct{}

func (c *workflowSchemaCmd) Run(a *app) error {
	_, err := a.Out.Write(templates.WorkflowSchema())
	return err
}
