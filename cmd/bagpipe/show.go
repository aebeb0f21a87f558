package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"bagpipe/cmd/bagpipe/internal/screen"
	"bagpipe/engine"
	"bagpipe/engine/ask"
	"bagpipe/engine/fault"
	"bagpipe/engine/state"
	"bagpipe/layout"
)

type showCmd struct {
	Item    string `arg:"" help:"Identifier, the beginning of one, or label; -: those that standard input names, one a line."`
	Step    string `arg:"" optional:"" help:"STEP, or WORKFLOW/STEP: its attempts alone."`
	Printed bool   `help:"Print the log of the step's last attempt that has one; so does --log, without a file."`
	Files   bool   `help:"List every file; default: the first ten."`
	Rules   bool   `help:"Print the answer of every rule that was asked."`
	JSON    bool   `name:"json" help:"Print JSON."`
}

// Validate is called by kong.
func (c *showCmd) Validate() error {
	switch {
	case c.Item == "-" && c.Step != "":
		return errors.New("of several items no step is shown; name one item")
	case c.Printed && c.Step == "":
		return errors.New("--log gives the log of a step; name the step after the item")
	case c.Step != "" && (c.Files || c.Rules):
		return errors.New("--files and --rules are about the item; leave the step out")
	case c.Printed && c.JSON:
		return errors.New("--log gives the log as it is; leave --json out")
	}
	return nil
}

func (c *showCmd) Run(ctx context.Context, a *app) error {
	if c.Item == "-" {
		return c.several(ctx, a)
	}
	return a.onItem(ctx, c.Item, func(e *engine.Engine, id layout.ItemID) error {
		d, err := e.Ask.Show(ctx, id)
		if err != nil {
			return err
		}
		switch {
		case c.Step != "":
			return c.step(a, e.Root(), d)
		case c.JSON:
			return a.JSON(d)
		}
		return c.print(a, d)
	})
}

// several shows the items that standard input names: as JSON a list, else with an empty line between two.
func (c *showCmd) several(ctx context.Context, a *app) error {
	return a.with(ctx, func(e *engine.Engine) error {
		all, in, n := []ask.Detail{}, bufio.NewScanner(a.In), 0
		for in.Scan() {
			ref := strings.TrimSpace(in.Text())
			if ref == "" {
				continue
			}
			id, err := e.Ask.Resolve(ctx, ref)
			if err != nil {
				return err
			}
			d, err := e.Ask.Show(ctx, id)
			switch {
			case err != nil:
				return err
			case c.JSON:
				all = append(all, d)
				continue
			case n > 0:
				fmt.Fprintln(a.Out)
			}
			n++
			if err := c.print(a, d); err != nil {
				return err
			}
		}
		if err := in.Err(); err != nil || !c.JSON {
			return err
		}
		return a.JSON(all)
	})
}

// step prints one step of the item: of several runs of its workflow the last that has it.
func (c *showCmd) step(a *app, root string, d ask.Detail) error {
	workflow, step, err := splitStep(c.Step)
	if err != nil {
		return err
	}
	for _, w := range slices.Backward(d.Workflows) {
		base, _ := state.Instance(w.Workflow)
		i := slices.IndexFunc(w.Steps, func(s ask.StepDetail) bool { return s.Step == step })
		if i < 0 || workflow != "" && workflow != w.Workflow && workflow != base {
			continue
		}
		switch {
		case c.Printed:
			return printLog(a, root, w, w.Steps[i])
		case c.JSON:
			return a.JSON(w.Steps[i])
		}
		return printSteps(a, w.Steps[i:i+1])
	}
	return fault.New(fault.NotFound, fmt.Sprintf("item %s has no step %s", d.Manifest.Item.Short(), c.Step), fault.Remedy{Verb: fault.Show, Item: d.Manifest.Item})
}

// printLog prints the log of the last attempt at a step that said anything.
func printLog(a *app, root string, w ask.WorkflowDetail, s ask.StepDetail) (err error) {
	for _, at := range slices.Backward(s.Attempts) {
		if at.Log == "" {
			continue
		}
		f, err := os.Open(filepath.Join(root, filepath.FromSlash(at.Log)))
		if err != nil {
			return err
		}
		_, err = io.Copy(a.Out, f)
		return errors.Join(err, f.Close())
	}
	a.Talk("no attempt at %s/%s wrote anything", w.Workflow, s.Step)
	return nil
}

func printSteps(a *app, all []ask.StepDetail) error {
	t := screen.NewTable("step", "status", "attempt", "ended", "seconds", "by", "message")
	var passed []string // of a whole run, on a narrow terminal
	for _, s := range all {
		if len(all) > 1 && screen.Narrow(a.Out) && isPassed(s) {
			passed = append(passed, string(s.Step))
			continue
		}
		addStep(t, s)
	}
	if err := t.Print(a.Out); err != nil || len(passed) == 0 {
		return err
	}
	return screen.Below(a.Out, "not applicable, and skipped: "+strings.Join(passed, ", "))
}

// isPassed reports whether a step did not apply to the item.
func isPassed(s ask.StepDetail) bool {
	return s.Status == state.Skipped && len(s.Attempts) == 1 && strings.HasPrefix(s.Attempts[0].Message, "not applicable")
}

func (c *showCmd) print(a *app, d ask.Detail) error {
	m := d.Manifest
	t := screen.NewTable()
	t.Row("item", m.Item)
	t.Row("label", m.Label)
	t.Row("collection", m.Collection)
	t.Row("lane", m.Lane)
	if m.Batch != "" {
		t.Row("batch", m.Batch)
	}
	if p := d.Parent; p != nil {
		t.Row("parent", fmt.Sprintf("%s %s, by %s/%s as %s", p.Item.Short(), p.Label, p.Workflow, p.Step, p.Name))
	}
	for _, f := range d.Families {
		t.Row("children", f.String())
	}
	if m.Version > 1 && m.Since.IsZero() {
		t.Row("version", fmt.Sprintf("%d: 1 was registered without content", m.Version))
	} else if m.Version > 1 {
		t.Row("version", fmt.Sprintf("%d, since %s; those before are in versions/", m.Version, screen.When(m.Since)))
	}
	t.Row("folder", d.Dir)
	if m.Source.Bare() {
		t.Row("source", fmt.Sprintf("none yet: registered %s, by %s", screen.When(m.Source.Taken), m.Source.By))
	} else {
		sourceRows(t, m)
	}
	if m.Type != "" {
		t.Row("type", m.Type)
	}
	addKeys(t, "identifier", m.Identifiers)
	addKeys(t, "metadata", m.Metadata)
	if r := m.Recognition; r != nil {
		t.Row("recognised", fmt.Sprintf("%s: %s", r.Rule, strings.TrimPrefix(cmp.Or(r.Tried[r.Rule], r.Verdict), "yes: ")))
	}
	if x := m.Disposed; x != nil {
		t.Row("disposed", fmt.Sprintf("%s by %s: %s", screen.When(x.At), x.By, x.Reason))
	}
	if d.Retired != "" {
		t.Row("retired", fmt.Sprintf("its records last stood in commit %s", d.Retired[:12]))
	}
	for _, h := range d.Held {
		t.Row("held", screen.Local(h))
	}
	for _, name := range slices.SortedFunc(maps.Keys(d.Milestones), func(x, y layout.Name) int { return d.Milestones[x].Compare(d.Milestones[y]) }) {
		t.Row("milestone", fmt.Sprintf("%s %s", name, screen.When(d.Milestones[name])))
	}
	for _, to := range d.Deliveries {
		t.Row("delivery", screen.Local(to.String()))
	}
	if err := t.Print(a.Out); err != nil {
		return err
	}
	for _, w := range d.Workflows {
		fmt.Fprintf(a.Out, "\n%s: %s%s\n", w.Workflow, w.Status, flowNotes(w))
		if err := printSteps(a, w.Steps); err != nil {
			return err
		}
	}
	if err := printChildren(a, d); err != nil {
		return err
	}
	if err := c.printFiles(a, d.Files); err != nil {
		return err
	}
	return c.printRules(a, d.Manifest.Recognition)
}

// printRules lists what the rules said, those first that did not say no.
func (c *showCmd) printRules(a *app, r *layout.Recognition) error {
	if r == nil || !c.Rules {
		return nil
	}
	fmt.Fprintln(a.Out)
	t := screen.NewTable("rule", "verdict", "reason")
	for _, said := range []bool{true, false} {
		for _, rule := range slices.Sorted(maps.Keys(r.Tried)) {
			verdict, reason, _ := strings.Cut(r.Tried[rule], ": ")
			if said == (verdict != "no") {
				t.Row(rule, verdict, reason)
			}
		}
	}
	if r.More > 0 {
		t.Row("…", "no", screen.CountVerb(r.More, "more rule", "more rules"))
	}
	return t.Print(a.Out)
}

func printChildren(a *app, d ask.Detail) error {
	if len(d.Children) == 0 {
		return nil
	}
	all := 0
	for _, f := range d.Families {
		all += f.All
	}
	fmt.Fprintf(a.Out, "\n%s:\n", screen.CountVerb(all, "child", "children"))
	if err := printMembers(a, d.Children); err != nil {
		return err
	}
	if more := all - len(d.Children); more > 0 {
		fmt.Fprintf(a.Out, "  … and %d more; bagpipe items --parent %s lists all\n", more, d.Manifest.Item.Short())
	}
	return nil
}

// flowNotes says what is particular to a run of a workflow.
func flowNotes(w ask.WorkflowDetail) (notes string) {
	if w.StartedBy != "" {
		notes += ", started by " + w.StartedBy
	}
	if !w.NotBefore.IsZero() {
		notes += ", not before " + screen.When(w.NotBefore)
	}
	if w.StartedWith != "" {
		notes += ", moved to another definition"
	}
	if w.Why != "" {
		notes += " (" + screen.Local(w.Why) + ")"
	}
	return notes
}

func addStep(t *screen.Table, s ask.StepDetail) {
	if len(s.Attempts) == 0 {
		t.Row(s.Step, s.Status, "", "", screen.Figure(""), "", s.Why)
	}
	for i, at := range s.Attempts {
		step, status := string(s.Step), string(s.Status)
		if i > 0 {
			step, status = "", ""
		}
		ended := string(at.State)
		if at.Lost {
			ended = "lost"
		}
		message := at.Message
		if i == len(s.Attempts)-1 && s.Status == state.Waiting && s.Why != "" {
			message = s.Why
		}
		if at.Progress != nil {
			message = strings.TrimSpace(progressText(at.Progress, 0) + "  " + message)
		}
		if at.Log != "" {
			message = strings.TrimSpace(message + "  log: " + at.Log)
		}
		t.Row(step, status, at.Attempt+" "+ended, screen.When(at.Ended), screen.Figure(fmt.Sprintf("%.3f", at.Elapsed)), at.Agent, message)
	}
}

func (c *showCmd) printFiles(a *app, files []ask.FileDetail) error {
	if len(files) == 0 {
		return nil
	}
	fmt.Fprintf(a.Out, "\n%s:\n", screen.Count(len(files), "file"))
	for i, f := range files {
		if i == 10 && !c.Files {
			fmt.Fprintf(a.Out, "  … and %d more (--files lists all)\n", len(files)-i)
			return nil
		}
		format := f.Type
		if f.PUID != "" {
			format += fmt.Sprintf("  %s (%s)", f.PUID, f.Format)
		}
		if screen.Narrow(a.Out) {
			fmt.Fprintln(a.Out, "  "+f.Path)
			if err := screen.Below(a.Out, fmt.Sprintf("%s, %s\nsha256:%s", screen.Count(f.Size, "byte"), format, f.SHA256)); err != nil {
				return err
			}
			continue
		}
		fmt.Fprintf(a.Out, "  %s  %s  %s  sha256:%s\n", f.Path, screen.Count(f.Size, "byte"), format, f.SHA256)
	}
	return nil
}

// sourceRows tell what was dropped.
func sourceRows(t *screen.Table, m layout.Manifest) {
	t.Row("source", fmt.Sprintf("%s (%s, %s, %s, taken %s, by %s)", m.Source.Name, m.Source.Kind, screen.Count(m.Source.Files, "file"), screen.Count(m.Source.Bytes, "byte"), screen.When(m.Source.Taken), m.Source.By))
	if m.Source.DuplicateOf != "" {
		t.Row("duplicate", "of "+string(m.Source.DuplicateOf))
	}
	t.Row("digest", m.Source.Digest)
}

// showsLog reads --log of show as --printed, unless a file follows with =: of every other command
// it takes the file to log to.
func showsLog(args []string) []string {
	for i := 0; i < len(args); i++ {
		switch a := args[i]; {
		case a == "-C" || a == "--dir" || a == "--log":
			i++
		case a == "show":
			args = slices.Clone(args)
			for i++; i < len(args) && args[i] != "--"; i++ {
				if args[i] == "--log" {
					args[i] = "--printed"
				}
			}
		case !strings.HasPrefix(a, "-"):
			return args
		}
	}
	return args
}
