package admin

import (
	"context"
	"errors"
	"fmt"

	"bagpipe/cmd/bagpipe/internal/screen"
	"bagpipe/engine"
	"bagpipe/engine/audit"
	"bagpipe/engine/gitstore"
)

// Audit proves the history.
type Audit struct {
	Since   string `placeholder:"COMMIT" help:"Only the commits that do not lead to this one, which an audit found sound."`
	Signers string `placeholder:"FILE" help:"Whose signatures of anchors count, as ssh-keygen reads it; default: trust/allowed_signers of the history itself."`
	JSON    bool   `name:"json" help:"Print JSON, one object a line; the last is the summary."`
	Quiet   bool   `short:"q" help:"Print findings alone."`
}

// Run prints a line for each finding; exit code 1 when there is one.
func (c *Audit) Run(ctx context.Context, on *screen.Screen, around screen.Around, options Options) (err error) {
	var since gitstore.Hash
	if c.Since != "" {
		if since, err = gitstore.ParseHash(c.Since); err != nil {
			return screen.WrongUse("--since: " + err.Error())
		}
	}
	root, err := engine.Find(string(around))
	if err != nil {
		return err
	}
	o, err := options()
	if err != nil {
		return err
	}
	o.ReadOnly = true
	e, err := engine.Open(ctx, root, o)
	if err != nil { // it may be damaged where an engine begins to read
		said, errCheck := gitstore.Fsck(ctx, root, gitstore.Hash{}, gitstore.Hash{})
		for _, line := range said {
			c.print(on, audit.Finding{Kind: audit.Object, Text: line})
		}
		return errors.Join(err, errCheck)
	}
	report, err := audit.New(e.Ledger, e.Guard).Run(ctx, audit.Options{Since: since, Signers: c.Signers}, func(f audit.Finding) { c.print(on, f) })
	if err := errors.Join(err, e.Close()); err != nil {
		return err
	}
	switch {
	case c.JSON:
		err = on.JSONLine(report)
	case !c.Quiet || report.Findings > 0:
		_, err = fmt.Fprintf(on.Out, "%s up to %s: %s made again, %s made again, %d by hand; %s answered; %s: %s\n", screen.Count(report.Commits, "commit"), report.Tip[:12],
			screen.Count(report.Events, "event"), screen.Count(report.Joins, "join"), report.ByHand, screen.Count(report.Answered, "unlawful change"), screen.Count(report.Anchors, "anchor"), screen.Count(report.Findings, "finding"))
	}
	if err == nil && report.Findings > 0 {
		return screen.ExitError
	}
	return err
}

func (c *Audit) print(on *screen.Screen, f audit.Finding) {
	if c.JSON {
		if err := on.JSONLine(f); err != nil {
			on.Talk("bagpipe: %v", err)
		}
		return
	}
	at := f.Kind
	if f.Commit != "" {
		at += "  " + f.Commit[:12]
	}
	if f.Item != "" {
		at += "  item " + f.Item.Short()
	}
	fmt.Fprintf(on.Out, "%s: %s\n", at, f.Text)
}

// Anchor signs the history.
type Anchor struct {
	Key  string `placeholder:"FILE" help:"The SSH key; default: Git's user.signingKey."`
	JSON bool   `name:"json" help:"Print JSON."`
}

// Run prints the tag.
func (c *Anchor) Run(ctx context.Context, on *screen.Screen, open Open) error {
	return open.plain(ctx, func(e *engine.Engine) error {
		name, err := audit.New(e.Ledger, e.Guard).Anchor(ctx, c.Key)
		switch {
		case err != nil:
			return err
		case c.JSON:
			return on.JSON(map[string]string{"tag": name})
		}
		_, err = fmt.Fprintln(on.Out, name)
		return err
	})
}

// Receipt proves what was recorded of one item.
type Receipt struct {
	Item string `arg:"" help:"Identifier, the beginning of one, or label."`
}

// Run prints the receipt.
func (c *Receipt) Run(ctx context.Context, on *screen.Screen, open Open) error {
	return open.plain(ctx, func(e *engine.Engine) error {
		id, err := e.Ask.Resolve(ctx, c.Item)
		if err != nil {
			return err
		}
		return audit.New(e.Ledger, e.Guard).Receipt(ctx, id, on.Out)
	})
}
