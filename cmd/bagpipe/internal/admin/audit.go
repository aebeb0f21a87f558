package admin

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"bagpipe/cmd/bagpipe/internal/screen"
	"bagpipe/engine"
	"bagpipe/engine/ask"
	"bagpipe/engine/audit"
	"bagpipe/engine/fixity"
	"bagpipe/engine/gitstore"
	"bagpipe/engine/ledger"
	"bagpipe/engine/state"
	"bagpipe/layout"
)

// Audit proves the history.
type Audit struct {
	Payload bool `help:"Read the bytes of items, too: those that are here, and the deposits."`
	auditWords
}

// auditWords are the words of an audit, here or of a backup.
type auditWords struct {
	Since   string `placeholder:"COMMIT" help:"Only the commits that do not lead to this one, which an audit found sound."`
	Signers string `placeholder:"FILE" help:"Whose signatures count, as ssh-keygen reads it; default: trust/allowed_signers of the history itself."`
	Root    string `placeholder:"FINGERPRINT" help:"The key, SHA256:…, that must have signed the first trust/allowed_signers."`
	JSON    bool   `name:"json" help:"Print JSON, one object a line; the last is the summary."`
	Quiet   bool   `short:"q" help:"Print findings alone."`

	named *strings.Replacer // of places in findings; nil: they stand as they are
}

// Run prints a line for each finding; exit code 1 when there is one.
func (c *Audit) Run(ctx context.Context, on *screen.Screen, around screen.Around, options Options) (err error) {
	root, err := engine.Find(string(around))
	if err != nil {
		return err
	}
	o, err := options()
	if err != nil {
		return err
	}
	return c.audit(ctx, on, root, o, c.Payload)
}

// audit goes through the history of the workspace at root, and prints.
func (c *auditWords) audit(ctx context.Context, on *screen.Screen, root string, o engine.Options, payload bool) (err error) {
	var since gitstore.Hash
	if c.Since != "" {
		if _, since, err = gitstore.Object(ctx, root, "commit", c.Since+"^{commit}"); err != nil {
			return screen.WrongUse(fmt.Sprintf("--since: this history has no commit %q, or several that begin so; expected a commit's hash, the beginning of one, a branch or a tag", c.Since))
		}
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
	if packs := e.Ledger.Store.Packs(); packs >= gitstore.ManyPacks {
		on.Talk("the history lies in %d packs, which takes longer to read, or is too many for git; where it is at work, bagpipe maintain joins them", packs)
	}
	report, err := audit.New(e.Ledger, e.Guard).Run(ctx, audit.Options{Since: since, Signers: c.Signers, Root: c.Root}, func(f audit.Finding) { c.print(on, f) })
	if err == nil && payload {
		err = c.payload(ctx, on, e, &report)
	}
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

// payload reads the bytes of the items, of which at least a part is here, and their deposits.
func (c *auditWords) payload(ctx context.Context, on *screen.Screen, e *engine.Engine, report *audit.Report) error {
	if err := e.Index.Load(ctx); err != nil {
		return err
	}
	rows, err := e.Ask.Items(ask.Filter{}, ask.Page{})
	if err != nil {
		return err
	}
	ids := make([]layout.ItemID, 0, len(rows))
	for _, r := range rows {
		ids = append(ids, r.Item)
	}
	v, err := e.Ledger.Store.Tip()
	if err != nil {
		return err
	}
	retired, err := ledger.FindRetired(ctx, v, "")
	if newer, is := errors.AsType[*layout.SchemaError](err); is {
		report.Findings++
		c.print(on, audit.Finding{Kind: audit.Payload, Text: newer.Error()})
	} else if err != nil {
		return err
	}
	for _, id := range append(ids, retired...) {
		p, err := fixity.PayloadOf(ctx, e.Fixity, id)
		if err != nil {
			continue // told of as a record
		}
		if len(p.Missing) > 0 {
			mine, err := c.mine(e, v, id)
			if err == nil && mine { // another's may be there
				report.Findings++
				c.print(on, audit.Finding{Item: id, Kind: audit.Payload, Text: strings.Join(p.Missing, ", ") + ": the bytes are not here"})
			}
			continue
		}
		found, err := e.Fixity.Check(ctx, id)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			report.Findings++
			c.print(on, audit.Finding{Item: id, Kind: audit.Payload, Text: err.Error()})
			continue
		}
		for _, copy := range found.Failed() {
			report.Findings++
			c.print(on, audit.Finding{Item: id, Kind: audit.Payload, Text: copy + ": " + found.Copies[copy].Message})
		}
	}
	return nil
}

// mine reports whether this site admitted an item.
func (c *auditWords) mine(e *engine.Engine, v gitstore.View, id layout.ItemID) (bool, error) {
	records, err := ledger.StandingOf(e.Ledger, v, id)
	if err != nil {
		return false, err
	}
	x, err := state.Decode(records.Execution)
	return err == nil && e.Ledger.Site.Mine(state.Admitter(x)), err
}

func (c *auditWords) print(on *screen.Screen, f audit.Finding) {
	if c.named != nil {
		f.Text = c.named.Replace(f.Text)
	}
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
	fmt.Fprintf(on.Out, "%s: %s\n", at, screen.Local(f.Text))
}

// Anchor signs the history.
type Anchor struct {
	Key  string `placeholder:"FILE" help:"The SSH key; default: Git's user.signingKey."`
	JSON bool   `name:"json" help:"Print JSON."`
}

// Run prints the tag.
func (c *Anchor) Run(ctx context.Context, on *screen.Screen, open Open) error {
	return open.plain(ctx, func(e *engine.Engine) error {
		name, stamp, err := e.Anchor(ctx, c.Key)
		if name != "" {
			if why, noSigners := audit.New(e.Ledger, e.Guard).Unlisted(ctx, name); noSigners != nil {
				err = errors.Join(err, noSigners)
			} else if why != "" {
				on.Talk("warning: %s: %s", name, why)
			}
		}
		switch {
		case err != nil && name == "":
			return err
		case c.JSON:
			return errors.Join(err, on.JSON(map[string]string{"tag": name, "timestamp": stamp}))
		case err != nil:
			fmt.Fprintln(on.Out, name)
			return err
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
