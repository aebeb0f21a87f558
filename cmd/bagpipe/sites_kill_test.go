package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"
)

// sites are three workspaces, a plain clone and the repository between them, driven at random.
type sites struct {
	*bench
	rnd   *rand.Rand
	names []string        // of the sites, which are their folders in top, too
	items []string        // labels of what was admitted: acknowledged
	notes map[string]bool // texts of notes: acknowledged
	ended map[string]bool // attempts whose end was in a site's history
	seq   int
	did   []string // for who looks for a cause
}

func newSites(t *testing.T, seed uint64) *sites {
	s := &sites{bench: newBench(t), rnd: rand.New(rand.NewPCG(seed, 0)), names: []string{"ws", "field", "attic"}, notes: map[string]bool{}, ended: map[string]bool{}}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("what was done, seed %d:\n%s\n%s", seed, strings.Join(s.did, "\n"), s.git("log", "--graph", "--format=%h %an: %s", "main"))
		}
	})
	hub := filepath.Join(s.top, "hub.git")
	s.git("init", "-q", "--bare", "-b", "main", hub)
	s.ok("site", "ws")
	s.ok("remote", "add", "origin", hub)
	s.ok("sync")
	for _, name := range s.names[1:] {
		s.ok("clone", hub, filepath.Join(s.top, name), "--site", name)
	}
	s.git("clone", "-q", hub, filepath.Join(s.top, "clone"))
	return s
}

func (s *sites) of(site string) *bench {
	b := *s.bench
	b.dir = filepath.Join(s.top, site)
	return &b
}

// try runs a command to its end, or kills it before; it reports whether the command was
// acknowledged.
func (s *sites) try(site string, mayDie bool, args ...string) bool {
	s.t.Helper()
	p := s.of(site).start(args...)
	if mayDie && s.rnd.IntN(3) == 0 {
		<-time.After(time.Duration(s.rnd.IntN(400)) * time.Millisecond)
		killed := p.kill()
		s.did = append(s.did, fmt.Sprintf("%s: %v, killed: %v", site, args, killed))
		return !killed && p.cmd.ProcessState.ExitCode() == 0
	}
	select {
	case <-p.end:
	case <-time.After(4 * deadline):
		s.t.Fatalf("%s: %v does not end; before it:\n%s", site, args, strings.Join(s.did, "\n"))
	}
	code := p.cmd.ProcessState.ExitCode()
	s.did = append(s.did, fmt.Sprintf("%s: %v: %d: %s", site, args, code, strings.TrimSpace(p.out.String())))
	return code == 0
}

func (s *sites) one(of []string) string { return of[s.rnd.IntN(len(of))] }

// act does one thing at random. What is refused, such as a hold of what is held, is refused.
func (s *sites) act() {
	site := s.one(s.names)
	s.seq++
	if len(s.items) == 0 || s.rnd.IntN(6) == 0 {
		label := fmt.Sprintf("item%d", s.seq)
		s.write("in/"+label, label)
		if s.try(site, true, "add", filepath.Join(s.top, "in", label)) {
			s.items = append(s.items, label)
		}
		return
	}
	item := s.one(s.items)
	text := fmt.Sprintf("text %d.", s.seq)
	note := func(where string, args ...string) {
		if s.try(where, where != "clone", append(args, "-m", text)...) {
			s.notes[text] = true
		}
	}
	switch s.rnd.IntN(16) {
	case 0, 1, 2:
		s.try(site, true, "run", "-q")
		s.remember(site)
	case 3, 4, 5:
		s.try(site, true, "sync")
	case 6: // the network is cut
		s.must(os.Rename(filepath.Join(s.top, "hub.git"), filepath.Join(s.top, "away.git")))
		s.try(site, false, "sync")
		s.must(os.Rename(filepath.Join(s.top, "away.git"), filepath.Join(s.top, "hub.git")))
	case 7:
		note(site, "note", item)
	case 8:
		note(site, s.one([]string{"hold", "release"}), item)
	case 9:
		s.try(site, true, "item", "set", item, "--metadata", fmt.Sprintf("year=%d", 1900+s.rnd.IntN(3)))
	case 10:
		s.try(site, true, "own", item, "--site", s.one(s.names))
	case 11:
		s.try(site, true, s.one([]string{"retire", "recall"}), item, "-m", "so it is")
	case 12: // two at once
		other := s.of(s.one(s.names)).start("sync")
		s.try(site, true, "sync")
		<-other.end
	case 13:
		s.try(site, true, "maintain")
	default:
		s.person(note, item)
	}
}

// person works in the plain clone: pulls, merges a site's branch by Git, acts, and pushes.
func (s *sites) person(note func(string, ...string), item string) {
	git := func(args ...string) bool {
		cmd := exec.Command("git", append([]string{"-C", filepath.Join(s.top, "clone")}, args...)...)
		cmd.Env = s.env
		out, err := cmd.CombinedOutput()
		s.did = append(s.did, fmt.Sprintf("clone: git %v: %v: %s", args, err, strings.TrimSpace(string(out))))
		return err == nil
	}
	if !git("pull", "-q", "--no-rebase") && !git("merge", "--abort") {
		s.t.Fatalf("the clone cannot pull:\n%s", strings.Join(s.did, "\n"))
	}
	if s.rnd.IntN(2) == 0 && !git("merge", "-q", "--no-edit", "origin/site/"+s.one(s.names)) {
		git("merge", "--abort")
	}
	if s.rnd.IntN(4) > 0 {
		note("clone", s.one([]string{"note", "hold", "release"}), item)
	} else if !git("revert", "--no-edit", fmt.Sprintf("HEAD~%d", s.rnd.IntN(4))) {
		git("revert", "--abort")
	}
	to := s.one([]string{"main", "for/ada"})
	if !git("push", "-q", "origin", "HEAD:"+to) {
		git("push", "-q", "-f", "origin", fmt.Sprintf("HEAD:for/ada%d", s.seq))
	}
}

// records are the execution records of a site's history, by path.
func (s *sites) records(site string) map[string]gjson.Result {
	all := map[string]gjson.Result{}
	dir := filepath.Join(s.top, site)
	for path := range strings.SplitSeq(s.git("-C", dir, "ls-tree", "-r", "--name-only", "main", "items"), "\n") {
		if strings.HasSuffix(path, "/execution.json") {
			all[path] = gjson.Parse(s.git("-C", dir, "show", "main:"+path))
		}
	}
	return all
}

// attempts names those of a record that have ended, and how.
func attempts(path string, record gjson.Result) (ended []string) {
	record.Get("workflows").ForEach(func(w, workflow gjson.Result) bool {
		workflow.Get("steps").ForEach(func(step, v gjson.Result) bool {
			v.Get("attempts").ForEach(func(id, a gjson.Result) bool {
				if state := a.Get("state").String(); state != "in-progress" {
					ended = append(ended, fmt.Sprintf("%s %s/%s %s %s", path, w, step, id, state))
				}
				return true
			})
			return true
		})
		return true
	})
	return ended
}

// remember notes what a site's history says to have ended.
func (s *sites) remember(site string) {
	for path, record := range s.records(site) {
		for _, a := range attempts(path, record) {
			s.ended[a] = true
		}
	}
}

// rest syncs until nothing is new anywhere.
func (s *sites) rest() {
	s.t.Helper()
	quiet := 0
	for range 12 {
		for _, site := range s.names {
			p := s.of(site).start("sync")
			out := p.code(0)
			s.did = append(s.did, site+": sync: "+out)
			if strings.HasPrefix(out, "origin: nothing new") {
				quiet++
			} else {
				quiet = 0
			}
		}
		if quiet >= len(s.names) {
			return
		}
	}
	s.t.Fatalf("the sites do not come to rest:\n%s", strings.Join(s.did, "\n"))
}

// Three workspaces and a plain clone do what they like, killed and cut off now and then. Once
// they are quiet, they have one history, in which is whatever was acknowledged, and no audit finds
// anything.
func TestKilledSitesComeToRest(t *testing.T) {
	t.Parallel()
	for round := range soak(1, 20) {
		s := newSites(t, uint64(soak(7, int(time.Now().UnixNano()))+round))
		for range soak(30, 120) {
			s.act()
		}
		s.rest()
		for _, site := range s.names {
			s.of(site).ok("run", "-q")
			s.remember(site)
		}
		for _, item := range s.items {
			if strings.Contains(s.ok("show", item), "retired  ") {
				s.ok("recall", item)
			}
		}
		s.rest()
		s.verify()
		if t.Failed() {
			break
		}
	}
}

func (s *sites) verify() {
	t := s.t
	main := s.git("rev-parse", "main")
	log := s.git("log", "--format=%B", "main")
	for _, site := range s.names {
		b := s.of(site)
		if tip := b.git("rev-parse", "main"); tip != main {
			t.Errorf("%s stands at %s, another at %s", site, tip, main)
		}
		if out := b.ok("audit"); !strings.Contains(out, ": 0 findings") {
			t.Errorf("audit at %s:\n%s", site, out)
		}
		b.git("fsck", "--strict", "--no-dangling")
	}
	for text := range s.notes {
		if !strings.Contains(log, text) {
			t.Errorf("%q is in no commit", text)
		}
	}
	var labels, there []string
	gjson.Parse(s.ok("items", "--json")).ForEach(func(_, v gjson.Result) bool {
		labels = append(labels, v.Get("label").String())
		return true
	})
	for _, item := range s.items {
		if !slices.Contains(labels, item) {
			t.Errorf("%s was admitted, and is not there", item)
		}
	}
	for path, record := range s.records("ws") {
		there = append(there, attempts(path, record)...)
	}
	for a := range s.ended {
		if !slices.Contains(there, a) {
			t.Errorf("attempt %s is lost", a)
		}
	}
}

// A clone that was killed, wherever, is a whole site, or nothing, or is known for what it is: to do nothing
// there, and how to begin anew.
func TestKilledClone(t *testing.T) {
	b := newBench(t)
	hub, to := filepath.Join(b.top, "hub.git"), filepath.Join(b.top, "field")
	b.git("init", "-q", "--bare", "-b", "main", hub)
	b.write("in/a.txt", "a")
	b.ok("add", filepath.Join(b.top, "in", "a.txt"))
	b.ok("site", "ws")
	b.ok("remote", "add", "origin", hub)
	b.ok("sync")
	rnd := rand.New(rand.NewPCG(14, 0))
	whole, cut := time.Duration(0), 0
	for n := range 12 {
		site := fmt.Sprintf("field%d", n) // a whole one keeps its name
		p, begun := b.start("clone", hub, to, "--site", site), time.Now()
		if n == 0 { // how long one takes here
			p.code(0)
			whole = time.Since(begun)
		} else {
			time.Sleep(time.Duration(rnd.Int64N(int64(whole))))
			p.kill()
		}
		again := b.start("clone", hub, to, "--site", site)
		<-again.end
		said := again.out.String()
		switch {
		case strings.Contains(said, "is there already"):
			field := *b
			field.dir = to
			field.ok("sync")
			field.ok("payload", "status")
		case strings.Contains(said, "was begun by a clone that was cut off"):
			if cut++; !strings.Contains(said, "rm -r "+to) {
				t.Fatalf("round %d: %s", n, said)
			}
		case again.cmd.ProcessState.ExitCode() != 0:
			t.Fatalf("round %d: %s", n, said)
		}
		if !eventually(func() bool { return os.RemoveAll(to) == nil }) { // a git that outlived its clone may still write there
			t.Fatalf("round %d: %s stays", n, to)
		}
	}
	t.Logf("%d of 11 clones were cut off", cut)
}
