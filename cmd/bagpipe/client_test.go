package main

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"bagpipe/engine/client"

	"github.com/tidwall/gjson"
)

// A function of a Go program does a step: it is given verified bytes, and what it makes is
// published. An attempt whose lease is lost, as the program did not run, ends its robot.
func TestAGoProgramServesAStep(t *testing.T) {
	t.Parallel()
	b, s := leasing(t, "1s", "")
	ctx, stop := context.WithTimeout(context.Background(), 2*time.Minute)
	defer stop()
	if _, err := client.Dial(ctx, s.base, client.Options{Token: "bagpipe_0.none"}); err == nil || !strings.Contains(err.Error(), "401") {
		t.Errorf("a token that is not known: %v", err)
	}
	c, err := client.Dial(ctx, s.base, client.Options{Token: s.token})
	b.must(err)
	served := make(chan error, 1)
	go func() {
		served <- c.Serve(ctx, "far/ocr", 2, func(ctx context.Context, a *client.Attempt) error {
			var text bytes.Buffer
			for _, f := range a.Files {
				if err := a.Fetch(ctx, f, &text); err != nil {
					return err
				}
			}
			if strings.Contains(text.String(), "empty") {
				return client.Content("nothing to read")
			}
			if strings.Contains(text.String(), "picture") {
				return client.Skip("it has no text")
			}
			if strings.Contains(text.String(), "early") {
				return client.Later("the dictionary is not there yet")
			}
			a.Progress("reading", 50)
			if strings.Contains(text.String(), "slow") { // beats keep it for longer than its lease
				select {
				case <-time.After(3 * time.Second):
				case <-ctx.Done():
					return ctx.Err()
				}
			}
			if err := a.Make(ctx, "derived/all text", &text); err != nil {
				return err
			}
			a.Done("read", map[string]any{"metadata": map[string]any{"files": len(a.Files)}})
			return nil
		})
	}()
	for _, label := range []string{"slow", "empty", "picture", "early"} {
		b.write("in/"+label, label)
		b.ok("add", "--workflow", "far", b.top+"/in/"+label)
	}
	b.await("the items' ends", func() bool { return len(b.labels("completed")) == 3 && len(b.labels("failed")) == 1 })
	if step := gjson.Get(b.ok("show", "picture", "--json"), `workflows.0.steps.#(step=="ocr")`); step.Get("status").String() != "skipped" || step.Get("attempts.0.message").String() != "not applicable: it has no text" {
		t.Errorf("picture: %s", step)
	}
	b.await("a reason to wait", func() bool { return strings.Contains(b.ok("why", "early"), "the dictionary is not there yet") })
	slow := b.ok("show", "slow", "--json")
	if step := gjson.Get(slow, `workflows.0.steps.#(step=="ocr")`); step.Get("attempts.#").Int() != 1 || gjson.Get(slow, "manifest.metadata.files").Int() != 1 {
		t.Errorf("slow: %s", step)
	}
	if step := gjson.Get(b.ok("show", "empty", "--json"), `workflows.0.steps.#(step=="ocr")`); step.Get("attempts.0.kind").String() != "content" {
		t.Errorf("empty: %s", step)
	}
	stop()
	b.must(<-served)
}
