package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"bagpipe/cmd/bagpipe/internal/screen"
	"bagpipe/engine"
	"bagpipe/engine/ask"
	"bagpipe/engine/recognise"
	"bagpipe/engine/settings"
	"bagpipe/layout"
)

type explainCmd struct {
	Path       []string    `arg:"" help:"The drop: a file, folder or archive; it is only read."`
	Collection layout.Name `default:"default" placeholder:"NAME" help:"As if dropped in inbox/NAME; default."`
	Rules      []string    `placeholder:"FILE" help:"Ask this rule file, too, as if it were in rules/; in the place of one of the same name. May be given several times."`
	All        bool        `help:"Print every rule's answer; default: of those that said no, the three that come nearest."`
	JSON       bool        `name:"json" help:"Print one JSON object a line."`
}

func (c *explainCmd) Run(ctx context.Context, a *app) error {
	more, err := readRules(c.Rules)
	if err != nil {
		return err
	}
	return a.with(ctx, func(e *engine.Engine) error {
		var worst error
		for i, path := range c.Path {
			x, err := e.Ask.Recognise(ctx, path, c.Collection, more)
			if err != nil {
				return err
			}
			if x.Held != "" || x.Refused != "" {
				worst = screen.ExitError
			}
			if c.JSON {
				err = a.JSONLine(x)
			} else {
				if i > 0 {
					fmt.Fprintln(a.Out)
				}
				err = c.print(a, x)
			}
			if err != nil {
				return err
			}
		}
		return worst
	})
}

func readRules(files []string) (all []*settings.RuleFile, err error) {
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		f, err := settings.ParseRules(file, data)
		if err != nil {
			return nil, err
		}
		all = append(all, f)
	}
	return all, nil
}

func (c *explainCmd) print(a *app, x ask.Recognised) error {
	t := screen.NewTable()
	row := func(key, value string) {
		if value != "" {
			t.Row(key, value)
		}
	}
	row("path", x.Path)
	row("together", strings.Join(x.Together, ", "))
	row("kind", x.Kind)
	switch {
	case x.Held != "":
		row("held", x.Held)
	case x.Refused != "":
		row("refused", x.Refused)
	default:
		row("verdict", x.Verdict.String())
	}
	row("rule", x.Rule)
	row("type", x.Type)
	row("workflow", x.Workflow)
	row("collection", string(x.Collection))
	row("lane", x.Lane)
	row("label", x.Label)
	row("known", x.Known)
	row("becomes", x.Becomes)
	addKeys(t, "identifier", x.Identifiers)
	addKeys(t, "metadata", x.Metadata)
	if err := t.Print(a.Out); err != nil {
		return err
	}
	if err := printObjects(a, x); err != nil || len(x.Tried) == 0 {
		return err
	}
	fmt.Fprintln(a.Out)
	tried, left := x.Tried, 0
	if !c.All {
		tried, left = recognise.NearestTrials(tried, 3)
	}
	rules := screen.NewTable("rule", "verdict", "reason")
	for _, r := range tried {
		rules.Row(r.Rule, r.Verdict, r.Reason)
	}
	if left > 0 {
		rules.Row("…", recognise.No, screen.CountVerb(left, "more rule", "more rules")+"; --all lists them")
	}
	return rules.Print(a.Out)
}

// printObjects lists the objects in a drop, the first of many; --json has them all.
func printObjects(a *app, x ask.Recognised) error {
	if len(x.Objects) == 0 {
		return nil
	}
	const most = 100
	fmt.Fprintln(a.Out)
	t := screen.NewTable("object", "files")
	for _, o := range x.Objects[:min(most, len(x.Objects))] {
		t.Row(o.Object, shownValue(o.Files))
	}
	if more := len(x.Objects) - most; more > 0 {
		t.Row(fmt.Sprintf("and %d more", more), "")
	}
	if err := t.Print(a.Out); err != nil {
		return err
	}
	if len(x.Left) > 0 {
		fmt.Fprintf(a.Out, "\nBelonging to none of them: %s\n", shownValue(x.Left))
	}
	return nil
}

// addKeys adds a line for each key, sorted; of a list its beginning.
func addKeys[V any](t *screen.Table, what string, values map[string]V) {
	for _, key := range slices.Sorted(maps.Keys(values)) {
		t.Row(what, key+": "+shownValue(values[key]))
	}
}

func shownValue(v any) string {
	var list []string
	switch l := v.(type) {
	case []string:
		list = l
	case []any:
		for _, one := range l {
			list = append(list, shownOne(one))
		}
	default:
		return shownOne(v)
	}
	const most = 5
	if len(list) > most {
		return strings.Join(list[:most], ", ") + ", …"
	}
	return strings.Join(list, ", ")
}

// shownOne is a text or a number as it is; what is made of several as JSON.
func shownOne(v any) string {
	switch v.(type) {
	case map[string]any, []any:
		if data, err := json.Marshal(v); err == nil {
			return string(data)
		}
	}
	return fmt.Sprint(v)
}
