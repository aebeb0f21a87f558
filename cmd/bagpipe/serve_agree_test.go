package main

import (
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"
)

// agreed are 1,000 in a soak, each asked of three; else the command, a process each time, is asked one of eight.
var agreed, byCommand = soak(200, 1000), soak(8, 1)

// Page, call and command count the same items and the same facets, whatever is asked, while steps
// run: an answer counts when the history did not move while it was asked for.
func TestServeCountsAsTheCommandDoes(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	data, err := os.ReadFile(filepath.Join(b.dir, "bagpipe.yaml"))
	b.must(err)
	text := regexp.MustCompile(`(?m)^lanes:.*$`).ReplaceAllString(string(data), "lanes: [normal, low]")
	b.write("ws/bagpipe.yaml", text+"\nweb:\n  facets: [metadata.tags, label]\n")
	b.ok("collection", "add", "maps")
	b.workflow("trial", "  - name: look\n    manual: true\n  - name: sleep\n    command: [sh, -c, 'sleep 0.2; case $BAGPIPE_LABEL in *3*) echo broken $BAGPIPE_LABEL >&2; exit 65;; esac']\n  - name: sign\n    manual: true\n    milestone: signed\n")
	b.workflow("short", "  - name: go\n    command: ['true']\n    milestone: gone\n")
	for i := range 30 {
		b.write(fmt.Sprintf("in/label %d", i), fmt.Sprint("x", i))
		args := []string{"add", "--workflow", []string{"trial", "short"}[i%2], "--collection", []string{"default", "maps"}[i%3%2], "--lane", []string{"normal", "low"}[i%5%2]}
		if i%4 > 1 {
			args = append(args, "--batch", []string{"june", "july"}[i%2])
		}
		b.ok(append(args, b.top+fmt.Sprintf("/in/label %d", i))...)
	}
	for _, i := range []int{2, 9} {
		b.ok("hold", fmt.Sprintf("label %d", i))
	}
	s := b.serve()
	s.program("operator")
	r := rand.New(rand.NewPCG(18, uint64(time.Now().UnixNano())))
	var facets []gjson.Result
	count := regexp.MustCompile(`<p class="count">(?:[\d\x{202f}]+ to [\d\x{202f}]+ of )?([\d\x{202f}]+) items?`)
	row := regexp.MustCompile(`<li><a href="[^"]*"(?: class="on" aria-current="true")?>[^<]*</a> <span class="n">`)
	same, moved, commands := 0, 0, 0
	for round := range agreed {
		if r.IntN(4) == 0 { // steps go on
			i := 2 * r.IntN(15)
			s.ask("POST", "/api/v1/items/"+url.PathEscape(fmt.Sprintf("label %d", i))+"/acts", fmt.Sprintf(`{"act":%q,"step":%q}`, []string{"complete", "reset"}[r.IntN(2)], []string{"look", "sign"}[r.IntN(2)]), "Content-Type", "application/json")
		}
		all := gjson.Parse(s.ask("GET", "/api/v1/facets", "").body)
		facets = all.Array()
		q, args := url.Values{}, []string{}
		narrow := func(name, value string) {
			if r.IntN(4) == 0 {
				q.Set(name, value)
				args = append(args, "--"+name+"="+value)
			}
		}
		narrow("collection", []string{"default", "maps"}[r.IntN(2)])
		narrow("lane", []string{"normal", "low"}[r.IntN(2)])
		narrow("workflow", []string{"trial", "short", "trial.1"}[r.IntN(3)])
		narrow("status", []string{"waiting", "in-progress", "completed", "failed"}[r.IntN(4)])
		if strings.HasPrefix(q.Get("workflow"), "trial") {
			narrow("step", []string{"look", "sleep", "sign"}[r.IntN(3)])
		}
		narrow("failure", []string{"broken", "label 3", "nothing"}[r.IntN(3)])
		narrow("batch", []string{"june", "july"}[r.IntN(2)])
		narrow("where", []string{`label ~ ".*1.*"`, `collection = "maps"`, `metadata.none exists`}[r.IntN(3)])
		tip := b.tip()
		// The command has no option for a text and for what is held: there the call is held against the list.
		asked := len(args)
		narrow("q", []string{"label 1", "ABEL 2", "9", "nothing"}[r.IntN(4)])
		narrow("held", "true")
		call := s.ask("GET", "/api/v1/facets?"+q.Encode(), "")
		command := gjson.Parse(call.body)
		if len(args) == asked && round%byCommand == 0 {
			commands++
			command = gjson.Parse(b.ok(append([]string{"items", "--facets", "--json"}, args...)...))
		} else if listed := gjson.Get(s.ask("GET", "/api/v1/items?limit=1000&"+q.Encode(), "").body, "#").Int(); listed != sumOf(command, "collection") {
			if b.tip() == tip {
				t.Fatalf("%s: the call counts %d and lists %d", q.Encode(), sumOf(command, "collection"), listed)
			}
		}
		page := s.ask("GET", "/items?"+q.Encode(), "")
		if call.code != 200 || page.code != 200 {
			t.Fatalf("%s: %+v %+v", q.Encode(), call, page)
		}
		if b.tip() != tip {
			moved++
			continue
		}
		same++
		if got, want := lines(gjson.Parse(call.body)), lines(command); !slices.Equal(got, want) {
			t.Fatalf("%s: the call counts\n%s\nthe command\n%s", q.Encode(), strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		total := int(sumOf(command, "collection"))
		shown := count.FindStringSubmatch(page.body)
		if shown == nil || shown[1] != fmt.Sprint(total) {
			t.Fatalf("%s: the page counts %v, the command %d", q.Encode(), shown, total)
		}
		for _, f := range command.Array() {
			if n := fmt.Sprintf(`<span class="n">%d</span>`, f.Get("items").Int()); !strings.Contains(page.body, n) {
				t.Fatalf("%s: the page has no %s of %s", q.Encode(), n, f)
			}
		}
		for name, values := range byFacet(command) {
			if more := fmt.Sprintf("and %d more, which are rarer", values-12); values > 12 && !strings.Contains(page.body, more) {
				t.Fatalf("%s: of %d values of %s the page does not say %q", q.Encode(), values, name, more)
			}
		}
		if len(row.FindAllString(page.body, -1)) == 0 && total > 0 {
			t.Fatalf("%s: the page has no facets", q.Encode())
		}
	}
	t.Logf("%d agreed, of which %d were asked of the command; in %d the history moved meanwhile", same, commands, moved)
	if same < agreed/3 || commands < agreed/byCommand/4 || len(facets) < 8 {
		t.Errorf("only %d of %d were asked in peace, of %d values", same, agreed, len(facets))
	}
	// Any two values chosen: each facet's own values are counted as if none of them was.
	for range 40 {
		x, y := facets[r.IntN(len(facets))], facets[r.IntN(len(facets))]
		q := url.Values{"facet": {x.Get("facet").String() + ":" + x.Get("value").String(), y.Get("facet").String() + ":" + y.Get("value").String()}, "limit": {"1000"}}
		n := len(gjson.Parse(s.ask("GET", "/api/v1/items?"+q.Encode(), "").body).Array())
		q.Del("limit")
		if shown := count.FindStringSubmatch(s.ask("GET", "/items?"+q.Encode(), "").body); shown == nil || shown[1] != fmt.Sprint(n) {
			t.Errorf("%s: the page counts %v, the call lists %d", q.Encode(), shown, n)
		}
	}
}

// byFacet is how many values each facet has.
func byFacet(facets gjson.Result) map[string]int {
	values := map[string]int{}
	for _, f := range facets.Array() {
		values[f.Get("facet").String()]++
	}
	return values
}

// tip is the commit that the branch is at.
func (b *bench) tip() string {
	b.t.Helper()
	data, err := os.ReadFile(filepath.Join(b.dir, ".git/refs/heads/main"))
	b.must(err)
	return string(data)
}

// sumOf is of how many items a facet has values, of which each item has one.
func sumOf(facets gjson.Result, facet string) (n int64) {
	for _, f := range facets.Array() {
		if f.Get("facet").String() == facet {
			n += f.Get("items").Int()
		}
	}
	return n
}

// lines are facets as lines, in their order.
func lines(facets gjson.Result) (out []string) {
	for _, f := range facets.Array() {
		out = append(out, f.Get("facet").String()+" "+f.Get("value").String()+" "+f.Get("items").String())
	}
	slices.Sort(out)
	return out
}
