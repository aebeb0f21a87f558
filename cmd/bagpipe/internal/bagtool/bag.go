package bagtool

import (
	"context"
	"fmt"

	"bagpipe/bags"
	"bagpipe/bags/finding"
	"bagpipe/bags/profile"
	"bagpipe/cmd/bagpipe/internal/screen"
)

// Agent is the program as bags name the one that made them.
type Agent string

// Bag is a BagIt tool by itself: none of its commands needs a workspace.
type Bag struct {
	Create    bagCreateCmd    `cmd:"" help:"Make a bag of a folder, beside it or where it stands."`
	Validate  bagValidateCmd  `cmd:"" help:"Validate a bag, a folder or an archive, by RFC 8493. Exit code 0: valid, 1: not."`
	Update    bagUpdateCmd    `cmd:"" help:"Bring a bag's manifests up to date with its files."`
	Info      bagInfoCmd      `cmd:"" help:"Show or change bag-info.txt."`
	Manifest  bagManifestCmd  `cmd:"" help:"Add manifests."`
	Fetch     bagFetchCmd     `cmd:"" help:"Complete a bag with the files that fetch.txt lists."`
	Serialize bagSerializeCmd `cmd:"" help:"Write a bag into an archive."`
	Profile   bagProfileCmd   `cmd:"" help:"Check BagIt profiles, and bags against them."`
}

// bagWork are the options of what takes long.
type bagWork struct {
	JSON  bool `name:"json" help:"Print JSON; progress goes to standard error, one object a line."`
	Quiet bool `short:"q" help:"No progress."`
}

// meter keeps standard output for the one report of --json.
func (w bagWork) meter(on *screen.Screen, what string) *screen.Meter {
	if w.JSON {
		return screen.NewMeter(on, what, on.Err, w.Quiet)
	}
	return screen.NewMeter(on, what, nil, w.Quiet)
}

type bagValidateCmd struct {
	Bag      string   `arg:"" help:"The bag's folder, or an archive that holds it (zip, tar, and tar in gz, bz2, xz, zst or lz4)."`
	Quick    bool     `xor:"level" help:"Only compare Payload-Oxum with the number of files and bytes; finds no bag valid."`
	Complete bool     `xor:"level" help:"Check everything but the digests."`
	Profile  []string `placeholder:"FILE" sep:"none" help:"A BagIt profile that the bag must satisfy as well; may be given several times."`
	FailFast bool     `help:"Stop at the first error."`
	bagWork
}

func (c *bagValidateCmd) Run(ctx context.Context, on *screen.Screen) error {
	if err := wantEither(c.Bag); err != nil {
		return err
	}
	profiles, err := loadProfiles(c.Profile)
	if err != nil {
		return err
	}
	o := bags.ValidateOptions{FailFast: c.FailFast, Profiles: profiles}
	switch {
	case c.Quick:
		o.Level = bags.Quick
	case c.Complete:
		o.Level = bags.Complete
	}
	m := c.meter(on, "validate")
	o.Progress = m.Report
	report, err := bags.Validate(ctx, c.Bag, o)
	m.Close()
	if err != nil {
		return err
	}
	if c.JSON {
		if err := on.JSON(report); err != nil {
			return err
		}
	} else {
		printReport(on, c.Bag, report)
	}
	if report.Errors > 0 || o.Level == bags.Full && !report.Valid {
		return screen.ExitError
	}
	return nil
}

func loadProfiles(files []string) (all []*profile.Profile, err error) {
	for _, f := range files {
		if err := wantFile(f); err != nil {
			return nil, err
		}
		p, err := profile.Load(f)
		if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	return all, nil
}

func printReport(on *screen.Screen, bag string, r bags.Report) {
	printFindings(on, r.Findings)
	version := "BagIt " + r.Version
	if r.Version == "" {
		version = "no BagIt version"
	}
	fmt.Fprintf(on.Out, "%s: %s: %s, %s, %s, %s, %s\n", bag, answer(r), version, screen.Count(r.PayloadFiles, "payload file"),
		screen.Count(r.PayloadBytes, "byte"), screen.Count(r.Errors, "error"), screen.Count(r.Warnings, "warning"))
}

func printFindings(on *screen.Screen, findings []finding.Finding) {
	for _, f := range findings {
		where := f.Path
		if where != "" {
			where += ": "
		}
		if f.Constraint != "" {
			where += f.Constraint + ": "
		}
		fmt.Fprintf(on.Out, "%s: %s%s\n", f.Severity, where, f.Text)
	}
}

// answer keeps apart what a bag lacks and what is wrong with it.
func answer(r bags.Report) string {
	switch {
	case r.Valid:
		return "valid"
	case r.Errors > 0 && r.Incomplete():
		return "not valid: incomplete"
	case r.Errors > 0:
		return "not valid"
	case r.Level == bags.Complete:
		return "complete (no digest was computed)"
	}
	return "no error found (quickly: only counted)"
}
