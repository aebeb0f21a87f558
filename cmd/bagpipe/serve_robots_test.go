package main

import (
	"crypto/sha256"
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidwall/gjson"
)

// leasing is a server whose steps of workflow far are done by programs that ask for them.
func leasing(t *testing.T, lease, more string) (*bench, *site) {
	t.Helper()
	b := newBench(t)
	b.workflow("far", "  - name: ocr\n    external: true\n"+more+"  - name: list\n    robot: inventory\n")
	if lease != "" {
		settings, err := os.ReadFile(filepath.Join(b.dir, "bagpipe.yaml"))
		b.must(err)
		b.write("ws/bagpipe.yaml", string(settings)+"\nworkers:\n  steps: {far/ocr: {lease: "+lease+"}}\n")
	}
	b.ok("check")
	b.write("in/letter/page one", "Dear Sir\n")
	b.write("in/letter/two", "Yours\n")
	b.ok("add", "--workflow", "far", b.top+"/in/letter")
	s := b.serve()
	s.program("operator")
	return b, s
}

// claim gives the address of an attempt; "": nothing was ready.
func (s *site) claim(wait string) string {
	s.b.t.Helper()
	a := s.ask("POST", "/api/v1/queues/far/ocr/claims", `{"wait":"`+wait+`"}`, "Content-Type", "application/json")
	if a.code != 200 {
		s.b.t.Fatalf("claim: %+v", a)
	}
	got := gjson.Get(a.body, "attempts.0")
	if !got.Exists() {
		return ""
	}
	return "/api/v1/attempts/" + strings.Join([]string{got.Get("item").String(), got.Get("workflow").String(), got.Get("step").String(), got.Get("attempt").String()}, "/")
}

// Whoever names the workflow in place of its run is told, and does not take the attempt for lost.
func TestAnAttemptIsNamedByItsRun(t *testing.T) {
	t.Parallel()
	_, s := leasing(t, "", "")
	attempt := s.claim("20s")
	s.json("GET", attempt, "", 200)
	body := s.json("GET", strings.Replace(attempt, "/far.1/", "/far/", 1), "", 400)
	if want := "expected the run that the claim answered with, as far.1"; !strings.Contains(body, want) {
		t.Errorf("the answer does not say %q: %s", want, body)
	}
}

func digestField(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "sha-256=:" + base64.StdEncoding.EncodeToString(sum[:]) + ":"
}

func (s *site) json(method, path, body string, want int) string {
	s.b.t.Helper()
	a := s.ask(method, path, body, "Content-Type", "application/json")
	if a.code != want {
		s.b.t.Fatalf("%s %s: %d, not %d: %s", method, path, a.code, want, a.body)
	}
	return a.body
}

// A program in any language does a step: it claims it, fetches what it is given, keeps it,
// sends what it made, and ends it. What it made is the item's, and the history names it.
func TestAProgramDoesAStepOverHTTP(t *testing.T) {
	t.Parallel()
	b, s := leasing(t, "", "")
	if why := b.ok("why", "letter"); !strings.Contains(why, "waits for a program that asks for it") {
		t.Errorf("why: %s", why)
	}
	at := s.claim("20s")
	given := s.json("GET", at, "", 200)
	if files := gjson.Get(given, `files.#.path`).String(); files != `["source/letter/page one","source/letter/two"]` || gjson.Get(given, "content").String() != "source/letter" {
		t.Errorf("given: %s", given)
	}
	if a := s.ask("GET", at+"/files/source/letter/page%20one", "", "Range", "bytes=5-7"); a.code != 206 || a.body != "Sir" {
		t.Errorf("a range: %+v", a)
	}
	if a := s.ask("GET", at+"/files/..%2f..%2fbagpipe.yaml", ""); a.code != 400 {
		t.Errorf("a path that leads out: %+v", a)
	}
	if a := s.ask("PUT", at+"/made/derived/text", "read", "Content-Digest", digestField("other")); a.code != 400 {
		t.Errorf("another digest: %+v", a)
	}
	if a := s.ask("PUT", at+"/made/..%2fout", "read", "Content-Digest", digestField("read")); a.code != 400 {
		t.Errorf("a path that leads out: %+v", a)
	}
	for _, part := range [][2]string{{"", "Dear "}, {"?offset=5", "Madam"}, {"?offset=5", "Sir"}} {
		if a := s.ask("PUT", at+"/made/derived/text"+part[0], part[1], "Content-Digest", digestField(part[1])); a.code != 204 {
			t.Errorf("a part: %+v", a)
		}
	}
	s.json("PUT", at, `{"note":"half","percent":50}`, 200)
	b.await("progress", func() bool { return strings.Contains(b.ok("status", "--json"), "half") })
	own := s.token
	s.program("operator")
	s.json("POST", at+"/end", `{"exit":0}`, 409) // another's
	s.token = own
	s.json("POST", at+"/end", `{"exit":0,"message":"1 page","result":{"metadata":{"pages":1}},"log":"read it\n"}`, 200)
	s.json("POST", at+"/end", `{"exit":0}`, 200) // the answer was lost
	s.json("PUT", at, `{}`, 409)
	b.await("the item's end", func() bool { return len(b.labels("completed")) == 1 })
	shown := b.ok("show", "letter", "--json")
	step := gjson.Get(shown, `workflows.0.steps.#(step=="ocr")`)
	if step.Get("attempts.0.message").String() != "1 page" || !strings.Contains(step.String(), "@http") || gjson.Get(shown, "manifest.metadata.pages").Int() != 1 {
		t.Errorf("shown: %s", shown)
	}
	text, err := os.ReadFile(filepath.Join(b.dir, gjson.Get(shown, "folder").String(), "derived/ocr/text"))
	if b.must(err); string(text) != "Dear Sir" {
		t.Errorf("derived: %q", text)
	}
	if again := s.claim("1s"); again != "" {
		t.Errorf("claimed again: %s", again)
	}
	b.ok("check")
}

// Failures have the kinds that programs of this machine have; a step that is given back costs
// no retry, and one whose lease ran out is lost, and may be claimed again.
func TestEndsOverHTTP(t *testing.T) {
	t.Parallel()
	b, s := leasing(t, "1s", "    retries: 1\n    backoff: {first: 1ms, most: 1ms}\n    timeout: 1h\n")
	s.json("POST", s.claim("20s")+"/end", `{"return":true,"message":"not now"}`, 200)
	late := s.claim("20s")
	b.await("the lease's end", func() bool { return strings.Contains(b.ok("log", "letter"), "was not heard of for 1s") })
	s.json("POST", late+"/end", `{"exit":0}`, 409)
	s.json("POST", s.claim("20s")+"/end", `{"exit":3,"message":"no paper"}`, 200)
	s.json("POST", s.claim("20s")+"/end", `{"exit":0,"result":{"outputs":{"nothing":"derived/ocr"}}}`, 200)
	b.await("the failure", func() bool { return len(b.labels("failed")) == 1 })
	step := gjson.Get(b.ok("show", "letter", "--json"), `workflows.0.steps.#(step=="ocr")`)
	if !strings.Contains(step.String(), "nothing") || step.Get("attempts.3.kind").String() != "system" {
		t.Errorf("a file that is not there: %s", step)
	}
	b.ok("step", "retry", "letter", "ocr")
	s.json("POST", s.claim("20s")+"/end", `{"exit":65,"message":"empty page"}`, 200)
	b.await("the content's failure", func() bool {
		return gjson.Get(b.ok("show", "letter", "--json"), `workflows.0.steps.#(step=="ocr").attempts.4.kind`).String() == "content"
	})
	b.ok("step", "retry", "letter", "ocr")
	b.ok("cancel", "letter", "-m", "enough")
}

// An attempt outlives the engine: the next one takes it up, and its end counts.
func TestAnAttemptOverHTTPOutlivesTheEngine(t *testing.T) {
	t.Parallel()
	b, s := leasing(t, "", "")
	at := s.claim("20s")
	b.must(s.cmd.Process.Kill())
	_, _ = s.cmd.Process.Wait()
	token := s.token
	s = b.serve()
	s.token = token
	b.await("the attempt", func() bool { return s.ask("PUT", at, `{}`, "Content-Type", "application/json").code == 200 })
	s.json("POST", at+"/end", `{"exit":77,"message":"nothing to read"}`, 200)
	b.await("the item's end", func() bool { return len(b.labels("completed")) == 1 })
	if step := gjson.Get(b.ok("show", "letter", "--json"), `workflows.0.steps.#(step=="ocr")`); step.Get("status").String() != "skipped" || step.Get("attempts.#").Int() != 1 {
		t.Errorf("shown: %s", step)
	}
}

// A claim, and an end, that come again with their key after the engine was killed are answered as they were: nothing
// is granted anew, and the program learns that its end counts.
func TestAClaimIsNotMadeTwice(t *testing.T) {
	t.Parallel()
	b, s := leasing(t, "2h", "")
	for _, label := range []string{"note", "card", "map"} {
		b.write("in/"+label, label)
		b.ok("add", "--workflow", "far", b.top+"/in/"+label)
	}
	call := func(path, body, key string) answer {
		t.Helper()
		a := s.ask("POST", path, body, "Content-Type", "application/json", "Idempotency-Key", key)
		if a.code != 200 {
			t.Fatalf("POST %s: %+v", path, a)
		}
		return a
	}
	again := func() {
		b.must(s.cmd.Process.Kill())
		_, _ = s.cmd.Process.Wait()
		token := s.token
		s = b.serve()
		s.token = token
	}
	const claims = "/api/v1/queues/far/ocr/claims"
	first := call(claims, `{"most":3,"wait":"20s"}`, "three")
	if n := gjson.Get(first.body, "attempts.#").Int(); n < 2 {
		t.Fatalf("granted: %s", first.body)
	}
	again()
	if a := call(claims, `{"most":3,"wait":"20s"}`, "three"); gjson.Get(a.body, "attempts").String() != gjson.Get(first.body, "attempts").String() || a.header.Get("Idempotency-Replayed") != "true" {
		t.Errorf("again: %s, first: %s", a.body, first.body)
	}
	got := gjson.Get(first.body, "attempts.0")
	at := "/api/v1/attempts/" + strings.Join([]string{got.Get("item").String(), got.Get("workflow").String(), got.Get("step").String(), got.Get("attempt").String()}, "/")
	b.await("the attempt", func() bool { return s.ask("PUT", at, `{}`, "Content-Type", "application/json").code == 200 })
	ended := call(at+"/end", `{"exit":0,"message":"read"}`, "end")
	again()
	if a := call(at+"/end", `{"exit":0,"message":"read"}`, "end"); gjson.Get(a.body, "@ugly").String() != gjson.Get(ended.body, "@ugly").String() {
		t.Errorf("the end again: %s, first: %s", a.body, ended.body)
	}
	if n := strings.Count(b.git("log", "--format=%(trailers:key=Bagpipe-Request,valueonly)"), " claimed"); n != int(gjson.Get(first.body, "attempts.#").Int()) {
		t.Errorf("%d claims are in the history", n)
	}
}

// What is placed on workers alone waits where no engine serves workers.
func TestOnlyOnWorkersWaits(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.workflow("far", "  - name: list\n    robot: inventory\n")
	settings, err := os.ReadFile(filepath.Join(b.dir, "bagpipe.yaml"))
	b.must(err)
	b.write("ws/bagpipe.yaml", string(settings)+"\nworkers:\n  steps: {far/list: {only: true}}\n")
	b.addItems("far", 1)
	b.ok("run")
	if done := b.labels("completed"); len(done) > 0 {
		t.Errorf("completed: %v", done)
	}
	b.write("ws/bagpipe.yaml", string(settings))
	b.ok("run")
	if done := b.labels("completed"); len(done) != 1 {
		t.Errorf("completed: %v", done)
	}
}
