package settings

import (
	"strings"
	"testing"
	"time"

	"bagpipe/layout"
	"bagpipe/templates"
)

func TestWithCollectionKeepsTheRest(t *testing.T) {
	shipped, err := templates.Workspace.ReadFile("bagpipe.yaml")
	if err != nil {
		t.Fatal(err)
	}
	c := Collection{Lane: "bulk", Approvals: []string{"approve"}}
	for name, text := range map[string]string{
		"shipped":      string(shipped),
		"in the midst": "schema: 1\ncollections: # ours\n  a: {}\n  # b comes\n  b:\n    lane: bulk\n\n# lanes\nlanes: [normal, bulk]\n",
		"absent":       "schema: 1\nlanes: [normal, bulk]\n",
	} {
		out, err := withCollection([]byte(text), "reading-room", c)
		if err != nil {
			t.Errorf("%s: %v\n%s", name, err, out)
			continue
		}
		s, err := ParseSettings("bagpipe.yaml", out)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := s.Collections["reading-room"]; got.Lane != "bulk" || len(got.Approvals) != 1 {
			t.Errorf("%s: %+v", name, got)
		}
		if name == "absent" {
			continue
		}
		for line := range strings.Lines(text) {
			if !strings.Contains(string(out), line) {
				t.Errorf("%s: the line %q is gone", name, line)
			}
		}
	}
}

func TestWithCollectionRefusesWhatItCannotWrite(t *testing.T) {
	text := "schema: 1\ncollections: {a: {}}\n"
	if _, err := withCollection([]byte(text), "b", Collection{Approvals: []string{"approve"}}); err == nil || !strings.Contains(err.Error(), "by hand") {
		t.Errorf("%v", err)
	}
}

// A collection's batchQuiet: 0s keeps its batches open where those of all others are closed.
func TestBatchQuietOfACollection(t *testing.T) {
	s, err := ParseSettings("bagpipe.yaml", []byte("schema: 1\ninbox: {batches: folders, batchQuiet: 1h}\ncollections:\n  open: {inbox: {batchQuiet: 0s}}\n  as-all: {inbox: {quiet: 1s}}\n  own: {inbox: {batchQuiet: 5m}}\n"))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]time.Duration{"open": 0, "as-all": time.Hour, "own": 5 * time.Minute, "other": time.Hour} {
		if got := s.Drops(layout.Name(name)).Settling().BatchQuiet; got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}
