package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tidwall/gjson"
)

const booksRule = `schema: 1
name: books
rules:
  - name: scan
    match: {kind: folder, regexp: '^(?P<barcode>\d{5})-'}
    identifiers: {barcode: '${barcode}'}
    known: version
`

// scan drops one scan of a book, of a few files, settled at once.
func (b *bench) scan(barcode int, name string) {
	b.t.Helper()
	for i := range 3 {
		b.write(fmt.Sprintf("made/%d-%s/page-%d.txt", barcode, name, i), fmt.Sprintf("%d %s %d", barcode, name, i))
	}
	b.must(os.Rename(filepath.Join(b.top, fmt.Sprintf("made/%d-%s", barcode, name)), filepath.Join(b.dir, "inbox/default", fmt.Sprintf("%d-%s", barcode, name))))
}

// versions checks that an item is at a version, with the bytes and the bag of each.
func (b *bench) versions(barcode, want int, names map[string]bool) {
	b.t.Helper()
	show := b.ok("show", fmt.Sprint(barcode), "--json")
	if got := gjson.Get(show, "manifest.version").Int(); got != int64(want) {
		b.t.Errorf("book %d is at version %d, want %d", barcode, got, want)
	}
	dir := filepath.Join(b.dir, gjson.Get(show, "folder").String())
	seen := map[string]bool{}
	for n := 1; n <= want; n++ {
		home := dir
		if n < want {
			home = filepath.Join(dir, "versions", fmt.Sprint(n))
		}
		sources, err := filepath.Glob(filepath.Join(home, "source/*"))
		b.must(err)
		if len(sources) != 1 {
			b.t.Errorf("book %d, version %d: sources %v", barcode, n, sources)
			continue
		}
		name := strings.TrimPrefix(filepath.Base(sources[0]), fmt.Sprintf("%d-", barcode))
		seen[name] = true
		for i := range 3 {
			for _, path := range []string{filepath.Join(sources[0], fmt.Sprintf("page-%d.txt", i)), filepath.Join(home, "content", fmt.Sprintf("page-%d.txt", i))} {
				if data, err := os.ReadFile(path); err != nil || string(data) != fmt.Sprintf("%d %s %d", barcode, name, i) {
					b.t.Errorf("%s holds %q, %v", path, data, err)
				}
			}
		}
		if status := gjson.Get(show, fmt.Sprintf(`workflows.#(workflow=="accession.%d").status`, n)).String(); status != "completed" {
			b.t.Errorf("book %d: accession.%d is %s", barcode, n, status)
		}
	}
	if len(seen) != len(names) {
		b.t.Errorf("book %d has the scans %v, want %v", barcode, seen, names)
	}
	log := b.git("log", "--format=%(trailers:key=Bagpipe-Version,valueonly,separator=)", "--", gjson.Get(show, "folder").String())
	if got := len(strings.Fields(log)); got != want-1 {
		b.t.Errorf("the history has %d later versions of book %d, want %d", got, barcode, want-1)
	}
}

func (b *bench) whole() {
	b.t.Helper()
	if err := leftBehind(b.dir); err != nil {
		b.t.Error(err)
	}
	if out := b.git("fsck", "--strict", "--no-dangling"); out != "" {
		b.t.Errorf("git fsck: %s", out)
	}
}

// Killed at any time after a version began to be made, the next run ends it; the bytes
// of both versions are there, and nothing is made twice.
func TestKillWhileMakingVersions(t *testing.T) {
	t.Parallel()
	for round := range soak(2, 60) {
		b := newBench(t)
		b.write("ws/rules/books.yaml", booksRule)
		const books = 4
		for i := range books {
			b.scan(35100+i, "first")
		}
		b.ok("run", "-q")
		for i := range books {
			b.scan(35100+i, "second")
		}
		kills := 0
		for n := range 3 {
			r := b.start("run")
			eventuallyFast(func() bool {
				begun, _ := filepath.Glob(filepath.Join(b.dir, "items/*/*/*/*/*/versions/*"))
				return len(begun) > n || !r.running()
			})
			<-time.After(time.Duration(round*n) * 400 * time.Microsecond)
			if r.kill() {
				kills++
			}
		}
		if kills == 0 {
			t.Error("no run was killed")
		}
		b.ok("run", "-q")
		b.whole()
		b.deposits(2 * books)
		for i := range books {
			b.versions(35100+i, 2, map[string]bool{"first": true, "second": true})
		}
	}
}

// Several drops of one book at once, and two engines that take them: each becomes a
// version, one after the other.
func TestVersionsByTwoEngines(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.write("ws/rules/books.yaml", booksRule)
	const books = 3
	names := map[string]bool{}
	for _, name := range []string{"a", "b", "c", "d"} {
		names[name] = true
		for i := range books {
			b.scan(35100+i, name)
		}
	}
	runs := []*process{b.start("run"), b.start("run")}
	for _, r := range runs {
		r.code(0)
	}
	for range 3 { // what waited for an item of the other engine's
		b.ok("run", "-q")
	}
	b.whole()
	b.deposits(books * len(names))
	for i := range books {
		b.versions(35100+i, len(names), names)
	}
	if held := gjson.Get(b.ok("status", "--json"), "held").Int(); held != 0 {
		t.Errorf("%d items are held: %s", held, b.ok("status"))
	}
}

// A run that watches goes on with a version by itself, once its item is done.
func TestWatchMakesVersionWhenItemIsDone(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.workflow("agree", "  - name: agree\n    manual: true\n")
	b.write("ws/rules/books.yaml", booksRule+"    workflow: agree\n")
	r := b.start("run", "--watch")
	b.scan(35100, "first")
	b.await("the first one waits for a person", func() bool { return gjson.Get(b.ok("queue", "/agree", "--json"), "#").Int() == 1 })
	b.scan(35100, "second")
	b.await("the second one waits for the first", func() bool {
		return strings.Contains(b.ok("status"), "35100-second: taken in as a new version; waits for item")
	})
	b.ok("step", "complete", "35100", "agree", "-m", "seen")
	b.await("the second one is a version", func() bool {
		return gjson.Get(b.ok("show", "35100", "--json"), "manifest.version").Int() == 2
	})
	b.ok("step", "complete", "35100", "agree", "-m", "seen")
	b.await("all done", func() bool { return len(b.labels("completed")) == 1 })
	r.signal(syscall.SIGTERM)
	r.code(0)
	b.whole()
}

// Another engine makes the version that a drop waited to be, and the next: the drop
// becomes the one after these.
func TestADropThatOthersOvertook(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.workflow("agree", "  - name: agree\n    manual: true\n")
	b.write("ws/rules/books.yaml", booksRule+"    workflow: agree\n")
	version := func(n int64) func() bool {
		return func() bool { return gjson.Get(b.ok("show", "35100", "--json"), "manifest.version").Int() == n }
	}
	agree := func() { b.ok("step", "complete", "35100", "agree", "-m", "seen") }
	r := b.start("run", "--watch")
	b.scan(35100, "first")
	b.await("the first one waits for a person", func() bool { return gjson.Get(b.ok("queue", "/agree", "--json"), "#").Int() == 1 })
	b.scan(35100, "late")
	b.await("a drop waits to be version 2", func() bool {
		return strings.Contains(b.ok("status"), "35100-late: taken in as a new version; waits for item")
	})
	r.signal(syscall.SIGSTOP)
	for i, name := range []string{"second", "third"} {
		agree()
		b.write(fmt.Sprintf("made/35100-%s/page-0.txt", name), name)
		b.ok("add", filepath.Join(b.top, "made/35100-"+name))
		b.await(name+" is a version", version(int64(i+2)))
	}
	r.signal(syscall.SIGCONT)
	agree()
	b.await("the late one is version 4", version(4))
	agree()
	r.signal(syscall.SIGTERM)
	r.code(0)
	b.whole()
	if names, err := filepath.Glob(filepath.Join(b.dir, "intake/*")); err != nil || len(names) > 0 {
		t.Errorf("the intake holds %v, %v", names, err)
	}
}

// What an engine took and was killed over, here a new version that closes its item, is
// gone on with by the one that runs, not by the next that starts.
func TestWatchGoesOnWithADeadEnginesVersion(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.write("ws/rules/books.yaml", booksRule)
	const books = 40
	orphans := 0
	r := b.start("run", "--watch")
	for i := 0; i < books && orphans < soak(1, 3); i++ {
		book := 35100 + i
		b.scan(book, "first")
		b.await("the first one is done", func() bool { return len(b.labels("completed")) == i+1 })
		for n := range 3 {
			b.write(fmt.Sprintf("made/%d-second/page-%d.txt", book, n), fmt.Sprintf("%d second %d", book, n))
		}
		b.ok("run", "-q", "--item", fmt.Sprint(book)) // nothing of it is under way
		adding := b.start("add", filepath.Join(b.top, fmt.Sprintf("made/%d-second", book)))
		eventuallyFast(func() bool {
			begun, _ := filepath.Glob(filepath.Join(b.dir, "items/*/*/*/*/*/versions/1"))
			return len(begun) > i || !adding.running()
		})
		adding.kill()
		if left, _ := os.ReadDir(filepath.Join(b.dir, "intake")); len(left) > 0 {
			orphans++
		}
		b.await("the second one is a version", func() bool {
			show := b.ok("show", fmt.Sprint(book), "--json")
			return gjson.Get(show, "manifest.version").Int() == 2 && gjson.Get(show, `workflows.#(workflow=="accession.2").status`).String() == "completed"
		})
		b.versions(book, 2, map[string]bool{"first": true, "second": true})
	}
	r.signal(syscall.SIGTERM)
	r.code(0)
	b.whole()
	if orphans == 0 {
		t.Error("no add was killed in the middle")
	}
}

var metadataIn = regexp.MustCompile(`"metadata": \{[^}]*\}`)

// People push what describes the books while versions are made of them by runs that are
// killed: every version keeps its bytes, and what was pushed last stands.
func TestVersionsBesidePushesAndKills(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.write("ws/rules/books.yaml", booksRule)
	const books = 3
	names := map[string]bool{"first": true}
	for i := range books {
		b.scan(35100+i, "first")
	}
	b.ok("run", "-q")
	clone := filepath.Join(b.top, "clone")
	b.git("clone", "--quiet", b.dir, clone)
	edit := func(round int) { // a note in every manifest; a push that comes too late is made anew
		for range 20 {
			b.git("-C", clone, "fetch", "--quiet")
			b.git("-C", clone, "reset", "--quiet", "--hard", "@{upstream}")
			found, err := filepath.Glob(filepath.Join(clone, "items/*/*/*/*/*/manifest.json"))
			b.must(err)
			for _, path := range found {
				data, err := os.ReadFile(path)
				b.must(err)
				data = metadataIn.ReplaceAll(data, fmt.Appendf(nil, "\"metadata\": {\n    \"note\": \"%d\"\n  }", round))
				b.must(os.WriteFile(path, data, 0o644))
			}
			b.git("-C", clone, "commit", "--quiet", "--all", "--message", fmt.Sprintf("note %d", round))
			push := exec.Command("git", "-C", clone, "push", "--quiet")
			push.Env = b.env
			if push.Run() == nil {
				return
			}
		}
		t.Error("no push came through")
	}
	for round := range soak(2, 20) {
		name := fmt.Sprintf("scan%d", round)
		names[name] = true
		for i := range books {
			b.scan(35100+i, name)
		}
		r := b.start("run")
		eventuallyFast(func() bool {
			begun, _ := filepath.Glob(filepath.Join(b.dir, fmt.Sprintf("items/*/*/*/*/*/versions/%d", round+1)))
			return len(begun) > 0 || !r.running()
		})
		edit(round)
		r.kill()
		b.ok("run", "-q")
		for i := range books {
			b.versions(35100+i, round+2, names)
			show := b.ok("show", fmt.Sprint(35100+i), "--json")
			if note := gjson.Get(show, "manifest.metadata.note").String(); note != fmt.Sprint(round) {
				t.Errorf("round %d: the note of book %d is %q", round, i, note)
			}
		}
		if held := gjson.Get(b.ok("status", "--json"), "held").Int(); held != 0 {
			t.Fatalf("%d items are held: %s", held, b.ok("status"))
		}
	}
	b.whole()
}
