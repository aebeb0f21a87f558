package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"bagpipe/cmd/bagpipe/internal/screen"
	"bagpipe/engine"
	"bagpipe/engine/settings"
	"bagpipe/templates"
)

type rulesCmd struct {
	List    rulesListCmd    `cmd:"" default:"withargs" help:"List the rules in force, in the order in which they are asked."`
	Check   rulesCheckCmd   `cmd:"" help:"Check rule files; in a workspace also that the collections, workflows and lanes they name are there. Exit code 1: one is broken."`
	Shipped rulesShippedCmd `cmd:"" help:"Print a rule file that comes with Bagpipe, or list them; needs no workspace."`
	Schema  rulesSchemaCmd  `cmd:"" help:"Print the JSON Schema of rule files; needs no workspace."`
}

type rulesListCmd struct {
	JSON bool `name:"json" help:"Print JSON."`
}

func (c *rulesListCmd) Run(ctx context.Context, a *app) error {
	return a.with(ctx, func(e *engine.Engine) error {
		rows := e.Ask.RuleList()
		if c.JSON {
			return a.JSON(rows)
		}
		t := screen.NewTable("rule", "kind", "type", "workflow", "description")
		for _, r := range rows {
			about := r.Description
			if r.Listed {
				about = strings.TrimSpace("(where listed) " + about)
			}
			t.Row(r.Rule, strings.Join(r.Kind, ", "), r.Type, r.Workflow, about)
		}
		return t.Print(a.Out)
	})
}

type rulesCheckCmd struct {
	File []string `arg:"" help:"Rule files, such as rules/maps.yaml."`
	JSON bool     `name:"json" help:"Print one JSON object a line."`
}

// checkedRules is what a check of a rule file found.
type checkedRules struct {
	File       string `json:"file"`
	Valid      bool   `json:"valid"`
	Name       string `json:"name,omitempty"`
	Rules      int    `json:"rules"`
	Checks     int    `json:"checks,omitempty"`
	Deliveries int    `json:"deliveries,omitempty"`
	found
}

func (c *rulesCheckCmd) Run(ctx context.Context, a *app) error {
	root, err := engine.Find(a.workspaceDir())
	if err != nil {
		return c.check(a, settings.ParseRules)
	}
	// Nothing is taken into force by being checked.
	return a.toRead(ctx, root, func(e *engine.Engine) error { return c.check(a, e.Settings.CheckRules) })
}

func (c *rulesCheckCmd) check(a *app, parse func(string, []byte) (*settings.RuleFile, error)) error {
	var worst error
	for _, file := range c.File {
		var f *settings.RuleFile
		data, err := os.ReadFile(file)
		if err == nil {
			f, err = parse(file, data)
		}
		if err != nil {
			worst = screen.ExitError
		}
		if err := c.tell(a, file, f, err); err != nil {
			return err
		}
	}
	return worst
}

// checksOf counts the checks below quality:.
func checksOf(f *settings.RuleFile) (checks int) {
	for _, q := range f.Quality {
		checks += len(q.Checks)
	}
	return checks
}

// rulesOf words how many rules a file holds, of each kind that it has.
func rulesOf(f *settings.RuleFile) string {
	text := screen.Count(len(f.Rules), "rule")
	if n := checksOf(f); n > 0 {
		text += ", " + screen.Count(n, "check")
	}
	if n := len(f.Delivery); n > 0 {
		text += ", " + screen.Count(n, "delivery rule")
	}
	return text
}

func (c *rulesCheckCmd) tell(a *app, file string, f *settings.RuleFile, wrong error) error {
	if !c.JSON {
		if wrong != nil {
			fmt.Fprintln(a.Out, errorText(wrong))
		} else {
			fmt.Fprintf(a.Out, "%s: valid: %s, %s\n", file, f.Name, rulesOf(f))
		}
		return nil
	}
	out := checkedRules{File: file, Valid: wrong == nil}
	if wrong == nil {
		out.Name, out.Rules, out.Checks, out.Deliveries = f.Name, len(f.Rules), checksOf(f), len(f.Delivery)
	} else {
		out.found = foundIn(wrong)
	}
	return a.JSONLine(out)
}

type rulesShippedCmd struct {
	Name string `arg:"" optional:"" help:"The file's name, without .yaml."`
	JSON bool   `name:"json" help:"Print JSON: names, or name and text."`
}

func (c *rulesShippedCmd) Run(a *app) error {
	all, err := settings.ShippedRules()
	if err != nil {
		return err
	}
	names := slices.Sorted(maps.Keys(all))
	switch data, ok := all[c.Name]; {
	case c.Name == "" && c.JSON:
		return a.JSON(names)
	case c.Name == "":
		_, err := fmt.Fprintln(a.Out, strings.Join(names, "\n"))
		return err
	case !ok:
		return fmt.Errorf("no rule file %q comes with Bagpipe; there are %s", c.Name, strings.Join(names, ", "))
	case c.JSON:
		return a.JSON(map[string]string{"name": c.Name, "text": string(data)})
	default:
		_, err := a.Out.Write(data)
		return err
	}
}

type rulesSchemaCmd struct{}

func (c *rulesSchemaCmd) Run(a *app) error {
	_, err := a.Out.Write(templates.RuleSchema())
	return err
}
