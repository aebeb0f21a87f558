package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidwall/gjson"
)

// Kept inputs, a step done once for a batch, and a threshold that takes a step out
// of the flow, killed after the n-th move of the branch that is seen: what the next
// run makes of it is what one run would have made.
func TestKillAmidPolicies(t *testing.T) {
	t.Parallel()
	for n := 0; killAmidPolicies(t, n); n += soak(5, 1) {
	}
}

// killAmidPolicies answers false when the run ended before the n-th move.
func killAmidPolicies(t *testing.T, n int) (killed bool) {
	const items = 3
	b := newBench(t)
	b.workflow("policy", `  - name: read
    command: ["true"]
    keepInputs: true
  - name: report
    command: ["true"]
    onBatchComplete: true
  - name: bad
    command: ["false"]
    threshold: {count: 2, window: 0, action: disable}
`)
	args := []string{"add", "--workflow", "policy", "--batch", "june", "--batch-close"}
	for i := range items {
		b.write(fmt.Sprintf("in/i%d", i), "x")
		args = append(args, filepath.Join(b.top, fmt.Sprintf("in/i%d", i)))
	}
	b.ok(args...)
	r := b.start("run", "-j", "1")
	moved := b.awaitMoves(r, n)
	killed = r.kill() && moved
	r = b.start("run", "-j", "1")
	<-r.end // with 4 where it was the one that met the failures

	ended := map[string]int{}
	for line := range strings.Lines(b.git("log", "--format=%s")) {
		step, rest, _ := strings.Cut(strings.TrimSpace(line), ": ")
		to, _, _ := strings.Cut(rest, " ")
		ended[step+" "+to]++
	}
	for what, want := range map[string]int{"read completed": items, "report completed": 1, "report skipped": items - 1, "bad failed": 2, "control disabled": 1} {
		if ended[what] != want {
			t.Errorf("killed at move %d: %s %d times, want %d:\n%s", n, what, ended[what], want, b.git("log", "--format=%s"))
		}
	}
	status := b.ok("status", "--json")
	if got := gjson.Get(status, "steps.0.waiting").Int(); got != 1 {
		t.Errorf("killed at move %d: %d items wait for the disabled step, want 1:\n%s", n, got, status)
	}
	for i := range items {
		b.ok("step", "replay", fmt.Sprintf("i%d", i), "read", "--to", filepath.Join(b.top, fmt.Sprintf("again%d", i)))
	}
	if err := leftBehind(b.dir); err != nil {
		t.Errorf("killed at move %d: %v", n, err)
	}
	if out := b.git("fsck", "--strict", "--no-dangling"); out != "" {
		t.Errorf("killed at move %d: git fsck: %s", n, out)
	}
	return killed && !t.Failed()
}

// An item that was registered, the drop that brings its content, a step that chooses and a
// cancellation, killed after the n-th move of the branch that is seen: the next run ends all of it,
// and nothing is done twice.
func TestKillAmidDecisions(t *testing.T) {
	t.Parallel()
	for n := 0; killAmidDecisions(t, n); n += soak(4, 1) {
	}
}

// killAmidDecisions answers false when the run ended before the n-th move.
func killAmidDecisions(t *testing.T, n int) (killed bool) {
	b := newBench(t)
	b.workflow("book", `  - name: sort
    command: [sh, -c, 'echo "{\"choose\": [\"map\"]}" >"$BAGPIPE_RESULT"']
    choose: [book, map]
  - {name: book, robot: noop, requires: [sort]}
  - {name: map, robot: noop, requires: [sort]}
  - {name: inventory, robot: inventory, requires: [map]}
`)
	b.write("ws/rules/scans.yaml", `schema: 1
name: scans
rules:
  - name: scan
    match: {regexp: '^barcode-(?P<barcode>[0-9]+)\.tif$'}
    identifiers: {barcode: '${barcode}'}
`)
	b.ok("register", "--workflow", "book", "--label", "known", "--identifier", "barcode=7")
	b.ok("register", "--workflow", "book", "--label", "stopped")
	b.ok("cancel", "stopped", "sort", "-m", "a double")
	b.write("ws/inbox/default/barcode-7.tif", "scanned")
	r := b.start("run", "-j", "1")
	moved := b.awaitMoves(r, n)
	killed = r.kill() && moved
	r = b.start("run", "-j", "1")
	<-r.end // with 4, as one was cancelled

	items := b.ok("items", "--json")
	if got := gjson.Get(items, "#").Int(); got != 2 {
		t.Errorf("killed at move %d: %d items, want 2:\n%s", n, got, items)
	}
	for label, want := range map[string]string{
		"known":   "register:completed sort:completed book:skipped map:completed inventory:completed",
		"stopped": "register:completed sort:failed book:waiting map:waiting inventory:waiting",
	} {
		shown := b.ok("show", label, "--json")
		var got []string
		for _, s := range gjson.Get(shown, "workflows.0.steps").Array() {
			got = append(got, s.Get("step").String()+":"+s.Get("status").String())
		}
		if s := strings.Join(got, " "); s != want {
			t.Errorf("killed at move %d: %s is %s, want %s\n%s", n, label, s, want, r.out.String())
		}
		if at := gjson.Get(shown, "manifest.version").Int(); label == "known" && at != 2 {
			t.Errorf("killed at move %d: its content came %d times", n, at-1)
		}
	}
	b.ok("audit")
	if err := leftBehind(b.dir); err != nil {
		t.Errorf("killed at move %d: %v", n, err)
	}
	return killed && !t.Failed()
}
