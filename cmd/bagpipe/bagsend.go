package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"time"

	"bagpipe/bags"
	"bagpipe/bags/archive"
	"bagpipe/bags/fetch"
	"bagpipe/engine"
	"bagpipe/engine/settings"
)

type bagFetchCmd struct {
	Dir         string   `arg:"" help:"The bag's folder."`
	AllowHost   []string `placeholder:"HOST" help:"A host that http and https URLs may name: example.org, example.org:8080, *.example.org; may be given several times."`
	AllowFolder []string `placeholder:"DIR" sep:"none" help:"A folder that file URLs may lead into; may be given several times."`
	bagWork
}

func (c *bagFetchCmd) Run(a *app) error {
	if err := wantFolder(c.Dir); err != nil {
		return err
	}
	allowed, err := a.allowed(c.AllowHost, c.AllowFolder)
	if err != nil {
		return err
	}
	m := c.meter(a, "fetch")
	did, err := fetch.Complete(a.ctx, c.Dir, fetch.Options{Allowed: allowed, Progress: m.report})
	m.close()
	if err != nil || !c.JSON {
		sayRecovered(a, c.Dir, did.Recovered)
	}
	if err != nil {
		return err
	}
	if c.JSON {
		if err := a.json(did); err != nil {
			return err
		}
	} else {
		for _, f := range did.Failed {
			fmt.Fprintf(a.out, "error: %s: %s: %s\n", f.Path, f.URL, f.Text)
		}
		fmt.Fprintf(a.out, "%s: %s fetched, %s; %d there before, %d failed\n", c.Dir, count(did.Files, "file"), count(did.Bytes, "byte"), did.There, len(did.Failed))
	}
	if len(did.Failed) > 0 {
		return exit(exitError)
	}
	return nil
}

// allowed joins what the command line allows with what the workspace around does,
// if there is one.
func (a *app) allowed(hosts, folders []string) (fetch.Allowed, error) {
	if err := (fetch.Allowed{Hosts: hosts}).Check(); err != nil {
		return fetch.Allowed{}, wrongUse(err.Error())
	}
	var all fetch.Allowed
	if root, err := engine.Find(a.workspaceDir()); err == nil {
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

type bagSerializeCmd struct {
	Dir          string `arg:"" help:"The bag's folder."`
	To           string `placeholder:"FILE" help:"The archive to make; default: beside the folder, named like it."`
	Format       string `enum:",zip,tar,tar.gz,tar.zst" default:"" help:"zip, tar, tar.gz or tar.zst; default: what the archive's name ends in, or tar."`
	Reproducible bool   `help:"Give every member one time, so that the same bag gives the same bytes."`
	Verify       bool   `negatable:"" default:"true" help:"Validate the archive before it gets its name."`
	Sync         bool   `negatable:"" default:"true" help:"Wait until everything is on disk."`
	bagWork
}

// epoch is the one time of reproducible archives: the earliest a zip can hold.
var epoch = time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC)

func (c *bagSerializeCmd) Run(a *app) error {
	if err := wantFolder(c.Dir); err != nil {
		return err
	}
	whole, err := absolute(c.Dir)
	if err != nil {
		return err
	}
	to := c.To
	if to == "" {
		to = whole + "." + cmp.Or(c.Format, string(archive.Tar))
	}
	if err := wantPlace(to); err != nil {
		return err
	}
	o := bags.SerializeOptions{Format: archive.Format(c.Format), Verify: c.Verify, NoSync: !c.Sync}
	if c.Reproducible {
		o.Time = epoch
	}
	m := c.meter(a, "serialize")
	o.Progress = m.report
	r, err := bags.Serialize(a.ctx, whole, to, o)
	m.close()
	if errors.Is(err, archive.ErrPackFormat) {
		return wrongUse(err.Error())
	}
	if errors.Is(err, bags.ErrNotValid) {
		printReport(a, c.Dir, r)
	}
	if err != nil {
		return err
	}
	if c.JSON {
		return a.json(r)
	}
	info, err := os.Stat(to)
	if err != nil {
		return err
	}
	verified := "written"
	if c.Verify {
		verified = "written and validated"
	}
	fmt.Fprintf(a.out, "%s: %s: %s, %s of archive\n", to, verified, count(r.PayloadFiles, "payload file"), count(info.Size(), "byte"))
	return nil
}
