package main

import (
	"bufio"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/tidwall/gjson"
)

// user adds a person, and signs them in.
func (s *site) user(name, role, full string) {
	b := s.b
	b.t.Helper()
	add := exec.Command("bagpipe", "-C", b.dir, "user", "add", name, "--role", role, "--full-name", full, "--email", name+"@example.org")
	add.Env, add.Stdin = b.env, strings.NewReader("correct horse battery\n")
	if out, err := add.CombinedOutput(); err != nil {
		b.t.Fatalf("%v\n%s", err, out)
	}
	if a := s.post("/signin", "name", name, "password", "correct horse battery"); a.code != 303 {
		b.t.Fatalf("%s signs in: %+v", name, a)
	}
}

// told waits for a part of a page, as a browser's stream brings it, to hold a text; did makes it so, once the
// first part has come.
func (s *site) told(part, text string, did func()) {
	b := s.b
	b.t.Helper()
	r, err := http.NewRequestWithContext(b.t.Context(), http.MethodGet, s.base+"/live?part="+url.QueryEscape(part), nil)
	b.must(err)
	resp, err := (&http.Client{Jar: s.jar}).Do(r)
	b.must(err)
	defer resp.Body.Close()
	in := bufio.NewScanner(resp.Body)
	in.Buffer(nil, 1<<20)
	for in.Scan() {
		data, is := strings.CutPrefix(in.Text(), "data: ")
		if !is {
			continue
		}
		if strings.Contains(gjson.Get(data, "html").String(), text) {
			return
		}
		if did != nil {
			did()
			did = nil
		}
	}
	b.t.Errorf("the stream of %s ended, and %q never came: %v", part, text, in.Err())
}

// People decide on the pages of deliveries, disposals and schedules as programs do by calls; the history
// names who it was, and each role does what it may.
func TestServeDeciding(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.busied()
	s := b.serve()
	s.user("zoe", "operator", "Zoé Reader")
	author := func(grep string) string {
		return strings.TrimSpace(b.git("log", "-1", "--grep="+grep, "--format=%an|%ae"))
	}

	b.await("what waits for a person", func() bool { return strings.Contains(s.ask("GET", "/deliveries", "").body, "old.txt</a>") })
	s.holds("/deliveries", `aria-label="Decide on old.txt to portal"`, `value="approve"`)
	decide := "/deliveries/old.txt/portal/acts"
	if a := s.post(decide, "act", "refuse", "back", "deliveries"); a.code != 303 { // as the command
		t.Errorf("a refusal without a reason: %+v", a)
	}
	if a := s.ask("POST", decide, "act=approve", "Content-Type", formType, "Origin", "http://evil.example"); a.code != 403 {
		t.Errorf("a foreign page's act: %+v", a)
	}
	s.told("deliveries?state=all&to=portal", "approved by Zoé Reader &lt;zoe@example.org&gt;: as agreed", func() {
		if a := s.post(decide, "act", "approve", "message", "as agreed", "back", "deliveries?state=all"); a.code != 303 || a.header.Get("Location") != "/deliveries?did=delivery-approve&state=all" {
			t.Errorf("approve: %+v", a)
		}
	})
	if got := author("^delivery: ready .*old.txt"); got != "Zoé Reader|zoe@example.org" {
		t.Errorf("the approval is by %s", got)
	}
	b.await("the delivery", func() bool {
		return gjson.Get(b.ok("delivery", "--state", "delivered", "--json"), "@this").Exists() && strings.Contains(b.ok("delivery", "--state", "delivered"), "old.txt")
	})
	if a := s.post(decide, "act", "approve"); a.code != 409 {
		t.Errorf("nothing to approve: %+v", a)
	}
	if a := s.post("/deliveries/new.txt/away/acts", "act", "nothing"); a.code != 400 {
		t.Errorf("no such act: %+v", a)
	}

	b.ok("dispose", "propose", "new.txt", "-m", "a copy")
	key := gjson.Get(b.ok("dispose", "--json"), "0.key").String()
	s.told("disposals", "1 of 2 approvals", func() {
		if a := s.post("/disposals/"+key+"/acts", "act", "approve", "message", "seen it", "back", "disposals"); a.code != 303 {
			t.Errorf("a word: %+v", a)
		}
	})
	s.holds("/disposals", "by zoe@example.org: seen it")
	if a := s.post("/disposals/"+key+"/acts", "act", "refuse"); a.code != 400 {
		t.Errorf("a refusal without a reason: %+v", a)
	}

	if a := s.post("/schedules/nightly/acts", "act", "fire"); a.code != 403 {
		t.Errorf("an operator fires: %+v", a)
	}
	if strings.Contains(s.ask("GET", "/schedules", "").body, "Fire nightly") {
		t.Error("an operator is offered to fire")
	}
	s.user("ada", "admin", "Ada Lead")
	s.holds("/schedules", "Fire nightly now", "Stop weekly")
	s.told("schedules", "Start weekly", func() {
		if a := s.post("/schedules/weekly/acts", "act", "stop", "back", "schedules"); a.code != 303 || a.header.Get("Location") != "/schedules?did=schedule-stop" {
			t.Errorf("stop: %+v", a)
		}
	})
	if a := s.post("/schedules/weekly/acts", "act", "stop", "back", "schedules"); a.header.Get("Location") != "/schedules?did=nothing" {
		t.Errorf("stop again: %+v", a)
	}
	fired := func() int64 { return gjson.Get(b.ok("schedule", "show", "nightly", "--json"), "firings.#").Int() }
	before := fired()
	if a := s.post("/schedules/nightly/acts", "act", "fire", "back", "schedules"); a.code != 303 {
		t.Errorf("fire: %+v", a)
	}
	b.await("the firing", func() bool {
		shown := b.ok("schedule", "show", "nightly", "--json")
		return gjson.Get(shown, "firings.#").Int() == before+1 && gjson.Get(shown, "last.outcome").String() == "completed"
	})
	if got := author("^schedule: fired nightly"); got != "Ada Lead|ada@example.org" {
		t.Errorf("fired by %s", got)
	}
	s.byCalls(key)
}

// byCalls decides as a program does, on what TestServeDeciding left.
func (s *site) byCalls(key string) {
	b, t := s.b, s.b.t
	t.Helper()
	call := func(path, body string, headers ...string) answer {
		return s.ask("POST", "/api/v1/"+path, body, append(headers, "Content-Type", "application/json")...)
	}
	s.program("operator")
	if a := call("disposals/"+key+"/acts", `{"act":"approve"}`); a.code != 403 {
		t.Errorf("a program approves a disposal: %+v", a)
	}
	if a := call("schedules/nightly/acts", `{"act":"fire"}`); a.code != 403 {
		t.Errorf("an operator fires: %+v", a)
	}
	if a := call("deliveries/old.txt/nowhere/acts", `{"act":"withdraw","message":"a mistake"}`); a.code != 409 {
		t.Errorf("no such delivery: %+v", a)
	}
	body := `{"act":"withdraw","message":"a mistake"}`
	first := call("deliveries/old.txt/portal/acts", body, "Idempotency-Key", "once")
	if first.code != 200 || gjson.Get(first.body, "state").String() != "withdrawn" {
		t.Errorf("withdraw: %+v", first)
	}
	s.pagesOf()
	operator := s.token
	s.token = b.confined("elsewhere")
	if a := call("deliveries/old.txt/portal/acts", `{"act":"approve"}`); a.code != 404 {
		t.Errorf("who is confined elsewhere approves: %+v", a)
	}
	s.program("viewer")
	if a := call("deliveries/old.txt/portal/acts", `{"act":"approve"}`); a.code != 403 {
		t.Errorf("a viewer approves: %+v", a)
	}
	s.token = operator
	s = s.again()
	if a := call("deliveries/old.txt/portal/acts", body, "Idempotency-Key", "once"); a.code != 200 || gjson.Get(a.body, "@ugly").String() != gjson.Get(first.body, "@ugly").String() {
		t.Errorf("again after a kill: %+v, before %+v", a, first)
	}
	if n := strings.Count(b.git("log", "--format=%s", "--grep=^delivery: withdrawn .*old.txt"), "withdrawn"); n != 1 {
		t.Errorf("withdrawn %d times", n)
	}
	s.program("admin")
	if a := call("schedules/weekly/acts", `{"act":"start"}`); a.code != 200 || !gjson.Get(a.body, "changed").Bool() {
		t.Errorf("start: %+v", a)
	}
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
	token := s.token
	s = b.serve("--no-run")
	s.token = token
	if a := call("schedules/nightly/acts", `{"act":"fire"}`); a.code != 503 || gjson.Get(a.body, "code").String() != "busy" {
		t.Errorf("fired where no engine is: %+v", a)
	}
}

// pagesOf goes through all deliveries one by one.
func (s *site) pagesOf() {
	b := s.b
	b.t.Helper()
	all := gjson.Parse(s.ask("GET", "/api/v1/deliveries", "").body).Array()
	next := "/api/v1/deliveries?limit=1"
	var second string
	for i, want := range all {
		a := s.ask("GET", next, "")
		if got := gjson.Get(a.body, "0.label").String() + gjson.Get(a.body, "0.target").String(); gjson.Get(a.body, "#").Int() != 1 || got != want.Get("label").String()+want.Get("target").String() {
			b.t.Errorf("page %d is %s, not %s", i, a.body, want)
		}
		link, ok := strings.CutPrefix(a.header.Get("Link"), "<")
		if next, _, _ = strings.Cut(link, ">"); !ok {
			b.t.Fatalf("page %d leads nowhere: %+v", i, a.header)
		}
		if i == 0 {
			_, second, _ = strings.Cut(next, "?")
		}
	}
	if a := s.ask("GET", next, ""); strings.TrimSpace(a.body) != "[]" || a.header.Get("Link") != "" {
		b.t.Errorf("behind the last: %+v", a)
	}
	v, err := url.ParseQuery(second)
	b.must(err)
	page := s.ask("GET", "/deliveries?"+url.Values{"state": {"all"}, "seen": {"1"}, "cursor": v["cursor"]}.Encode(), "").body
	if !strings.Contains(page, "2 to 3 of 3 deliveries") {
		b.t.Errorf("the second page: %s", page)
	}
	if a := s.ask("GET", "/api/v1/deliveries?cursor=nothing", ""); a.code != 400 {
		b.t.Errorf("no cursor: %+v", a)
	}
}

// Browsers come, are told what moves, and go, again and again: the server's memory does not grow with how
// many there were.
func TestServeViewersSoak(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.workflow("trial", "  - name: look\n    manual: true\n")
	b.addItems("trial", 3)
	s := b.serve("--no-run")
	s.signIn()
	var warm, last int
	for round := range soak(3, 200) {
		act := []string{"hold", "release"}[round%2]
		held := []string{"<b>1</b> held", "<b>0</b> held"}[round%2]
		var acted sync.Once
		var ready, told sync.WaitGroup
		viewers := soak(20, 500)
		ready.Add(viewers)
		for range viewers {
			told.Go(func() {
				s.told("", held, func() {
					ready.Done()
					ready.Wait() // all have their first part
					acted.Do(func() { b.ok(act, "i0") })
				})
			})
		}
		told.Wait()
		if last = s.resident(); round == 1 {
			warm = last
		}
	}
	if grown := last - warm; grown > 64<<10 {
		t.Errorf("after the second round the server held %d KiB, and %d KiB more at the end", warm, grown)
	}
}

// resident is the memory of the server, in KiB.
func (s *site) resident() (kib int) {
	s.b.t.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.cmd.Process.Pid))
	s.b.must(err)
	for line := range strings.Lines(string(data)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			_, err = fmt.Sscan(rest, &kib)
			s.b.must(err)
		}
	}
	return kib
}
