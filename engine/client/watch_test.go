package client

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// listening is a client of a server, and what it hears from now on, for a minute at most.
func listening(t *testing.T, server *httptest.Server) (context.Context, *Client, iter.Seq[Event]) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	c, err := Dial(ctx, server.URL, Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cancel(); c.Close(); server.Close() })
	events := c.Events(ctx)
	if err := c.watch.begin(ctx); err != nil {
		t.Fatal(err)
	}
	return ctx, c, events
}

// Who listens is told once when the server is lost, with the reason, and once when it is reached again.
func TestTheConnectionIsToldOf(t *testing.T) {
	var down atomic.Bool
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		switch at := strings.TrimPrefix(q.URL.Path, "/api/v1/"); {
		case at == "openapi.json":
			_, _ = w.Write([]byte(`{"info":{"version":"1"}}`))
		case at == "workflows":
			_, _ = w.Write([]byte(`[]`))
		case down.Load():
			panic(http.ErrAbortHandler)
		default:
			select {
			case <-q.Context().Done():
			case <-time.After(20 * time.Millisecond):
			}
			_ = json.NewEncoder(w).Encode(map[string]any{"last": "c1", "events": []any{}})
		}
	}))
	ctx, _, events := listening(t, server)
	down.Store(true)
	go func() { time.Sleep(1200 * time.Millisecond); down.Store(false) }() // it is asked for several times meanwhile
	lost := false
	for e := range events {
		if e.Kind != EventConnection || (e.Err == nil) != lost || e.At.IsZero() {
			t.Fatalf("lost %v: %+v", lost, e)
		}
		if lost {
			break
		}
		lost = true
	}
	if !lost || ctx.Err() != nil {
		t.Errorf("lost %v: %v", lost, ctx.Err())
	}
}

// Of an item that is over before its events were read, all is told, its end last: also where it ends between the
// answer that tells of it first and the look at it.
func TestAQuickEndIsToldLast(t *testing.T) {
	read := `{"item":"i1","step":"read","to":"in-progress","attempt":"1-a"},{"item":"i1","step":"read","to":"completed","attempt":"1-a"}`
	begun := `{"item":"i1","step":"begin","to":"completed","attempt":"1-a"}`
	for name, told := range map[string][]string{"at once": {begun + "," + read}, "later": {begun, read}} {
		t.Run(name, func(t *testing.T) { quickEnd(t, told) })
	}
}

// quickEnd submits an item that is over, of which a poll tells what is told after another.
func quickEnd(t *testing.T, told []string) {
	var asked atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		switch at := strings.TrimPrefix(q.URL.Path, "/api/v1/"); {
		case at == "openapi.json":
			_, _ = w.Write([]byte(`{"info":{"version":"1"}}`))
		case at == "workflows":
			_, _ = w.Write([]byte(`[]`))
		case at == "items/i1":
			_, _ = w.Write([]byte(`{"workflows":[{"status":"completed"}]}`))
		case asked.Add(1) == 2: // the poll under way hears of nothing
			select {
			case <-q.Context().Done():
			case <-time.After(2 * time.Second):
			}
			fallthrough
		default:
			last, events := 1, ""
			if _, err := fmt.Sscanf(q.URL.Query().Get("after"), "c%d", &last); err == nil && last <= len(told) {
				events = told[last-1]
				last++
			}
			_, _ = fmt.Fprintf(w, `{"last":"c%d","events":[%s]}`, last, events)
		}
	}))
	_, c, events := listening(t, server)
	for asked.Load() < 2 {
		time.Sleep(time.Millisecond)
	}
	c.watch.add(&Sent{Item: "i1", Key: "k", c: c, ended: make(chan struct{}), free: func() {}})
	var heard []string
	for e := range events {
		if heard = append(heard, e.Kind+" "+e.Step); e.Kind == EventItem {
			break
		}
	}
	if want := []string{"step begin", "claimed read", "step read", "item "}; !slices.Equal(heard, want) {
		t.Errorf("heard %q, not %q", heard, want)
	}
}
