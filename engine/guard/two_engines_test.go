package guard_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"bagpipe/engine"
	"bagpipe/engine/act"
	"bagpipe/engine/claim"
	"bagpipe/engine/gitstore"
	"bagpipe/engine/intake"
	"bagpipe/engine/ledger"
	"bagpipe/layout"
	"bagpipe/steps"
)

const twoSteps = "schema: 1\nname: noops\nsteps:\n  - name: register\n  - name: step1\n    robot: noop\n  - name: step2\n    robot: noop\n"

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func git(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	var errOut bytes.Buffer
	cmd.Stderr = &errOut
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, errOut.String())
	}
	return string(out)
}

// house is a workspace that several engines of one process open.
type house struct {
	t     *testing.T
	root  string
	seed  int64
	warns []string
}

func newHouse(t *testing.T) *house {
	h := &house{t: t, root: filepath.Join(t.TempDir(), "w")}
	must(t, engine.Init(context.Background(), h.root, h.options()))
	must(t, os.WriteFile(filepath.Join(h.root, "workflows", "noops.yaml"), []byte(twoSteps), 0o644))
	return h
}

func (h *house) options() engine.Options {
	h.seed++
	return engine.Options{Now: time.Now, Random: rand.New(rand.NewSource(h.seed)), Robots: steps.Builtins(),
		Person: gitstore.Signature{Name: "Ada", Email: "ada@example.org"}, Host: claim.Host{Name: "host", BootID: "b", PID: os.Getpid()},
		Warn: func(text string) { h.warns = append(h.warns, text) }}
}

func (h *house) open() *engine.Engine {
	h.t.Helper()
	e, err := engine.Open(context.Background(), h.root, h.options())
	must(h.t, err)
	return e
}

func (h *house) add(e *engine.Engine) layout.ItemID {
	h.t.Helper()
	drop := filepath.Join(h.t.TempDir(), "drop.txt")
	must(h.t, os.WriteFile(drop, []byte("x"), 0o644))
	got, err := e.Intake.Add(context.Background(), drop, intake.AddOptions{Workflow: "noops"})
	must(h.t, err)
	return got.Item
}

// push commits a change of a file by a person's own clone.
func (h *house) push(file, from, to string) {
	h.t.Helper()
	clone := filepath.Join(h.t.TempDir(), "clone")
	git(h.t, h.t.TempDir(), "clone", "-q", h.root, clone)
	at := filepath.Join(clone, filepath.FromSlash(file))
	data, err := os.ReadFile(at)
	must(h.t, err)
	must(h.t, os.WriteFile(at, []byte(strings.Replace(string(data), from, to, 1)), 0o644))
	git(h.t, clone, "-c", "user.name=Ada Archivist", "-c", "user.email=ada@example.org", "commit", "-qam", "pushed")
	git(h.t, clone, "push", "-q")
}

// An answer that another engine gave first is no forgery, though it puts back
// attempts of the engine that looks at it.
func TestTwoEnginesAnswerOnePush(t *testing.T) {
	ctx := context.Background()
	h := newHouse(t)
	ran := h.open()
	item := h.add(ran)
	file := layout.ItemDir(item) + "/" + layout.ExecutionJSON
	record := func() string { return git(t, h.root, "show", "HEAD:"+file) }
	first := record()
	_, err := ran.Run(ctx, engine.RunOptions{Parallel: 1})
	must(t, err)
	other := h.open()

	h.push(file, record(), strings.Replace(first, `"runner": "host`, `"runner": "other`, 1)) // no mere revert

	must(t, ran.Ledger.Store.Refresh(ctx))
	must(t, ran.Guard.Examine(ctx))
	must(t, other.Ledger.Store.Refresh(ctx))
	must(t, other.Guard.LookAtFew(ctx))
	must(t, ran.Guard.Answer(ctx, item))
	must(t, ran.Ledger.Store.Refresh(ctx))
	must(t, ran.Guard.LookAtFew(ctx))
	must(t, other.Close())
	must(t, ran.Close())
	if len(h.warns) != 1 || !strings.Contains(h.warns[0], "removed attempt 1-") {
		t.Errorf("warned %q", h.warns)
	}
	if x := record(); strings.Count(x, `"state": "completed"`) != 3 {
		t.Errorf("attempts are lost:\n%s", x)
	}
	h.warns = nil
	again := h.open()
	_, err = again.Run(ctx, engine.RunOptions{Parallel: 2})
	must(t, err)
	must(t, again.Close())
	if len(h.warns) != 0 {
		t.Errorf("answered again: %q", h.warns)
	}
}

// An engine that another was far ahead of compares the ends alone: what the other did in
// between is no breach. What a person took away is one, of that commit.
func TestAWindowTooLongToGoThrough(t *testing.T) {
	ctx := context.Background()
	h := newHouse(t)
	ran, behind := h.open(), h.open()
	item := h.add(ran)
	must(t, behind.Ledger.Store.Refresh(ctx))
	must(t, behind.Guard.LookAtFew(ctx))
	behind.Guard.Most(1)
	_, err := ran.Run(ctx, engine.RunOptions{Parallel: 1})
	must(t, err)
	must(t, behind.Ledger.Store.Refresh(ctx))
	must(t, behind.Guard.LookAtFew(ctx))
	if len(h.warns) != 0 {
		t.Errorf("an engine's steps were answered: %q", h.warns)
	}

	file := layout.ItemDir(item) + "/" + layout.ExecutionJSON
	for n := range 3 {
		h.push(file, `"runner": "`, fmt.Sprintf(`"runner": "%d`, n))
	}
	must(t, behind.Ledger.Store.Refresh(ctx))
	must(t, behind.Guard.LookAtFew(ctx))
	if len(h.warns) != 1 || !strings.Contains(h.warns[0], "by Ada Archivist") {
		t.Errorf("warned %q", h.warns)
	}
	must(t, behind.Close())
	must(t, ran.Close())
}

// What several lookers find ahead of the examiner is what it finds one by one: also of items that
// should be otherwise than they are committed, and behind merges.
func TestLookingAheadFindsTheSame(t *testing.T) {
	ctx := context.Background()
	h := newHouse(t)
	e := h.open()
	var dirs []string
	for range 3 {
		dirs = append(dirs, layout.ItemDir(h.add(e)))
	}
	_, err := e.Run(ctx, engine.RunOptions{Parallel: 1})
	must(t, err)
	v, err := e.Ledger.Store.Tip()
	must(t, err)
	from := v.Commit()
	clone := filepath.Join(t.TempDir(), "clone")
	git(t, t.TempDir(), "clone", "-q", h.root, clone)
	person := func(args ...string) string {
		return git(t, clone, append([]string{"-c", "user.name=Ada", "-c", "user.email=ada@example.org", "-c", "core.hooksPath=none"}, args...)...)
	}
	person("checkout", "-q", "-b", "ours")
	person("branch", "side")
	r := rand.New(rand.NewSource(7))
	edit := func(file, from, to string) {
		at := filepath.Join(clone, filepath.FromSlash(file))
		if data, err := os.ReadFile(at); err == nil {
			must(t, os.WriteFile(at, []byte(strings.Replace(string(data), from, to, 1)), 0o644))
		}
	}
	for n := range 120 {
		dir := dirs[r.Intn(len(dirs))]
		switch r.Intn(8) {
		case 0, 1:
			edit(dir+"/"+layout.ManifestJSON, `"label": "`, fmt.Sprintf(`"label": "%d`, n))
		case 2:
			edit(dir+"/"+layout.ExecutionJSON, `"runner": "`, fmt.Sprintf(`"runner": "%d`, n))
		case 3:
			edit(dir+"/"+layout.ExecutionJSON, `"status": "completed"`, `"status": "failed"`)
		case 4:
			must(t, os.RemoveAll(filepath.Join(clone, filepath.FromSlash(dir))))
		case 5:
			person("checkout", "-q", from.String(), "--", dir)
		case 6:
			person("merge", "-q", "-s", "ours", "-m", "merged", "side")
		case 7:
			other := "side"
			if strings.TrimSpace(person("branch", "--show-current")) == other {
				other = "ours"
			}
			person("checkout", "-q", other)
		}
		person("add", "-A")
		person("commit", "-q", "--allow-empty", "-m", fmt.Sprint(n))
	}
	person("checkout", "-q", "-B", "end", "side")
	person("merge", "-q", "-s", "ours", "-m", "merged", "ours")
	person("push", "-q", "origin", "end:refs/heads/looked-at")
	tip, err := gitstore.ParseHash(strings.TrimSpace(person("rev-parse", "HEAD")))
	must(t, err)
	commits, err := gitstore.ParentsFirst(ctx, h.root, tip, from)
	must(t, err)
	found := func(stretch, many int) (told []string) {
		e.Guard.Pace(stretch, many)
		breaches, _, err := e.Guard.Review(ctx, from, gitstore.Hash{}, commits)
		must(t, err)
		for _, b := range breaches {
			told = append(told, fmt.Sprint(b.Commit.Hash, b.Item, b.What, b.Open, b.Peaceful))
		}
		slices.Sort(told)
		return told
	}
	alone := found(1<<20, 1<<20)
	if len(alone) < 20 {
		t.Fatalf("only %d breaches of %d commits: %q", len(alone), len(commits), alone)
	}
	for _, pace := range [][2]int{{1, 1}, {1, 2}, {7, 100}} {
		if ahead := found(pace[0], pace[1]); !slices.Equal(ahead, alone) {
			t.Errorf("at %d:\n%s\nand one by one:\n%s", pace, strings.Join(ahead, "\n"), strings.Join(alone, "\n"))
		}
	}
	must(t, e.Close())
}

// What another engine did lawfully, step by step, is no breach though the ends do not fit each
// other: an item that was finished and retired, and one that became two versions later.
func TestAWindowWhoseEndsDoNotFit(t *testing.T) {
	ctx := context.Background()
	h := newHouse(t)
	ran, behind := h.open(), h.open()
	retired, renewed := h.add(ran), h.add(ran)
	_, err := ran.Run(ctx, engine.RunOptions{Parallel: 1, Items: []layout.ItemID{renewed}})
	must(t, err)
	must(t, behind.Ledger.Store.Refresh(ctx))
	must(t, behind.Guard.LookAtFew(ctx))
	behind.Guard.Most(1)
	for n := range 2 {
		drop := filepath.Join(t.TempDir(), "drop.txt")
		must(t, os.WriteFile(drop, []byte{'a' + byte(n)}, 0o644))
		_, err := ran.Intake.Add(ctx, drop, intake.AddOptions{VersionOf: renewed})
		must(t, err)
		_, err = ran.Run(ctx, engine.RunOptions{Parallel: 1})
		must(t, err)
	}
	must(t, act.Retire(ctx, ran.Act, retired, "done"))
	tip := git(t, h.root, "rev-parse", "HEAD")
	must(t, behind.Ledger.Store.Refresh(ctx))
	must(t, behind.Guard.LookAtFew(ctx))
	if len(h.warns) != 0 || git(t, h.root, "rev-parse", "HEAD") != tip {
		t.Errorf("what was lawful was answered: %q", h.warns)
	}
	must(t, behind.Close())
	must(t, ran.Close())
}

// Where keys are listed each commit is looked at for its signature, however many there are.
func TestAWindowTooLongOfSignedCommits(t *testing.T) {
	ctx := context.Background()
	h := newHouse(t)
	behind := h.open()
	item := h.add(behind)
	clone := filepath.Join(t.TempDir(), "clone")
	git(t, t.TempDir(), "clone", "-q", h.root, clone)
	commit := func(file, text, committer, email string) {
		at := filepath.Join(clone, filepath.FromSlash(file))
		must(t, os.MkdirAll(filepath.Dir(at), 0o777))
		must(t, os.WriteFile(at, []byte(text), 0o644))
		git(t, clone, "add", file)
		git(t, clone, "-c", "author.name=Ada", "-c", "author.email=ada@example.org", "-c", "committer.name="+committer, "-c", "committer.email="+email,
			"commit", "-qm", file)
	}
	look := func() {
		git(t, clone, "push", "-q")
		must(t, behind.Ledger.Store.Refresh(ctx))
		must(t, behind.Guard.LookAtFew(ctx))
	}
	commit(layout.SignersFile, "keeper@example.org ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ1yFTSzJ2RlNwlyDlbtUfJBbwvYzmNYNgJd0mZu2lP3\n", "Ada", "ada@example.org")
	settings := git(t, clone, "show", "HEAD:"+layout.SettingsFile)
	commit(layout.SettingsFile, settings+"trust: {require: [people]}\n", "Ada", "ada@example.org")
	look()
	behind.Guard.Most(1)
	if len(h.warns) != 0 {
		t.Fatalf("warned %q", h.warns)
	}
	manifest := layout.ItemDir(item) + "/" + layout.ManifestJSON
	commit(manifest, strings.Replace(git(t, clone, "show", "HEAD:"+manifest), `"label": "`, `"label": "other `, 1), "Ada", "ada@example.org")
	commit("notes.txt", "one", "Ada", "ada@example.org")
	commit("notes.txt", "two", ledger.CommitterName, ledger.CommitterEmail+"host")
	look()
	if len(h.warns) != 1 || !strings.Contains(h.warns[0], "vouches for") {
		t.Errorf("warned %q", h.warns)
	}
	must(t, behind.Close())
}
