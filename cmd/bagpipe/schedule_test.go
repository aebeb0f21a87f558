package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/tidwall/gjson"
)

// A firing whose engine is killed is resumed once, by the next, with the time it was due; the
// second time it is lost, and told so.
func TestAFiringOutlivesItsEngine(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.must(os.MkdirAll(filepath.Join(b.dir, "schedules"), 0o777))
	b.must(os.WriteFile(filepath.Join(b.dir, "schedules/once.yaml"), []byte("schema: 1\nname: once\ntrigger: {every: 1s}\nuntil: 2099-01-01\noverlap: skip\n"+
		"do: {command: [sh, -c, 'echo \"$BAGPIPE_DUE\" >>begun; until [ -e go ]; do sleep 0.02; done; echo \"$BAGPIPE_DUE\" >>ended']}\n"), 0o666))
	lines := func(name string) []string {
		data, err := os.ReadFile(filepath.Join(b.dir, name))
		if err != nil {
			return nil
		}
		return strings.Fields(string(data))
	}
	first := b.start("run", "--watch")
	b.await("the firing", func() bool { return len(lines("begun")) == 1 })
	if !first.kill() {
		t.Fatal("it had ended")
	}
	second := b.start("run", "--watch")
	b.await("the firing, resumed", func() bool { return len(lines("begun")) == 2 })
	if got := lines("begun"); got[0] != got[1] {
		t.Errorf("due at %v", got)
	}
	if !second.kill() {
		t.Fatal("it had ended")
	}
	third := b.start("run", "--watch")
	due := lines("begun")[0]
	outcome := func() string {
		return gjson.Get(b.ok("schedule", "show", "once", "--json"), `firings.#(due=="`+due+`").outcome`).String()
	}
	b.await("the firing to be given up", func() bool { return outcome() == "lost" })
	b.await("the next one", func() bool { return len(lines("begun")) == 3 })
	b.must(os.WriteFile(filepath.Join(b.dir, "go"), nil, 0o666))
	b.await("its end", func() bool { return len(lines("ended")) > 0 })
	b.ok("schedule", "stop", "once")
	third.signal(syscall.SIGTERM)
	third.code(0)
	seen := map[string]int{}
	for _, at := range lines("ended") {
		seen[at]++
	}
	if len(seen) != len(lines("ended")) || seen[due] > 0 {
		t.Errorf("ended %v", lines("ended"))
	}
}
