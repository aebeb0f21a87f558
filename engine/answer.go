package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"bagpipe/engine/gitstore"
	"bagpipe/engine/state"
	"bagpipe/layout"

	"golang.org/x/sync/errgroup"
)

// answersAtOnce is how many answers are handed to the store side by side: they
// share a group, and what else waits comes into the next.
const answersAtOnce = 256

// answerItems answers for those of the items there is an open verdict on. The turn
// is the caller's.
func (e *Engine) answerItems(ctx context.Context, ids []layout.ItemID) error {
	a := &e.arrivals
	var mu sync.Mutex // guards errs
	var errs []error
	var answering errgroup.Group
	answering.SetLimit(answersAtOnce)
	for _, id := range ids {
		a.mu.Lock()
		v := a.verdicts[id]
		a.mu.Unlock()
		if v == nil || len(v.breaches) == 0 {
			continue
		}
		answering.Go(func() error {
			err := e.answerItem(ctx, id, v)
			if err == nil {
				a.answered(id, v)
				return nil
			}
			mu.Lock()
			defer mu.Unlock()
			errs = append(errs, err)
			return nil
		})
	}
	_ = answering.Wait() // one that fails keeps no other
	return errors.Join(errs...)
}

// answered closes a verdict. What came meanwhile, such as the same answer by
// another engine, is held against what the item should be, not against the commit
// that was answered.
func (a *arrivals) answered(id layout.ItemID, v *verdict) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.unlisted || a.touched[id] {
		a.verdicts[id] = &verdict{want: v.want}
	} else {
		delete(a.verdicts, id)
	}
}

// answerItem commits an item's records as they should be, with a hold that says
// what was wrong. When another engine has answered, there is nothing left to do.
func (e *Engine) answerItem(ctx context.Context, id layout.ItemID, v *verdict) error {
	want, err := e.recordsOf(v.want, id)
	if err != nil {
		return err
	}
	key, err := e.intentKey()
	if err != nil {
		return err
	}
	text := v.text()
	last := v.breaches[len(v.breaches)-1].commit.Hash.String()
	did := false
	_, err = e.store.Commit(ctx, func(r gitstore.Reader) (*gitstore.Change, error) {
		did = false
		now, err := readRecords(r, id)
		if err != nil {
			return nil, err
		}
		plans := e.plansAt(r)
		mended, breaches := judge(id, want, now, plans)
		x, err := state.Decode(mended.execution)
		if err != nil {
			return nil, fmt.Errorf("item %s: %w", id, err)
		}
		if len(breaches) == 0 && (!v.forged() || x.Answered(last)) {
			return nil, nil
		}
		who := e.byEngine()
		hold := state.Hold{Key: key, At: e.o.Now(), By: who.agent, Text: text, Answers: last}
		if _, err := state.Apply(x, nil, hold); err != nil {
			return nil, err
		}
		x.Recompute(plans)
		mended.execution = x.Encode()
		did = true
		return &gitstore.Change{Files: now.changes(id, mended), Author: who.author, Message: v.message(id, mended, text, who.agent)}, nil
	})
	if err != nil {
		return fmt.Errorf("answer for item %s: %w", id.Short(), err)
	}
	if did {
		e.o.Log.Info("answered", "item", id, "commit", last)
		e.tellAnswer(fmt.Sprintf("item %s is held: %s", id.Short(), text))
	}
	return nil
}

// changes are the files that differ.
func (f records) changes(id layout.ItemID, to records) map[string][]byte {
	files := map[string][]byte{}
	dir := layout.ItemDir(id) + "/"
	for name, pair := range map[string][2][]byte{
		layout.ManifestJSON: {f.manifest, to.manifest}, layout.ExecutionJSON: {f.execution, to.execution}, layout.InventoryJSON: {f.inventory, to.inventory},
	} {
		if !bytes.Equal(pair[0], pair[1]) {
			files[dir+name] = pair[1]
		}
	}
	return files
}

func (v *verdict) forged() bool {
	return slices.ContainsFunc(v.breaches, func(b breach) bool { return b.forged })
}

// text says what was wrong, in which commit of whom, and what to do.
func (v *verdict) text() string {
	const most = 3
	var said []string
	for i, b := range v.breaches {
		if i == most {
			said = append(said, fmt.Sprintf("%d more commits did alike", len(v.breaches)-most))
			break
		}
		said = append(said, b.by()+" "+printable(oneLine(state.Breaches(b.what), 1500)))
	}
	return clip(strings.Join(said, "; ")+". What was acknowledged stands again; what was pushed is in that commit. If all is well, release the item.", maxMessage)
}

// by names a commit and its author, both foreign.
func (b breach) by() string {
	c := b.commit
	if c.Author == (gitstore.Signature{}) {
		return "a commit up to " + c.Hash.String()[:12]
	}
	return "commit " + c.Hash.String()[:12] + " by " + printable(oneLine(c.Author.Name+" <"+c.Author.Email+">", 200))
}

// message words the answer's commit.
func (v *verdict) message(id layout.ItemID, is records, text, agent string) string {
	m, err := layout.DecodeManifest(is.manifest)
	if err != nil {
		m = layout.Manifest{}
	}
	trailers := []trailer{
		{"Bagpipe-Item", string(id)},
		{"Bagpipe-Intent", state.HoldIntent},
		{"Bagpipe-To", "held"},
	}
	for i, b := range v.breaches {
		if i < 10 {
			trailers = append(trailers, trailer{"Bagpipe-Answers", b.commit.Hash.String()})
		}
	}
	subject := "hold: held " + string(id) + " (" + string(m.Collection) + "/" + clip(m.Label, 100) + ")"
	return message(subject, text, append(trailers, trailer{"Bagpipe-Agent", agent}))
}

// maxTold bounds the answers that are told one by one.
const maxTold = 20

// tellAnswer warns of an answer; where there are very many, of the first ones.
func (e *Engine) tellAnswer(text string) {
	a := &e.arrivals
	a.mu.Lock()
	a.told++
	n := a.told
	a.mu.Unlock()
	switch {
	case n <= maxTold:
		e.o.Warn(text)
	case n == maxTold+1:
		e.o.Warn("more items are held for what was pushed; bagpipe status lists them")
	}
}
