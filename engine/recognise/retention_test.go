package recognise

import (
	"strings"
	"testing"
	"time"
)

func TestRetention(t *testing.T) {
	from := time.Date(2024, 2, 29, 12, 0, 0, 0, time.UTC)
	for keep, want := range map[string]string{"10y": "2034-03-01", "6m": "2024-08-29", "6mo": "2024-08-29", "2w": "2024-03-14", "90d": "2024-05-29", "0d": "2024-02-29", "forever": "never"} {
		f, err := Parse("rules/x.yaml", []byte("schema: 1\nname: x\nretention:\n  - {keep: "+keep+"}\n"))
		if err != nil {
			t.Fatal(err)
		}
		r := &f.Retention[0]
		if r.After != "registered" || r.Then != ThenReview || r.Approvals != 2 {
			t.Errorf("%s: %+v", keep, r)
		}
		got := "never"
		if due, ever := r.Due(from); ever {
			got = due.Format(time.DateOnly)
		}
		if got != want {
			t.Errorf("%s: due %s, want %s", keep, got, want)
		}
	}
	for rule, want := range map[string]string{"{keep: long}": "such as 10y", "{}": "such as 10y", "{keep: 1y, then: burn}": "review or dispose", "{keep: 1y, approvals: 11}": "1 to 10",
		"{keep: 1y, for: '((('}": "x.yaml:4", "{keep: 1y, after: 'a b'}": "x.yaml:4", "{keep: 1y, kept: 2}": "unknown"} {
		_, err := Parse("rules/x.yaml", []byte("schema: 1\nname: x\nretention:\n  - "+rule+"\n"))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", rule, err)
		}
	}
}
