package steps

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"

	"bagpipe/layout"
	"bagpipe/steps/target"
)

// StoreTarget is the name of the store among the targets.
const StoreTarget layout.Name = "store"

// Goals are the targets that a collection's bags are deposited on.
type Goals struct {
	Targets []Goal
	Copies  int // that must be written and verified before a deposit is completed
}

// Goal is one target; Down, why it cannot be used now.
type Goal struct {
	Name   layout.Name
	Layout string
	Target target.Target
	Down   error
	Held   layout.DepositCopy         // the recorded copy of the item's version; zero: there is none
	Record map[int]layout.DepositCopy // those of all its versions
}

// outcome is what became of one goal.
type outcome struct {
	name layout.Name
	copy layout.DepositCopy
	err  error
}

// depositOnTargets makes the copies on all targets at once. The rules are:
//
//   - N verified copies complete the deposit, also when a target beyond them is down: the
//     message names it, and the copy may be added later;
//   - fewer, and only because targets are down, ask for a later call that names them;
//   - a copy that is there and another, or damaged, fails the step: a person must look.
func (c *Call) depositOnTargets(ctx context.Context) (Result, error) {
	if err := c.checkForms(); err != nil {
		return Result{}, err
	}
	all, err := c.putOnTargets(ctx)
	if err != nil {
		return Result{}, err
	}
	made := map[layout.Name]layout.DepositCopy{}
	var names, wanting []string
	var down, broken []error
	for _, o := range all {
		var away *target.Down
		var later *Later
		switch {
		case o.err == nil:
			made[o.name], names = o.copy, append(names, string(o.name))
		case errors.As(o.err, &later):
			down = append(down, fmt.Errorf("target %s: %s", o.name, later.Reason))
			wanting = append(wanting, string(o.name))
		case errors.As(o.err, &away):
			down = append(down, fmt.Errorf("target %s: %w", o.name, o.err))
			wanting = append(wanting, string(o.name))
		default:
			broken = append(broken, fmt.Errorf("target %s: %w", o.name, o.err))
		}
	}
	switch {
	case ctx.Err() != nil:
		return Result{}, ctx.Err()
	case len(broken) > 0:
		return Result{}, SystemFailure("%s", oneLine(broken))
	case len(made) < c.Goals.Copies:
		return Result{}, &Later{Reason: fmt.Sprintf("%d of %s verified; %s", len(made), copies(c.Goals.Copies), oneLine(down))}
	}
	text := copies(len(made)) + " verified: " + strings.Join(names, ", ")
	if len(wanting) > 0 {
		text += "; wanting: " + oneLine(down)
	}
	return Result{Message: text, Deposits: made}, nil
}

// checkForms refuses targets that keep bags in no form that the collection's profiles allow: one that
// wants archives has one among them, and one that forbids them none.
func (c *Call) checkForms() error {
	profiles, err := c.profiles()
	if err != nil {
		return err
	}
	for _, p := range profiles {
		packed := slices.ContainsFunc(c.Goals.Targets, func(g Goal) bool { return g.Layout == target.LayoutTar })
		accepted := len(p.AcceptSerialization) == 0 || slices.ContainsFunc(p.AcceptSerialization, func(kind string) bool { return strings.Contains(kind, "tar") })
		switch {
		case p.Serialization == "required" && !packed:
			return SystemFailure("the profile %s wants an archive, and no target of the collection has layout: tar; nothing was sent", p.Identifier)
		case packed && p.Serialization == "forbidden":
			return SystemFailure("the profile %s forbids archives, and a target of the collection has layout: tar; nothing was sent", p.Identifier)
		case packed && !accepted:
			return SystemFailure("the profile %s accepts %s, and a target of the collection has layout: tar; nothing was sent", p.Identifier, strings.Join(p.AcceptSerialization, ", "))
		}
	}
	return nil
}

func oneLine(errs []error) string {
	var all []string
	for _, err := range errs {
		all = append(all, err.Error())
	}
	return strings.Join(all, "; ")
}

// putOnTargets puts the bag on every target; the store is the deposit's own.
func (c *Call) putOnTargets(ctx context.Context) ([]outcome, error) {
	b, err := c.bagToDeposit()
	if err != nil {
		return nil, err
	}
	all := make([]outcome, len(c.Goals.Targets))
	var done sync.WaitGroup
	var mu sync.Mutex // guards sent, and calls of Progress
	var sent int64
	b.Progress = func(n int64) {
		if c.Progress != nil {
			mu.Lock()
			defer mu.Unlock()
			sent += n
			c.Progress(sent, 0)
		}
	}
	for i, g := range c.Goals.Targets {
		done.Go(func() {
			o := outcome{name: g.Name, err: g.Down}
			if o.err == nil {
				b := b
				b.Record = g.Record
				o.copy, o.err = g.Target.Put(ctx, b)
			}
			all[i] = o
		})
	}
	done.Wait()
	return all, nil
}

// bagToDeposit is the item's own bag or, once that was removed, the deposited one.
func (c *Call) bagToDeposit() (b target.Bag, err error) {
	m, err := c.manifest()
	if err != nil {
		return b, err
	}
	b = target.Bag{Item: c.Item, Name: c.Bag.NameOf(c.Manifest), Version: max(m.Version, 1), Dir: c.bagDir(), At: c.Now(),
		By: "Bagpipe " + string(c.Step), Message: fmt.Sprintf("%s: %s (%s/%s)", c.Step, c.Item, c.Collection, c.Label)}
	if _, err := os.Lstat(b.Dir); err == nil {
		return b, nil
	}
	if dir, is := Deposited(c.Store, c.Item, b.Version); is && slices.ContainsFunc(c.Goals.Targets, func(g Goal) bool { return g.Name == StoreTarget }) {
		b.Dir = dir
		return b, nil
	}
	return b, SystemFailure("no bag to deposit: derived/bag/%s is not there; the bag step makes it", c.Item)
}

// cleanupOnTargets removes what verified copies hold: each is compared and read once more.
func (c *Call) cleanupOnTargets(ctx context.Context, drop []layout.RelPath) (Result, error) {
	remove := present(c.Dir, drop)
	if _, err := os.Lstat(c.bagDir()); err != nil {
		if len(remove) > 0 {
			return Result{}, SystemFailure("derived/bag is gone, and with it what the deposit was compared with; %s stays: reset the step that makes the bag", joined(remove))
		}
		return c.heldOnTargets(ctx)
	}
	held, err := c.depositOnTargets(ctx)
	if err != nil {
		return Result{}, err
	}
	res, err := removed(ctx, c, append(remove, layout.DerivedDir+"/bag"))
	res.Message += "; " + held.Message
	res.Deposits = held.Deposits
	return res, err
}

// heldOnTargets reads the recorded copies where no bag is left to compare them with: that the
// deposit is told to be done is not yet a copy. As with a deposit, a target beyond the N sound
// copies may be down.
func (c *Call) heldOnTargets(ctx context.Context) (Result, error) {
	var sound []string
	var down, wanting []error
	for _, g := range c.Goals.Targets {
		err := g.Down
		if err == nil && g.Held.Place == "" {
			err = errors.New("no copy is recorded")
		}
		if err == nil {
			_, _, err = g.Target.Check(ctx, g.Held, target.Read)
		}
		var away *target.Down
		var later *Later // of a store that is not mounted
		switch {
		case ctx.Err() != nil:
			return Result{}, ctx.Err()
		case err == nil:
			sound = append(sound, string(g.Name))
		case errors.As(err, &later):
			down = append(down, fmt.Errorf("target %s: %s", g.Name, later.Reason))
		case errors.As(err, &away):
			down = append(down, fmt.Errorf("target %s: %w", g.Name, err))
		default:
			wanting = append(wanting, fmt.Errorf("target %s: %w", g.Name, err))
		}
	}
	switch {
	case len(sound) >= c.Goals.Copies:
	case len(down) > 0:
		return Result{}, &Later{Reason: oneLine(down)}
	default:
		help := "reset the step that makes the bag"
		if len(sound) > 0 {
			help = "have the others copied from the one that is sound, or " + help
		}
		return Result{}, SystemFailure("derived/bag is gone, and %d of %s found; %s: %s", len(sound), copies(c.Goals.Copies), oneLine(wanting), help)
	}
	return Result{Message: fmt.Sprintf("nothing to remove: derived/bag is gone already; %s verified: %s", copies(len(sound)), strings.Join(sound, ", "))}, nil
}

func copies(n int) string {
	if n == 1 {
		return "1 copy"
	}
	return fmt.Sprintf("%d copies", n)
}
