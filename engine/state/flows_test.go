package state

import (
	"errors"
	"strings"
	"testing"
	"time"

	"bagpipe/layout"

	"github.com/google/go-cmp/cmp"
)

func parse(t testing.TB, text string) *Definition {
	t.Helper()
	d, err := ParseDefinition("drawn.yaml", []byte(text), noopOnly)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// apply makes an event happen that must be legal.
func apply(t testing.TB, x *Execution, d *Definition, ev Event) Transition {
	t.Helper()
	tr, err := Apply(x, d, ev)
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

// refuse wants an event refused with these words, and nothing changed.
func refuse(t testing.TB, x *Execution, d *Definition, ev Event, want string) {
	t.Helper()
	before := string(x.Encode())
	_, err := Apply(x, d, ev)
	var illegal *IllegalError
	if !errors.As(err, &illegal) || !strings.Contains(err.Error(), want) {
		t.Errorf("%T: %v, want %s", ev, err, want)
	}
	if after := string(x.Encode()); after != before {
		t.Errorf("%T changed the record:\n%s", ev, cmp.Diff(before, after))
	}
}

func keys() KeyFunc {
	n := 0
	return func() (layout.IntentKey, error) {
		n++
		return layout.IntentKey("01" + string(rune('a'+n)) + "-A"), nil
	}
}

func TestWorkflowsOfOneItem(t *testing.T) {
	book := parse(t, "schema: 1\nname: book\nsteps:\n  - name: register\n  - name: scan\n    manual: true\n  - name: publish\n    robot: noop\n    requires: [scan, accession/shelve]\n")
	accession := parse(t, "schema: 1\nname: accession\nsteps:\n  - name: register\n  - name: shelve\n    robot: noop\n    optional: true\n")
	x := &Execution{Item: testID(t)}
	key := func(step layout.Name) layout.AttemptKey { return x.NextKey(step, engineA) }
	apply(t, x, book, Start{Workflow: "book.1", Attempt: key("register"), At: t0})
	apply(t, x, book, Decide{Workflow: "book.1", Step: "scan", Attempt: key("scan"), State: Completed, At: t0, By: "P"})
	if why := x.Blocked("book.1", book, 2, t0); why == nil || why.Text != "waits for accession/shelve (the item has no workflow accession)" {
		t.Errorf("%+v", why)
	}
	refuse(t, x, book, Start{Workflow: "book.2", Attempt: key("register"), At: t0}, "book.1 is not done")
	refuse(t, x, accession, Start{Workflow: "book.2", Attempt: key("register"), At: t0}, "the definition is that of workflow accession")

	apply(t, x, accession, Start{Workflow: "accession.1", Attempt: key("register"), At: t0, NotBefore: t0.Add(time.Hour), StartedBy: "book.1/scan"})
	if k := key("register"); k.N != 3 {
		t.Errorf("the third attempt at a step of that name is %s", k)
	}
	if why := x.Blocked("accession.1", accession, 1, t0); why == nil || why.Code != "date" || why.Until != t0.Add(time.Hour) {
		t.Errorf("%+v", why)
	}
	if why := x.Blocked("book.1", book, 2, t0); why == nil || why.Text != "waits for accession.1/shelve" {
		t.Errorf("%+v", why)
	}
	if got := x.StartedFrom("book.1", "scan"); got != "accession.1" {
		t.Errorf("started from scan: %q", got)
	}
	if got := x.Starters("accession.1"); !cmp.Equal(got, []string{"accession", "book"}) {
		t.Errorf("starters: %v", got)
	}
	k := key("shelve")
	apply(t, x, accession, Claim{Workflow: "accession.1", Step: "shelve", Attempt: k, At: t0.Add(time.Hour)})
	apply(t, x, accession, End{Workflow: "accession.1", Step: "shelve", Attempt: k, State: Failed, At: t0.Add(time.Hour)})
	if why := x.Blocked("book.1", book, 2, t0); why != nil {
		t.Errorf("an optional step of another workflow that failed does not satisfy: %+v", why)
	}
	// In sequence: the latest instance is the one that is asked.
	apply(t, x, accession, Start{Workflow: "accession.2", Attempt: key("register"), At: t0.Add(2 * time.Hour)})
	if why := x.Blocked("book.1", book, 2, t0); why == nil || why.Text != "waits for accession.2/shelve" {
		t.Errorf("%+v", why)
	}
}

func TestConditionsAndDates(t *testing.T) {
	d := parse(t, `schema: 1
name: trial
steps:
  - name: register
  - name: ocr
    robot: noop
    when: [{path: metadata.text, equals: true}]
  - name: look
    manual: true
    when: [{path: metadata.text, equals: true}]
  - name: release
    robot: noop
    notBefore: metadata.embargoUntil
  - name: forget
    robot: noop
    notBefore: 2d
`)
	x := started(t, d)
	claim := Claim{Workflow: wf, Step: "ocr", Attempt: layout.AttemptKey{N: 1, Engine: engineA}, At: t0}
	refuse(t, x, d, claim, "is not needed: not applicable: it is for items where metadata.text is true")
	x.Manifest = []byte(`{"metadata":{"text":true}}`)
	refuse(t, x, d, Unneeded{Workflow: wf, Step: "ocr", Attempt: claim.Attempt, At: t0}, "is needed")
	x.Manifest = []byte(`{"metadata":{"text":false,"embargoUntil":"2027-01-31"}}`)
	for _, step := range []layout.Name{"ocr", "look"} {
		apply(t, x, d, Unneeded{Workflow: wf, Step: step, Attempt: claim.Attempt, At: t0, By: "E"})
		a := x.Workflows[wf].Steps[step].Attempts[claim.Attempt]
		if a.State != Skipped || a.Started != t0 || a.Ended != t0 || a.Message != "not applicable: it is for items where metadata.text is true" {
			t.Errorf("%s: %+v", step, a)
		}
	}
	blocked := func(i int, now time.Time) string {
		if why := x.Blocked(wf, d, i, now); why != nil {
			return why.Text
		}
		return ""
	}
	date := time.Date(2027, 1, 31, 0, 0, 0, 0, time.UTC)
	if got := blocked(3, t0); got != "waits until 2027-01-31T00:00:00Z" {
		t.Error(got)
	}
	if got := blocked(3, date); got != "" {
		t.Error(got)
	}
	x.Manifest = []byte(`{"metadata":{"embargoUntil":"spring"}}`)
	if got := blocked(3, date); got != `waits for its date: metadata.embargoUntil in manifest.json is no date: "spring"` {
		t.Error(got)
	}
	x.Manifest = []byte(`{"metadata":{}}`)
	if got := blocked(3, t0); got != "" {
		t.Error(got)
	}
	run(t, x, d, "release", End{State: Completed})
	if got := blocked(4, t0.Add(47*time.Hour)); got != "waits until 2026-11-22T10:00:00Z" {
		t.Error(got)
	}
	if got := blocked(4, t0.Add(48*time.Hour)); got != "" {
		t.Error(got)
	}
}

func TestReset(t *testing.T) {
	d := trial(t)
	x := started(t, d)
	run(t, x, d, "unpack", End{State: Completed})
	run(t, x, d, "ocr", End{State: Failed})
	run(t, x, d, "thumbs", End{State: Skipped})
	reset := Reset{Key: keys(), Workflow: wf, Step: "unpack", At: t0, By: "P"}

	seen := reset
	seen.Seen = Failed
	refuse(t, x, d, seen, "is completed by now, not failed")
	seen.Seen, seen.Attempt = Completed, layout.AttemptKey{N: 7, Engine: engineB}
	refuse(t, x, d, seen, "has been attempted again since")
	first := reset
	first.Step = "register"
	refuse(t, x, d, first, "the first step is completed by starting the workflow")
	waiting := reset
	waiting.Step = "store"
	refuse(t, x, d, waiting, "there is nothing to reset")

	alone := copyOf(t, x)
	tr := apply(t, alone, d, reset)
	if tr.From != Completed || tr.To != Waiting || alone.Workflows[wf].Steps["ocr"].Status != Failed {
		t.Errorf("%+v; ocr is %s", tr, alone.Workflows[wf].Steps["ocr"].Status)
	}
	reset.After, reset.Seen = true, Completed
	apply(t, x, d, reset)
	for _, step := range []layout.Name{"unpack", "ocr", "thumbs", "approve", "store"} {
		if s := x.Workflows[wf].Steps[step]; s.Status != Waiting {
			t.Errorf("%s is %s after the reset", step, s.Status)
		}
	}
	if x.Milestones["registered"].IsZero() {
		t.Error("a reset took a milestone back")
	}

	// Somebody elsewhere completed the step meanwhile: that stands.
	other := copyOf(t, alone)
	k := layout.AttemptKey{N: 2, Engine: engineB}
	apply(t, other, d, Claim{Workflow: wf, Step: "unpack", Attempt: k, At: t0})
	refuse(t, other, d, reset, "is in-progress by now, not completed")
	apply(t, other, d, End{Workflow: wf, Step: "unpack", Attempt: k, State: Completed, At: t0})
	joined, err := Join(x, other)
	if err != nil {
		t.Fatal(err)
	}
	joined.Compute(wf, d)
	if s := joined.Workflows[wf].Steps["unpack"]; s.Status != Completed {
		t.Errorf("the join lost a completion the reset did not know of: %s", s.Status)
	}
}

func TestResetOfALostAttemptTakesNoCompletionBack(t *testing.T) {
	d := trial(t)
	here := started(t, d)
	k := here.NextKey("unpack", engineB)
	apply(t, here, d, Claim{Workflow: wf, Step: "unpack", Attempt: k, At: t0})
	there := copyOf(t, here)
	apply(t, there, d, End{Workflow: wf, Step: "unpack", Attempt: k, State: Completed, At: t0})

	apply(t, here, d, Lost{Key: "01-A", Workflow: wf, Step: "unpack", Attempt: k, At: t0, By: "A"})
	reset := Reset{Key: keys(), Workflow: wf, Step: "unpack", At: t0, By: "P"}
	apply(t, here, d, reset)
	refuse(t, here, d, reset, "there is nothing to reset")

	joined, err := Join(here, there)
	if err != nil {
		t.Fatal(err)
	}
	joined.Compute(wf, d)
	if s := joined.Workflows[wf].Steps["unpack"]; s.Status != Completed {
		t.Errorf("the step completed where its engine was; in the join it is %s", s.Status)
	}
}

// What needs the step is made of its result: a completion from before does not stand
// for the one that is to come, though its engine tells of it only afterwards.
func TestResetAfterTakesBackWhatALostAttemptMade(t *testing.T) {
	d := trial(t)
	here := started(t, d)
	run(t, here, d, "unpack", End{State: Completed})
	k := here.NextKey("thumbs", engineB)
	apply(t, here, d, Claim{Workflow: wf, Step: "thumbs", Attempt: k, At: t0})
	there := copyOf(t, here)
	apply(t, there, d, End{Workflow: wf, Step: "thumbs", Attempt: k, State: Completed, At: t0})

	apply(t, here, d, Lost{Key: "01-A", Workflow: wf, Step: "thumbs", Attempt: k, At: t0, By: "A"})
	apply(t, here, d, Reset{Key: keys(), Workflow: wf, Step: "unpack", After: true, At: t0, By: "P"})
	joined, err := Join(here, there)
	if err != nil {
		t.Fatal(err)
	}
	joined.Compute(wf, d)
	for _, step := range []layout.Name{"unpack", "thumbs"} {
		if s := joined.Workflows[wf].Steps[step]; s.Status != Waiting {
			t.Errorf("%s is %s", step, s.Status)
		}
	}
}

func TestMigrate(t *testing.T) {
	d := trial(t)
	move := func(text string) *Definition { return parse(t, text) }
	newer := move(strings.Replace(trialYAML, "  - name: store\n", "  - name: seal\n    robot: noop\n  - name: store\n", 1))
	x := started(t, d)
	run(t, x, d, "unpack", End{State: Completed})
	to := func(text string) Migrate { return Migrate{Key: keys(), Workflow: wf, To: move(text), At: t0, By: "P"} }

	refuse(t, x, d, to(trialYAML), "runs by that definition already")
	refuse(t, x, d, to(strings.Replace(trialYAML, "name: trial", "name: other", 1)), "the new definition is that of workflow other")
	refuse(t, x, d, to(strings.ReplaceAll(trialYAML, "unpack", "extract")), "step unpack was attempted, and the new definition has no such step")
	refuse(t, x, d, to(strings.ReplaceAll(trialYAML, "register", "begin")), "step register was attempted")
	refuse(t, x, d, to(strings.Replace(trialYAML, "  - name: unpack\n", "  - name: scan\n    manual: true\n  - name: unpack\n", 1)),
		"step unpack is completed, and by the new definition it needs scan, which is not done")
	k := layout.AttemptKey{N: 1, Engine: engineB}
	apply(t, x, d, Claim{Workflow: wf, Step: "ocr", Attempt: k, At: t0})
	refuse(t, x, d, Migrate{Key: keys(), Workflow: wf, To: newer, At: t0}, "step ocr is in progress")
	apply(t, x, d, End{Workflow: wf, Step: "ocr", Attempt: k, State: Completed, At: t0})

	apply(t, x, d, Migrate{Key: keys(), Workflow: wf, To: newer, At: t0, By: "P", Skip: map[layout.Name]string{"seal": "not asked for"}})
	w := x.Workflows[wf]
	if w.Digest != newer.Digest || w.StartedWith != d.Digest || w.Steps["seal"].Status != Waiting || w.Skip["seal"] == "" {
		t.Errorf("%s", x.Encode())
	}
	refuse(t, x, d, Claim{Workflow: wf, Step: "thumbs", Attempt: k, At: t0}, "runs by another definition")
	back, err := Decode(x.Encode())
	if err != nil {
		t.Fatal(err)
	}
	if back.Workflows[wf].Digest != newer.Digest || back.Workflows[wf].StartedWith != d.Digest {
		t.Error("the migration was not read back")
	}
}

// Elsewhere the item went on by the old definition, with a step the new one has
// not: the join keeps it.
func TestAStepTheDefinitionLostIsKept(t *testing.T) {
	d := trial(t)
	base := started(t, d)
	run(t, base, d, "unpack", End{State: Completed})
	here := copyOf(t, base)
	shorter := parse(t, strings.NewReplacer("  - name: thumbs\n    robot: noop\n    requires: [unpack]\n", "", "[ocr, thumbs]", "[ocr]").Replace(trialYAML))
	apply(t, here, d, Migrate{Key: keys(), Workflow: wf, To: shorter, At: t0})
	if here.Workflows[wf].Steps["thumbs"] != nil {
		t.Error("a step that was never attempted stayed in the record")
	}
	k := layout.AttemptKey{N: 1, Engine: engineB}
	apply(t, base, d, Claim{Workflow: wf, Step: "thumbs", Attempt: k, At: t0})
	joined, err := Join(here, base)
	if err != nil {
		t.Fatal(err)
	}
	joined.Compute(wf, shorter)
	refuse(t, joined, shorter, Decide{Workflow: wf, Step: "thumbs", Attempt: layout.AttemptKey{N: 2, Engine: engineA}, State: Skipped, At: t0}, "is not in the definition")
	apply(t, joined, shorter, End{Workflow: wf, Step: "thumbs", Attempt: k, State: Completed, Started: t0, At: t0})
	if s := joined.Workflows[wf].Steps["thumbs"]; s.Status != Completed {
		t.Errorf("thumbs is %s", s.Status)
	}
}

func TestInactiveWorkflows(t *testing.T) {
	d := trial(t)
	x := started(t, d)
	apply(t, x, d, Deactivate{Key: "01-A", Workflow: wf, At: t0, By: "P", Text: "copyright"})
	if why := x.Blocked(wf, d, 1, t0); why == nil || why.Code != "inactive" || !strings.Contains(why.Text, "by P since 2026-11-20T10:00:00Z: copyright") {
		t.Errorf("%+v", why)
	}
	if x.Workflows[wf].Status != Inactive || x.Workflows[wf].Active() {
		t.Errorf("status %s", x.Workflows[wf].Status)
	}
	refuse(t, x, d, Deactivate{Key: "02-A", Workflow: wf, At: t0}, "is inactive already")
	refuse(t, x, d, Decide{Workflow: wf, Step: "unpack", Attempt: layout.AttemptKey{N: 1, Engine: engineA}, State: Completed, At: t0}, "the workflow is inactive")
	apply(t, x, d, Activate{Key: keys(), Workflow: wf, At: t0, By: "P"})
	refuse(t, x, d, Activate{Key: keys(), Workflow: wf, At: t0}, "is neither inactive nor stopped")
	k := layout.AttemptKey{N: 1, Engine: engineA}
	apply(t, x, d, Claim{Workflow: wf, Step: "unpack", Attempt: k, At: t0})
	apply(t, x, d, Internal{Key: "05-A", LostKey: "04-A", Workflow: wf, Step: "unpack", Attempt: k, At: t0, By: "B", Text: "nil map"})
	if why := x.Blocked(wf, d, 1, t0); why == nil || !strings.Contains(why.Text, "internal error by B since 2026-11-20T10:00:00Z: nil map") {
		t.Errorf("%+v", why)
	}
	n := 0
	apply(t, x, d, Activate{Key: func() (layout.IntentKey, error) { n++; return "09-A", nil }, Workflow: wf, At: t0, By: "P"})
	if why := x.Blocked(wf, d, 1, t0); why != nil || n != 1 {
		t.Errorf("%+v, %d keys", why, n)
	}
}

func TestMilestonesOfResults(t *testing.T) {
	d := trial(t)
	x := started(t, d)
	run(t, x, d, "unpack", End{State: Failed, Kind: ContentKind, Milestones: []layout.Name{"rejected"}})
	if x.Milestones["rejected"] != t0.Add(3*time.Second) {
		t.Error("a failed attempt's milestone was not reached")
	}
	apply(t, x, d, Decide{Workflow: wf, Step: "unpack", Attempt: x.NextKey("unpack", engineB), State: Completed, At: t0.Add(time.Hour), By: "P", Milestones: []layout.Name{"rejected", "released"}})
	if x.Milestones["rejected"] != t0.Add(3*time.Second) || x.Milestones["released"] != t0.Add(time.Hour) {
		t.Errorf("%v", x.Milestones)
	}
}
