package main

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"
)

// again starts the server anew after a kill, for the same program.
func (s *site) again(args ...string) *site {
	s.b.t.Helper()
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
	next := s.b.serve(args...)
	next.token = s.token
	return next
}

// tries sends a request to a server that may be killed meanwhile; 0: there was no answer.
func (s *site) tries(method, path, body string, headers ...string) (a answer) {
	r, err := s.request(method, path, body, headers...)
	if err != nil {
		return answer{}
	}
	return r
}

// Killed in the middle of an act on many items, of an upload, of claims by programs and of a stream of
// events, again and again: what was answered stands, nothing is done twice, and each event is
// told once.
func TestServeKilledAgainAndAgain(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	const items = 60
	b.workflow("trial", "  - name: look\n    manual: true\n    retries: 1\n")
	b.workflow("lent", "  - name: scan\n    external: true\n")
	b.addItems("trial", items)
	for i := range 20 {
		b.write(fmt.Sprintf("in/lent%d", i), "x")
		b.ok("add", "--workflow", "lent", b.top+fmt.Sprintf("/in/lent%d", i))
	}
	s := b.serve()
	s.program("operator")
	after := b.git("rev-parse", "main")
	first := strings.TrimSpace(after)
	seen := map[string]int{}
	told := func() {
		a := s.tries("GET", "/api/v1/events?wait=1ms&after="+strings.TrimSpace(after), "")
		for _, e := range gjson.Get(a.body, "events.#.id").Array() {
			seen[e.String()]++
		}
		if last := gjson.Get(a.body, "last").String(); last != "" {
			after = last
		}
	}
	text := strings.Repeat("sent in parts ", 2000)
	set := "0123456789abcdef"
	meta := []string{"collection", "default", "set", set, "name", "sent", "files", "1", "path", "sent.txt"}
	at, sent, uploaded := "", 0, false
	ended := map[string]bool{}
	for round := range soak(2, 100) {
		look := []string{"skip", "complete"}[round%2]
		seen := s.tries("POST", "/api/v1/acts", fmt.Sprintf(`{"act":%q,"step":"look","message":"round %d","filter":{"workflow":"trial","step":"look","status":"waiting"},"dryRun":true}`, look, round), "Content-Type", "application/json")
		preview := gjson.Get(seen.body, "id").String()
		s.tries("POST", "/api/v1/acts", fmt.Sprintf(`{"act":%q,"step":"look","preview":%q}`, look, preview), "Content-Type", "application/json", "Idempotency-Key", fmt.Sprint("round-", round))
		if at == "" {
			at = s.announce(len(text), meta...).header.Get("Location")
		}
		if head := s.tus("HEAD", at, ""); head.code == 200 {
			sent, _ = strconv.Atoi(head.header.Get("Upload-Offset"))
		}
		var killed = make(chan struct{})
		go func() {
			defer close(killed)
			<-time.After(time.Duration(round%10*4) * time.Millisecond)
			_ = s.cmd.Process.Kill()
		}()
		for sent < len(text) {
			part := text[sent:min(len(text), sent+997)]
			a := s.tries("PATCH", at, part, "Tus-Resumable", "1.0.0", "Upload-Offset", strconv.Itoa(sent), "Content-Type", "application/offset+octet-stream")
			if a.code != 204 {
				break
			}
			sent += len(part)
		}
		uploaded = uploaded || sent == len(text)
		claims := s.tries("POST", "/api/v1/queues/lent/scan/claims", `{"most":2}`, "Content-Type", "application/json", "Idempotency-Key", fmt.Sprint("claim-", round))
		for _, a := range gjson.Get(claims.body, "attempts").Array() {
			path := fmt.Sprintf("/api/v1/attempts/%s/%s/%s/%s/end", a.Get("item"), a.Get("workflow"), a.Get("step"), a.Get("attempt"))
			if s.tries("POST", path, `{"exit":0,"message":"scanned"}`, "Content-Type", "application/json").code == 200 {
				ended[a.Get("item").String()] = true
			}
		}
		told()
		<-killed
		s = s.again()
		told()
		for i := range items / 10 { // the next round has something to do
			s.tries("POST", fmt.Sprintf("/api/v1/items/i%d/acts", (round*6+i)%items), `{"act":"reset","step":"look"}`, "Content-Type", "application/json")
		}
	}
	if head := s.tus("HEAD", at, ""); head.code == 200 { // bytes may have come whose answer did not
		sent, _ = strconv.Atoi(head.header.Get("Upload-Offset"))
		if sent < len(text) {
			s.send(at, sent, text[sent:])
		}
	}
	b.await("the upload", func() bool { return strings.Contains(b.ok("items"), "sent") })
	var want []string
	b.await("every event", func() bool {
		told()
		want = strings.Fields(b.git("rev-list", first+"..main"))
		return len(seen) >= len(want)
	})
	for id, n := range seen {
		if n != 1 {
			t.Errorf("event %s came %d times", id, n)
		}
	}
	missed := slices.DeleteFunc(slices.Sorted(maps.Keys(seen)), func(id string) bool { return slices.Contains(want, id) })
	if len(missed) > 0 || len(seen) != len(want) {
		t.Errorf("%d events, of which %d are not in the history", len(seen), len(missed))
	}
	for item := range ended {
		if got := gjson.Get(b.ok("show", item, "--json"), `workflows.0.steps.#(step=="scan").status`).String(); got != "completed" {
			t.Errorf("the scan of %s was acknowledged, and is %s", item, got)
		}
	}
	if n := strings.Count(b.ok("items", "--json"), `"label": "sent`); n != 1 {
		t.Errorf("the upload is %d items", n)
	}
	for _, f := range gjson.Get(b.ok("show", "sent", "--json"), "files").Array() {
		if f.Get("size").Int() != int64(len(text)) {
			t.Errorf("the upload: %s", f)
		}
	}
	// Each decision is one commit, of which the item's attempts tell.
	for i := range 10 {
		attempts := gjson.Get(b.ok("show", fmt.Sprintf("i%d", i), "--json"), `workflows.0.steps.#(step=="look").attempts.#`).Int()
		commits := strings.Count(b.git("log", "--format=%s", "--grep=^look: \\(completed\\|skipped\\) .*/i"+strconv.Itoa(i)+")$", "main"), "look:")
		if int64(commits) != attempts {
			t.Errorf("i%d has %d attempts, and %d decisions in the history", i, attempts, commits)
		}
	}
	if out := b.git("fsck", "--strict", "--no-dangling"); strings.TrimSpace(out) != "" {
		t.Error(out)
	}
}
