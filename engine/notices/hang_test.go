package notices_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A webhook that does not answer is given up, and tried again under the same identifier; whoever else is to be told
// does not wait for it. The time that a try may take is the caller's here.
func TestAWebhookThatHangs(t *testing.T) {
	busy := func(w http.ResponseWriter) { w.WriteHeader(http.StatusServiceUnavailable) }
	stuck, other := &hook{answer: busy}, &hook{answer: busy}
	hanging, answering := httptest.NewServer(stuck), httptest.NewServer(other)
	defer hanging.Close()
	defer answering.Close()
	b := newBench(t, "{url: '"+hanging.URL+"'}\n  other: {url: '"+answering.URL+"'}")
	b.fail(1)
	b.clock.Move(time.Hour)

	ctx, giveUp := context.WithTimeout(t.Context(), 20*time.Second)
	defer giveUp()
	release := make(chan struct{})
	other.answer = nil
	stuck.answer = func(http.ResponseWriter) {
		for ctx.Err() == nil {
			if data, err := os.ReadFile(filepath.Join(b.e.Root(), ".bagpipe/notices/other.json")); err == nil && !strings.Contains(string(data), `"pending"`) {
				giveUp()
			}
			time.Sleep(time.Millisecond)
		}
		<-release
	}
	err := b.e.Notices.Tell(ctx, true)
	if err == nil || !strings.Contains(err.Error(), "notify ops was not told") || !strings.Contains(err.Error(), "tried again") || strings.Contains(err.Error(), "notify other") {
		t.Errorf("%v", err)
	}
	close(release)
	stuck.mu.Lock() // the one that hung is at its end
	stuck.answer = nil
	stuck.mu.Unlock()
	b.clock.Move(time.Hour)
	b.must(b.e.Notices.Tell(t.Context(), true))
	if len(stuck.got) != 3 || stuck.got[0].ID != stuck.got[2].ID || len(other.got) != 2 {
		t.Errorf("%d and %d tries: %+v", len(stuck.got), len(other.got), stuck.got)
	}
}

// A firing that a schedule missed is told of.
func TestAMissedFiringIsTold(t *testing.T) {
	b, h := hooked(t, "")
	ctx, root := t.Context(), b.e.Root()
	b.put(root, "schedules/s.yaml", "schema: 1\nname: s\ntrigger: {cron: '0 * * * *'}\nmissed: skip\ndo: {command: ['true']}\n")
	b.must(b.e.Settings.Sync(ctx))
	b.must(b.e.Index.Load(ctx))
	if d := b.told(h); d != nil { // from here on
		t.Fatalf("nothing has happened, and it tells %+v", d)
	}
	keep := func(until func() bool) {
		ctx, end := context.WithCancel(ctx)
		done := make(chan struct{})
		go func() {
			defer close(done)
			b.e.Schedule.Run(ctx, ctx, func(text string, bad bool) { t.Log(text) })
		}()
		for range 1000 {
			if until() {
				break
			}
			time.Sleep(10 * time.Millisecond)
		}
		end()
		<-done
	}
	state := filepath.Join(root, "schedules/state/s.json")
	has := func(text string) func() bool {
		return func() bool {
			data, err := os.ReadFile(state)
			return err == nil && strings.Contains(string(data), text)
		}
	}
	keep(has("started"))
	b.clock.Move(3*time.Hour + 30*time.Minute)
	keep(has("missed"))
	b.wants(b.told(h), "schedules", "missed, due ")
}
