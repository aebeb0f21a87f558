package bagtool

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"bagpipe/bags"
	"bagpipe/bags/archive"
	"bagpipe/bags/fetch"
	"bagpipe/cmd/bagpipe/internal/screen"
	"bagpipe/engine"
	"bagpipe/engine/settings"
	"bagpipe/layout"
	"bagpipe/layout/disk"
)

type bagFetchCmd struct {
	Dir         string   `arg:"" writes:"" help:"The bag's folder."`
	AllowHost   []string `placeholder:"HOST" help:"A host that http and https URLs may name: example.org, example.org:8080, *.example.org; may be given several times."`
	AllowFolder []string `placeholder:"DIR" sep:"none" help:"A folder that file URLs may lead into; may be given several times."`
	Free        sizeFlag `placeholder:"SIZE" help:"Leave so much room on the bag's file system; 64MiB."`
	bagWork
}

func (c *bagFetchCmd) Run(ctx context.Context, on *screen.Screen, around screen.Around) error {
	if err := cmp.Or(wantFolder(c.Dir), wantOutsideStore(c.Dir)); err != nil {
		return err
	}
	allowed, err := allowed(c.Dir, around, c.AllowHost, c.AllowFolder)
	if err != nil {
		return err
	}
	m := c.meter(on, "fetch")
	did, err := fetch.Complete(ctx, c.Dir, fetch.Options{Allowed: allowed, Free: int64(c.Free), Progress: m.Report})
	m.Close()
	if err != nil || !c.JSON {
		sayRecovered(on, c.Dir, did.Recovered)
	}
	if err != nil {
		return err
	}
	if c.JSON {
		if err := on.JSON(did); err != nil {
			return err
		}
	} else {
		for _, f := range did.Failed {
			fmt.Fprintf(on.Out, "error: %s: %s: %s\n", f.Path, f.URL, f.Text)
		}
		fmt.Fprintf(on.Out, "%s: %s fetched, %s; %d there before, %d failed\n", c.Dir, screen.Count(did.Files, "file"), screen.Count(did.Bytes, "byte"), did.There, len(did.Failed))
	}
	if len(did.Failed) > 0 {
		return screen.ExitError
	}
	return nil
}

// allowed joins what the command line allows with what the workspace around does, if
// there is one that is trusted.
func allowed(bag string, around screen.Around, hosts, folders []string) (fetch.Allowed, error) {
	if err := (fetch.Allowed{Hosts: hosts}).Check(); err != nil {
		return fetch.Allowed{}, screen.WrongUse(err.Error())
	}
	var all fetch.Allowed
	if root, err := engine.Find(string(around)); err == nil && trusted(root, bag) {
		if all, err = settings.AllowedFetches(root); err != nil {
			return all, err
		}
	}
	all.Hosts = append(all.Hosts, hosts...)
	for _, f := range folders {
		whole, err := absolute(f)
		if err != nil {
			return all, err
		}
		all.Folders = append(all.Folders, whole)
	}
	return all, all.Check()
}

// trusted tells whether the settings of a workspace may allow anything for a bag: not when
// they came with the bag, and not when they are another account's.
func trusted(root, bag string) bool {
	account, err := disk.ForeignOwner(filepath.Join(root, layout.RepositoryDir))
	if err != nil || account != "" {
		return false
	}
	whole, err := filepath.EvalSymlinks(bag)
	if err == nil {
		whole, err = filepath.Abs(whole)
	}
	real, realErr := filepath.EvalSymlinks(root)
	return err == nil && realErr == nil && real != whole && !strings.HasPrefix(real, whole+"/")
}

type bagSerializeCmd struct {
	Dir          string `arg:"" help:"The bag's folder."`
	To           string `placeholder:"FILE" writes:"" help:"The archive to make; default: beside the folder, named like it."`
	Format       string `enum:",zip,tar,tar.gz,tar.zst" default:"" help:"zip, tar, tar.gz or tar.zst; default: the ending of the archive's name, or tar."`
	Reproducible bool   `help:"Give every member one time, so that the same bag gives the same bytes."`
	Verify       bool   `negatable:"" default:"true" help:"Validate the archive before it gets its name."`
	Sync         bool   `negatable:"" default:"true" help:"Wait until everything is on disk."`
	bagWork
}

// epoch is the one time of reproducible archives: the earliest a zip can hold.
var epoch = time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC)

// AfterApply is called by kong: what it makes is known before it runs.
func (c *bagSerializeCmd) AfterApply() error {
	whole, err := absolute(c.Dir)
	if err == nil {
		c.To = cmp.Or(c.To, whole+"."+cmp.Or(c.Format, string(archive.Tar)))
	}
	return err
}

func (c *bagSerializeCmd) Run(ctx context.Context, on *screen.Screen) error {
	if err := wantFolder(c.Dir); err != nil {
		return err
	}
	whole, err := absolute(c.Dir)
	if err != nil {
		return err
	}
	to := c.To
	if err := cmp.Or(wantPlace(to), wantOutsideStore(to)); err != nil {
		return err
	}
	o := bags.SerializeOptions{Format: archive.Format(c.Format), Verify: c.Verify, NoSync: !c.Sync}
	if c.Reproducible {
		o.Time = epoch
	}
	m := c.meter(on, "serialize")
	o.Progress = m.Report
	r, err := bags.Serialize(ctx, whole, to, o)
	m.Close()
	if errors.Is(err, archive.ErrPackFormat) {
		return screen.WrongUse(err.Error())
	}
	if errors.Is(err, bags.ErrNotValid) {
		printReport(on, c.Dir, r)
	}
	if err != nil {
		return err
	}
	if c.JSON {
		return on.JSON(r)
	}
	info, err := os.Stat(to)
	if err != nil {
		return err
	}
	verified := "written"
	if c.Verify {
		verified = "written and validated"
	}
	fmt.Fprintf(on.Out, "%s: %s: %s, %s of archive\n", to, verified, screen.Count(r.PayloadFiles, "payload file"), screen.Count(info.Size(), "byte"))
	return nil
}
