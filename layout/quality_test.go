package layout_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"bagpipe/layout"
)

func TestQualityLevelIsItsWorst(t *testing.T) {
	q := layout.Quality{Item: "3fa9c0d2e1b7a45", Version: 1}
	if s := q.Reckon(); s.Result != layout.QualityNone || s.Levels["metadata.business"] != layout.QualityNone {
		t.Errorf("without checks: %+v", s)
	}
	q.Note("opens", layout.QualityCheck{Level: "total.usable", Result: layout.QualityPass})
	q.Note("name", layout.QualityCheck{Level: "total.named", Result: layout.QualityWarn})
	q.Note("date", layout.QualityCheck{Level: "metadata.business.items", Result: layout.QualityNotReached})
	s := q.Reckon()
	for level, want := range map[string]string{"total.usable": "pass", "total": "warn", "metadata.business": "not-reached", "metadata": "not-reached", "data": "not-applicable"} {
		if s.Levels[level] != want {
			t.Errorf("%s is %s, want %s", level, s.Levels[level], want)
		}
	}
	if s.Result != layout.QualityNotReached {
		t.Errorf("the result passes over what was not reached: %s", s.Result)
	}
	q.Note("date", layout.QualityCheck{Level: "metadata.business.items", Result: layout.QualityFail})
	if s := q.Reckon(); s.Result != layout.QualityFail || s.Counts[layout.QualityFail] != 1 || s.Counts[layout.QualityNotReached] != 0 {
		t.Errorf("a check that was made again: %+v", s)
	}
}

func TestQualityStaysSmall(t *testing.T) {
	q := layout.Quality{Item: "3fa9c0d2e1b7a45"}
	for i := range 5000 {
		q.Note(fmt.Sprintf("check-%060d", i), layout.QualityCheck{Level: "metadata.business.complete", Result: layout.QualityFail, Text: strings.Repeat("é", 5000), By: strings.Repeat("x", 80)})
	}
	q.Note("last", layout.QualityCheck{Level: "total.usable", Result: layout.QualityWarn, Workflow: "w", By: "s.1-5c1e9a70"})
	s := q.Reckon()
	if s.Levels["total.usable"] != layout.QualityWarn || s.Counts[layout.QualityFail] != 5000 || s.Counts[layout.QualityWarn] != 1 {
		t.Errorf("not all counts: %+v", s)
	}
	data, err := q.Encode()
	if err != nil || len(data) > 256<<10 || q.More == 0 {
		t.Errorf("%d bytes, %d more: %v", len(data), q.More, err)
	}
	if again := q.Reckon(); !reflect.DeepEqual(again, s) {
		t.Errorf("reckoned again: %+v", again)
	}
	q.ForgetUnlisted("w", "s")
	if s := q.Reckon(); s.Levels["total.usable"] != layout.QualityNone || s.Counts[layout.QualityFail] != 5000 {
		t.Errorf("with what a step tells again: %+v", s)
	}
	q.ForgetRules("w", "s")
	if s := q.Reckon(); s.Counts[layout.QualityFail] != 5000 || len(q.Checks) != 500 {
		t.Errorf("what another step told: %+v", s)
	}
}

// Steps of one name in two workflows tell each their own checks.
func TestQualityOfTwoWorkflows(t *testing.T) {
	q := layout.Quality{Item: "3fa9c0d2e1b7a45"}
	lines := func(workflow, result string) {
		q.Note("lines", layout.QualityCheck{Level: "data.records", Result: result, By: "look.1-5c1e9a70", Workflow: workflow})
	}
	lines("a", layout.QualityFail)
	lines("b", layout.QualityPass)
	lines("b", layout.QualityWarn)
	q.Note("name", layout.QualityCheck{Level: "total.named", Result: layout.QualityPass, By: "look.1-5c1e9a70", Workflow: "b", Rule: "rules"})
	if q.Checks["lines"].Result != layout.QualityFail || q.Checks["look/lines"].Result != layout.QualityWarn {
		t.Errorf("told: %+v", q.Checks)
	}
	if !q.ForgetRules("b", "look") || len(q.Checks) != 1 || q.Checks["lines"].Workflow != "a" {
		t.Errorf("left: %+v", q.Checks)
	}
}
