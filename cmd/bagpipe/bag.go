package main

import (
	"fmt"

	"bagpipe/bags"
)

type bagCmd struct {
	Validate bagValidateCmd `cmd:"" help:"Validate a bag by RFC 8493. Exit code 0: valid, 1: not."`
}

type bagValidateCmd struct {
	Dir  string `arg:"" help:"The bag's folder."`
	JSON bool   `name:"json" help:"Print the report as JSON."`
}

func (c *bagValidateCmd) Run(a *app) error {
	report, err := bags.Validate(a.ctx, c.Dir, bags.ValidateOptions{})
	if err != nil {
		return err
	}
	if c.JSON {
		if err := a.json(report); err != nil {
			return err
		}
	} else {
		c.print(a, report)
	}
	if !report.Valid {
		return exit(exitError)
	}
	return nil
}

func (c *bagValidateCmd) print(a *app, r bags.Report) {
	for _, f := range r.Findings {
		where := f.Path
		if where != "" {
			where += ": "
		}
		fmt.Fprintf(a.out, "%s: %s%s\n", f.Severity, where, f.Text)
	}
	answer := "not valid"
	if r.Valid {
		answer = "valid"
	}
	fmt.Fprintf(a.out, "%s: %s: BagIt %s, %d payload files, %d bytes, %d errors, %d warnings\n",
		c.Dir, answer, r.Version, r.PayloadFiles, r.PayloadBytes, r.Errors, r.Warnings)
}
