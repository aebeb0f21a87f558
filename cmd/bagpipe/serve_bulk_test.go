package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/tidwall/gjson"
)

// publishing keeps every publication waiting; it gives what tells that one waits, and what ends that.
func (b *bench) publishing() (waits func() bool, end func()) {
	b.t.Helper()
	open := func(name string) *os.File {
		f, err := os.OpenFile(filepath.Join(b.dir, ".bagpipe", name), os.O_CREATE|os.O_RDWR, 0o666)
		b.must(err)
		b.t.Cleanup(func() { _ = f.Close() })
		return f
	}
	turn, next := open("publish.lock"), open("publish.next")
	b.must(syscall.Flock(int(turn.Fd()), syscall.LOCK_EX))
	waits = func() bool {
		if syscall.Flock(int(next.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil {
			return true
		}
		b.must(syscall.Flock(int(next.Fd()), syscall.LOCK_UN))
		return false
	}
	return waits, func() { b.must(syscall.Flock(int(turn.Fd()), syscall.LOCK_UN)) }
}

// An act on many items that is stopped under way, by a program and on its page: what was begun is done
// and stays, no other item is touched, and of each it is told which.
func TestServeStopsAnActOnMany(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	const items = 300
	b.workflow("trial", "  - name: look\n    manual: true\n")
	b.addItems("trial", items)
	s := b.serve("--no-run")
	completed := func() int {
		return int(gjson.Get(s.ask("GET", "/api/v1/items?limit=1000&workflow=trial&step=look&status=completed", "").body, "#").Int())
	}
	s.program("operator")
	if a := s.ask("POST", "/api/v1/acts", `{"act":"retry","filter":{"status":"failed"}}`, "Content-Type", "application/json"); a.code != 400 || !strings.Contains(a.body, "POST failures/GROUP/retry") {
		t.Errorf("a retry of no step: %d %.300s", a.code, a.body)
	}
	act := `"act":"complete","step":"look"`
	at := "/api/v1/acts/" + gjson.Get(s.ask("POST", "/api/v1/acts", `{`+act+`,"filter":{"workflow":"trial"},"dryRun":true}`, "Content-Type", "application/json").body, "id").String()
	waits, goOn := b.publishing()
	s.ask("POST", "/api/v1/acts", `{`+act+`,"preview":"`+filepath.Base(at)+`"}`, "Content-Type", "application/json")
	b.await("the first items", waits)
	if a := s.ask("DELETE", at, ""); a.code != 200 || !gjson.Get(a.body, "stopped").Bool() || gjson.Get(a.body, "ended").Bool() {
		t.Errorf("stopped: %d %.300s", a.code, a.body)
	}
	goOn()
	var seen gjson.Result
	b.await("the end", func() bool {
		seen = gjson.Parse(s.ask("GET", at, "").body)
		return seen.Get("ended").Bool()
	})
	done := int(seen.Get("done").Int())
	if done == 0 || done == items || int(seen.Get("items.#(done==true)#|#").Int()) != done || seen.Get("refused").Int() != 0 {
		t.Errorf("%d done, of %d: %.300s", done, items, seen)
	}
	b.await("what was done", func() bool { return completed() == done })
	if s.ask("DELETE", at, ""); completed() != done || strings.Count(b.ok("log", "--json"), `"look: completed`) != done {
		t.Errorf("%d are completed, not %d", completed(), done)
	}

	token := s.token
	s.token = ""
	s.signIn()
	page := s.post("/bulk", "all", "filter", "query", "workflow=trial&step=look&status=waiting", "act", "complete", "step", "look").header.Get("Location")
	waits, goOn = b.publishing()
	s.post(page)
	b.await("the next items", waits)
	if a := s.post(page + "/stop"); a.code != 303 {
		t.Errorf("stopped on its page: %+v", a)
	}
	goOn()
	var body string
	b.await("the end of the second", func() bool {
		body = s.ask("GET", page, "").body
		return strings.Contains(body, "stopped: ")
	})
	s.token = token
	second := completed() - done
	if want := fmt.Sprintf("%d of %d looked at, 0 refused; stopped: %d items not begun", second, items-done, items-done-second); second == 0 || !strings.Contains(body, want) || !strings.Contains(body, "<b>not begun</b>") {
		t.Errorf("the page does not say %q: %s", want, body)
	}
}
