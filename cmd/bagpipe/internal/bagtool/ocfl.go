package bagtool

import (
	"context"
	"fmt"
	"path/filepath"

	"bagpipe/cmd/bagpipe/internal/screen"
	"bagpipe/steps/target"
)

// OCFL looks at what others wrote as well; it needs no workspace.
type OCFL struct {
	Validate ocflValidateCmd `cmd:"" help:"Validate an OCFL object, or a storage root with its objects, by OCFL 1.0 and 1.1. Exit code 0: valid, 1: not."`
}

type ocflValidateCmd struct {
	Path  string `arg:"" help:"The folder of the storage root or the object."`
	Quick bool   `help:"Leave the digests of contents out."`
	JSON  bool   `name:"json" help:"Print JSON."`
}

// Run prints what is wrong.
func (c *ocflValidateCmd) Run(ctx context.Context, on *screen.Screen) error {
	r, err := target.ValidateOCFL(ctx, c.Path, c.Quick)
	if err != nil {
		return err
	}
	if c.JSON {
		err = on.JSON(r)
	} else if r.Valid || !hintBelow(on, c.Path) {
		for _, f := range r.Findings {
			fmt.Fprintf(on.Out, "%-7s  %-5s  %s: %s\n", f.Severity, f.Code, f.Object, f.Text)
		}
		word := "valid"
		if !r.Valid {
			word = "not valid"
		}
		fmt.Fprintf(on.Out, "%s: %s, %s\n", c.Path, screen.Count(r.Objects, "object"), word)
	}
	if err == nil && !r.Valid {
		return screen.ExitError
	}
	return err
}

// hintBelow names the storage roots that stand in the folder, as one does in that of a target. Then
// what the folder itself lacks is of no use.
func hintBelow(on *screen.Screen, dir string) (is bool) {
	if marks, _ := filepath.Glob(filepath.Join(dir, "0=ocfl*")); len(marks) > 0 {
		return false
	}
	below, _ := filepath.Glob(filepath.Join(dir, "*", "0=ocfl_1*"))
	for _, mark := range below {
		on.Talk("%s is no storage root; %s is one: bagpipe ocfl validate %s", dir, filepath.Dir(mark), filepath.Dir(mark))
	}
	return len(below) > 0
}
