package queue

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"bagpipe/layout"
)

func TestNamedQueueThatIsWrong(t *testing.T) {
	for text, want := range map[string]string{
		"schema: 2\nname: q\n":                         "queues/q.yaml:1:9: expected schema: 1",
		"schema: 1\nname: other\n":                     "queues/q.yaml:2:7: expected the file's name",
		"schema: 1\nname: q\nsteps: [a/b/c]\n":         "queues/q.yaml:3:9: expected WORKFLOW/STEP",
		"schema: 1\nname: q\nwhere: metadata.year >\n": "queues/q.yaml:3:8: where: column 16: expected a value",
		"schema: 1\nname: q\norder: [a, '-b c|d']\n":   "queues/q.yaml:3:12: expected a path",
		"schema: 1\nname: q\nlimit: -1\n":              "queues/q.yaml:3:8: expected a number",
		"schema: 1\nname: q\nwhom: metadata.year >\n":  "queues/q.yaml:3",
	} {
		_, err := ParseNamed("queues/q.yaml", []byte(text))
		var wrong *layout.FileError
		if !errors.As(err, &wrong) || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
	q, err := ParseNamed("queues/q.yaml", []byte("schema: 1\nname: q\nsteps: [w/a, /last]\nwhere: metadata.embargo < now\norder: [-metadata.year, created]\n"))
	if err != nil || !q.Wants(StepID{Workflow: "w", Step: "a"}) || q.Wants(StepID{Workflow: "w", Step: "b"}) || !q.Wants(StepID{Workflow: "v", Step: "last"}) {
		t.Errorf("%+v, %v", q, err)
	}
	if got := fmt.Sprint(q.Paths()); got != "[created metadata.embargo metadata.year]" {
		t.Error(got)
	}
}
