package act

import (
	"context"
	"errors"
	"fmt"
	"time"

	"bagpipe/engine/ledger"
	"bagpipe/engine/state"
	"bagpipe/layout"

	"golang.org/x/sync/errgroup"
)

// Failing is one thing on one item that waits for a person.
type Failing struct {
	Item       layout.ItemID
	Collection layout.Name
	Label      string
	Run        string // numbered; "" for a record that cannot be read
	Step       layout.Name
	Attempt    layout.AttemptKey
	Kind       string
	Message    string
	Since      time.Time
	Parent     layout.ItemID
}

// The kinds of failures besides those of steps.
const (
	InternalKind = "internal" // an internal error stopped the workflow
	RecordKind   = "record"   // the record cannot be read
)

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

// RetryFailures lets failures be tried again, as the acting person: a
// commit for each item. dry changes nothing.
func (ac *Acts) RetryFailures(ctx context.Context, all []Failing, text string, dry bool) ([]Retried, error) {
	rows, errs := make([]Retried, len(all)), make([]error, len(all))
	var retrying errgroup.Group
	retrying.SetLimit(retriesAtOnce)
	for i, x := range all {
		rows[i] = Retried{Item: x.Item, Label: x.Label, Workflow: x.Run, Step: x.Step}
		if x.Kind == RecordKind {
			rows[i].Refused = "its record cannot be read: " + x.Message
		}
		if dry || rows[i].Refused != "" {
			continue
		}
		retrying.Go(func() error {
			err := ac.retryFailing(ctx, x, text)
			if ledger.IsRefused(err) {
				rows[i].Refused, err = err.Error(), nil
			}
			errs[i] = err
			return nil
		})
	}
	_ = retrying.Wait() // one that fails keeps no other
	return rows, errors.Join(errs...)
}

func (ac *Acts) retryFailing(ctx context.Context, x Failing, text string) error {
	if x.Kind == InternalKind {
		_, err := ac.Activate(ctx, x.Item, x.Run, text)
		return err
	}
	key, err := ac.ledger.IntentKey()
	if err != nil {
		return err
	}
	_, err = ac.ledger.Step(ctx, x.Item, x.Run, ac.who, text, func(rec *ledger.Record) (state.Event, error) {
		if _, s := rec.Execution.Find(x.Run, x.Step); s != nil {
			if now, _, _ := s.Current(); now != x.Attempt {
				return nil, &state.IllegalError{Event: "retry", Item: x.Item, Workflow: x.Run, Step: x.Step,
					Reason: fmt.Sprintf("attempt %s was seen, and %s is the last by now", x.Attempt, now)}
			}
		}
		return state.Retry{Key: key, Workflow: x.Run, Step: x.Step, At: ac.ledger.Now(), By: ac.who.Agent, Text: ledger.Clip(ledger.Printable(text), ledger.MaxMessage)}, nil
	}, nil)
	return err
}
