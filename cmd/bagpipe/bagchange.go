package main

import (
	"errors"
	"fmt"
	"time"

	"bagpipe/bags"
	"bagpipe/bags/files"
)

type bagUpdateCmd struct {
	Dir     string `arg:"" help:"The bag's folder."`
	Changed bool   `help:"Accept files that are not what the manifests say."`
	Removed bool   `help:"Accept that listed files are gone."`
	Sync    bool   `negatable:"" default:"true" help:"Wait until everything is on disk."`
	bagWork
}

func (c *bagUpdateCmd) Run(a *app) error {
	if err := wantFolder(c.Dir); err != nil {
		return err
	}
	m := c.meter(a, "update")
	did, err := bags.Update(a.ctx, c.Dir, bags.UpdateOptions{
		AcceptChanged: c.Changed, AcceptRemoved: c.Removed, Date: time.Now(), Agent: "Bagpipe", NoSync: !c.Sync, Progress: m.report,
	})
	m.close()
	if err != nil || !c.JSON {
		sayRecovered(a, c.Dir, did.Recovered)
	}
	refused := errors.Is(err, bags.ErrNotAccepted)
	if err != nil && !refused {
		return err
	}
	if c.JSON {
		if err := a.json(did); err != nil {
			return err
		}
	} else {
		c.print(a, did)
	}
	if refused {
		a.talk("bagpipe: %v; look at these files, and then: bagpipe bag update --changed --removed %s", err, c.Dir)
		return exit(exitError)
	}
	return nil
}

func (c *bagUpdateCmd) print(a *app, did bags.Updated) {
	for _, kind := range []struct {
		word  string
		paths []string
	}{{"added", did.Added}, {"changed", did.Changed}, {"removed", did.Removed}} {
		for _, p := range kind.paths {
			fmt.Fprintf(a.out, "%s: %s\n", kind.word, p)
		}
	}
	if !did.Written {
		return
	}
	from := ""
	if did.From != "1.0" {
		from = ", was " + did.From
	}
	fmt.Fprintf(a.out, "%s: BagIt 1.0%s, %s, %s; %d added, %d changed, %d removed\n",
		c.Dir, from, count(did.Files, "payload file"), count(did.Bytes, "byte"), len(did.Added), len(did.Changed), len(did.Removed))
}

type bagManifestCmd struct {
	Add bagManifestAddCmd `cmd:"" help:"Add manifests of one more algorithm to a bag that is valid."`
}

type bagManifestAddCmd struct {
	Algorithm string `arg:"" enum:"md5,sha1,sha224,sha256,sha384,sha512" help:"md5, sha1, sha224, sha256, sha384 or sha512."`
	Dir       string `arg:"" help:"The bag's folder."`
	Sync      bool   `negatable:"" default:"true" help:"Wait until everything is on disk."`
	bagWork
}

func (c *bagManifestAddCmd) Run(a *app) error {
	if err := wantFolder(c.Dir); err != nil {
		return err
	}
	m := c.meter(a, "manifest add")
	did, err := bags.AddManifest(a.ctx, c.Dir, files.Algorithm(c.Algorithm), bags.AmendOptions{NoSync: !c.Sync, Progress: m.report})
	m.close()
	if err != nil || !c.JSON {
		sayRecovered(a, c.Dir, did.Recovered)
	}
	if errors.Is(err, bags.ErrNotValid) {
		printReport(a, c.Dir, did.Report)
	}
	if err != nil {
		return err
	}
	if c.JSON {
		return a.json(did)
	}
	fmt.Fprintf(a.out, "%s: valid, and has manifest-%s.txt and tagmanifest-%s.txt now\n", c.Dir, c.Algorithm, c.Algorithm)
	return nil
}
