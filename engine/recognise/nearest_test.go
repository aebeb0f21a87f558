package recognise

import (
	"strings"
	"testing"
)

// Of the rules that said no those are nearest whose conditions held longest; what did not say no is always there.
func TestNearestTrials(t *testing.T) {
	top := tree(t, "letters", map[string]string{"a.txt": "x"})
	o := ask(t, top, rules(t, `rules:
  - name: named
    match: {regexp: '^maps', holds: a.txt}
  - name: holds
    match: {kind: folder, name: letters, holds: [a.txt, b.txt]}
  - name: either
    match: {kind: folder, any: [{kind: file}, {holds: [a.txt, c.txt]}]}
  - name: perhaps
    match: {kind: folder}
    verdict: maybe
`))
	for n, want := range map[int]string{0: "test/perhaps", 1: "test/perhaps test/holds", 2: "test/perhaps test/holds test/either", 9: "test/perhaps test/holds test/either test/named"} {
		near, left := NearestTrials(o.Tried, n)
		var names []string
		for _, one := range near {
			names = append(names, one.Rule)
		}
		if got := strings.Join(names, " "); got != want || left != max(0, 3-n) {
			t.Errorf("%d: %s, %d left; want %s", n, got, left, want)
		}
	}
}
