package state

import (
	"errors"
	"strings"
	"testing"

	"bagpipe/layout"
)

const head = "schema: 1\nname: w\nsteps:\n  - name: register\n"

// step is a definition whose second step has these keys.
func step(keys ...string) string {
	return head + "  - name: a\n    " + strings.Join(keys, "\n    ") + "\n"
}

// wrongDefinitions are refused, with their place. Those marked form are wrong by
// their form alone, so that the JSON Schema must refuse them too.
var wrongDefinitions = []struct {
	text, want string
	form       bool
}{
	{"schema: 2\nname: w\nsteps: []\n", "w.yaml:1:9: expected schema: 1", true},
	{"schema: 1\nname: a/b\nsteps: []\n", "w.yaml:2:7: name", true},
	{"schema: 1\nname: w\nsteps: []\n", "w.yaml:3:8: expected at least one step", true},
	{"schema: 1\nname: w\ninFlight: -1\nsteps: [{name: r}]\n", "w.yaml:3:11: expected a number from 0", true},
	{"schema: 1\nname: w\nafterFailure: go\nsteps: [{name: r}]\n", "w.yaml:3:15: expected stop or independent", true},
	{"schema: 1\nname: w\nalert: {every: 1h}\nsteps: [{name: r}]\n", "expected exactly one of command, url", true},
	{"schema: 1\nname: w\nalert: {url: mail}\nsteps: [{name: r}]\n", "begins with http:// or https://", true},
	{"schema: 1\nname: w\nalert: {url: 'https://x.org', command: [mail]}\nsteps: [{name: r}]\n", "expected exactly one of command, url", true},
	{"schema: 1\nname: w\nsteps:\n  - name: r\n    robot: noop\n", "w.yaml:4:5: the first step", true},
	{"schema: 1\nname: w\nsteps:\n  - name: r\n    when: [{path: label, exists: true}]\n", "w.yaml:4:5: the first step", true},
	{"schema: 1\nname: w\nsteps:\n  - name: r\n    optional: true\n", "w.yaml:4:5: the first step", true},
	{head + "  - name: a\n", `w.yaml:5:5: step "a": expected exactly one of`, true},
	{step("robot: noop", "manual: true"), `w.yaml:5:5: step "a": expected exactly one of`, true},
	{step("starts: x", "manual: true"), `w.yaml:5:5: step "a": expected exactly one of`, true},
	{step("command: []"), "w.yaml:6:14: expected a program", true},
	{step("robot: nope"), `w.yaml:6:12: no built-in robot "nope"`, false},
	{step("robot: noop", "with: {nap: 1s}"), `w.yaml:7:17: robot noop takes no parameter "nap"; it takes: sleep`, false},
	{step("robot: noop", "onRequest: true"), "w.yaml:7:16: onRequest is for steps with manual: true", true},
	{step("starts: a/b"), "w.yaml:6:13: name", true},
	{step("starts: w"), `w.yaml:6:13: workflow "w" would start itself`, false},
	{step("manual: true", "milestone: 'the end'"), "w.yaml:7:16: name", true},
	{step("manual: true", "requires: [b]"), `w.yaml:7:16: no step "b"`, false},
	{step("manual: true", "requires: [a]"), `w.yaml:7:16: step "a" requires itself`, false},
	{step("manual: true", "requires: [w/register]"), `w.yaml:7:16: "w/register" is a step of this workflow: write "register"`, false},
	{step("manual: true", "requires: [x/y/z]"), "w.yaml:7:16: expected STEP or WORKFLOW/STEP", true},
	{step("manual: true", "requires: [register, register]"), `w.yaml:7:26: "register" is there twice`, true},
	{step("manual: true", "requires: [b]") + "  - name: b\n    manual: true\n", "waits for itself", false},
	{step("manual: true") + "  - name: a\n    manual: true\n", `w.yaml:7:11: step "a" is there twice`, false},
	{step("manual: true", "timeout: soon"), "expected a duration", true},
	{step("manual: true", "retry: 3"), `unknown key "retry"; expected one of: backoff, batch, choose, command,`, true},
	{step("manual: true", "timeout: 1m"), "w.yaml:7:14: timeout is for steps with robot or command", true},
	{step("starts: x", "retries: 1"), "w.yaml:7:14: retries is for steps with robot or command", true},
	{step("robot: noop", "retries: -1"), "w.yaml:7:14: expected 0 to 1000", true},
	{step("robot: noop", "backoff: {first: 1s}"), "backoff is for steps with retries", true},
	{step("robot: noop", "retries: 1", "backoff: {first: 10s, most: 1s}"), "expected at least first", false},
	{step("robot: noop", "optional: true", "continueOnFailure: true"), "w.yaml:8:24: optional: true says that already", true},
	{step("robot: noop", "threshold: {count: 5, window: 3, action: disable}"), "5 failures cannot be among the last 3", false},
	{step("robot: noop", "threshold: {count: 5}"), "expected disable or terminate", true},
	{step("robot: noop", "threshold: {count: 5, action: stop}"), "expected disable or terminate", true},
	{step("robot: noop", "threshold: {count: -5, action: disable}"), "expected count and window from 0 up", true},
	{step("robot: noop", "coolDown: 1m"), "coolDown is for steps with threshold: {action: disable}", true},
	{step("robot: noop", "threshold: {count: 5, action: terminate}", "coolDown: 1m"), "coolDown is for steps with threshold", true},
	{step("robot: noop", "siblings: wait"), "expected continue or stop", true},
	{step("robot: noop", "instances: -1"), "expected a number from 0", true},
	{step("robot: noop", "limit: two"), "w.yaml:7:12: expected a whole number", true},
	{step("robot: noop", "choose: [b]"), "choose is for steps with command", false},
	{step("command: [x]", "choose: [b]"), `w.yaml:7:14: expected a step that requires "a"; "b" does not`, false},
	{step("robot: noop", "needs: money"), "expected content", true},
	{step("robot: noop", "parentLast: true", "onChildFailure: cry"), "expected tell, fail or skip", true},
	{step("robot: noop", "onChildFailure: fail"), "onChildFailure is for steps with parentLast: true", false},
	{step("robot: noop", "waitForFailed: true"), "waitForFailed is for steps with onBatchComplete: true", false},
	{step("robot: noop", "warmUp: [x]"), "warmUp is for steps with command", true},
	{step("command: [x]", "warmUp: []"), "expected a program and its arguments", true},
	{step("manual: true", "keepInputs: true"), "keepInputs is for steps with robot or command", true},
	{step("manual: true", "notBefore: someday"), "w.yaml:7:16: expected a date such as 2027-01-31", true},
	{step("manual: true", "when: {path: label, exists: true}"), "expected a list", true},
	{step("manual: true", "when: [{path: label}]"), "w.yaml:7:13: expected path and exactly one of equals", true},
	{step("manual: true", "when: [{path: label, equals: a, in: [b]}]"), "expected path and exactly one of equals", true},
	{step("manual: true", "when: [{path: '#(a==b)', equals: a}]"), "expected names with dots between them", true},
	{step("manual: true", "when: [{path: 'a.@this', equals: a}]"), "expected names with dots between them", true},
	{step("manual: true", "when: [{equals: a}]"), "expected a path such as metadata.sheets", true},
	{step("manual: true", "when: [{path: label, equals: [a]}]"), "expected text, a number, true or false", true},
	{step("manual: true", "when: [{path: label, in: []}]"), "expected a list of texts", true},
	{step("manual: true", "when: [{path: label, matches: '[a'}]"), "expected a pattern", false},
	{step("manual: true", "when: [{path: label, above: many}]"), "expected a number", true},
	{step("manual: true", "when: [{path: label, like: many}]"), `unknown key "like"`, true},
}

// rightDefinitions are accepted by the parser and by the JSON Schema.
var rightDefinitions = []string{
	head,
	step("manual: true", "onRequest: true", "milestone: approved"),
	"schema: 1\nname: w\nafterFailure: independent\nsteps: [{name: r}]\n",
	step("command: [route]", "choose: [b]") + "  - name: b\n    manual: true\n",
	step("manual: true", "needs: content"),
	step("robot: noop", "parentLast: true", "onChildFailure: fail", "onBatchComplete: true", "waitForFailed: true"),
	step("starts: accession", "notBefore: 2027-01-31"),
	step("manual: true", "notBefore: 90d"),
	step("manual: true", "notBefore: 36h"),
	step("manual: true", "notBefore: 2027-01-31T08:00:00+02:00"),
	step("manual: true", "notBefore: metadata.embargoUntil"),
	step("manual: true", "requires: [accession/shelve, register]"),
	step("manual: true", "requires: []"),
	step("command: [ocr, --lang, deu]", "with: {a: 1, b: [x]}", "timeout: 10m", "retries: 3", "backoff: {first: 1s, most: 1m}",
		"instances: 2", "limit: 4", "threshold: {count: 5, window: 20, action: disable}", "coolDown: 10m", "keepInputs: true", "warmUp: [ocr, --load]"),
	step("robot: noop", "parentLast: true", "siblings: stop", "poolSize: 8", "continueOnFailure: true"),
	step("robot: noop", "siblings: continue", "onBatchComplete: true", "threshold: {count: 0, action: terminate}"),
	step("manual: true", "when:", "  - {path: metadata.kind, in: [thesis, 3, true]}", "  - {path: label, differs: x}",
		"  - {path: metadata.pages, above: 100}", "  - {path: metadata.pages, below: 1000.5}", "  - {path: metadata.a.0.b, notIn: [1]}",
		"  - {path: 'metadata.authors.#', equals: 2}", "  - {path: metadata.embargo, exists: false}", "  - {path: label, matches: '*.tif'}"),
	"schema: 1\nname: w\ndescription: d\ninFlight: 20\nalert: {command: [mail, ops], every: 1h}\nsteps:\n  - name: register\n    milestone: registered\n",
	"schema: 1\nname: w\nalert: {url: 'https://example.org/hook'}\nsteps:\n  - name: register\n",
}

func TestDefinitionsSayWhatIsWrong(t *testing.T) {
	for when, want := range map[string]string{
		"{path: quality.result, in: [warning]}": `path quality.result: expected one of not-applicable, pass, warn, not-reached, fail, not "warning"`,
		"{path: quality.reslt, equals: fail}":   "path quality.reslt: expected quality.result, quality.levels. with one of total, total.usable",
	} {
		_, err := ParseDefinition("w.yaml", []byte(step("manual: true", "when: ["+when+"]")), noopOnly)
		if err == nil || !strings.HasPrefix(err.Error(), "w.yaml:7:") || !strings.Contains(err.Error(), want) {
			t.Errorf("%s:\n got %v\nwant %s", when, err, want)
		}
	}
	for _, c := range wrongDefinitions {
		_, err := ParseDefinition("w.yaml", []byte(c.text), noopOnly)
		var fe *layout.FileError
		if !errors.As(err, &fe) || !strings.Contains(err.Error(), c.want) || fe.Line == 0 {
			t.Errorf("%q:\n got %v\nwant %s", c.text, err, c.want)
		}
	}
	for _, text := range rightDefinitions {
		if _, err := ParseDefinition("w.yaml", []byte(text), noopOnly); err != nil {
			t.Errorf("%q:\n%v", text, err)
		}
	}
}

// A key on children is for who makes some.
func TestKeysOnChildrenAreForWhoMakesSome(t *testing.T) {
	robots := func(name string) (Robot, bool) { return Robot{Childless: name == "noop"}, true }
	for _, key := range []string{"parentLast: true", "siblings: stop", "poolSize: 2"} {
		_, err := ParseDefinition("w.yaml", []byte(step("robot: noop", key)), robots)
		name, _, _ := strings.Cut(key, ":")
		if want := name + " is for steps that make children; robot noop makes none"; err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", key, err, want)
		}
		for _, by := range []string{"robot: split", "command: [cut]"} {
			if _, err := ParseDefinition("w.yaml", []byte(step(by, key)), robots); err != nil {
				t.Errorf("%s, %s: %v", by, key, err)
			}
		}
	}
}

// What was once accepted is read for good, where an item is pinned to it.
func TestPinnedDefinitionsAreReadLeniently(t *testing.T) {
	for _, text := range []string{step("manual: true", "timeout: 1m", "retries: 2"), step("robot: gone", "with: {a: 1}"), step("manual: true", "requires: [register, register]"),
		step("manual: true", "when: [{path: quality.reslt, in: [warning]}]")} {
		if _, err := ParseDefinition("pinned.yaml", []byte(text), nil); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
}
