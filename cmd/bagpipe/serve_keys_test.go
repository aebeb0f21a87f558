package main

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"

	"github.com/tidwall/gjson"
)

// A POST of each kind that comes again with its key is answered as before, and changes nothing more; with another body
// it is refused; the commit names the key; and after a kill the answer is the same, or says that it is not known.
func TestServeKeysOnEveryPost(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.busied()
	b.workflow("trial", "  - name: work\n    command: [sh, -c, 'exit 65']\n")
	b.workflow("lent", "  - name: scan\n    external: true\n")
	b.addItems("trial", 2)
	b.ok("register", "--workflow", "lent", "--label", "box", "--batch", "june")
	b.start("run", "-q").code(4)
	s := b.serve()
	s.program("admin")
	call := func(path, body, key string) answer {
		return s.ask("POST", "/api/v1/"+path, body, "Content-Type", "application/json", "Idempotency-Key", key)
	}
	group := gjson.Get(b.ok("failures", "--json", "--workflow", "trial"), "0.group").String()
	posts := []struct {
		name, path, body, other string
		after                   int // the answer after a kill
	}{
		{"act", "items/i0/acts", `{"act":"hold","message":"wait"}`, `{"act":"release"}`, 200},
		{"acts", "acts", `{"act":"hold","items":["i1"]}`, `{"act":"release","items":["i1"]}`, 409},
		{"close", "batches/june/close", ``, `{}`, 200},
		{"delivery", "deliveries/old.txt/portal/acts", `{"act":"approve","message":"agreed"}`, `{"act":"refuse","message":"no"}`, 200},
		{"schedule", "schedules/weekly/acts", `{"act":"stop"}`, `{"act":"start"}`, 200},
		{"claim", "queues/lent/scan/claims", `{"wait":"20s"}`, `{"wait":"1s"}`, 200},
		{"retry", "failures/" + group + "/retry", `{"message":"once more"}`, `{"message":"again"}`, 409},
	}
	b.await("what waits for a person", func() bool { return strings.Contains(s.ask("GET", "/api/v1/deliveries", "").body, `"waits"`) })
	first := map[string]answer{}
	settled := func() string { // so many commits that a call made
		return strings.TrimSpace(b.git("rev-list", "--count", "--grep=^Bagpipe-Request: ", "main"))
	}
	for _, p := range posts {
		a := call(p.path, p.body, p.name)
		if first[p.name] = a; a.code != 200 || p.name == "claim" && gjson.Get(a.body, "attempts.#").Int() != 1 {
			t.Fatalf("%s: %+v", p.name, a)
		}
		if p.name == "acts" {
			b.await("its end", func() bool {
				return gjson.Get(s.ask("GET", "/api/v1/acts/"+gjson.Get(a.body, "id").String(), "").body, "ended").Bool()
			})
		}
		before := settled()
		if again := call(p.path, p.body, p.name); again.code != 200 || again.body != a.body || again.header.Get("Idempotency-Replayed") != "true" {
			t.Errorf("%s again: %+v, before %+v", p.name, again, a)
		}
		if other := call(p.path, p.other, p.name); other.code != 422 || gjson.Get(other.body, "code").String() != "key-used" {
			t.Errorf("%s with another body: %+v", p.name, other)
		}
		if now := settled(); now != before {
			t.Errorf("%s again made commits: %s, before %s", p.name, now, before)
		}
	}
	attempt := gjson.Get(first["claim"].body, "attempts.0")
	end := fmt.Sprintf("attempts/%s/%s/%s/%s/end", attempt.Get("item"), attempt.Get("workflow"), attempt.Get("step"), attempt.Get("attempt"))
	if a := call("submissions/none/end", `{"workflow":"lent","folders":["nothing"]}`, "empty"); a.code != 400 || gjson.Get(a.body, "detail").String() != "nothing: is empty" {
		t.Errorf("a submission of nothing: %+v", a)
	}
	if a := s.ask("PUT", "/api/v1/submissions/a-box/files/another/one.txt", "one", "Content-Digest", digestField("one")); a.code != 204 {
		t.Errorf("a file: %+v", a)
	}
	submit, sent := "submissions/a-box/end", fmt.Sprintf(`{"workflow":"lent","label":"another box","files":[{"path":"another/one.txt","size":3,"sha256":"%x"}]}`, sha256.Sum256([]byte("one")))
	for _, p := range [][3]string{{"end", end, `{"exit":0,"message":"scanned"}`}, {"submit", submit, sent}} {
		a := call(p[1], p[2], p[0])
		first[p[0]] = a
		if again := call(p[1], p[2], p[0]); a.code != 200 || again.body != a.body || again.header.Get("Idempotency-Replayed") != "true" {
			t.Errorf("%s: %+v, again %+v", p[0], a, again)
		}
	}
	s = s.again()
	before := settled()
	for _, p := range posts {
		a := call(p.path, p.body, p.name)
		if a.code != p.after || a.code == 200 && gjson.Get(a.body, "@ugly").String() != gjson.Get(first[p.name].body, "@ugly").String() || a.code == 409 && gjson.Get(a.body, "code").String() != "interrupted" {
			t.Errorf("%s after a kill: %+v, before %+v", p.name, a, first[p.name])
		}
	}
	if a := call(submit, sent, "submit"); a.code != 200 || gjson.Get(a.body, "item").String() != gjson.Get(first["submit"].body, "item").String() {
		t.Errorf("the submission after a kill: %+v, before %+v", a, first["submit"])
	}
	if a := call(end, `{"exit":0,"message":"scanned"}`, "end"); a.code != 200 || !gjson.Get(a.body, "ended").Bool() {
		t.Errorf("the end after a kill: %+v", a)
	}
	if now := settled(); now != before {
		t.Errorf("after a kill commits were made: %s, before %s", now, before)
	}
}

// An order for a step and for a schedule by a call: each is committed once, by who gave it, and told as changed once.
func TestServeOrdersForStepsAndSchedules(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.busied()
	s := b.serve()
	s.program("admin")
	call := func(method, path, body string) answer {
		return s.ask(method, "/api/v1/"+path, body, "Content-Type", "application/json")
	}
	changed := func(method, path, body string, want bool) {
		t.Helper()
		a := call(method, path, body)
		if a.code != 200 || gjson.Get(a.body, "changed").Bool() != want {
			t.Errorf("%s %s %s: %d %s, not changed %t", method, path, body, a.code, a.body, want)
		}
	}
	by := func(subject string) string {
		return strings.TrimSpace(b.git("log", "-1", "--grep="+subject, "--format=%an"))
	}
	step := "steps/accession/unpack"
	changed("PUT", step, `{"status":"disabled","message":"mending"}`, true)
	changed("PUT", step, `{"status":"disabled","message":"mending"}`, false)
	if got := gjson.Get(s.ask("GET", "/api/v1/status", "").body, `steps.#(step=="accession/unpack")`); got.Get("status").String() != "disabled" || got.Get("text").String() != "mending" || !strings.HasPrefix(got.Get("by").String(), "robot") {
		t.Errorf("the step stands as %s", got)
	}
	changed("PUT", step, `{"status":"enabled"}`, true)
	changed("PUT", step, `{"status":"enabled"}`, false)
	if a := call("PUT", "steps/accession/nowhere", `{"status":"disabled"}`); a.code != 404 {
		t.Errorf("no such step: %+v", a)
	}
	if a := call("PUT", step, `{"status":"gone"}`); a.code != 422 {
		t.Errorf("no such status: %+v", a)
	}

	weekly := "schedules/weekly"
	status := func() string { return gjson.Get(s.ask("GET", "/api/v1/"+weekly, "").body, "status").String() }
	was := status()
	changed("POST", weekly+"/acts", `{"act":"stop","now":true}`, true)
	changed("POST", weekly+"/acts", `{"act":"stop"}`, false)
	if status() != "stopped" || by("^schedule: stopped weekly") != "robot" {
		t.Errorf("it is %s, by %s", status(), by("^schedule: stopped weekly"))
	}
	changed("POST", weekly+"/acts", `{"act":"start"}`, true)
	changed("POST", weekly+"/acts", `{"act":"start"}`, false)
	changed("POST", weekly+"/acts", `{"act":"restart"}`, true)
	if status() != was {
		t.Errorf("it is %s, and was %s", status(), was)
	}
	firings := func() int64 {
		return gjson.Get(s.ask("GET", "/api/v1/schedules/nightly", "").body, "firings.#").Int()
	}
	before := firings()
	changed("POST", "schedules/nightly/acts", `{"act":"fire"}`, true)
	b.await("the firing", func() bool { return firings() == before+1 })
	if got := by("^schedule: fired nightly"); got != "robot" {
		t.Errorf("fired by %s", got)
	}
	for body, code := range map[string]int{`{"act":"paint"}`: 422, `{}`: 422, `{"act":"stop","now":7}`: 422} {
		if a := call("POST", weekly+"/acts", body); a.code != code {
			t.Errorf("%s: %+v", body, a)
		}
	}
	if a := call("POST", "schedules/nowhere/acts", `{"act":"stop"}`); a.code != 404 {
		t.Errorf("no such schedule: %+v", a)
	}
}
