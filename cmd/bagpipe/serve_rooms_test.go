package main

import (
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/tidwall/gjson"
)

// The pages of queues, batches, engines, settings and workflows say what the commands say, in their order, and what
// moves beside them.
func TestServePagesOfRooms(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.workflow("trial", "  - name: work\n    command: [sh, -c, 'case $BAGPIPE_LABEL in i2) echo it is torn >&2; exit 65;; esac']\n  - name: look\n    manual: true\n")
	for _, name := range []string{"i3", "i2", "i1", "i0"} {
		b.write("in/"+name, name)
		b.ok("add", "--workflow", "trial", "--batch", "june", b.top+"/in/"+name)
	}
	b.start("run").code(4)
	s := b.serve("--no-run")
	s.signIn()
	labels := regexp.MustCompile(`<th scope="row"><a href="/items/[0-9a-f]{15}">(i\d)</a>`)
	order := func(path string) (in []string) {
		for _, m := range labels.FindAllStringSubmatch(s.ask("GET", path, "").body, -1) {
			in = append(in, m[1])
		}
		return in
	}

	queued := gjson.Get(b.ok("queue", "trial/look", "--json"), "#.label").String()
	if got := `["` + strings.Join(order("/queues/trial/look"), `","`) + `"]`; got != queued || queued != `["i3","i1","i0"]` {
		t.Errorf("the queue is shown as %s, handed out as %s", got, queued)
	}
	s.holds("/queues", "trial/look")
	s.holds("/mine", "look: <a href", ">i3</a></h2>") // the oldest
	s.holds("/batches", ">june</a></th>", `<td class="n">4</td><td class="n">4</td><td class="n">1</td>`)
	s.holds("/batches/june", "4 items, 4 not done, 1 failed; opened ", " by Ada Keeper", "Close it")
	if got := order("/batches/june"); len(got) != 4 || got[0] != "i2" {
		t.Errorf("what failed does not come first: %v", got)
	}
	if a := s.post("/batches/june/close", "back", "batches/june"); a.code != 303 || a.header.Get("Location") != "/batches/june?did=close" {
		t.Errorf("close: %+v", a)
	}
	s.holds("/batches/june", ", closed ", " by Ada Keeper")
	if a := s.ask("GET", "/batches/june", ""); strings.Contains(a.body, "Close it") {
		t.Errorf("closed, it can be closed: %s", a.body)
	}
	commit := b.git("log", "-1", "--format=%H", "--", "bagpipe.yaml")[:10]
	s.holds("/settings", "<h2>bagpipe.yaml</h2>", `<span class="id">`+commit+"</span>", " by Ada Keeper", "<h2>workflows/trial.yaml</h2>")
	s.holds("/engines", "answers with these pages alone", "<li>None.</li>")
	run := b.start("run", "--watch", "-q")
	b.await("the other engine", func() bool {
		return strings.Contains(s.ask("GET", "/engines", "").body, strconv.Itoa(run.cmd.Process.Pid))
	})
	s.holds("/workflows/trial", "<svg", `look?for=people">3</a>`, "<h2>Versions in use</h2>", "name: trial")
	s.told("workflows/trial", `look?for=people">2</a>`, func() { b.ok("step", "complete", "i0", "look") })
	s.actsOnSome()
	s.signsOut()
}

// actsOnSome holds two items that were ticked, then two of a list that was pasted, of TestServePagesOfRooms.
func (s *site) actsOnSome() {
	b, t := s.b, s.b.t
	t.Helper()
	item := func(label string) string { return gjson.Get(b.ok("show", label, "--json"), "manifest.item").String() }
	for _, chosen := range [][]string{
		{"item", item("i1"), "item", item("i3"), "act", "hold", "message", "ticked"},
		{"all", "filter", "query", "list=i0%0Ai2%0Anothing", "act", "hold", "message", "pasted"},
	} {
		at := s.post("/bulk", chosen...).header.Get("Location")
		if a := s.ask("GET", at, ""); a.code != 200 || !strings.Contains(a.body, "Do it to 2 items") {
			t.Errorf("%v: %d %s", chosen, a.code, a.body)
		}
		s.post(at)
		b.await("the end", func() bool { return strings.Contains(s.ask("GET", at, "").body, "2 of 2 looked at, 0 refused; done") })
	}
	for label, why := range map[string]string{"i0": "pasted", "i1": "ticked", "i2": "pasted", "i3": "ticked"} {
		if held := gjson.Get(b.ok("show", label, "--json"), "held").String(); !strings.Contains(held, why) {
			t.Errorf("%s is held as %s, not %s", label, held, why)
		}
	}
}

// signsOut ends the session: its cookie is worth nothing then.
func (s *site) signsOut() {
	b, t := s.b, s.b.t
	t.Helper()
	at, err := url.Parse(s.base)
	b.must(err)
	cookie := s.jar.Cookies(at)[0].String()
	if a := s.post("/signin", "leave", "yes"); a.code != 303 {
		t.Errorf("signing out: %+v", a)
	}
	if a := s.ask("GET", "/", "", "Cookie", cookie); a.code != 303 || a.header.Get("Location") != "/signin" {
		t.Errorf("by the cookie of a session that ended: %+v", a)
	}
}
