package admin

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"bagpipe/cmd/bagpipe/internal/screen"
	"bagpipe/engine"
	"bagpipe/engine/disposal"
	"bagpipe/engine/warrant"
	"bagpipe/layout"
)

// Dispose proposes that items are removed for good, and carries it out once persons approved.
type Dispose struct {
	List    disposeList    `cmd:"" default:"withargs" help:"List proposals, how they stand and whose word they wait for."`
	Propose disposePropose `cmd:"" help:"Propose to dispose of items; two persons besides you approve."`
	Approve disposeApprove `cmd:"" help:"Approve a proposal."`
	Refuse  disposeRefuse  `cmd:"" help:"Refuse a proposal; one person does."`
	Run     disposeRun     `cmd:"" help:"Carry out approved proposals: the bytes go, a tombstone stays."`
	Due     disposeDue     `cmd:"" help:"List the items that were kept for their time, by retention: in rules/."`
}

type disposeList struct {
	Proposal string `arg:"" optional:"" help:"Only this one, with its items: its key, or the beginning or end of it."`
	JSON     bool   `name:"json" help:"Print JSON."`
}

// Run lists proposals, or shows one.
func (c *disposeList) Run(ctx context.Context, on *screen.Screen, open Open) error {
	return open.plain(ctx, func(e *engine.Engine) error {
		var rows []*disposal.Row
		var err error
		if c.Proposal == "" {
			rows, err = e.Disposal.List(ctx)
		} else {
			var r *disposal.Row
			r, err = e.Disposal.Row(ctx, c.Proposal)
			rows = []*disposal.Row{r}
		}
		switch {
		case err != nil:
			return err
		case c.JSON:
			return on.JSON(append([]*disposal.Row{}, rows...))
		case len(rows) == 0:
			on.Talk("nothing is proposed")
			return nil
		case c.Proposal != "":
			return showProposal(on, rows[0])
		}
		t := screen.NewTable("proposal", "at", "items", "status", "approved", "by", "reason")
		for _, r := range rows {
			t.Row(r.Key, screen.When(r.At), screen.Figure(fmt.Sprint(len(r.Items))), r.Status, screen.Figure(fmt.Sprint(len(r.Approved))), r.By, r.Reason)
		}
		return t.Print(on.Out)
	})
}

func showProposal(on *screen.Screen, r *disposal.Row) error {
	fmt.Fprintf(on.Out, "proposal   %s\nstatus     %s\nat         %s\nby         %s\nreason     %s\n", r.Key, r.Status, screen.When(r.At), r.By, r.Reason)
	if r.Authority != "" {
		fmt.Fprintf(on.Out, "authority  %s\n", r.Authority)
	}
	fmt.Fprintf(on.Out, "digest     %s\n", r.Digest)
	for _, word := range []struct {
		says string
		by   []warrant.Said
	}{{"approved", r.Approved}, {"refused", r.Refused}} {
		for _, s := range word.by {
			fmt.Fprintf(on.Out, "%-9s  %s", word.says, s.Person)
			if s.Text != "" {
				fmt.Fprintf(on.Out, ": %s", s.Text)
			}
			fmt.Fprintln(on.Out)
		}
	}
	for _, text := range r.Void {
		fmt.Fprintf(on.Out, "no voice   %s\n", text)
	}
	fmt.Fprintln(on.Out)
	t := screen.NewTable("item", "collection", "label", "rule", "waits for")
	for _, id := range slices.Sorted(maps.Keys(r.Items)) {
		waits := r.Waits[id]
		if at, begun := r.Gone[id]; begun && at != nil {
			waits = "gone since " + screen.When(*at)
		} else if begun {
			waits = "begun, and not done"
		}
		t.Row(id.Short(), string(r.Items[id].Collection), r.Items[id].Label, r.Items[id].Rule, waits)
	}
	return t.Print(on.Out)
}

type disposePropose struct {
	Item      []string `arg:"" optional:"" help:"Identifier, the beginning of one, or label."`
	Due       bool     `help:"Propose the items that are due by retention: in rules/, both of then: dispose and of then: review."`
	Reason    string   `short:"m" aliases:"message" placeholder:"TEXT" help:"Why; stands in the history and on the tombstone."`
	Authority string   `placeholder:"TEXT" help:"The authority: a retention schedule, a law, a letter; default: the rule's."`
}

// Run proposes.
func (c *disposePropose) Run(ctx context.Context, on *screen.Screen, open Open) error {
	if c.Due == (len(c.Item) > 0) {
		return screen.WrongUse("give items, or --due")
	}
	if strings.TrimSpace(c.Reason) == "" {
		return screen.WrongUse("expected -m TEXT: why they are to be disposed of")
	}
	return open.with(ctx, func(e *engine.Engine) error {
		d := disposal.Draft{Reason: c.Reason, Authority: c.Authority}
		for _, ref := range c.Item {
			id, err := e.Ask.Resolve(ctx, ref)
			if err != nil {
				return err
			}
			d.Items = append(d.Items, id)
		}
		if c.Due {
			due, err := e.Disposal.Due(ctx)
			if err != nil {
				return err
			}
			for _, row := range due {
				if row.Open == "" && row.Stays == "" {
					d.Items = append(d.Items, row.Item)
					if d.Authority == "" {
						d.Authority = row.Authority
					}
				}
			}
			if len(d.Items) == 0 {
				on.Talk("nothing is due that may go and is not proposed already")
				return nil
			}
		}
		key, err := e.Disposal.Propose(ctx, d)
		if err != nil {
			return err
		}
		fmt.Fprintf(on.Out, "%s\n", key)
		on.Talk("%s proposed; it takes the approval of others: bagpipe dispose approve %s", screen.Count(len(d.Items), "item"), key)
		return nil
	})
}

// word is a person's word on a proposal.
type word struct {
	Proposal string `arg:"" help:"Its key, or the beginning or end of it."`
	Text     string `name:"message" short:"m" aliases:"text" placeholder:"TEXT" help:"Why; stands in the history."`
}

func (c *word) say(ctx context.Context, on *screen.Screen, open Open, says string) error {
	return open.plain(ctx, func(e *engine.Engine) error {
		if err := e.Disposal.Say(ctx, e.Ledger.ByPerson(), c.Proposal, says, c.Text); err != nil {
			return err
		}
		r, err := e.Disposal.Row(ctx, c.Proposal)
		switch {
		case err != nil:
			return err
		case r.Status == disposal.Proposed:
			on.Talk("proposal %s waits: %s", r.Key, strings.Join(slices.Compact(slices.Sorted(maps.Values(r.Waits))), "; "))
		default:
			on.Talk("proposal %s is %s", r.Key, r.Status)
		}
		return nil
	})
}

type disposeApprove struct{ word }

// Run approves.
func (c *disposeApprove) Run(ctx context.Context, on *screen.Screen, open Open) error {
	return c.say(ctx, on, open, warrant.Approved)
}

type disposeRefuse struct{ word }

// Run refuses.
func (c *disposeRefuse) Run(ctx context.Context, on *screen.Screen, open Open) error {
	return c.say(ctx, on, open, warrant.Refused)
}

type disposeRun struct {
	Proposal string `arg:"" optional:"" help:"Only this one: its key, or the beginning or end of it."`
	JSON     bool   `name:"json" help:"Print JSON, one object a line."`
}

// Run carries out what is approved; exit code 4 where an item stays.
func (c *disposeRun) Run(ctx context.Context, on *screen.Screen, open Open) error {
	return open.with(ctx, func(e *engine.Engine) error {
		gone, stay := 0, 0
		err := e.Disposal.Run(ctx, c.Proposal, func(t disposal.Told) {
			switch {
			case t.Gone:
				gone++
			default:
				stay++
			}
			if c.JSON {
				if err := on.JSONLine(t); err != nil {
					on.Talk("bagpipe: %v", err)
				}
				return
			}
			printDisposed(on, t)
		})
		if err != nil {
			return err
		}
		tidied, err := e.Disposal.Tidy(ctx)
		if tidied > 0 {
			on.Talk("%s disposed of elsewhere, and removed here", screen.CountVerb(tidied, "item was", "items were"))
		}
		if err != nil {
			return err
		}
		if gone+stay == 0 && !c.JSON {
			on.Talk("nothing is approved that is not done")
		}
		if stay > 0 {
			return screen.ExitSomeFailed
		}
		return nil
	})
}

func printDisposed(on *screen.Screen, t disposal.Told) {
	if !t.Gone {
		fmt.Fprintf(on.Out, "stays  %s  %s: %s\n", t.Item.Short(), t.Label, screen.Local(t.Why))
		return
	}
	fmt.Fprintf(on.Out, "gone   %s  %s\n", t.Item.Short(), t.Label)
	for _, where := range t.Removed {
		fmt.Fprintf(on.Out, "         removed from %s\n", where)
	}
	for _, what := range t.History {
		fmt.Fprintf(on.Out, "         the history keeps %s\n", what)
	}
}

type disposeDue struct {
	JSON bool `name:"json" help:"Print JSON."`
}

// Run lists what is due.
func (c *disposeDue) Run(ctx context.Context, on *screen.Screen, open Open) error {
	return open.with(ctx, func(e *engine.Engine) error {
		rows, err := e.Disposal.Due(ctx)
		if err != nil {
			return err
		}
		if c.JSON {
			return on.JSON(append([]disposal.Due{}, rows...))
		}
		if len(rows) == 0 {
			on.Talk("nothing is due; how long items are kept stands below retention: in %s/NAME.yaml", layout.RulesDir)
			return nil
		}
		t := screen.NewTable("item", "label", "rule", "due since", "then", "proposal", "stays")
		for _, r := range rows {
			t.Row(r.Item.Short(), r.Label, r.Rule, screen.When(r.Since), r.Then, r.Open, r.Stays)
		}
		return t.Print(on.Out)
	})
}
