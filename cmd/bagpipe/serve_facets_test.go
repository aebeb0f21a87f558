package main

import (
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tidwall/gjson"
)

// Each facet has its values with their counts, on the page and by the call; a value that is chosen narrows both to so
// many items, and of several values of one facet any does.
func TestServeFacets(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	data, err := os.ReadFile(filepath.Join(b.dir, "bagpipe.yaml"))
	b.must(err)
	b.write("ws/bagpipe.yaml", regexp.MustCompile(`(?m)^lanes:.*$`).ReplaceAllString(string(data), "lanes: [normal, low]")+"\nweb:\n  facets: [metadata.tags]\n")
	b.ok("collection", "add", "maps")
	b.workflow("trial", "  - name: work\n    command: [sh, -c, 'case $BAGPIPE_LABEL in *3) echo it is torn >&2; exit 65;; esac']\n    milestone: worked\n  - name: look\n    manual: true\n")
	for _, args := range [][]string{{"i0", "--batch", "june"}, {"i1", "--batch", "june", "--collection", "maps"}, {"i2", "--lane", "low"}, {"i3"}} {
		b.write("in/"+args[0], args[0])
		b.ok(append([]string{"add", "--workflow", "trial", b.top + "/in/" + args[0]}, args[1:]...)...)
	}
	b.ok("item", "set", "i0", "--metadata", "tags=flood")
	b.ok("item", "set", "i2", "--metadata", "tags=fire")
	b.start("run").code(4)
	b.ok("hold", "i1")
	s := b.serve("--no-run")
	s.signIn()
	failure := gjson.Get(b.ok("items", "--facets", "--json"), `#(facet=="failure").value`).String()
	counts := map[string]string{ // by facet and value, the labels
		"workflow:trial in-progress": "i0 i1 i2", "workflow:trial failed": "i3", "step:trial/look": "i0 i1 i2", "step:trial/work": "i3", "status:in-progress": "i0 i1 i2", "status:failed": "i3",
		"failure:" + failure: "i3", "collection:default": "i0 i2 i3", "collection:maps": "i1", "lane:normal": "i0 i1 i3", "lane:low": "i2", "batch:june": "i0 i1",
		"milestone:registered": "i0 i1 i2 i3", "milestone:worked": "i0 i1 i2", "age:under an hour": "i0 i1 i2 i3", "held:yes": "i1", "metadata.tags:flood": "i0", "metadata.tags:fire": "i2",
	}
	told := map[string]int{}
	for _, f := range gjson.Parse(s.ask("GET", "/api/v1/facets", "").body).Array() {
		told[f.Get("facet").String()+":"+f.Get("value").String()] = int(f.Get("items").Int())
	}
	if len(told) != len(counts) || failure == "" {
		t.Errorf("facets %v, want those of %v", told, counts)
	}
	all := s.ask("GET", "/items", "").body
	if sorted := s.ask("GET", "/items?sort=-label", "").body; !regexp.MustCompile(`(?s)>i3</a>.*>i2</a>.*>i1</a>.*>i0</a>`).MatchString(sorted) || regexp.MustCompile(`(?s)>i3</a>.*>i2</a>.*>i1</a>.*>i0</a>`).MatchString(all) {
		t.Errorf("sorted by the label, the last first: %s", sorted)
	}
	for facet, labels := range counts {
		n := len(strings.Fields(labels))
		name, value, _ := strings.Cut(facet, ":")
		q := url.Values{"facet": {facet}, "sort": {"label"}}.Encode()
		_, below, _ := strings.Cut(all, "<h2>"+name+"</h2>")
		below, _, _ = strings.Cut(below, "</ul>")
		if !regexp.MustCompile(`>` + regexp.QuoteMeta(strings.ReplaceAll(value, "'", "&#39;")) + `</a> <span class="n">` + string(rune('0'+n)) + `</span>`).MatchString(below) {
			t.Errorf("%s: the page does not count %d: %s", facet, n, below)
		}
		listed := gjson.Get(s.ask("GET", "/api/v1/items?"+q, "").body, "#.label").String()
		if want := `["` + strings.ReplaceAll(labels, " ", `","`) + `"]`; told[facet] != n || listed != want {
			t.Errorf("%s: the call counts %d and lists %s, want %s", facet, told[facet], listed, want)
		}
		page := s.ask("GET", "/items?"+q, "").body
		for _, label := range strings.Fields("i0 i1 i2 i3") {
			if strings.Contains(page, ">"+label+"</a>") != strings.Contains(labels, label) {
				t.Errorf("%s: the page lists %s, or does not", facet, label)
			}
		}
	}
	own := s.token
	s.token = b.token("maps") // who is confined counts their own
	if got, want := lines(gjson.Parse(s.ask("GET", "/api/v1/facets", "").body)), lines(gjson.Parse(b.ok("items", "--facets", "--collection", "maps", "--json"))); len(want) < 5 || !slices.Equal(got, want) {
		t.Errorf("who is confined to maps counts %q, not %q", got, want)
	}
	if a := s.ask("GET", "/", ""); !strings.Contains(a.body, "<b>1</b> item<") || !strings.Contains(a.body, "<b>1</b> held<") || !strings.Contains(a.body, "<b>0</b> failed<") {
		t.Errorf("the overview of who is confined to maps: %s", a.body)
	}
	s.token = own
	q := url.Values{"facet": {"metadata.tags:flood", "metadata.tags:fire", "lane:normal", "lane:low", "batch:june"}}.Encode()
	if got := gjson.Get(s.ask("GET", "/api/v1/items?"+q, "").body, "#.label").String(); got != `["i0"]` {
		t.Errorf("several values of several facets: %s", got)
	}
}
