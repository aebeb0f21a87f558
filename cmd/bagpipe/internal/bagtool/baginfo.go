package bagtool

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"bagpipe/bags"
	"bagpipe/bags/finding"
	"bagpipe/bags/profile"
	"bagpipe/bags/tagfile"
	"bagpipe/cmd/bagpipe/internal/screen"
)

type bagInfoCmd struct {
	Get bagInfoGetCmd `cmd:"" help:"Print bag-info.txt, or the values of one label."`
	Set bagInfoSetCmd `cmd:"" help:"Set, add or remove labels of bag-info.txt."`
}

type bagInfoGetCmd struct {
	Bag   string `arg:"" help:"The bag's folder, or an archive that holds it."`
	Label string `arg:"" optional:"" help:"Print the values of this label alone, one a line."`
	JSON  bool   `name:"json" help:"Print JSON."`
}

func (c *bagInfoGetCmd) Run(ctx context.Context, on *screen.Screen) error {
	if err := wantEither(c.Bag); err != nil {
		return err
	}
	r, err := bags.Validate(ctx, c.Bag, bags.ValidateOptions{Level: bags.Quick})
	if err != nil {
		return err
	}
	if r.Version == "" {
		return fmt.Errorf("%s: no bag: it has no bagit.txt with a version", c.Bag)
	}
	fields := []tagfile.Field{}
	for _, f := range r.Info {
		if c.Label == "" || strings.EqualFold(f.Label, c.Label) {
			fields = append(fields, f)
		}
	}
	if c.JSON {
		if err := on.JSON(fields); err != nil {
			return err
		}
	}
	for _, f := range fields {
		switch {
		case c.JSON:
		case c.Label != "":
			fmt.Fprintln(on.Out, f.Value)
		default:
			fmt.Fprintf(on.Out, "%s: %s\n", f.Label, f.Value)
		}
	}
	if c.Label != "" && len(fields) == 0 {
		on.Talk("bagpipe: %s: no %s in its bag-info.txt", c.Bag, c.Label)
		return screen.ExitError
	}
	return nil
}

type bagInfoSetCmd struct {
	Dir    string   `arg:"" writes:"" help:"The bag's folder."`
	Field  []string `arg:"" optional:"" name:"label=value" help:"A label and its value, in the place of all values it has; a label may be given several times."`
	Add    []string `placeholder:"LABEL=VALUE" sep:"none" help:"Add one more of that label; may be given several times."`
	Remove []string `placeholder:"LABEL" sep:"none" help:"Remove all of that label; may be given several times."`
	Sync   bool     `negatable:"" default:"true" help:"Wait until everything is on disk."`
	JSON   bool     `name:"json" help:"Print JSON."`
}

func (c *bagInfoSetCmd) changes() (all []bags.InfoChange, err error) {
	for _, l := range c.Remove {
		all = append(all, bags.InfoChange{Field: tagfile.Field{Label: l}, Remove: true})
	}
	set, err := fieldsOf(c.Field)
	if err != nil {
		return nil, err
	}
	add, err := fieldsOf(c.Add)
	if err != nil {
		return nil, err
	}
	for i, f := range set {
		again := slices.ContainsFunc(set[:i], func(o tagfile.Field) bool { return strings.EqualFold(o.Label, f.Label) })
		all = append(all, bags.InfoChange{Field: f, Add: again})
	}
	for _, f := range add {
		all = append(all, bags.InfoChange{Field: f, Add: true})
	}
	if len(all) == 0 {
		return nil, errors.New("nothing to set, add or remove")
	}
	return all, nil
}

// Validate is kong's: it makes these usage errors.
func (c *bagInfoSetCmd) Validate() error {
	_, err := c.changes()
	return err
}

func (c *bagInfoSetCmd) Run(ctx context.Context, on *screen.Screen) error {
	changes, err := c.changes()
	if err != nil {
		return err
	}
	if err := cmp.Or(wantFolder(c.Dir), wantOutsideStore(c.Dir)); err != nil {
		return err
	}
	did, err := bags.SetInfo(ctx, c.Dir, changes, bags.AmendOptions{NoSync: !c.Sync})
	if err != nil || !c.JSON {
		sayRecovered(on, c.Dir, did.Recovered)
	}
	if err == nil && c.JSON {
		return on.JSON(did)
	}
	return err
}

// fieldsOf reads LABEL=VALUE.
func fieldsOf(all []string) (fields []tagfile.Field, err error) {
	for _, s := range all {
		label, value, ok := strings.Cut(s, "=")
		f := tagfile.Field{Label: label, Value: value}
		if !ok {
			return nil, fmt.Errorf("%q: want LABEL=VALUE", s)
		}
		if err := f.Check(); err != nil {
			return nil, err
		}
		fields = append(fields, f)
	}
	return fields, nil
}

type bagProfileCmd struct {
	Check bagProfileCheckCmd `cmd:"" help:"Check a BagIt profile, or a bag by it."`
}

type bagProfileCheckCmd struct {
	File string `arg:"" help:"The profile's file, JSON."`
	Bag  string `arg:"" optional:"" help:"A bag to hold to the profile; its digests are not computed."`
	JSON bool   `name:"json" help:"Print JSON."`
}

func (c *bagProfileCheckCmd) Run(ctx context.Context, on *screen.Screen) error {
	if err := wantFile(c.File); err != nil {
		return err
	}
	if c.Bag != "" {
		if err := wantEither(c.Bag); err != nil {
			return err
		}
	}
	p, err := profile.Load(c.File)
	if err != nil {
		return err
	}
	findings := append([]finding.Finding{}, p.Problems...)
	if c.Bag != "" {
		r, err := bags.Validate(ctx, c.Bag, bags.ValidateOptions{Level: bags.Complete, Profiles: []*profile.Profile{p}})
		if err != nil {
			return err
		}
		findings = append(findings, slices.DeleteFunc(r.Findings, func(f finding.Finding) bool { return ofProfile(f, p.Problems) })...)
	}
	errs := 0
	for _, f := range findings {
		if f.Severity == finding.Error {
			errs++
		}
	}
	if c.JSON {
		if err := on.JSON(findings); err != nil {
			return err
		}
	} else {
		printFindings(on, findings)
		of := c.File
		if p.Identifier != "" {
			of += ": " + p.Identifier
		}
		if p.Spec != "" {
			of += ", for BagIt Profiles " + p.Spec
		}
		fmt.Fprintf(on.Out, "%s: %s\n", of, screen.Count(errs, "error"))
	}
	if errs > 0 {
		return screen.ExitError
	}
	return nil
}

// ofProfile tells whether a finding on a bag repeats, as a warning, what is wrong with
// the profile itself.
func ofProfile(f finding.Finding, problems []finding.Finding) bool {
	return slices.ContainsFunc(problems, func(p finding.Finding) bool {
		return f.Code == p.Code && f.Constraint == p.Constraint && strings.HasSuffix(f.Text, p.Text)
	})
}

func absolute(p string) (string, error) {
	whole, err := filepath.Abs(p)
	if err != nil {
		return "", fmt.Errorf("find %s: %w", p, err)
	}
	return whole, nil
}
