package bagtool

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"bagpipe/bags"
	"bagpipe/bags/files"
	"bagpipe/cmd/bagpipe/internal/screen"
)

type bagUpdateCmd struct {
	Dir     string `arg:"" writes:"" help:"The bag's folder."`
	Changed bool   `help:"Accept files that differ from the manifests."`
	Removed bool   `help:"Accept that listed files are gone."`
	Sync    bool   `negatable:"" default:"true" help:"Wait until everything is on disk."`
	bagWork
}

func (c *bagUpdateCmd) Run(ctx context.Context, on *screen.Screen, agent Agent) error {
	if err := cmp.Or(wantFolder(c.Dir), wantOutsideStore(c.Dir)); err != nil {
		return err
	}
	m := c.meter(on, "update")
	did, err := bags.Update(ctx, c.Dir, bags.UpdateOptions{
		AcceptChanged: c.Changed, AcceptRemoved: c.Removed, Date: time.Now(), Agent: string(agent), NoSync: !c.Sync, Progress: m.Report,
	})
	m.Close()
	if err != nil || !c.JSON {
		sayRecovered(on, c.Dir, did.Recovered)
	}
	refused := errors.Is(err, bags.ErrNotAccepted)
	if err != nil && !refused {
		return err
	}
	if c.JSON {
		if err := on.JSON(did); err != nil {
			return err
		}
	} else {
		c.print(on, did)
	}
	if refused {
		on.Talk("bagpipe: %v; look at these files, and then: bagpipe bag update --changed --removed %s", err, c.Dir)
		return screen.ExitError
	}
	return nil
}

func (c *bagUpdateCmd) print(on *screen.Screen, did bags.Updated) {
	for _, kind := range []struct {
		word  string
		paths []string
	}{{"added", did.Added}, {"changed", did.Changed}, {"removed", did.Removed}} {
		for _, p := range kind.paths {
			fmt.Fprintf(on.Out, "%s: %s\n", kind.word, p)
		}
	}
	if !did.Written {
		return
	}
	from := ""
	if did.From != "1.0" {
		from = ", was " + did.From
	}
	fmt.Fprintf(on.Out, "%s: BagIt 1.0%s, %s, %s; %d added, %d changed, %d removed\n",
		c.Dir, from, screen.Count(did.Files, "payload file"), screen.Count(did.Bytes, "byte"), len(did.Added), len(did.Changed), len(did.Removed))
}

type bagManifestCmd struct {
	Add bagManifestAddCmd `cmd:"" help:"Add manifests of one more algorithm to a bag that is valid."`
}

type bagManifestAddCmd struct {
	Algorithm string `arg:"" enum:"md5,sha1,sha224,sha256,sha384,sha512" help:"md5, sha1, sha224, sha256, sha384 or sha512."`
	Dir       string `arg:"" writes:"" help:"The bag's folder."`
	Sync      bool   `negatable:"" default:"true" help:"Wait until everything is on disk."`
	bagWork
}

func (c *bagManifestAddCmd) Run(ctx context.Context, on *screen.Screen) error {
	if err := cmp.Or(wantFolder(c.Dir), wantOutsideStore(c.Dir)); err != nil {
		return err
	}
	m := c.meter(on, "manifest add")
	did, err := bags.AddManifest(ctx, c.Dir, files.Algorithm(c.Algorithm), bags.AmendOptions{NoSync: !c.Sync, Progress: m.Report})
	m.Close()
	if err != nil || !c.JSON {
		sayRecovered(on, c.Dir, did.Recovered)
	}
	if errors.Is(err, bags.ErrNotValid) {
		printReport(on, c.Dir, did.Report)
	}
	if err != nil {
		return err
	}
	if c.JSON {
		return on.JSON(did)
	}
	fmt.Fprintf(on.Out, "%s: valid, and has manifest-%s.txt and tagmanifest-%s.txt now\n", c.Dir, c.Algorithm, c.Algorithm)
	return nil
}
