package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/tidwall/gjson"
)

// compact is a document of JSON without spaces.
func compact(t *testing.T, text string) string {
	t.Helper()
	var b bytes.Buffer
	if err := json.Compact(&b, []byte(text)); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return b.String()
}

// The calls answer what --json prints.
func TestServeAnswersAsJSON(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.must(edit(filepath.Join(b.dir, "bagpipe.yaml"), "inbox:", "web:\n  facets: [source.kind]\ninbox:"))
	b.drop("zip", "parent.zip", "file")
	b.start("run").code(4)
	s := b.serve("--no-run")
	s.program("admin")
	if kinds := gjson.Get(s.ask("GET", "/api/v1/facets?facet=source.kind:file", "").body, `#(facet=="source.kind")#.value`).String(); kinds != `["file"]` {
		t.Errorf("the facet of the settings has %s", kinds)
	}
	item := gjson.Get(b.ok("items", "--json"), "0.item").String()
	for call, command := range map[string][]string{
		"items":                                {"items"},
		"items?status=failed":                  {"items", "--status", "failed"},
		"items?workflow=accession&step=unpack": {"items", "--workflow", "accession", "--step", "unpack"},
		"items?sort=-label&limit=2&skip=1":     {"items", "--sort=-label", "--limit", "2", "--skip", "1"},
		"facets":                               {"items", "--facets"},
		"facets?where=lane%20==%20normal":      {"items", "--facets", "--where", "lane == normal"},
		"items/" + item:                        {"show", item},
		"items/" + item + "/why":               {"why", item},
		"queues":                               {"queue", "--list"},
		"queues/accession":                     {"queue", "accession"},
		"failures":                             {"failures"},
		"batches":                              {"batch", "list"},
		"workflows":                            {"workflow", "list"},
		"milestones":                           {"milestones"},
		"stalled?longer-than=1h":               {"stalled", "--longer-than", "1h"},
		"items?limit=3":                        {"items", "--limit", "3"},
		"items?limit=2&skip=1":                 {"items", "--limit", "2", "--skip", "1"},
		"items?limit=2&skip=3":                 {"items", "--limit", "2", "--skip", "3"},
		"items?limit=9&skip=4":                 {"items", "--limit", "9", "--skip", "4"},
		"items?limit=2&skip=900":               {"items", "--limit", "2", "--skip", "900"},
	} {
		want := b.ok(append(command, "--json")...)
		if a := s.ask("GET", "/api/v1/"+call, ""); a.code != 200 || compact(t, a.body) != compact(t, want) {
			t.Errorf("%s: %d\n%s\nbagpipe %v\n%s", call, a.code, a.body, command, compact(t, want))
		}
	}
	for _, call := range []string{"status", "stats", "inbox", "engines", "healthz", "workflows/accession", "workflows/accession/graph.svg", "items/" + item + "/files", "items/" + item + "/log"} {
		if a := s.ask("GET", "/api/v1/"+call, ""); a.code != 200 || len(a.body) < 3 {
			t.Errorf("%s: %+v", call, a)
		}
	}
	for call, want := range map[string]string{
		"items/ffffffffffffff":                    `404 not-found`,
		"items?status=nonsense":                   `422 invalid`,
		"items?where=%28":                         `400 invalid`,
		"items?collection=nowhere":                `404 not-found`,
		"items/" + item + "/files/x":              `404 not-found`,
		"events?after=" + strings.Repeat("a", 40): `410 gone`,
	} {
		a := s.ask("GET", "/api/v1/"+call, "")
		got := gjson.Get(a.body, "status").String() + " " + gjson.Get(a.body, "code").String()
		if got != want || a.header.Get("Content-Type") != "application/problem+json" {
			t.Errorf("%s: %s, not %s: %+v", call, got, want, a)
		}
	}
	spec := s.ask("GET", "/api/v1/openapi.json", "").body
	if v := gjson.Get(spec, "openapi").String(); !strings.HasPrefix(v, "3.1") || gjson.Get(spec, "paths.@keys.#").Int() < 25 {
		t.Errorf("OpenAPI %s, paths %s", v, gjson.Get(spec, "paths.@keys"))
	}
	if found := regexp.MustCompile(`(?i)\b\w*(job|task)s?\b`).FindString(spec); found != "" {
		t.Errorf("the OpenAPI document says %q", found)
	}
	data, file := s.ask("GET", "/api/v1/items/"+item+"/files", ""), ""
	if file = gjson.Get(data.body, "0.path").String(); file == "" {
		t.Fatalf("no files: %s", data.body)
	}
	a := s.ask("GET", "/api/v1/items/"+item+"/files/"+file, "")
	if a.code != 200 || int64(len(a.body)) != gjson.Get(data.body, "0.size").Int() || !strings.HasPrefix(a.header.Get("Content-Disposition"), "attachment") ||
		!strings.HasPrefix(a.header.Get("Content-Security-Policy"), "sandbox") {
		t.Errorf("%s: %+v", file, a.header)
	}
}

// Acts of programs: stamps, keys, roles; a key outlives the server.
func TestServeActs(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.workflow("trial", "  - name: look\n    manual: true\n  - name: sign\n    manual: true\n")
	b.addItems("trial", 2)
	s := b.serve()
	s.program("operator")
	head := s.ask("GET", "/api/v1/items/i0", "")
	stamp := head.header.Get("ETag")
	act := func(body string, headers ...string) answer {
		return s.ask("POST", "/api/v1/items/i0/acts", body, append(headers, "Content-Type", "application/json")...)
	}
	look := `{"act":"complete","step":"look","message":"seen"}`
	first := act(look, "If-Match", stamp, "Idempotency-Key", "one")
	if first.code != 200 || gjson.Get(first.body, "to").String() != "completed" {
		t.Fatalf("complete: %+v", first)
	}
	if a := act(look, "If-Match", stamp, "Idempotency-Key", "one"); a.code != 200 || a.body != first.body || a.header.Get("Idempotency-Replayed") != "true" {
		t.Errorf("the same again: %+v", a)
	}
	if a := act(`{"act":"hold"}`, "Idempotency-Key", "one"); a.code != 422 {
		t.Errorf("another body: %+v", a)
	}
	// A call that was not understood may come again, mended, with its key.
	if a := s.ask("POST", "/api/v1/items/i0/acts", `{"act":"hold"}`, "Content-Type", "application/x-www-form-urlencoded", "Idempotency-Key", "two"); a.code != 415 || !strings.Contains(a.body, "expected Content-Type: application/json") {
		t.Errorf("no JSON: %+v", a)
	}
	if a := act(`{"act":"hold"}`, "Idempotency-Key", "two"); a.code != 200 {
		t.Errorf("the same as JSON: %+v", a)
	}
	b.ok("release", "i0")
	if a := s.ask("GET", "/api/v1/items?colection=default", ""); a.code != 422 || !strings.Contains(a.body, "colection") {
		t.Errorf("a misspelt parameter: %+v", a)
	}
	if a := act(`{"act":"hold"}`, "If-Match", stamp); a.code != 412 {
		t.Errorf("an old stamp: %+v", a)
	}
	if held := s.heldAtOnce("i1", 16); held != 1 {
		t.Errorf("%d of 16 callers changed the item that each had seen", held)
	}
	b.ok("release", "i1")
	if a := act(look); a.code != 409 || gjson.Get(a.body, "code").String() != "refused" {
		t.Errorf("completed twice: %+v", a)
	}
	if a := act(`{"act":"paint"}`); a.code != 422 {
		t.Errorf("no such act: %+v", a)
	}
	if log := b.ok("log", "i0", "--json"); !strings.Contains(log, "Bagpipe-Request") || strings.Count(log, `"look: completed`) != 1 {
		t.Errorf("the history: %s", log)
	}
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
	token := s.token
	s = b.serve()
	s.token = token
	if a := act(look, "Idempotency-Key", "one"); a.code != 200 || gjson.Get(a.body, "to").String() != "completed" || a.header.Get("Idempotency-Replayed") != "true" {
		t.Errorf("the same after a kill: %+v", a)
	}
	for _, c := range []struct {
		role, method, path, body string
		code                     int
	}{
		{"viewer", "POST", "items/i1/acts", `{"act":"hold"}`, 403},
		{"operator", "POST", "items/i1/acts", `{"act":"hold","message":"wait"}`, 200},
		{"operator", "POST", "items/i1/acts", `{"act":"release"}`, 200},
		{"operator", "POST", "items/i1/acts", `{"act":"migrate","workflow":"trial"}`, 403},
		{"operator", "PUT", "steps/accession/unpack", `{"status":"disabled"}`, 403},
		{"admin", "PUT", "steps/accession/unpack", `{"status":"disabled","message":"mending"}`, 200},
		{"admin", "PUT", "steps/accession/unpack", `{"status":"enabled"}`, 200},
		{"operator", "POST", "items/i1/acts", `{"act":"fail","step":"look"}`, 400},
		{"operator", "POST", "items/i1/acts", `{"act":"fail","step":"look","message":"  "}`, 400},
		{"operator", "POST", "items/i1/acts", `{"act":"fail","step":"look","message":"torn"}`, 200},
		{"operator", "POST", "batches/nowhere/close", ``, 404},
	} {
		s.program(c.role)
		if a := s.ask(c.method, "/api/v1/"+c.path, c.body, "Content-Type", "application/json"); a.code != c.code {
			t.Errorf("%s: %s %s %s: %d, not %d: %s", c.role, c.method, c.path, c.body, a.code, c.code, a.body)
		}
	}
	group := gjson.Get(s.ask("GET", "/api/v1/failures", "").body, "0.group").String()
	if a := s.ask("POST", "/api/v1/failures/"+group+"/retry", ``); a.code != 200 || gjson.Get(a.body, "#").Int() != 1 {
		t.Errorf("retry of %s: %+v", group, a)
	}
}

// Each act that a call may name does to an item what the command of its name does.
func TestServeActsOfEachKind(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	steps := "  - name: look\n    manual: true\n  - name: sign\n    manual: true\n"
	b.workflow("trial", steps)
	b.workflow("second", "  - name: go\n    manual: true\n")
	b.write("in/i0", "x")
	b.ok("add", "--workflow", "trial", "--batch", "june", b.top+"/in/i0")
	b.workflow("trial", steps+"  - name: file\n    manual: true\n")
	s := b.serve("--no-run")
	s.program("admin")
	look, sign, second := `workflows.#(workflow=="trial.1").steps.#(step=="look").status`, `workflows.#(workflow=="trial.1").steps.#(step=="sign").status`, `workflows.#(workflow=="second.1").status`
	for _, c := range []struct{ act, path, want string }{
		{`"act":"complete","step":"look","milestones":["seen"]`, "milestones.@keys", `["registered","seen"]`},
		{`"act":"complete","step":"sign"`, sign, "completed"},
		{`"act":"reset","step":"look","after":true`, look, "waiting"},
		{`"act":"hold"`, sign, "waiting"}, // it needs what was reset
		{`"act":"release"`, "manifest.label", "i0"},
		{`"act":"fail","step":"look","message":"torn"`, look, "failed"},
		{`"act":"retry","step":"look"`, look, "waiting"},
		{`"act":"skip","step":"look"`, look, "skipped"},
		{`"act":"reset","step":"look"`, look, "waiting"},
		{`"act":"migrate","workflow":"trial"`, `workflows.#(workflow=="trial.1").steps.#(step=="file").status`, "waiting"},
		{`"act":"start","workflow":"second"`, second, "in-progress"},
		{`"act":"deactivate","workflow":"second"`, second, "inactive"},
		{`"act":"activate","workflow":"second"`, second, "in-progress"},
	} {
		a := s.ask("POST", "/api/v1/items/i0/acts", "{"+c.act+"}", "Content-Type", "application/json")
		if got := gjson.Get(b.ok("show", "i0", "--json"), c.path).String(); a.code != 200 || got != c.want {
			t.Errorf("%s: %d %s; then %s is %q, not %q", c.act, a.code, a.body, c.path, got, c.want)
		}
	}
	if a := s.ask("POST", "/api/v1/batches/june/close", ""); a.code != 200 || gjson.Get(b.ok("batch", "list", "--json"), "0.closed").String() == "" {
		t.Errorf("the batch: %d %s; %s", a.code, a.body, b.ok("batch", "list", "--json"))
	}
}

// A log is read while the step writes it, and followed to its end.
func TestServeFollowsALog(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.workflow("trial", "  - name: work\n    command: [sh, -c, 'echo first >&2; while ! [ -e "+b.top+"/go ]; do sleep 0.05; done; echo last >&2']\n")
	b.addItems("trial", 1)
	s := b.serve()
	s.program("viewer")
	attempt := ""
	b.await("the log", func() bool {
		a := gjson.Get(s.ask("GET", "/api/v1/items/i0", "").body, `workflows.0.steps.#(step=="work").attempts.0`)
		attempt = a.Get("attempt").String()
		return a.Get("log").String() != ""
	})
	at := "/api/v1/items/i0/logs/work/" + attempt
	b.await("the first line", func() bool { return strings.Contains(s.ask("GET", at, "").body, "first") })
	all := make(chan answer)
	go func() { all <- s.ask("GET", at+"?follow=true", "") }()
	if a := s.ask("GET", "/items/i0/logs/work/"+attempt, ""); !strings.Contains(a.body, "Follow it") || !strings.Contains(a.body, "first") {
		t.Errorf("the page: %s", a.body)
	}
	b.write("go", "")
	if a := <-all; a.code != 200 || !strings.Contains(a.body, "first\n") || !strings.Contains(a.body, "last\n") {
		t.Errorf("followed: %+v", a)
	}
}

// An act on many items by a program: looked at, done, and told item by item.
func TestServeActsOnMany(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.workflow("trial", "  - name: look\n    manual: true\n  - name: sign\n    manual: true\n")
	b.addItems("trial", 101)
	b.ok("step", "complete", "i7", "look")
	s := b.serve("--no-run")
	s.program("operator")
	acts := func(body string, headers ...string) answer {
		return s.ask("POST", "/api/v1/acts", body, append(headers, "Content-Type", "application/json")...)
	}
	all := `{"act":"complete","step":"look","message":"seen","filter":{"workflow":"trial"}`
	if a := acts(all + `}`); a.code != 422 || gjson.Get(a.body, "code").String() != "preview-needed" {
		t.Errorf("unseen: %+v", a)
	}
	seen := acts(all + `,"dryRun":true}`)
	preview := gjson.Get(seen.body, "id").String()
	if gjson.Get(seen.body, "items.#").Int() != 101 || gjson.Get(seen.body, "refused").Int() != 1 || !strings.Contains(gjson.Get(seen.body, `items.#(label=="i7").refused`).String(), "completed already") {
		t.Fatalf("preview: %+v", seen)
	}
	b.ok("hold", "i3")
	if a := acts(`{"act":"skip","step":"look","preview":"` + preview + `"}`); a.code != 400 {
		t.Errorf("another act: %+v", a)
	}
	if a := acts(all+`,"preview":"`+preview+`"}`, "Idempotency-Key", "all"); a.code != 200 || !gjson.Get(a.body, "begun").Bool() {
		t.Errorf("begun: %+v", a)
	}
	var end answer
	b.await("the end", func() bool {
		end = s.ask("GET", "/api/v1/acts/"+preview, "")
		return gjson.Get(end.body, "ended").Bool()
	})
	if gjson.Get(end.body, "done").Int() != 101 || gjson.Get(end.body, "refused").Int() != 2 || !strings.Contains(gjson.Get(end.body, `items.#(label=="i3").refused`).String(), "has changed") {
		t.Errorf("the end: %+v", end)
	}
	if n := gjson.Get(b.ok("items", "--workflow", "trial", "--step", "look", "--status", "completed", "--json"), "#").Int(); n != 100 {
		t.Errorf("%d items are completed", n)
	}
	few := acts(`{"act":"hold","items":["i1","i2"]}`, "Idempotency-Key", "few")
	if few.code != 200 {
		t.Fatalf("few: %+v", few)
	}
	at := "/api/v1/acts/" + gjson.Get(few.body, "id").String()
	b.await("the few", func() bool { return gjson.Get(s.ask("GET", at, "").body, "ended").Bool() })
	if a := s.ask("DELETE", at, ""); a.code != 200 || gjson.Get(a.body, "stopped").Bool() {
		t.Errorf("stopped after its end: %+v", a)
	}
	for _, sort := range []string{"", "sort=-label&"} {
		if n := s.leafed("/api/v1/items?workflow=trial&limit=40&" + sort); n != 101 {
			t.Errorf("pages sorted by %q hold %d items", sort, n)
		}
	}
	if a := s.ask("GET", "/api/v1/items?cursor=nonsense", ""); a.code != 400 {
		t.Errorf("no cursor: %+v", a)
	}
	token := s.token
	s.program("operator")
	if a := s.ask("GET", at, ""); a.code != 404 {
		t.Errorf("another's act: %+v", a)
	}
	s.program("viewer")
	if a := acts(`{"act":"hold","items":["i1"]}`); a.code != 403 {
		t.Errorf("a viewer's: %+v", a)
	}
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
	s = b.serve("--no-run")
	s.token = token
	if a := s.ask("POST", "/api/v1/acts", `{"act":"hold","items":["i1","i2"]}`, "Content-Type", "application/json", "Idempotency-Key", "few"); a.code != 409 || gjson.Get(a.body, "code").String() != "interrupted" {
		t.Errorf("the same after a kill: %+v", a)
	}
}

// leafed counts the items on all pages of a list, while some of them move.
func (s *site) leafed(next string) int {
	s.b.t.Helper()
	seen := map[string]bool{}
	for next != "" {
		a := s.ask("GET", next, "")
		for _, row := range gjson.Parse(a.body).Array() {
			if item := row.Get("item").String(); seen[item] {
				s.b.t.Errorf("item %s stands on two pages", item)
			} else {
				seen[item] = true
			}
		}
		s.ask("POST", "/api/v1/items/i"+strconv.Itoa(len(seen)%100)+"/acts", `{"act":"complete","step":"sign"}`, "Content-Type", "application/json")
		next, _, _ = strings.Cut(strings.TrimPrefix(a.header.Get("Link"), "<"), ">")
	}
	return len(seen)
}

// heldAtOnce holds an item by several callers who all looked at it before, and counts those
// who did.
func (s *site) heldAtOnce(item string, callers int) int {
	stamp := s.ask("GET", "/api/v1/items/"+item, "").header.Get("ETag")
	var group sync.WaitGroup
	var held, refused atomic.Int32
	for range callers {
		group.Go(func() {
			switch s.ask("POST", "/api/v1/items/"+item+"/acts", `{"act":"hold"}`, "Content-Type", "application/json", "If-Match", stamp).code {
			case 200:
				held.Add(1)
			case 412:
				refused.Add(1)
			}
		})
	}
	group.Wait()
	if int(held.Load()+refused.Load()) != callers {
		s.b.t.Errorf("%d held, %d refused, of %d", held.Load(), refused.Load(), callers)
	}
	return int(held.Load())
}

// Events: everything after a commit, once, in order.
func TestServeEvents(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.workflow("trial", "  - name: look\n    manual: true\n")
	b.addItems("trial", 3)
	s := b.serve("--no-run")
	s.program("operator")
	first := strings.TrimSpace(b.git("rev-list", "--max-parents=0", "HEAD"))
	all := s.ask("GET", "/api/v1/events?wait=1s&after="+first, "")
	var want []string
	for hash := range strings.Lines(b.git("rev-list", "--reverse", first+"..HEAD")) {
		want = append(want, strings.TrimSpace(hash))
	}
	var got []string
	for _, e := range gjson.Get(all.body, "events.#.id").Array() {
		got = append(got, e.String())
	}
	if len(want) < 4 || strings.Join(got, " ") != strings.Join(want, " ") || gjson.Get(all.body, "last").String() != want[len(want)-1] {
		t.Errorf("events %v, want %v", got, want)
	}
	waiting := make(chan answer)
	go func() { waiting <- s.ask("GET", "/api/v1/events?wait=20s&step=look&after="+want[len(want)-1], "") }()
	b.ok("step", "complete", "i1", "look")
	if a := <-waiting; gjson.Get(a.body, "events.0.to").String() != "completed" {
		t.Errorf("the event: %+v", a)
	}
	for _, act := range []string{"hold", "release", "hold", "release"} { // what an answer told of, events tell at once
		after := strings.TrimSpace(b.git("rev-parse", "HEAD"))
		s.ask("POST", "/api/v1/items/i0/acts", `{"act":"`+act+`"}`, "Content-Type", "application/json")
		if a := s.ask("GET", "/api/v1/events?wait=1ms&after="+after, ""); gjson.Get(a.body, "events.#").Int() != 1 {
			t.Errorf("right after %s: %+v", act, a)
		}
	}
	s.narrowsEvents(first)
}

// narrowsEvents asks for the events of some items, of TestServeEvents, by what narrows them, and as one who is confined.
func (s *site) narrowsEvents(first string) {
	b, t := s.b, s.b.t
	t.Helper()
	b.ok("collection", "add", "maps")
	b.write("in/sheet", "x")
	b.ok("add", "--workflow", "trial", "--collection", "maps", b.top+"/in/sheet")
	b.ok("hold", "i2")
	item := func(label string) string { return gjson.Get(b.ok("show", label, "--json"), "manifest.item").String() }
	i1, i2, sheet := item("i1"), item("i2"), item("sheet")
	for query, want := range map[string][]string{
		"item=" + i1:                       {i1, i1},
		"collection=maps":                  {sheet},
		"status=completed&step=look":       {i1},
		"held=true":                        {i2, i2},
		"q=sheet":                          {sheet},
		"facet=collection:maps":            {sheet},
		"where=collection%20%3D%20%22maps": nil, // no condition
		"where=collection%20%3D%20maps":    {sheet},
	} {
		a := s.ask("GET", "/api/v1/events?wait=1ms&after="+first+"&"+query, "")
		var got []string
		for _, e := range gjson.Get(a.body, "events.#.item").Array() {
			got = append(got, e.String())
		}
		if strings.Join(got, " ") != strings.Join(want, " ") || (a.code == 200) != (want != nil) {
			t.Errorf("events by %s: %d, of %v, not of %v", query, a.code, got, want)
		}
	}
	s.token = b.token("maps")
	a := s.ask("GET", "/api/v1/events?wait=1ms&after="+first, "")
	if got := gjson.Get(a.body, "events.#.item").String(); got != `["`+sheet+`"]` || gjson.Get(a.body, "events.#").Int() != 1 {
		t.Errorf("who is confined to maps is told of %s: %s", got, a.body)
	}
}

// Where no run joins packs, as beside pages alone, the pages do: each act of one caller leaves a pack, and with some
// thousand of them a lookup takes a hundred times as long.
func TestServeJoinsPacks(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.workflow("trial", "  - name: look\n    manual: true\n")
	b.addItems("trial", 1)
	s := b.serve("--no-run")
	s.program("operator")
	packs := func() int {
		found, err := filepath.Glob(filepath.Join(b.dir, ".git/objects/pack/*.idx"))
		b.must(err)
		return len(found)
	}
	// Until there are enough, or fewer than before: then they were joined already, and so few more would stay as they are.
	for n, most := 0, 0; n < 400; n++ {
		now := packs()
		if now >= 210 || now < most {
			break
		}
		most = now
		if a := s.ask("POST", "/api/v1/items/i0/acts", fmt.Sprintf(`{"act":%q}`, []string{"hold", "release"}[n%2]), "Content-Type", "application/json"); a.code != 200 {
			t.Fatalf("act %d: %+v", n, a)
		}
	}
	b.await("the packs to be joined", func() bool { return packs() < 50 })
	var out []byte
	if !eventually(func() bool { // those that are joined go one by one meanwhile
		var err error
		out, err = exec.Command("git", "-C", b.dir, "fsck", "--strict", "--no-dangling").CombinedOutput()
		return err == nil && len(out) == 0
	}) {
		t.Errorf("%s", out)
	}
}
