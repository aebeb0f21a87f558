package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"bagpipe/engine/ask"
	"bagpipe/engine/gitstore"
	"bagpipe/engine/web/internal/desk"
	"bagpipe/layout"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
)

type eventsIn struct {
	After      string `query:"after" doc:"the commit after which; else from now on"`
	Wait       string `query:"wait" doc:"long-poll: answer with a list, after so long at most, as in 30s"`
	Last       string `header:"Last-Event-ID" doc:"as after"`
	Item       string `query:"item"`
	Collection string `query:"collection"`
	Workflow   string `query:"workflow" doc:"of the transition, as are step and status"`
	Step       string `query:"step"`
	Status     string `query:"status" doc:"that it led to"`
	EventItems
}

// EventItems narrow events by the items they are about, as those stand now.
type EventItems struct {
	Lane    string   `query:"lane"`
	Batch   string   `query:"batch"`
	Reached string   `query:"reached" doc:"a milestone"`
	Failure string   `query:"failure"`
	Older   string   `query:"older"`
	Held    bool     `query:"held"`
	Parent  string   `query:"parent"`
	Where   string   `query:"where" doc:"a condition"`
	Text    string   `query:"q"`
	Facet   []string `query:"facet,explode" doc:"NAME:VALUE"`
}

// filter is what narrows by items; nil: nothing does.
func (e *EventItems) filter() url.Values {
	q := (&Listing{Lane: e.Lane, Batch: e.Batch, Reached: e.Reached, Failure: e.Failure, Older: e.Older, Held: e.Held, Parent: e.Parent, Where: e.Where, Text: e.Text, Facet: e.Facet}).values()
	if len(q) == 1 && len(e.Facet) == 0 { // facets stand there, also when there are none
		return nil
	}
	return q
}

// event is one transition.
type event struct {
	ID         string    `json:"id"` // the commit
	Time       time.Time `json:"time"`
	Author     string    `json:"author"`
	Subject    string    `json:"subject"`
	Item       string    `json:"item,omitempty"`
	Collection string    `json:"collection,omitempty"`
	Workflow   string    `json:"workflow,omitempty"`
	Step       string    `json:"step,omitempty"`
	From       string    `json:"from,omitempty"`
	To         string    `json:"to,omitempty"`
	Attempt    string    `json:"attempt,omitempty"`
	Agent      string    `json:"agent,omitempty" doc:"who did it; of a robot its step, and the worker or host and the process"`
}

// longestWait bounds a long-poll.
const longestWait = time.Minute

func (a *API) registerEvents() {
	stream(a, "events", "One event for each transition: a stream, or a list after waiting", []string{"text/event-stream", "application/json"}, func(ctx huma.Context, in *eventsIn) error {
		r, w := humago.Unwrap(ctx)
		after := in.After
		if in.Last != "" {
			after = in.Last
		}
		a.d.Pulse.Look(a.d.Ask.Tip) // an answer to the same caller may have told of later commits
		if after == "" {
			after, _ = a.d.Pulse.At()
		}
		if in.Wait != "" {
			return a.poll(r.Context(), w, in, after)
		}
		return a.feed(r.Context(), w, in, after)
	})
}

// since gives the events after a commit that the caller wants, and the last commit looked at.
func (a *API) since(ctx context.Context, in *eventsIn, after string) (events []event, last string, err error) {
	commits, err := a.d.Ask.Since(ctx, after)
	if errors.Is(err, ask.ErrUnknownCommit) {
		return nil, after, withStatus{err, http.StatusGone, "gone"}
	}
	last = after
	who := desk.Who(ctx)
	fits := func(string) bool { return true }
	if q := in.filter(); q != nil && err == nil {
		f, err := a.d.Filter(ctx, q)
		if err == nil {
			fits, err = a.d.Ask.Fitting(ctx, f)
		}
		if err != nil {
			return nil, after, err
		}
	}
	for _, c := range commits {
		last = c.Hash.String()
		e := a.eventOf(c)
		if len(who.Collections) > 0 && (e.Collection == "" || !who.Reaches(e.Collection)) || !in.wants(e) || !fits(e.Item) {
			continue
		}
		events = append(events, e)
	}
	return events, last, err
}

func (a *API) eventOf(c gitstore.Commit) event {
	e := event{ID: c.Hash.String(), Time: c.When.UTC(), Author: c.Author.Name, Subject: c.Subject}
	for _, t := range c.Trailers {
		switch t.Key {
		case "Bagpipe-Item":
			e.Item = t.Value
		case "Bagpipe-Workflow":
			e.Workflow = t.Value
		case "Bagpipe-Step":
			e.Step = t.Value
		case "Bagpipe-From":
			e.From = t.Value
		case "Bagpipe-To":
			e.To = t.Value
		case "Bagpipe-Attempt":
			e.Attempt = t.Value
		case "Bagpipe-Agent":
			e.Agent = t.Value
		}
	}
	if id, err := layout.ParseItemID(e.Item); err == nil {
		if of, err := a.d.Ask.CollectionOf(context.Background(), id); err == nil {
			e.Collection = string(of)
		}
	}
	return e
}

func (in *eventsIn) wants(e event) bool {
	base, _, _ := strings.Cut(e.Workflow, ".")
	return (in.Item == "" || strings.HasPrefix(e.Item, in.Item)) && (in.Collection == "" || in.Collection == e.Collection) &&
		(in.Workflow == "" || in.Workflow == e.Workflow || in.Workflow == base) && (in.Step == "" || in.Step == e.Step) && (in.Status == "" || in.Status == e.To)
}

// poll answers with a list, once there is an event, or the time is over.
func (a *API) poll(ctx context.Context, w http.ResponseWriter, in *eventsIn, after string) error {
	wait, err := desk.Duration(in.Wait)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, min(wait, longestWait))
	defer cancel()
	events := []event{}
	for {
		tip, moved := a.d.Pulse.At()
		if tip != after {
			found, last, err := a.since(context.WithoutCancel(ctx), in, after)
			if err != nil {
				return err
			}
			after, events = last, append(events, found...)
		}
		if len(events) > 0 || ctx.Err() != nil {
			break
		}
		select {
		case <-ctx.Done():
		case <-moved:
		}
	}
	data, err := json.Marshal(struct {
		Last   string  `json:"last"` // ask again after this commit
		Events []event `json:"events"`
	}{after, events})
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(append(data, '\n')) // who asked is gone
	return nil
}

// feed writes events as they come, and says something at least every 20 seconds.
func (a *API) feed(ctx context.Context, w http.ResponseWriter, in *eventsIn, after string) error {
	const silent, patience = 20 * time.Second, 30 * time.Second
	c := http.NewResponseController(w)
	begun := false
	for {
		tip, moved := a.d.Pulse.At()
		text := ": still here\n\n"
		if tip != after || !begun {
			events, last, err := a.since(ctx, in, after)
			if err != nil && begun {
				return nil // the next request is told
			}
			if err != nil {
				return err
			}
			after, text = last, textOf(events)
		}
		if !begun {
			w.Header().Set("Content-Type", "text/event-stream")
			text, begun = "retry: 2000\n\n"+text, true
		}
		_ = c.SetWriteDeadline(time.Now().Add(patience))
		if _, err := fmt.Fprint(w, text); err != nil {
			return nil // who asked is gone
		}
		if err := c.Flush(); err != nil {
			return nil
		}
		timer := time.NewTimer(silent)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-moved:
			timer.Stop()
		case <-timer.C:
		}
	}
}

func textOf(events []event) string {
	var b strings.Builder
	for _, e := range events {
		data, err := json.Marshal(e)
		if err != nil {
			continue // texts and times always can be written
		}
		fmt.Fprintf(&b, "id: %s\nevent: transition\ndata: %s\n\n", e.ID, data)
	}
	return b.String()
}
