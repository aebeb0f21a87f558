package main

import (
	"html"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/tidwall/gjson"
)

// Each number of the overview leads to as many items, or to a queue of as many.
func TestServeNumbersLeadToTheirItems(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.workflow("trial", "  - name: work\n    command: [sh, -c, 'case $BAGPIPE_LABEL in i3) exit 65;; esac']\n  - name: look\n    manual: true\n  - name: scan\n    command: ['true']\n")
	b.workflow("lent", "  - name: scan\n    external: true\n")
	b.addItems("trial", 6)
	b.start("run").code(4)
	b.ok("step", "skip", "i0", "look")
	b.ok("step", "complete", "i1", "look")
	b.addItems("lent", 2)
	s := b.serve("--no-run")
	s.signIn()
	page := s.ask("GET", "/", "").body
	followed := map[string]int{}
	for _, m := range regexp.MustCompile(`<td class="n ([a-z-]+)"><a href="([^"]+)">(\d+)</a>`).FindAllStringSubmatch(page, -1) {
		n, err := strconv.Atoi(m[3])
		b.must(err)
		followed[m[1]] += n
		to := html.UnescapeString(m[2])
		body := s.ask("GET", to, "").body
		want := "of " + m[3] + " item"
		if strings.HasPrefix(to, "/queues/") {
			want = map[string]string{"ready": m[3] + " ready,", "person": m[3] + " for people,"}[m[1]]
		}
		if !strings.Contains(body, want) || strings.Count(body, `<th scope="row"><a href="/items/`) != n {
			t.Errorf("%d %s lead to %s, which does not say %q, or lists others: %s", n, m[1], to, want, tags.ReplaceAllString(body, " "))
		}
	}
	for kind, n := range map[string]int{"waiting": 12, "ready": 4, "person": 3, "failed": 1, "skipped": 1, "completed": 14} {
		if followed[kind] != n {
			t.Errorf("%d are %s, not %d: %v", followed[kind], kind, n, followed)
		}
	}
	for _, m := range regexp.MustCompile(`<a href="/(mine|failures|items\?held=true)"[^>]*><b>(\d+)</b>`).FindAllStringSubmatch(page, -1) {
		if want := map[string]string{"mine": "3", "failures": "1", "items?held=true": "0"}[m[1]]; m[2] != want {
			t.Errorf("%s for %s, not %s", m[2], m[1], want)
		}
	}
}

// The pages of a list lead on behind the last item, wherever items move meanwhile, and lose and repeat none; its table
// holds all. A refusal says what would help, on pages and by calls.
func TestServePagesOfAList(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.workflow("trial", "  - name: look\n    manual: true\n  - name: sign\n    manual: true\n")
	b.addItems("trial", 120)
	s := b.serve("--no-run")
	s.signIn()
	row := regexp.MustCompile(`name="item" value="([0-9a-f]{15})"`)
	for _, first := range []string{"/items?workflow=trial", "/items?workflow=trial&sort=-created"} {
		seen, pages := map[string]bool{}, 0
		for next := first; next != ""; pages++ {
			body := s.ask("GET", next, "").body
			for _, m := range row.FindAllStringSubmatch(body, -1) {
				if seen[m[1]] {
					t.Errorf("item %s stands on two pages of %s", m[1], first)
				}
				seen[m[1]] = true
			}
			s.post("/items/i"+strconv.Itoa(40*pages%120)+"/acts", "act", "complete", "step", "look", "back", "")
			next = ""
			if m := regexp.MustCompile(`href="([^"]+)" rel="next"`).FindStringSubmatch(body); m != nil {
				next = html.UnescapeString(m[1])
			}
		}
		if len(seen) != 120 || pages != 3 {
			t.Errorf("%d items on %d pages of %s", len(seen), pages, first)
		}
	}
	if n := strings.Count(s.ask("GET", "/items.csv?workflow=trial", "").body, "\n"); n != 121 {
		t.Errorf("the table has %d lines", n)
	}
	if a := s.post("/items/i7/acts", "act", "complete", "step", "sign"); a.code != 409 || !strings.Contains(a.body, "look") {
		t.Errorf("a step whose prerequisite is open: %+v", a)
	}
	s.program("operator")
	why := gjson.Get(b.ok("why", "i7", "sign", "--json"), "steps.0")
	a := s.ask("POST", "/api/v1/items/i7/acts", `{"act":"complete","step":"sign"}`, "Content-Type", "application/json")
	if a.code != 409 || gjson.Get(a.body, "code").String() != "refused" || gjson.Get(a.body, "status").Int() != 409 ||
		gjson.Get(a.body, "why").String() != "requires" || why.Get("code").String() != "requires" || !strings.HasSuffix(gjson.Get(a.body, "help").String(), why.Get("command").String()) || !strings.HasPrefix(why.Get("command").String(), "bagpipe step complete ") {
		t.Errorf("a step whose prerequisite is open: %+v; why says %s", a, why)
	}
	if a := s.ask("GET", "/api/v1/items?collection=nowhere", ""); a.code != 404 || !strings.Contains(gjson.Get(a.body, "help").String(), "bagpipe collection list") {
		t.Errorf("no such collection: %+v", a)
	}
	if tree := b.git("ls-tree", "-r", "--name-only", "main"); strings.Contains(tree, "access/") || !b.exists("ws/access/tokens.json") {
		t.Errorf("accounts stand in the history: %s", tree)
	}
}
