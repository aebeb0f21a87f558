package engine

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"bagpipe/engine/queue"
	"bagpipe/engine/state"
	"bagpipe/layout"

	"golang.org/x/sync/errgroup"
)

// FailureGroup is what waits for a person for the same reason.
type FailureGroup struct {
	ID       string           `json:"group"`
	Workflow string           `json:"workflow"`
	Step     layout.Name      `json:"step"` // "": the workflow as a whole, or the record
	Kind     string           `json:"kind"` // content, system, internal or record
	Message  string           `json:"message"`
	Count    int              `json:"count"`
	Oldest   time.Time        `json:"oldest"`
	Newest   time.Time        `json:"newest"`
	Examples []FailureExample `json:"examples"`
	members  []failing
}

// FailureExample is one item of a group.
type FailureExample struct {
	Item       layout.ItemID `json:"item"`
	Collection layout.Name   `json:"collection"`
	Label      string        `json:"label"`
	Message    string        `json:"message"`
	Parent     layout.ItemID `json:"parent,omitempty"` // it is a child of
}

// failing is one thing on one item that waits for a person.
type failing struct {
	item       layout.ItemID
	collection layout.Name
	label      string
	run        string // numbered; "" for a record that cannot be read
	step       layout.Name
	attempt    layout.AttemptKey
	kind       string
	message    string
	since      time.Time
	parent     layout.ItemID
}

// The kinds of failures besides those of steps.
const (
	internalKind = "internal" // an internal error stopped the workflow
	recordKind   = "record"   // the record cannot be read
)

// failings lists what on an item waits for a person after a failure: not what is
// tolerated, nor what is of a workflow that was taken out of the queues.
func failings(it *queue.Item) (out []failing) {
	base := failing{item: it.ID, collection: it.Collection, label: it.Label, since: it.Created}
	if it.Parent != nil {
		base.parent = it.Parent.Item
	}
	if it.Broken != "" {
		base.kind, base.message = recordKind, it.Broken
		return []failing{base}
	}
	for r := range it.Runs {
		run := &it.Runs[r]
		if run.Status != state.Failed {
			continue
		}
		steps := 0
		for i := range run.Steps {
			s := &run.Steps[i]
			if s.Status != state.Failed || run.Plan.Steps[i].Tolerated() {
				continue
			}
			steps++
			f := base
			f.run, f.step, f.attempt = run.Name, layout.Name(run.Plan.Steps[i].Name), s.Current
			f.kind, f.message, f.since = s.Kind, s.Message, s.Since
			out = append(out, f)
		}
		if steps == 0 && run.Internal != "" {
			f := base
			f.run, f.kind, f.message, f.since = run.Name, internalKind, run.Internal, run.InternalAt
			out = append(out, f)
		}
	}
	return out
}

// FailureFilter narrows failures; zero fields do not.
type FailureFilter struct {
	Group    string // the beginning of a group's identifier
	Workflow string // accession or accession.1
	Step     layout.Name
	Message  string // somewhere in the message, or in the group's
}

func (f FailureFilter) fits(x failing, group, message string) bool {
	base, _ := state.Instance(x.run)
	return strings.HasPrefix(group, f.Group) &&
		(f.Workflow == "" || f.Workflow == base || f.Workflow == x.run) &&
		(f.Step == "" || f.Step == x.step) &&
		(f.Message == "" || strings.Contains(x.message, f.Message) || strings.Contains(message, f.Message))
}

// examples is how many items a group names.
const examples = 3

// Failures groups what waits for a person by workflow, step, kind and message, the
// largest group first. Load must have been called.
func (e *Engine) Failures(f FailureFilter) []FailureGroup {
	groups := map[string]*FailureGroup{}
	for it := range e.index.With(queue.Failed | queue.Broken) {
		for _, x := range failings(it) {
			workflow, _ := state.Instance(x.run)
			message := likeness(x)
			id := groupID(workflow, string(x.step), x.kind, message)
			if !f.fits(x, id, message) {
				continue
			}
			g := groups[id]
			if g == nil {
				g = &FailureGroup{ID: id, Workflow: workflow, Step: x.step, Kind: x.kind, Message: message, Oldest: x.since, Newest: x.since}
				groups[id] = g
			}
			g.add(x)
		}
	}
	out := make([]FailureGroup, 0, len(groups))
	for _, g := range groups {
		out = append(out, *g)
	}
	slices.SortFunc(out, func(a, b FailureGroup) int {
		return cmp.Or(-cmp.Compare(a.Count, b.Count), cmp.Compare(a.Workflow, b.Workflow), cmp.Compare(a.Step, b.Step), cmp.Compare(a.ID, b.ID))
	})
	return out
}

func (g *FailureGroup) add(x failing) {
	g.members = append(g.members, x)
	g.Count++
	if x.since.Before(g.Oldest) {
		g.Oldest = x.since
	}
	if x.since.After(g.Newest) {
		g.Newest = x.since
	}
	if len(g.Examples) < examples {
		g.Examples = append(g.Examples, FailureExample{Item: x.item, Collection: x.collection, Label: x.label, Message: x.message, Parent: x.parent})
	}
}

// groupID is eight hexadecimal digits that are the same for the same failures
// everywhere and always.
func groupID(of ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(of, "\x00")))
	return hex.EncodeToString(sum[:4])
}

var (
	hexes   = regexp.MustCompile(`\b0[xX][0-9a-fA-F]+\b|\b[0-9a-fA-F]*[0-9][0-9a-fA-F]*(-[0-9a-fA-F]{2,})*\b`)
	numbers = regexp.MustCompile(`[0-9]+([.,:][0-9]+)*`)
)

// likeness is a message without what differs from item to item: its label, and
// numbers and identifiers, for which # stands.
func likeness(x failing) string {
	m := x.message
	if label := strings.TrimSpace(x.label); len(label) >= 3 {
		m = strings.ReplaceAll(m, label, "LABEL")
	}
	m = hexes.ReplaceAllStringFunc(m, func(s string) string {
		if len(s) < 6 && !strings.HasPrefix(strings.ToLower(s), "0x") {
			return s
		}
		return "#"
	})
	return clip(numbers.ReplaceAllString(m, "#"), 500)
}

// Retried is what became of one item of a group.
type Retried struct {
	Item     layout.ItemID `json:"item"`
	Label    string        `json:"label"`
	Workflow string        `json:"workflow"`
	Step     layout.Name   `json:"step,omitempty"`
	Refused  string        `json:"refused,omitempty"`
}

// retriesAtOnce is how many retries are handed to the store side by side: they
// share a group of commits.
const retriesAtOnce = 256

// Members are the failures that the groups hold.
func Members(groups []FailureGroup) (all []failing) {
	for _, g := range groups {
		all = append(all, g.members...)
	}
	return all
}

// RetryFailures lets failures be tried again, as the acting person: a
// commit for each item. dry changes nothing.
func (e *Engine) RetryFailures(ctx context.Context, all []failing, text string, dry bool) ([]Retried, error) {
	rows, errs := make([]Retried, len(all)), make([]error, len(all))
	var retrying errgroup.Group
	retrying.SetLimit(retriesAtOnce)
	for i, x := range all {
		rows[i] = Retried{Item: x.item, Label: x.label, Workflow: x.run, Step: x.step}
		if x.kind == recordKind {
			rows[i].Refused = "its record cannot be read: " + x.message
		}
		if dry || rows[i].Refused != "" {
			continue
		}
		retrying.Go(func() error {
			err := e.retryFailing(ctx, x, text)
			if IsRefused(err) {
				rows[i].Refused, err = err.Error(), nil
			}
			errs[i] = err
			return nil
		})
	}
	_ = retrying.Wait() // one that fails keeps no other
	return rows, errors.Join(errs...)
}

func (e *Engine) retryFailing(ctx context.Context, x failing, text string) error {
	if x.kind == internalKind {
		_, err := e.Activate(ctx, x.item, x.run, text)
		return err
	}
	key, err := e.intentKey()
	if err != nil {
		return err
	}
	_, err = e.step(ctx, x.item, x.run, e.byPerson(), text, func(rec *record) (state.Event, error) {
		if _, s := rec.execution.Find(x.run, x.step); s != nil {
			if now, _, _ := s.Current(); now != x.attempt {
				return nil, &state.IllegalError{Event: "retry", Item: x.item, Workflow: x.run, Step: x.step,
					Reason: fmt.Sprintf("attempt %s was seen, and %s is the last by now", x.attempt, now)}
			}
		}
		return state.Retry{Key: key, Workflow: x.run, Step: x.step, At: e.o.Now(), By: e.person(), Text: clip(printable(text), maxMessage)}, nil
	}, nil)
	return err
}
