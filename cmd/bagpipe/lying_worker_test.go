package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"bagpipe/engine/remote/bus"
	"bagpipe/engine/remote/wire"
	"bagpipe/layout"
	"bagpipe/steps"
)

// liar is a worker that has a key, and says and sends what it likes.
type liar struct {
	f       *fleet
	link    *bus.Worker
	http    *http.Client
	engine  layout.EngineID
	welcome wire.Welcome
}

// liar comes in under a name of its own.
func (f *fleet) liar(name string) *liar {
	f.t.Helper()
	file := filepath.Join(f.top, name+".key")
	f.ok("remote", "invite", name, file, "--url", fmt.Sprintf("nats://127.0.0.1:%d", f.port))
	data, err := os.ReadFile(file)
	f.must(err)
	key, err := wire.DecodeKey(data)
	f.must(err)
	config, err := key.TLS()
	f.must(err)
	l := &liar{f: f, engine: "0badc0de", http: &http.Client{Transport: &http.Transport{TLSClientConfig: config}, Timeout: 20 * time.Second}}
	l.link, err = bus.Dial(bus.DialOptions{Outside: bus.Outside{URLs: key.URLs, Seed: key.Seed, TLS: config}, Name: key.Name, Changed: func(string) {}})
	f.must(err)
	f.t.Cleanup(func() { l.link.Close(); l.http.CloseIdleConnections() })
	l.say(wire.VerbHello, wire.Hello{Head: wire.Now(), Name: layout.Name(name), Engine: l.engine, Machine: wire.Machine{Host: "elsewhere"}, Slots: 4, Robots: []wire.Robot{{Name: "far-robot"}}}, &l.welcome)
	if l.welcome.Refused != "" {
		f.t.Fatal(l.welcome.Refused)
	}
	return l
}

func (l *liar) say(verb string, m, answer wire.Message) {
	l.f.t.Helper()
	data, err := wire.Encode(m)
	l.f.must(err)
	l.f.must(wire.Decode(l.raw(verb, data), answer))
}

func (l *liar) raw(verb string, data []byte) []byte {
	l.f.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), deadline)
	defer cancel()
	reply, err := l.link.Ask(ctx, verb, data)
	l.f.must(err)
	return reply
}

// claim gets one attempt.
func (l *liar) claim() wire.Held {
	l.f.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*deadline)
	defer cancel()
	for {
		p, ok, err := l.link.Pull(ctx, l.welcome.Orders.Classes[0], time.Second)
		l.f.must(ctx.Err())
		if err != nil || !ok {
			continue
		}
		var offer wire.Offer
		l.f.must(wire.Decode(p.Data(), &offer))
		var grant wire.Grant
		claim := wire.Claim{Head: wire.Now(), Engine: l.engine, Offer: offer.ID, Epoch: offer.Epoch}
		l.say(wire.VerbClaim, claim, &grant)
		var again wire.Grant
		if l.say(wire.VerbClaim, claim, &again); again.Held != grant.Held {
			l.f.t.Errorf("a claim that came twice was granted twice: %v, %v", grant, again)
		}
		p.Done()
		if grant.Held.Item != "" {
			return grant.Held
		}
	}
}

// send sends a request about an attempt, and answers with its code and its body.
func (l *liar) send(h wire.Held, method, what string, body []byte) (int, string) {
	l.f.t.Helper()
	q, err := http.NewRequest(method, l.welcome.Transfer+h.Path()+"/"+what, bytes.NewReader(body))
	l.f.must(err)
	q.Header.Set("Authorization", "Bearer "+h.Nonce)
	res, err := l.http.Do(q)
	l.f.must(err)
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	l.f.must(err)
	return res.StatusCode, string(text)
}

// end tells an end, which is answered with this code.
func (l *liar) end(h wire.Held, e wire.End, want int) string {
	l.f.t.Helper()
	data, err := wire.EncodeDocument(e)
	l.f.must(err)
	code, text := l.send(h, "POST", "end", data)
	if code != want {
		l.f.t.Errorf("an end was answered %d, want %d: %s", code, want, text)
	}
	return text
}

// beat keeps an attempt while the test goes on.
func (l *liar) beat(h wire.Held) (lost []wire.Held) {
	var o wire.Orders
	l.say(wire.VerbBeat, wire.Beat{Head: wire.Now(), Engine: l.engine, State: "ready", Running: []wire.Told{{Held: h, Percent: -1}}}, &o)
	return o.Lost
}

func made(text string) wire.File {
	sum := sha256.Sum256([]byte(text))
	return wire.File{Path: "derived/x", Size: int64(len(text)), SHA256: hex.EncodeToString(sum[:])}
}

// A worker with a key reaches nothing but what its attempt is given, writes nothing but below
// its attempt's scratch folder, and ends no attempt but its own, once.
func TestAWorkerThatLies(t *testing.T) {
	t.Parallel()
	f := newFleetWith(t, "20s", "  - name: derive\n    command: [far-robot]\n    retries: 3\n", "{far/derive: {only: true}}")
	f.folder("a")
	l := f.liar("liar")
	h := l.claim()
	forged := h
	forged.Nonce = strings.Repeat("0", len(h.Nonce))
	other := h
	other.Attempt = "2-" + string(l.engine)
	for _, bad := range []wire.Held{forged, other} {
		if code, _ := l.send(bad, "GET", "call", nil); code != http.StatusGone {
			t.Errorf("a forged attempt is answered %d", code)
		}
		if lost := l.beat(bad); len(lost) != 1 {
			t.Errorf("the beat of a forged attempt is taken: %v", lost)
		}
		l.end(bad, wire.EndOf(steps.Result{}, nil), http.StatusGone)
	}
	if code, _ := l.send(h, "GET", "call", nil); code != http.StatusOK {
		t.Fatalf("the call is answered %d", code)
	}
	for path, want := range map[string]int{"manifest.json": 400, "../../../../../../access/workers.json": 400, "source/../manifest.json": 400, "/etc/passwd": 400, "source/nothing": 404, "source/a/one": 200} {
		if code, text := l.send(h, "GET", "file?p="+url.QueryEscape(path), nil); code != want {
			t.Errorf("GET %s: %d, want %d: %s", path, code, want, text)
		}
	}
	for _, path := range []string{"../x", "/x", "a/../../x", "", "a//b"} {
		if code, _ := l.send(h, "PUT", "made?offset=0&p="+url.QueryEscape(path), []byte("x")); code != http.StatusBadRequest {
			t.Errorf("PUT %q: %d", path, code)
		}
	}
	if code, _ := l.send(h, "PUT", "made?offset=7&p=derived/x", []byte("x")); code != http.StatusConflict {
		t.Errorf("a part at the wrong place: %d", code)
	}
	result := steps.Result{Outputs: []steps.Output{{From: "derived", To: "derived/derive"}}}
	if code, text := l.send(h, "PUT", "made?offset=0&p=derived/x", []byte("hello")); code != http.StatusNoContent {
		t.Fatalf("PUT: %d %s", code, text)
	}
	wrong := wire.EndOf(result, nil)
	wrong.Files = []wire.File{made("hullo")}
	if text := l.end(h, wrong, http.StatusUnprocessableEntity); !strings.Contains(text, "derived/x") {
		t.Errorf("the wrong file is not named: %s", text)
	}
	for _, garbage := range []string{"", "{", `{"v":99}`, `{"v":1,"name":7,"engine":7,"verb":7}`, strings.Repeat("[", 10_000)} {
		for _, verb := range []string{wire.VerbHello, wire.VerbClaim, wire.VerbBeat, wire.VerbControl, "other"} {
			if reply := l.raw(verb, []byte(garbage)); !strings.Contains(string(reply), "refused") {
				t.Errorf("%s %.20q: %s", verb, garbage, reply)
			}
		}
	}
	var said wire.Controlled
	if l.say(wire.VerbControl, wire.Control{Head: wire.Now(), Verb: wire.Rebuild}, &said); said.Refused == "" {
		t.Error("a worker gives orders")
	}
	f.await("the suspension", func() bool { return f.state("liar") == "suspended" })
	f.ok("workers", "resume", "liar")
	f.await("the pardon", func() bool { return f.state("liar") == "ready" })
	l.end(h, wire.EndOf(result, nil), http.StatusNoContent) // a file that was not announced: a failure
	f.await("a failed attempt", func() bool {
		return strings.Contains(f.step("a", "derive").Get("attempts.0.message").String(), "was not announced")
	})
	f.await("the second suspension", func() bool { return f.state("liar") == "suspended" })
	if out := f.ok("workers", "list"); !strings.Contains(out, "suspended: derived/x was not announced") || !strings.Contains(out, " messages refused\n") || !strings.Contains(out, " messages refused since the engine began\n") {
		t.Errorf("%s", out)
	}
	f.ok("workers", "resume", "liar")
	good := wire.EndOf(result, nil)
	good.Files = []wire.File{made("hello")}
	h = l.claim()
	if code, _ := l.send(h, "GET", "call", nil); code != http.StatusOK {
		t.Errorf("the second call: %d", code)
	}
	if code, _ := l.send(h, "PUT", "made?offset=0&p=derived/x", []byte("hel")); code != http.StatusNoContent {
		t.Errorf("the first part: %d", code)
	}
	if code, _ := l.send(h, "PUT", "made?offset=3&p=derived/x", []byte("lo")); code != http.StatusNoContent {
		t.Errorf("the second part: %d", code)
	}
	l.end(h, good, http.StatusNoContent)
	l.end(h, good, http.StatusNoContent) // its answer may have been lost
	f.done("a")
	if code, _ := l.send(h, "PUT", "made?offset=0&p=derived/x", []byte("late")); code != http.StatusGone {
		t.Errorf("what comes after the end: %d", code)
	}
	if n := strings.Count(f.git("log", "--format=%s"), "derive: completed"); n != 1 {
		t.Errorf("it was completed %d times", n)
	}
}
