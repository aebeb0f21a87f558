package main

import (
	"fmt"
	"math/rand"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Three workspaces and a clone are driven at random, with kills in the middle of runs and syncs,
// a hub that is away for a while, and plain merges by git. Once it is quiet all have equal
// trees, every acknowledged word and completion, and a history in which an audit finds nothing.
func TestSitesAtRandom(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	r := rand.New(rand.NewSource(int64(soak(1, int(time.Now().UnixNano()&0xffff)))))
	hub := filepath.Join(b.top, "hub.git")
	b.git("init", "-q", "--bare", "-b", "main", hub)
	b.ok("site", "s0")
	b.ok("remote", "add", "origin", hub)
	b.workflow("short", "  - name: count\n    command: [sh, -c, 'sleep 0.05']\n")
	for i := range 3 {
		b.write(fmt.Sprintf("in/i%d", i), "x")
		b.ok("add", "--workflow", "short", filepath.Join(b.top, fmt.Sprintf("in/i%d", i)))
	}
	b.ok("sync")
	sites := []string{"ws"}
	for i := 1; i < 3; i++ {
		name := fmt.Sprintf("s%d", i)
		b.ok("clone", hub, filepath.Join(b.top, name), "--site", name)
		sites = append(sites, name)
	}
	clone := filepath.Join(b.top, "clone")
	b.git("clone", "-q", hub, clone)

	// try runs bagpipe, and reports whether it was acknowledged; it may be killed.
	try := func(dir string, kill time.Duration, args ...string) bool {
		cmd := exec.Command("bagpipe", append([]string{"-C", filepath.Join(b.top, dir)}, args...)...)
		cmd.Env = b.env
		b.must(cmd.Start())
		if kill > 0 {
			timer := time.AfterFunc(kill, func() { _ = cmd.Process.Kill() })
			defer timer.Stop()
		}
		return cmd.Wait() == nil
	}
	git := func(args ...string) bool {
		cmd := exec.Command("git", append([]string{"-C", clone}, args...)...)
		cmd.Env = b.env
		return cmd.Run() == nil
	}
	var told []string // words that were acknowledged
	for n := range soak(40, 400) {
		site := sites[r.Intn(len(sites))]
		kill := time.Duration(0)
		if r.Intn(4) == 0 {
			kill = time.Duration(20+r.Intn(200)) * time.Millisecond
		}
		switch r.Intn(8) {
		case 0, 1:
			word := fmt.Sprintf("word-%d", n)
			if try(site, 0, "note", fmt.Sprintf("i%d", r.Intn(3)), "-m", word) {
				told = append(told, word)
			}
		case 2, 3:
			try(site, kill, "sync")
		case 4:
			try(site, kill, "run", "-q")
		case 5:
			b.must(os.Rename(hub, hub+".away"))
			try(site, 0, "sync")
			b.must(os.Rename(hub+".away", hub))
		default:
			word := fmt.Sprintf("clone-%d", n)
			if !try("clone", 0, "note", fmt.Sprintf("i%d", r.Intn(3)), "-m", word) {
				continue
			}
			merged := git("fetch", "-q") && git("merge", "-q", "--no-edit", "origin/main")
			if merged && git("push", "-q", "origin", fmt.Sprintf("HEAD:for/b%d", n)) {
				told = append(told, word)
			}
		}
	}
	for range 3 {
		for _, s := range sites {
			b.site(s, "run", "-q")
			b.site(s, "sync")
		}
	}
	for range 2 {
		for _, s := range sites {
			b.site(s, "sync")
		}
	}
	tip := b.git("rev-parse", "main^{tree}")
	for _, s := range sites[1:] {
		if other := b.git("-C", filepath.Join(b.top, s), "rev-parse", "main^{tree}"); other != tip {
			t.Errorf("%s has another tree: %s, %s", s, other, tip)
		}
	}
	log := ""
	for i := range 3 {
		log += b.ok("show", fmt.Sprintf("i%d", i), "--json") + b.ok("log", fmt.Sprintf("i%d", i))
		if show := b.ok("show", fmt.Sprintf("i%d", i)); !strings.Contains(show, "completed") {
			t.Errorf("i%d is not done:\n%s", i, show)
		}
	}
	for _, word := range told {
		if !strings.Contains(log, word) {
			t.Errorf("%s was acknowledged, and is lost", word)
		}
	}
	if out := b.ok("audit"); !strings.Contains(out, ": 0 findings") {
		t.Error(out)
	}
	for _, s := range sites {
		b.git("-C", filepath.Join(b.top, s), "fsck", "--strict", "--no-dangling")
	}
}
