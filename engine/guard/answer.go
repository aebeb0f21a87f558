package guard

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"bagpipe/engine/gitstore"
	"bagpipe/engine/ledger"
	"bagpipe/engine/state"
	"bagpipe/layout"

	"golang.org/x/sync/errgroup"
)

// answersAtOnce is how many answers are handed to the store side by side: they
// share a group, and what else waits comes into the next.
const answersAtOnce = 256

// answerItems answers for those of the items there is an open verdict on. The turn
// is the caller's.
func (g *Guard) answerItems(ctx context.Context, ids []layout.ItemID) error {
	var mu sync.Mutex // guards errs
	var errs []error
	var answering errgroup.Group
	answering.SetLimit(answersAtOnce)
	for _, id := range ids {
		g.mu.Lock()
		v := g.verdicts[id]
		g.mu.Unlock()
		if v == nil || len(v.breaches) == 0 {
			continue
		}
		answering.Go(func() error {
			err := g.answerItem(ctx, id, v)
			if err == nil {
				g.answered(id, v)
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
func (g *Guard) answered(id layout.ItemID, v *verdict) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.touched.has(id) {
		g.verdicts[id] = &verdict{want: v.want}
	} else {
		delete(g.verdicts, id)
	}
}

// answerItem commits an item's records as they should be, with a hold that says
// what was wrong. When another engine has answered, there is nothing left to do.
func (g *Guard) answerItem(ctx context.Context, id layout.ItemID, v *verdict) error {
	want, err := recordsOf(g.ledger, g.ledger.Store.At, v.want, id)
	if err != nil {
		return err
	}
	key, err := g.ledger.IntentKey()
	if err != nil {
		return err
	}
	last := v.breaches[len(v.breaches)-1].commit.Hash
	wrong, err := g.ledger.Store.At(last)
	if err != nil {
		return fmt.Errorf("answer for item %s: %w", id.Short(), err)
	}
	a := &answer{g: g, id: id, v: v, want: want, wrong: wrong, key: key}
	var change *gitstore.Change
	_, err = g.ledger.Store.Commit(ctx, func(r gitstore.Reader) (_ *gitstore.Change, err error) {
		change, err = a.change(ctx, r)
		return change, err
	})
	if err != nil {
		return fmt.Errorf("answer for item %s: %w", id.Short(), err)
	}
	if change != nil {
		g.ledger.Log.Info("answered", "item", id, "commit", last.String())
		if !v.peaceful() {
			g.tellAnswer(fmt.Sprintf("item %s is held: %s", id.Short(), a.text))
		}
	}
	return nil
}

// answer is one to the breaches of an item.
type answer struct {
	g     *Guard
	id    layout.ItemID
	v     *verdict
	want  ledger.Records   // as they should be
	wrong gitstore.View    // at the last breach
	key   layout.IntentKey // of the hold
	text  string           // of the hold
}

// change makes the answer's commit on what is there; nil: nothing is left to do.
func (a *answer) change(ctx context.Context, r gitstore.Reader) (*gitstore.Change, error) {
	g, v, last := a.g, a.v, a.wrong.Commit().String()
	now, err := ledger.StandingOf(g.ledger, r, a.id)
	if err != nil {
		return nil, err
	}
	plans := g.ledger.PlansAt(r)
	mended, breaches := judge(a.id, a.want, now, plans)
	unfounded, err := disposals(ctx, g.ledger, a.wrong, a.id, a.want, &mended, plans)
	if err != nil {
		return nil, err
	}
	untrue, err := untrueBeside(g.ledger.Store.At, cmp.Or(v.want.at, v.want.beside), r, a.id, a.want, now)
	if err != nil {
		return nil, err
	}
	copies, err := a.putBackCopies(now, &mended)
	if err != nil {
		return nil, err
	}
	x, err := state.Decode(mended.Execution)
	if err != nil {
		return nil, fmt.Errorf("item %s: %w", a.id, err)
	}
	a.text = v.text()
	if v.peaceful() {
		change, err := g.complete(a.id, v, now, mended, plans)
		if change != nil {
			maps.Copy(change.Files, untrue.was)
		}
		if change != nil || err == nil {
			return change, err
		}
		a.text = strings.TrimSuffix(a.text, ".") + ": it comes too late: " + err.Error()
	}
	if len(breaches)+len(unfounded)+len(untrue.what) == 0 && !copies && (!v.stays() || x.Answered(last)) && unsettled(mended) == "" {
		return nil, nil
	}
	who := g.ledger.ByEngine()
	hold := state.Hold{Key: a.key, At: g.ledger.Now(), By: who.Agent, Text: a.text, Answers: last}
	if _, err := state.Apply(x, nil, hold); err != nil {
		return nil, err
	}
	x.Recompute(plans)
	mended.Execution, mended.Retired = x.Encode(), layout.Standing{}
	files := now.Changes(a.id, mended)
	if now.Absent() || now.Retired != (layout.Standing{}) {
		err = g.bringBack(r, a.id, v.want, a.want, files)
	} else {
		maps.Copy(files, untrue.was)
	}
	return &gitstore.Change{Files: files, Author: who.Author, Message: v.message(a.id, mended, a.text, who.Agent)}, err
}

// putBackCopies puts deposits.json back where it still is what the last breach made of it: when it was changed by
// hand nothing in it tells.
func (a *answer) putBackCopies(now ledger.Records, mended *ledger.Records) (did bool, err error) {
	if !a.v.want.at.IsZero() || bytes.Equal(now.Deposits, a.want.Deposits) {
		return false, nil
	}
	wrong, err := ledger.StandingOf(a.g.ledger, a.wrong, a.id)
	if err != nil || !bytes.Equal(wrong.Deposits, now.Deposits) {
		return false, err
	}
	mended.Deposits = a.want.Deposits
	return true, nil
}

// bringBack adds to files what stood beside an item's records that r lacks, and takes the item's
// line away: not from a file of a newer schema, where records that stand go before it.
func (g *Guard) bringBack(r gitstore.Reader, id layout.ItemID, v version, is ledger.Records, files map[string][]byte) error {
	if err := g.besides(r, id, v, is, files); err != nil {
		return err
	}
	err := ledger.Recall(g.ledger, r, id, files)
	var newer *layout.SchemaError
	if errors.As(err, &newer) {
		return nil
	}
	return err
}

// besides adds to files what stood beside an item's records that r lacks.
func (g *Guard) besides(r gitstore.Reader, id layout.ItemID, v version, is ledger.Records, files map[string][]byte) error {
	at := cmp.Or(v.at, v.beside)
	if at.IsZero() {
		return nil
	}
	before, err := g.ledger.Store.At(at)
	if err != nil {
		return err
	}
	return ledger.Beside(g.ledger, before, is.Retired != layout.Standing{}, r, id, files)
}

// stays reports whether an answer is wanted though the records hold all that they should.
func (v *verdict) stays() bool {
	return slices.ContainsFunc(v.breaches, func(b breach) bool { return b.forged || b.meant != nil })
}

// peaceful reports whether nothing was altered or made up: some merge is to be completed,
// or some revert to be taken as what it means.
func (v *verdict) peaceful() bool {
	return !slices.ContainsFunc(v.breaches, func(b breach) bool { return b.forged || !b.lacks && b.meant == nil })
}

const answersTrailer = "Bagpipe-Answers"

// complete gives the commit that makes mended records whole, and adds the intents that
// reverts mean, in the names of those who reverted. nil: another engine did. The error says
// why a revert means nothing any more.
func (g *Guard) complete(id layout.ItemID, v *verdict, now, mended ledger.Records, plans state.Plans) (*gitstore.Change, error) {
	x, err := state.Decode(mended.Execution)
	if err != nil {
		return nil, err
	}
	m, err := layout.DecodeManifest(mended.Manifest)
	if err != nil {
		return nil, err
	}
	x.Manifest, x.Since = mended.Manifest, m.Since
	x.Recompute(plans)
	who := g.ledger.ByEngine()
	var trailers []ledger.Trailer
	verb := "completed"
	for i, b := range v.breaches {
		if i < 10 {
			trailers = append(trailers, ledger.Trailer{answersTrailer, b.commit.Hash.String()})
		}
		text := state.RevertedBy + b.commit.Hash.String()[:12]
		if b.meant == nil || state.Told(x, text) {
			continue
		}
		author := ledger.PersonActor(b.commit.Author)
		if err := state.Revert(x, *b.meant, plans, g.ledger.IntentKey, g.ledger.Now(), author.Agent, text); err != nil {
			return nil, err
		}
		who, verb = author, "reverted"
	}
	mended.Execution = x.Encode()
	files := now.Changes(id, mended)
	if len(files) == 0 {
		return nil, nil
	}
	subject := "answer: " + verb + " " + string(id) + " (" + string(m.Collection) + "/" + ledger.Clip(m.Label, 100) + ")"
	trailers = append(append([]ledger.Trailer{{"Bagpipe-Item", string(id)}}, trailers...), ledger.Trailer{"Bagpipe-Agent", who.Agent})
	return &gitstore.Change{Files: files, Author: who.Author, Message: ledger.Message(subject, "", trailers)}, nil
}

// text says what was wrong, in which commit of whom, and what to do.
func (v *verdict) text() string {
	if last := v.breaches[len(v.breaches)-1]; !slices.ContainsFunc(v.breaches, func(b breach) bool { return !b.conflict }) {
		return ledger.Clip(heldFor(last.what), ledger.MaxMessage)
	}
	const most = 3
	var said []string
	for i, b := range v.breaches {
		if i == most {
			said = append(said, fmt.Sprintf("%d more commits did alike", len(v.breaches)-most))
			break
		}
		said = append(said, b.by()+" "+ledger.Printable(ledger.OneLine(state.Breaches(b.what), 1500)))
	}
	end := ". The acknowledged records stand again; the pushed ones are in that commit. If all is well, release the item."
	if slices.ContainsFunc(v.breaches, func(b breach) bool { return b.forged }) {
		end = ". Attempts are kept, as they only grow: reset the steps of those that were not made so. If all is well, release the item."
	}
	return ledger.Clip(strings.Join(said, "; ")+end, ledger.MaxMessage)
}

// by names a commit and its author, both foreign.
func (b breach) by() string {
	c := b.commit
	return "commit " + c.Hash.String()[:12] + " by " + ledger.Printable(ledger.OneLine(c.Author.Name+" <"+c.Author.Email+">", 200))
}

// message words the answer's commit.
func (v *verdict) message(id layout.ItemID, is ledger.Records, text, agent string) string {
	m, err := layout.DecodeManifest(is.Manifest)
	if err != nil {
		m = layout.Manifest{}
	}
	trailers := []ledger.Trailer{
		{"Bagpipe-Item", string(id)},
		{"Bagpipe-Intent", state.HoldIntent},
		{"Bagpipe-To", "held"},
	}
	for i, b := range v.breaches {
		if i < 10 {
			trailers = append(trailers, ledger.Trailer{answersTrailer, b.commit.Hash.String()})
		}
	}
	subject := "hold: held " + string(id) + " (" + string(m.Collection) + "/" + ledger.Clip(m.Label, 100) + ")"
	return ledger.Message(subject, text, append(trailers, ledger.Trailer{"Bagpipe-Agent", agent}))
}

// maxTold bounds the answers that are told one by one.
const maxTold = 20

// tellAnswer warns of an answer; where there are very many, of the first ones.
func (g *Guard) tellAnswer(text string) {
	g.mu.Lock()
	n := len(g.told)
	switch {
	case n < maxTold:
		g.told = append(g.told, text)
	case n == maxTold:
		text = "more items are held for what was pushed; the status lists them"
		g.told = append(g.told, text)
	}
	g.mu.Unlock()
	if n <= maxTold {
		g.ledger.Warn(text)
	}
}

// Held tells of the items that this process held for what others committed: of the first ones each, and whether there are more.
func Held(g *Guard) []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return append([]string{}, g.told...)
}

// answers reports whether a commit says that it answers another.
func answers(c gitstore.Commit, to gitstore.Hash) bool {
	return slices.ContainsFunc(c.Trailers, func(t gitstore.Trailer) bool { return t.Key == answersTrailer && t.Value == to.String() })
}

// add notes a breach, but not again what an earlier commit did and this one only
// left so.
func add(open []breach, b breach) []breach {
	said := func(text string) bool {
		return slices.ContainsFunc(open, func(o breach) bool { return slices.Contains(o.what, text) })
	}
	b.what = slices.DeleteFunc(b.what, said)
	if len(b.what) == 0 {
		return open
	}
	return append(slices.Clip(open), b)
}
