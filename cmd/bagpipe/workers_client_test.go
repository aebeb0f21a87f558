package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"bagpipe/engine/client"

	"github.com/tidwall/gjson"
)

// api is a client of the fleet's engine.
func (f *fleet) api(o client.Options) *client.Client {
	f.t.Helper()
	o.Token = f.tokenOf("operator", "")
	c, err := client.Dial(f.t.Context(), f.pages(), o)
	f.must(err)
	f.t.Cleanup(c.Close)
	return c
}

// A program hears which worker, and which process there, claimed a step, is told how long it waited and ran there, and why it failed
// there, with the end of what the robot wrote. A multiplier that it cancels stops with what came of it, on all workers.
func TestAProgramSubmitsToWorkers(t *testing.T) {
	t.Parallel()
	f := &fleet{bench: newBench(t), port: twoPorts(t)}
	f.workflow("one", "  - name: derive\n    command: [far-robot]\n")
	f.workflow("bad", "  - name: torn\n    command: [far-robot, bad]\n")
	f.workflow("small", "  - name: derive\n    command: [far-robot, wait]\n    retries: 0\n")
	f.far("10s", "  - name: parts\n    robot: split\n    with: {each: file, workflow: small}\n", "{/derive: {only: true}, /torn: {only: true}}")
	w := f.worker("w", "bytes: transfer\nprefetch: 1\n")
	c, ctx := f.api(client.Options{}), t.Context()
	var mu sync.Mutex // guards claimed
	claimed := map[string]client.Event{}
	events := c.Events(ctx)
	go func() {
		for e := range events {
			if e.Kind == client.EventClaimed {
				mu.Lock()
				claimed[e.Step] = e
				mu.Unlock()
			}
		}
	}()
	drop := func(workflow string, names ...string) client.Submission {
		files := fstest.MapFS{}
		for _, name := range names {
			files[name] = &fstest.MapFile{Data: []byte(name)}
		}
		return client.Submission{Name: workflow + "-box", From: files, Said: client.Said{Workflow: workflow}}
	}
	r, err := c.SubmitAndWait(ctx, drop("one", "a", "b"))
	f.must(err)
	if last := r.Steps[len(r.Steps)-1]; last.Step != "derive" || last.Worker != "w" || last.Message != "done by w" || last.Ran <= 0 {
		t.Errorf("the step at the worker: %+v", last)
	}
	f.await("who claimed it", func() bool {
		mu.Lock()
		defer mu.Unlock()
		e := claimed["derive"]
		return e.Item == r.Item && e.Worker == "w" && e.PID == fmt.Sprint(w.cmd.Process.Pid) && e.Host != ""
	})
	_, err = c.SubmitAndWait(ctx, drop("bad", "a"))
	var failed *client.StepError
	if !errors.As(err, &failed) || failed.Worker != "w" || failed.Kind != "content" || failed.Step != "torn" || failed.Message != "nothing to see" || !strings.Contains(failed.Log, "args bad") || !strings.Contains(err.Error(), " at worker w ") {
		t.Errorf("a failure: %v (%+v)", err, failed)
	}
	many, err := c.Submit(ctx, drop("far", "a", "b", "c", "d", "e"))
	f.must(err)
	running := func() int { return int(f.status().Get("workers.0.running.#").Int()) }
	f.await("two that run, and one that is claimed ahead", func() bool { return running() == 3 })
	begun, err := filepath.Glob(filepath.Join(f.top, "begun-*-w"))
	if f.must(err); len(begun) != 4 { // one and bad before
		t.Errorf("begun with 2 slots: %v", begun)
	}
	f.await("their progress", func() bool {
		return strings.Count(f.ok("status"), ": 40% waiting") == 2
	})
	f.must(many.Cancel(ctx, "not these"))
	f.await("the end of all parts", func() bool {
		return running() == 0 && len(f.labels("failed")) == 6 // bad, and five parts
	})
	f.write("go", "")
	time.Sleep(300 * time.Millisecond)
	var texts []string
	for _, part := range gjson.Parse(f.ok("items", "--status", "failed", "--json")).Array() {
		texts = append(texts, f.ok("show", part.Get("item").String()))
	}
	if n := strings.Count(strings.Join(texts, ""), "not these"); n < 5 {
		t.Errorf("%d of 5 parts say why:\n%s", n, strings.Join(texts, "\n"))
	}
	for _, label := range strings.Fields("a b c d e") {
		if _, err := os.Stat(filepath.Join(f.top, "effect-"+label)); err == nil {
			t.Errorf("the robot acted for part %s", label)
		}
	}
	f.ok("audit")
}
