package main

import (
	"bufio"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/tidwall/gjson"
)

// A first visit costs 150 KB at most: the page, with all that it names.
func TestServeFirstVisit(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.drop("zip")
	b.start("run", "-q").code(0)
	s := b.serve("--no-run")
	entered := s.signIn()
	if c := entered.header.Get("Set-Cookie"); !strings.Contains(c, "HttpOnly") || !strings.Contains(c, "SameSite=Lax") || !strings.Contains(c, "Path=/") {
		t.Errorf("the cookie: %s", c)
	}
	named := regexp.MustCompile(`(?:src|href)="(/static/[^"]+)"`)
	for _, page := range []string{"/", "/items", "/inbox", "/mine"} {
		a := s.ask("GET", page, "")
		size, seen := len(a.body), map[string]bool{}
		for _, m := range named.FindAllStringSubmatch(a.body, -1) {
			if !seen[m[1]] {
				seen[m[1]] = true
				asset := s.ask("GET", m[1], "")
				size += len(asset.body)
				if !strings.Contains(asset.header.Get("Cache-Control"), "immutable") {
					t.Errorf("%s is asked for again: %v", m[1], asset.header)
				}
			}
		}
		if size > 150_000 || len(seen) < 4 {
			t.Errorf("%s is %d bytes with %d files", page, size, len(seen))
		}
	}
}

// A log of 1 GB is shown from its end at once, and of the page no more than that.
func TestServeOpensALongLogAtItsEnd(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.workflow("trial", "  - name: work\n    command: [sh, -c, 'echo first >&2']\n")
	b.addItems("trial", 1)
	b.start("run", "-q").code(0)
	attempt := gjson.Get(b.ok("show", "i0", "--json"), `workflows.0.steps.#(step=="work").attempts.0`)
	path := filepath.Join(b.dir, attempt.Get("log").String())
	b.must(os.Truncate(path, 1<<30))
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	b.must(err)
	_, err = f.WriteString("\nthe very last line\n")
	b.must(err)
	b.must(f.Close())
	s := b.serve("--no-run")
	s.signIn()
	before := s.resident()
	a := s.ask("GET", "/items/i0/logs/work/"+attempt.Get("attempt").String(), "")
	if a.code != 200 || !strings.Contains(a.body, "the very last line") || len(a.body) > 1<<20 {
		t.Errorf("%d: a page of %d bytes", a.code, len(a.body))
	}
	if grown := s.resident() - before; grown > 64<<10 {
		t.Errorf("the server took %d KiB for it", grown)
	}
}

// A threshold ends the run, not the pages.
func TestServeOutlivesAThreshold(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.workflow("trial", "  - name: work\n    command: [sh, -c, 'exit 1']\n    threshold: {count: 1, action: terminate}\n")
	s := b.serve()
	s.program("operator")
	b.addItems("trial", 3)
	b.await("the failure", func() bool { return gjson.Get(s.ask("GET", "/api/v1/failures", "").body, "#").Int() > 0 })
	b.await("the end of the run", func() bool { return strings.Contains(s.said(), "threshold") })
	for _, path := range []string{"/api/v1/status", "/items"} {
		if a := s.ask("GET", path, ""); a.code != 200 {
			t.Errorf("%s after the run's end: %+v", path, a)
		}
	}
	if a := s.ask("POST", "/api/v1/items/i0/acts", `{"act":"hold"}`, "Content-Type", "application/json"); a.code != 200 {
		t.Errorf("an act after the run's end: %+v", a)
	}
}

// Who signed in, who was refused, and who fetched what, stands in the server's log.
func TestServeTellsWhoWasIn(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.write("in/letter.txt", "Dear")
	b.ok("add", filepath.Join(b.top, "in/letter.txt"))
	b.start("run", "-q").code(0)
	s := b.serve("--no-run")
	s.user("zoe", "viewer", "Zoé Reader")
	s.post("/signin", "name", "zoe", "password", "wrong horse battery")
	s.post("/items/letter.txt/acts", "act", "hold")
	s.ask("GET", "/items/letter.txt/files/letter.txt", "")
	said := s.said()
	for _, want := range []string{`(?m)signed in.*Zoé Reader.*viewer`, `(?m)sign-in refused.*zoe`, `(?m)the role does not do.*Zoé Reader`, `(?m)download.*letter\.txt.*Zoé Reader`} {
		if !regexp.MustCompile(want).MatchString(said) {
			t.Errorf("the log does not tell %s:\n%s", want, said)
		}
	}
}

// A client of the stream of events that comes back with the last one's id, also to a server that was started anew, gets
// all that came since, each once and in order.
func TestServeEventsComeBack(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.workflow("trial", "  - name: look\n    manual: true\n")
	b.addItems("trial", 4)
	s := b.serve("--no-run")
	s.program("viewer")
	first := strings.TrimSpace(b.git("rev-parse", "main"))
	b.ok("step", "complete", "i0", "look")
	got := s.events(first, 1)
	s = s.again("--no-run")
	b.ok("step", "complete", "i1", "look")
	b.ok("hold", "i2")
	got = append(got, s.events(got[0], 2)...)
	want := strings.Fields(b.git("rev-list", "--reverse", first+"..main"))
	if strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("events %v, want %v", got, want)
	}
	if a := s.ask("GET", "/api/v1/events", "", "Accept", "text/event-stream", "Last-Event-ID", strings.Repeat("a", 40)); a.code != 410 {
		t.Errorf("behind a commit that is not there: %+v", a)
	}
}

// events reads so many events of a stream behind one, and gives their ids.
func (s *site) events(after string, n int) (ids []string) {
	b := s.b
	b.t.Helper()
	r, err := http.NewRequestWithContext(b.t.Context(), http.MethodGet, s.base+"/api/v1/events", nil)
	b.must(err)
	r.Header.Set("Authorization", "Bearer "+s.token)
	r.Header.Set("Accept", "text/event-stream")
	r.Header.Set("Last-Event-ID", after)
	resp, err := http.DefaultClient.Do(r)
	b.must(err)
	defer resp.Body.Close()
	in := bufio.NewScanner(resp.Body)
	for len(ids) < n && in.Scan() {
		if id, is := strings.CutPrefix(in.Text(), "id: "); is {
			ids = append(ids, id)
		}
	}
	if len(ids) < n {
		b.t.Fatalf("%s: the stream ended after %v: %v", resp.Status, ids, in.Err())
	}
	return ids
}

// With --read-only no page offers an act, and none is done, whoever asks.
func TestServeReadOnly(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.workflow("trial", "  - name: look\n    manual: true\n")
	b.addItems("trial", 1)
	s := b.serve("--read-only")
	before := b.git("rev-parse", "main")
	s.onlyLooks()
	s.program("admin")
	for _, c := range [][3]string{{"POST", "/api/v1/items/i0/acts", `{"act":"hold"}`}, {"POST", "/api/v1/acts", `{"act":"hold","items":["i0"]}`}, {"PUT", "/api/v1/steps/trial/look", `{"status":"disabled"}`},
		{"PUT", "/workflow/objects/i0/workflows/trial/look", `<process name="look" status="completed"/>`}} {
		if a := s.ask(c[0], c[1], c[2], "Content-Type", "application/json"); a.code != 403 {
			t.Errorf("%s %s: %+v", c[0], c[1], a)
		}
	}
	if a := s.announce(1, "collection", "default", "filename", "x"); a.code != 403 {
		t.Errorf("an upload: %+v", a)
	}
	if now := b.git("rev-parse", "main"); now != before {
		t.Errorf("the branch went from %s to %s", before, now)
	}
}

// A workspace that the server may not write to is shown, and no act is offered or done.
func TestServeWithoutTheRightToWrite(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.workflow("trial", "  - name: look\n    manual: true\n")
	b.addItems("trial", 1)
	before := b.git("rev-parse", "main")
	s := b.serveAs(b.withoutWriting())
	s.onlyLooks()
	for _, page := range []string{"/", "/queues", "/batches", "/workflows", "/stats", "/engines", "/settings", "/log", "/items/i0/log", "/api/v1/items", "/healthz"} {
		if a := s.ask("GET", page, ""); a.code != 200 {
			t.Errorf("%s: %d %s", page, a.code, a.body)
		}
	}
	if a := s.ask("POST", "/api/v1/items/i0/acts", `{"act":"hold"}`, "Content-Type", "application/json"); a.code != 403 {
		t.Errorf("an act by a call: %+v", a)
	}
	if now := b.git("rev-parse", "main"); now != before {
		t.Errorf("the branch went from %s to %s", before, now)
	}
}

// onlyLooks signs in, and wants no page to offer an act, and none to be done.
func (s *site) onlyLooks() {
	t := s.b.t
	t.Helper()
	s.signIn()
	for _, page := range []string{"/items", "/items/i0", "/mine", "/failures", "/inbox", "/workflows/trial"} {
		if a := s.ask("GET", page, ""); a.code != 200 || strings.Count(a.body, `method="post"`) != 1 { // to sign out
			t.Errorf("%s offers an act: %d %s", page, a.code, a.body)
		}
	}
	if a := s.post("/items/i0/acts", "act", "hold"); a.code != 403 || !strings.Contains(a.body, "read-only") {
		t.Errorf("an act: %+v", a)
	}
}

// A body that is larger than any call needs is not read to its end, and no page or call takes it.
func TestServeLargeBodies(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.workflow("trial", "  - name: look\n    manual: true\n")
	b.addItems("trial", 1)
	s := b.serve("--no-run")
	s.program("admin")
	large := strings.Repeat("x", 4<<20)
	for _, c := range [][4]string{{"POST", "/api/v1/items/i0/acts", `{"act":"hold","message":"` + large + `"}`, "application/json"}, {"POST", "/items/i0/acts", "act=hold&message=" + large, formType},
		{"PUT", "/workflow/objects/i0/workflows/trial/look", `<process name="look" status="completed" text="` + large + `"/>`, "application/xml"}} {
		a, err := s.request(c[0], c[1], c[2], "Content-Type", c[3])
		if err == nil && (a.code < 400 || a.code >= 500) {
			t.Errorf("%s %s: %d %.200s", c[0], c[1], a.code, a.body)
		}
	}
	if held := gjson.Get(s.ask("GET", "/api/v1/items?held=true", "").body, "#").Int(); held != 0 {
		t.Errorf("%d items are held", held)
	}
}
