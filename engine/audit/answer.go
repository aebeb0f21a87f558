package audit

import (
	"context"
	"maps"
	"reflect"
	"slices"

	"bagpipe/engine/gitstore"
	"bagpipe/engine/guard"
	"bagpipe/engine/ledger"
	"bagpipe/engine/state"
	"bagpipe/layout"
)

// answer holds the answer to others' commits to what is allowed of it: it adds a hold, and
// nothing that was in no record before, or not so.
func (c *committed) answer() error {
	if len(c.items) > 1 {
		c.find(Event, c.items[0], "it answers for more than one item")
	}
	for _, id := range c.items {
		before, now, err := c.records(id)
		if err != nil {
			return err
		}
		y, err := state.Decode(now.Execution)
		if err != nil {
			c.find(Event, id, "it is no lawful answer: "+err.Error())
			continue
		}
		was, err := c.answered(id, before)
		if err != nil {
			return err
		}
		for _, k := range slices.Sorted(maps.Keys(y.Intents)) {
			if in := y.Intents[k]; !slices.ContainsFunc(was.intents[k], func(o state.Intent) bool { return reflect.DeepEqual(o, in) }) && (in.Kind != state.HoldIntent || !c.answers(string(in.Target))) && !c.reverted(in) {
				c.find(Event, id, "it answers, and adds the "+in.Kind+" "+string(k))
			}
		}
		for _, name := range slices.Sorted(maps.Keys(y.Workflows)) {
			for step, s := range y.Workflows[name].Steps {
				for k, a := range s.Attempts {
					if ref := name + "/" + string(step) + " " + k.String(); !slices.ContainsFunc(was.attempts[ref], func(o state.Attempt) bool { return o.Same(&a) }) {
						c.find(Event, id, "it answers, and adds or ends attempt "+ref)
					}
				}
			}
		}
		for _, wrong := range answerMisworded(c.Commit, id) {
			c.find(Words, id, wrong)
		}
	}
	return nil
}

// reverted reports whether an intent is what a revert means that the commit answers: in the
// words and the name of who reverted.
func (c *committed) reverted(in state.Intent) bool {
	switch in.Kind {
	case state.HoldIntent, state.ReleaseIntent, state.ResetIntent, state.RetryIntent, state.ActivateIntent, state.DeactivateIntent:
	default:
		return false
	}
	return slices.ContainsFunc(c.Trailers, func(t gitstore.Trailer) bool {
		if t.Key != "Bagpipe-Answers" || len(t.Value) < 12 || in.Text != state.RevertedBy+t.Value[:12] {
			return false
		}
		h, err := gitstore.ParseHash(t.Value)
		if err != nil {
			return false
		}
		v, err := c.a.ledger.Store.At(h)
		if err != nil {
			return false
		}
		of, err := v.About()
		return err == nil && in.By == ledger.PersonActor(of.Author).Agent
	})
}

func (c *committed) answers(commit string) bool {
	return slices.ContainsFunc(c.Trailers, func(t gitstore.Trailer) bool { return t.Key == "Bagpipe-Answers" && t.Value == commit })
}

// known are the intents and attempts that stood in some records.
type known struct {
	intents  map[layout.IntentKey][]state.Intent
	attempts map[string][]state.Attempt
}

// answered gives what stood in the record before the answer, and before what it answers.
func (c *committed) answered(id layout.ItemID, before ledger.Records) (known, error) {
	k := known{map[layout.IntentKey][]state.Intent{}, map[string][]state.Attempt{}}
	k.add(before)
	for _, t := range c.Trailers {
		h, err := gitstore.ParseHash(t.Value)
		if t.Key != "Bagpipe-Answers" || err != nil {
			continue
		}
		at, err := c.a.ledger.Store.At(h)
		if err != nil {
			c.find(Words, id, "it answers commit "+t.Value+", which is not there")
			continue
		}
		wrong, err := at.About()
		if err != nil {
			return k, err
		}
		if err := c.addJoin(k, wrong.Parents, id); err != nil {
			return k, err
		}
		for _, p := range wrong.Parents {
			v, err := c.a.ledger.Store.At(p)
			if err != nil {
				return k, err
			}
			of, err := ledger.StandingOf(c.a.ledger, v, id)
			if err != nil {
				return k, err
			}
			k.add(of)
		}
	}
	return k, nil
}

// addJoin notes what the join of a merge's parents has, such as a hold for what both changed.
func (c *committed) addJoin(k known, parents []gitstore.Hash, id layout.ItemID) error {
	if len(parents) != 2 {
		return nil
	}
	base, err := c.a.ledger.Store.Base(context.Background(), parents[0], parents[1])
	if err != nil || base.IsZero() {
		return err
	}
	var of [3]ledger.Records
	for i, h := range []gitstore.Hash{base, parents[0], parents[1]} {
		v, err := c.a.ledger.Store.At(h)
		if err == nil {
			of[i], err = ledger.StandingOf(c.a.ledger, v, id)
		}
		if err != nil {
			return err
		}
	}
	if of[1].Absent() || of[2].Absent() {
		return nil
	}
	united, err := guard.JoinRecords(id, of[0], of[1], of[2], c.a.ledger.PlansAt(c.now))
	if err == nil {
		k.add(united)
	}
	return err
}

func (k known) add(of ledger.Records) {
	x, err := state.Decode(of.Execution)
	if err != nil {
		return // it holds nothing that could be brought back
	}
	for i, in := range x.Intents {
		k.intents[i] = append(k.intents[i], in)
	}
	for name, w := range x.Workflows {
		for step, s := range w.Steps {
			for key, a := range s.Attempts {
				ref := name + "/" + string(step) + " " + key.String()
				k.attempts[ref] = append(k.attempts[ref], a)
			}
		}
	}
}
