package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"bagpipe/engine/client"

	"github.com/tidwall/gjson"
)

// submitting is a server, and a client that submits to it.
func submitting(t *testing.T, steps string, o client.Options) (*bench, *site, *client.Client, context.Context) {
	t.Helper()
	b := newBench(t)
	b.workflow("read", strings.ReplaceAll(steps, "TOP/", b.top+"/"))
	program := filepath.Join(b.top, "read-robot")
	b.must(os.WriteFile(program, []byte(readRobot), 0o755))
	s := b.serve()
	s.program("operator")
	ctx, stop := context.WithTimeout(context.Background(), 2*time.Minute)
	t.Cleanup(stop)
	o.Token = s.token
	c, err := client.Dial(ctx, s.base, o)
	b.must(err)
	t.Cleanup(c.Close)
	return b, s, c, ctx
}

// readRobot derives a file, and fails where the content says so.
const readRobot = `#!/bin/sh
mkdir -p "$BAGPIPE_SCRATCH/derived"
grep -rq bad "$BAGPIPE_CONTENT" && { echo "looking" >&2; echo "page 1 is torn"; exit 65; }
until [ -e "$TOP/go" ] || ! grep -rq slow "$BAGPIPE_CONTENT"; do sleep 0.05; done
echo "$BAGPIPE_LABEL" >>"$TOP/read"
echo read >"$BAGPIPE_SCRATCH/derived/text"
`

const readSteps = "  - name: list\n    robot: inventory\n  - name: read\n    command: [TOP/read-robot]\n"

// A program submits folders and files, waits for their ends with the times of their steps, saves
// what became of them, and is told why one failed. What it hears tells who did what.
func TestAProgramSubmits(t *testing.T) {
	t.Parallel()
	b, _, c, ctx := submitting(t, readSteps, client.Options{})
	if i := slices.IndexFunc(c.Workflows, func(w client.Workflow) bool { return w.Name == "read" }); i < 0 || c.Version == "" {
		t.Errorf("what the server tells of itself: %+v", c.Meta)
	}
	var mu sync.Mutex
	heard := map[string]client.Event{}
	events := c.Events(ctx)
	go func() {
		for e := range events {
			mu.Lock()
			heard[e.Kind+" "+e.Step] = e
			mu.Unlock()
		}
	}()
	b.write("in/box/one", "one\n")
	b.write("in/box/below/two", strings.Repeat("two\n", 3<<20/4))
	b.must(os.MkdirAll(filepath.Join(b.top, "in/box/empty"), 0o755))
	r, err := c.SubmitAndWait(ctx, client.Submission{Path: filepath.Join(b.top, "in/box"), Said: client.Said{Workflow: "read", Label: "a box", Metadata: map[string]any{"year": 1990}, Identifiers: map[string]string{"barcode": "36105"}}})
	b.must(err)
	if len(r.Steps) != 3 || r.Steps[2].Ran <= 0 || r.Steps[2].Attempts != 1 || r.Metadata["year"] != 1990.0 || r.Failed {
		t.Errorf("the result: %+v", r)
	}
	b.must(r.Save(ctx, filepath.Join(b.top, "saved")))
	for _, name := range []string{"one", "below/two"} {
		was, err := os.ReadFile(filepath.Join(b.top, "in/box", name))
		b.must(err)
		var saved string
		_ = filepath.WalkDir(filepath.Join(b.top, "saved"), func(p string, _ fs.DirEntry, _ error) error {
			if strings.HasSuffix(p, "/"+name) {
				saved = p
			}
			return nil
		})
		if is, err := os.ReadFile(saved); err != nil || string(is) != string(was) {
			t.Errorf("%s was not saved: %v", name, err)
		}
	}
	if text, err := os.ReadFile(filepath.Join(b.top, "saved/derived/read/text")); err != nil || string(text) != "read\n" {
		t.Errorf("derived: %q %v", text, err)
	}
	b.must(r.Save(ctx, filepath.Join(b.top, "saved"))) // again
	b.await("the events", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return heard["item "].Item == r.Item && heard["sent "].Item == r.Item && heard["claimed read"].PID != "" && heard["step read"].Status == "completed"
	})
	_, err = c.SubmitAndWait(ctx, client.Submission{Name: "note", From: fstest.MapFS{"note": {Data: []byte("bad")}}, Said: client.Said{Workflow: "read"}})
	var failed *client.StepError
	if !errors.As(err, &failed) || failed.Kind != "content" || failed.Step != "read" || failed.Attempt == "" || !strings.Contains(failed.Message, "page 1 is torn") || !strings.Contains(failed.Log, "looking") {
		t.Errorf("a failure: %v (%+v)", err, failed)
	}
	if _, err := c.Submit(ctx, client.Submission{Path: filepath.Join(b.top, "in/box"), Said: client.Said{Workflow: "none"}}); err == nil || !strings.Contains(err.Error(), `no workflow "none"`) {
		t.Errorf("an unknown workflow: %v", err)
	}
	b.ok("check")
	b.git("fsck", "--strict", "--no-dangling")
}

// The program of docs/client.md is built in a module of its own, as that page says, and does what the page says it does.
func TestTheProgramOfTheDocs(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/client.md")
	if err != nil {
		t.Fatal(err)
	}
	_, program, _ := strings.Cut(string(page), "\n```go\n")
	program, _, _ = strings.Cut(program, "\n```\n")
	edit := regexp.MustCompile("`go (mod edit .*)/src/bagpipe`").FindSubmatch(page)
	if program == "" || edit == nil {
		t.Fatal("docs/client.md has no program, or does not say how it is built")
	}
	sources, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	b, s, _, _ := submitting(t, readSteps, client.Options{})
	b.write("letters/main.go", program)
	for _, args := range [][]string{{"mod", "init", "letters"}, strings.Fields(string(edit[1]) + sources), {"build", "-mod=mod", "-o", "letters", "."}} {
		c := exec.Command("go", args...)
		c.Dir, c.Env = filepath.Join(b.top, "letters"), append(os.Environ(), "GOPROXY=off", "GOSUMDB=off")
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("go %v: %v\n%s", args, err, out)
		}
	}
	b.write("token", s.token+"\n")
	b.write("in/good/one", "Dear Sir\n")
	b.write("in/torn/one", "bad\n")
	c := exec.Command(filepath.Join(b.top, "letters/letters"), "in/torn", "in/good")
	c.Dir, c.Env = b.top, append(os.Environ(), "BAGPIPE_SERVER="+s.base)
	out, err := c.CombinedOutput()
	if err != nil || !strings.HasPrefix(string(out), "read content page 1 is torn\nregister completed ") || !strings.Contains(string(out), "\nread completed ") {
		t.Errorf("%v:\n%s", err, out)
	}
	if saved, err := filepath.Glob(filepath.Join(b.top, "out/*/derived/read/text")); err != nil || len(saved) != 1 || !b.exists("out/good/derived/read/text") {
		t.Errorf("saved: %v %v", saved, err)
	}
}

// What became of items of one label stands in folders of their own.
func TestWhatIsSavedIsNotMixed(t *testing.T) {
	t.Parallel()
	b, s, _, _ := submitting(t, readSteps, client.Options{})
	token := filepath.Join(b.top, "token")
	b.must(os.WriteFile(token, []byte(s.token+"\n"), 0o600))
	b.write("in/x/one/f", "x\n")
	b.write("in/y/one/f", "y\n")
	b.ok("submit", "--server", s.base, "--token", token, "--workflow", "read", "--save", filepath.Join(b.top, "saved"), filepath.Join(b.top, "in/x/one"), filepath.Join(b.top, "in/y/one"))
	found := map[string]bool{}
	b.must(filepath.WalkDir(filepath.Join(b.top, "saved"), func(p string, d fs.DirEntry, err error) error {
		if err == nil && d.Name() == "f" {
			data, err := os.ReadFile(p)
			found[string(data)] = true
			return err
		}
		return err
	}))
	if len(found) != 2 {
		t.Errorf("saved: %v", found)
	}
}

// A submission that comes again with its key is one item: from the same program, from two at
// once, from another one, and when the server was killed between.
func TestASubmissionIsOneItem(t *testing.T) {
	t.Parallel()
	b, s, c, ctx := submitting(t, readSteps, client.Options{})
	b.write("in/letter", "Dear Sir\n")
	sub := client.Submission{Key: "letters:17", Path: filepath.Join(b.top, "in/letter"), Said: client.Said{Workflow: "read"}}
	if _, err := c.Attach(ctx, sub.Key); err == nil || !strings.Contains(err.Error(), "404") {
		t.Errorf("attached to nothing: %v", err)
	}
	var wg sync.WaitGroup
	items := make([]string, 6)
	for i := range items {
		wg.Go(func() {
			sent, err := c.Submit(ctx, sub)
			if err != nil {
				t.Error(err)
				return
			}
			items[i] = string(sent.Item)
		})
	}
	wg.Wait()
	if items = slices.Compact(items); len(items) != 1 {
		t.Errorf("one submission is %d items: %v", len(items), items)
	}
	_ = s.cmd.Process.Kill()
	_, _ = s.cmd.Process.Wait()
	s = b.serve()
	s.program("operator")
	again, err := client.Dial(ctx, s.base, client.Options{Token: s.token})
	b.must(err)
	defer again.Close()
	sent, err := again.Submit(ctx, sub)
	b.must(err)
	there, err := again.Attach(ctx, sub.Key)
	b.must(err)
	r, err := there.Result(ctx)
	b.must(err)
	if string(sent.Item) != items[0] || r.Item != sent.Item {
		t.Errorf("it came again as %s, attached to as %s; want %s", sent.Item, r.Item, items[0])
	}
	if n := gjson.Get(b.ok("status", "--json"), "items").Int(); n > 1 {
		t.Errorf("%d items", n)
	}
}

// Submissions wait while as many are under way as may be; one is cancelled; a batch is complete
// when all its items and its last step are done.
func TestSubmissionsUnderWay(t *testing.T) {
	t.Parallel()
	b, _, c, ctx := submitting(t, readSteps+"  - name: sum\n    command: [TOP/read-robot]\n    onBatchComplete: true\n", client.Options{InFlight: 2})
	drop := func(name, text string) client.Submission {
		return client.Submission{Name: name, From: fstest.MapFS{name: {Data: []byte(text)}}, Said: client.Said{Workflow: "read", Batch: "b1"}}
	}
	var all []*client.Sent
	b.must(c.From(ctx, func(yield func(client.Submission, error) bool) {
		for i := range 2 {
			if !yield(drop(fmt.Sprintf("slow-%d", i), "slow"), nil) {
				return
			}
		}
	}, func(s *client.Sent) error { all = append(all, s); return nil }))
	short, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
	if _, err := c.Submit(short, drop("third", "quick")); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a third is under way: %v", err)
	}
	cancel()
	b.must(all[0].Cancel(ctx, "not that one"))
	<-all[0].Done()
	var failed *client.StepError
	if _, err := all[0].Result(ctx); !errors.As(err, &failed) || !strings.Contains(failed.Message, "not that one") {
		t.Errorf("cancelled: %v", err)
	}
	third, err := c.Batch("b1").Submit(ctx, drop("third", "quick"))
	b.must(err)
	b.write("go", "")
	got, err := c.Batch("b1").Complete(ctx)
	b.must(err)
	if got.Items != 3 || got.Failed != 1 {
		t.Errorf("the batch: %+v", got)
	}
	if _, err := c.Batch("b1").Submit(ctx, drop("late", "quick")); err == nil {
		t.Error("a closed batch takes an item")
	}
	if r, err := third.Result(ctx); err != nil || r.Failed {
		t.Errorf("the third: %v", err)
	}
	if text, err := os.ReadFile(filepath.Join(b.top, "read")); err != nil || strings.Count(string(text), "\n") != 3 { // two reads, one sum
		t.Errorf("the robots ran for %q: %v", text, err)
	}
}
