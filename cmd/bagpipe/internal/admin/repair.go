package admin

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"bagpipe/cmd/bagpipe/internal/screen"
	"bagpipe/engine"
	"bagpipe/engine/gitstore"
	"bagpipe/layout"
)

// Repair replaces damaged objects of the history.
type Repair struct {
	From []string `placeholder:"REMOTE" help:"Fetch missing objects from this remote or repository; default: all remotes."`
	JSON bool     `name:"json" help:"Print JSON."`
}

// Run says what was replaced; exit code 1 where something is missing still.
func (c *Repair) Run(ctx context.Context, on *screen.Screen, around screen.Around, options Options) error {
	root, err := engine.Find(string(around))
	if err != nil {
		return err
	}
	o, err := options()
	if err != nil {
		return err
	}
	for i, from := range c.From { // git reads a path from the repository's folder
		if _, err := os.Stat(from); err == nil {
			if c.From[i], err = filepath.Abs(from); err != nil {
				return err
			}
		}
	}
	m, err := engine.Repair(ctx, root, c.From, o)
	if err != nil {
		return err
	}
	if c.JSON {
		err = on.JSON(m)
	} else {
		printMended(on, m)
		for _, from := range slices.Sorted(maps.Keys(m.Silent)) {
			on.Talk("%s could not be asked: %s", gitstore.Redacted(from), m.Silent[from])
		}
	}
	if err == nil && len(m.Missing) > 0 {
		return screen.ExitError
	}
	return err
}

func printMended(on *screen.Screen, m gitstore.Mended) {
	if len(m.Missing) > 0 {
		fmt.Fprintf(on.Out, "%s found nowhere; damaged objects stay. Name a repository that may have them with --from\n", screen.CountVerb(len(m.Missing), "object was", "objects were"))
		for i, name := range m.Missing {
			if i == 20 {
				fmt.Fprintf(on.Out, "  … and %d more (--json lists all)\n", len(m.Missing)-i)
				break
			}
			fmt.Fprintf(on.Out, "  %s\n", name)
		}
		return
	}
	if len(m.Indexes) > 0 {
		fmt.Fprintf(on.Out, "Made %s of sound packs anew\n", screen.Count(len(m.Indexes), "damaged index"))
	}
	if len(m.Packs)+m.Loose+m.Found == 0 {
		if len(m.Indexes) > 0 {
			return
		}
		fmt.Fprintln(on.Out, "Every object is sound")
		return
	}
	fmt.Fprintf(on.Out, "Replaced %s and %s; %s from elsewhere\n", screen.Count(len(m.Packs), "damaged pack"), screen.Count(m.Loose, "damaged loose object"), screen.CountVerb(m.Found, "object was had", "objects were had"))
}

// Backup is what is asked of backups.
type Backup struct {
	Check backupCheck `cmd:"" help:"Audit a backup: its history, and the bytes and deposits that its records speak of."`
}

type backupCheck struct {
	Dir string `arg:"" help:"A copy of a workspace, of its history alone, or a folder with its history and the folders of bytes beside it."`
	auditWords
}

// Run is an audit of the copy, which it leaves as it is.
func (c *backupCheck) Run(ctx context.Context, on *screen.Screen, options Options) (err error) {
	o, err := options()
	if err != nil {
		return err
	}
	root, err := engine.Find(c.Dir)
	if abs, errAbs := filepath.Abs(c.Dir); err == nil && errAbs == nil && root == abs {
		return c.audit(ctx, on, root, o, true)
	}
	// The history alone: a workspace of it is made for the time of the audit.
	temp, err := os.MkdirTemp("", "bagpipe-backup-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(temp)) }()
	history, beside := laidOut(c.Dir)
	if err := engine.Restore(ctx, history, temp, "", o); err != nil {
		if cause := errors.Unwrap(err); cause != nil { // what is said of the temporary folder helps nobody
			err = cause
		}
		return fmt.Errorf("check backup: %w", err)
	}
	if beside == nil {
		on.Talk("%s is a history alone: no bytes were looked at", c.Dir)
		return c.audit(ctx, on, temp, o, false)
	}
	for _, dir := range beside {
		if err := os.Symlink(dir, filepath.Join(temp, filepath.Base(dir))); err != nil {
			return err
		}
	}
	c.named = strings.NewReplacer(temp, c.Dir)
	on.Talk("the history is %s, and the bytes are those beside it", history)
	return c.audit(ctx, on, temp, o, true)
}

// laidOut finds the parts of a backup in a folder: its one repository or bundle, and, as absolute
// paths, the folders of items and deposits beside it. Another folder is a history itself.
func laidOut(dir string) (history string, beside []string) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return dir, nil
	}
	entries, _ := os.ReadDir(abs) // no folder: a bundle, or an address
	var repositories, bundles []string
	for _, e := range entries {
		at := filepath.Join(abs, e.Name())
		_, err := os.Stat(filepath.Join(at, "HEAD"))
		switch {
		case err == nil:
			repositories = append(repositories, at)
		case strings.HasSuffix(e.Name(), ".bundle"):
			bundles = append(bundles, at)
		case e.Name() == layout.ItemsDir || e.Name() == "store":
			beside = append(beside, at)
		}
	}
	if len(repositories) == 0 {
		repositories = bundles
	}
	if len(repositories) != 1 {
		return dir, nil
	}
	return repositories[0], beside
}
