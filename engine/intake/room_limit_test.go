package intake

import (
	"strings"
	"testing"

	"bagpipe/engine/inbox"
	"bagpipe/engine/settings"
	"bagpipe/layout"
)

// Places are given as steps are: no collection and no lane keeps the others out, and what
// its own limit keeps waiting takes no place of others.
func TestPlacesAreGivenInTurns(t *testing.T) {
	s, err := settings.ParseSettings("bagpipe.yaml", []byte(`schema: 1
lanes: [urgent, normal, bulk]
defaults: {workflow: w, lane: normal}
collections: {rush: {lane: urgent}, heap: {lane: bulk}, small: {inFlight: 1}}
`))
	if err != nil {
		t.Fatal(err)
	}
	drops := func(text string) (all []inbox.Drop) {
		for c := range strings.FieldsSeq(text) {
			all = append(all, inbox.Drop{Collection: layout.Name(c)})
		}
		return all
	}
	for _, c := range []struct {
		what          string
		ahead         map[layout.Name]int
		left          int
		settled, want string
	}{
		{"a collection without any is next", map[layout.Name]int{"aaa": 7}, 2, "aaa aaa aaa zzz", "zzz aaa"},
		{"collections take turns", nil, 4, "aaa aaa aaa aaa zzz zzz", "aaa zzz aaa zzz"},
		{"an urgent one is next", map[layout.Name]int{"aaa": 3, "rush": 2}, 1, "aaa aaa zzz rush", "rush"},
		{"and urgent ones do not keep the others out", map[layout.Name]int{"rush": 20}, 1, "rush zzz", "zzz"},
		{"bulk comes after the others", nil, 2, "heap heap aaa", "aaa heap"},
		{"its own limit: one runs, one stands behind it and takes no place", nil, 2, "small small small aaa aaa", "small aaa small"},
		{"what its own limit keeps waiting holds no place", map[layout.Name]int{"small": 2}, 1, "small aaa aaa", "aaa"},
		{"no place", map[layout.Name]int{"aaa": 4}, 0, "aaa rush", ""},
	} {
		ahead := map[layout.Name]int{}
		for k, n := range c.ahead {
			ahead[k] = n
		}
		p := &places{settings: s, ahead: ahead, left: c.left}
		var got []string
		for _, d := range p.choose(drops(c.settled)) {
			got = append(got, string(d.Collection))
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: %q, want %q", c.what, strings.Join(got, " "), c.want)
		}
	}
}
