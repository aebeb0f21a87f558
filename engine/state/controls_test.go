package state

import (
	"strings"
	"testing"
	"time"

	"bagpipe/layout"

	"github.com/google/go-cmp/cmp"
)

var ocr = Ref{Workflow: "accession", Step: "ocr"}

func at(minute int) time.Time { return time.Date(2026, 11, 20, 10, minute, 0, 0, time.UTC) }

func TestControlsRoundTripAndKeepWhatIsNotKnown(t *testing.T) {
	text := `{
  "future": {"a": 1},
  "schema": 1,
  "steps": {
    "accession/ocr": {
      "at": "2026-11-20T10:00:00Z",
      "by": "bagpipe host:7",
      "coolDown": 600,
      "later": [1, 2],
      "status": "disabled",
      "text": "3 of its last 10 ends failed",
      "trial": {"at": "2026-11-20T10:10:00Z", "item": "3fa9c0d2e1b7a45", "workflow": "accession.1", "odds": [1]},
      "until": "2026-11-20T10:10:00Z"
    }
  }
}`
	id, err := layout.NewItemID(strings.NewReader(strings.Repeat("x", 64)))
	if err != nil {
		t.Fatal(err)
	}
	text = strings.Replace(text, "3fa9c0d2e1b7a45", string(id), 1)
	c, err := DecodeControls([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	once, err := c.Encode()
	if err != nil {
		t.Fatal(err)
	}
	again, err := DecodeControls(once)
	if err != nil {
		t.Fatal(err)
	}
	twice, err := again.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(once), string(twice)); diff != "" {
		t.Error(diff)
	}
	for _, key := range []string{"future", "later", "odds"} {
		if !strings.Contains(string(twice), `"`+key+`"`) {
			t.Errorf("%s is gone:\n%s", key, twice)
		}
	}
	c.Set(ocr, Control{Status: StepEnabled, At: at(20), By: "Ada"})
	enabled, err := c.Encode()
	if err != nil {
		t.Fatal(err)
	}
	for _, kept := range []string{`"future"`, `"later"`} {
		if !strings.Contains(string(enabled), kept) {
			t.Errorf("%s is gone:\n%s", kept, enabled)
		}
	}
	for _, gone := range []string{"trial", "until", "coolDown"} {
		if strings.Contains(string(enabled), gone) {
			t.Errorf("%s is left:\n%s", gone, enabled)
		}
	}
}

func TestControlsThatCannotBeRead(t *testing.T) {
	step := func(s string) string { return `{"schema": 1, "steps": {"accession/ocr": ` + s + `}}` }
	for text, want := range map[string]string{
		``:                                      "unexpected end",
		`null`:                                  "expected an object",
		`[]`:                                    "cannot unmarshal",
		`{}`:                                    "schema: expected 1",
		`{"schema": 2, "steps": 3}`:             "cannot unmarshal",
		`{"schema": 2, "steps": {}}`:            "schema 2 is newer than 1",
		`{"schema": 1, "steps": {"ocr": {}}}`:   `step "ocr": expected WORKFLOW/STEP`,
		`{"schema": 1, "steps": {"a/b/c": {}}}`: `name "b/c"`,
		step(`{"at": "2026-11-20T10:00:00Z"}`):  `status ""`,
		step(`{"status": "off", "at": "2026-11-20T10:00:00Z"}`):                      "expected enabled, disabled or stopped",
		step(`{"status": "disabled"}`):                                               "at: expected a time",
		step(`{"status": "disabled", "at": "yesterday"}`):                            "parsing time",
		step(`{"status": "disabled", "at": "2026-11-20T10:00:00Z", "coolDown": -1}`): "coolDown",
		step(`{"status": "disabled", "at": "2026-11-20T10:00:00Z", "trial": {}}`):    "trial",
	} {
		if _, err := DecodeControls([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

func FuzzControls(f *testing.F) {
	f.Add([]byte(`{"schema": 1, "steps": {"a/b": {"status": "disabled", "at": "2026-11-20T10:00:00Z", "coolDown": 0.5}}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := DecodeControls(data)
		if err != nil {
			return
		}
		text, err := c.Encode()
		if err != nil {
			t.Skip() // a year beyond 9999
		}
		if _, err := DecodeControls(text); err != nil {
			t.Errorf("what was written cannot be read: %v\n%s", err, text)
		}
	})
}

// The half-open breaker: closed to all, then open to one, then to all or to none.
func TestTrials(t *testing.T) {
	stands, fallen := func(*Trial) bool { return true }, func(*Trial) bool { return false }
	open := func(c *Controls, item layout.ItemID, minute int, s func(*Trial) bool) bool {
		ok, why := c.Steps[ocr].Open(item, "accession.1", at(minute), s)
		if ok == (why != "") {
			t.Errorf("open %v, and why %q", ok, why)
		}
		return ok
	}
	c := &Controls{Steps: map[Ref]Control{}}
	if !open(c, "a", 0, stands) {
		t.Error("a step that is not listed is closed")
	}
	c.Set(ocr, Control{Status: StepDisabled, At: at(0), CoolDown: 10 * time.Minute, Until: at(10)})
	if c.Set(ocr, Control{Status: StepDisabled, At: at(1)}) {
		t.Error("disabled twice")
	}
	if open(c, "a", 9, stands) || !open(c, "a", 10, stands) {
		t.Error("the cool-down does not count")
	}
	if !c.Try(ocr, "a", "accession.1", at(10)) || c.Try(ocr, "a", "accession.1", at(11)) {
		t.Error("the trial is not made, or made twice")
	}
	if !open(c, "a", 11, stands) || open(c, "b", 11, stands) {
		t.Error("not one item is tried")
	}
	if !open(c, "b", 11, fallen) {
		t.Error("a trial that cannot go on keeps others from it")
	}
	if c.EndTrial(ocr, "b", "accession.1", true, "", at(12)) || c.EndTrial(ocr, "a", "accession.2", true, "", at(12)) {
		t.Error("another item's end ended the trial")
	}
	if !c.EndTrial(ocr, "a", "accession.1", false, "", at(12)) || open(c, "b", 21, stands) || !open(c, "b", 22, stands) {
		t.Error("after a failed trial there is no other a cool-down later")
	}
	c.Try(ocr, "b", "accession.1", at(22))
	if !c.EndTrial(ocr, "b", "accession.1", true, "x", at(23)) || c.Disabled(ocr) || !open(c, "c", 23, stands) || !c.Since(ocr).Equal(at(23)) {
		t.Errorf("after a trial that went well: %+v", c.Steps[ocr])
	}
	// By hand there is no trial.
	c.Set(ocr, Control{Status: StepDisabled, At: at(30)})
	if open(c, "a", 10_000, stands) {
		t.Error("a step that a person disabled is tried")
	}
}
