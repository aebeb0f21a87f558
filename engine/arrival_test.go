package engine_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"bagpipe/engine"
	"bagpipe/engine/ask"
	"bagpipe/engine/gitstore"
	"bagpipe/engine/intake"
	"bagpipe/layout"
)

// site is a workspace with one item and a clone of it.
type site struct {
	t     *testing.T
	root  string
	clone string
	item  layout.ItemID

	mu    sync.Mutex // guards warns
	warns []string
}

func newSite(t *testing.T) *site {
	t.Helper()
	s := &site{t: t, root: filepath.Join(t.TempDir(), "w"), clone: filepath.Join(t.TempDir(), "clone")}
	ctx := context.Background()
	s.must(engine.Init(ctx, s.root, s.options()))
	s.must(os.WriteFile(filepath.Join(s.root, "workflows", "noops.yaml"), []byte(noops(2)), 0o644))
	drop := filepath.Join(t.TempDir(), "drop.txt")
	s.must(os.WriteFile(drop, []byte("x"), 0o644))
	s.do(func(e *engine.Engine) {
		got, err := e.Intake.Add(ctx, drop, intake.AddOptions{Workflow: "noops"})
		s.must(err)
		s.item = got.Item
	})
	git(t, t.TempDir(), "clone", "-q", s.root, s.clone)
	git(t, s.clone, "config", "user.name", "Ada Archivist")
	git(t, s.clone, "config", "user.email", "ada@example.org")
	return s
}

func (s *site) options() engine.Options {
	o := fixedOptions(&fixedClock{})
	o.Now = time.Now
	o.Random = bytesForever{}
	o.Warn = func(text string) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.warns = append(s.warns, text)
	}
	return o
}

// bytesForever is randomness enough for a test.
type bytesForever struct{}

func (bytesForever) Read(p []byte) (int, error) {
	now := binary.BigEndian.AppendUint64(nil, uint64(time.Now().UnixNano())*0x9e3779b97f4a7c15)
	for i := range p {
		p[i] = now[i%8] ^ byte(i/8)
	}
	return len(p), nil
}

func (s *site) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// do opens the workspace for f.
func (s *site) do(f func(*engine.Engine)) {
	s.t.Helper()
	e, err := engine.Open(context.Background(), s.root, s.options())
	s.must(err)
	f(e)
	s.must(e.Close())
}

func (s *site) run() (warned []string) {
	s.t.Helper()
	s.warns = nil
	s.do(func(e *engine.Engine) {
		_, err := e.Run(context.Background(), engine.RunOptions{Parallel: 2})
		s.must(err)
	})
	return s.warns
}

func (s *site) record() string {
	s.t.Helper()
	return git(s.t, s.root, "show", "HEAD:"+layout.ItemDir(s.item)+"/"+layout.ExecutionJSON)
}

// push commits what edit does to the newest clone, and pushes it.
func (s *site) push(edit func(dir string)) {
	s.t.Helper()
	git(s.t, s.clone, "pull", "-q", "--rebase")
	edit(filepath.Join(s.clone, filepath.FromSlash(layout.ItemDir(s.item))))
	git(s.t, s.clone, "add", "-A")
	git(s.t, s.clone, "commit", "-qm", "pushed")
	git(s.t, s.clone, "push", "-q")
}

// What could not be put in its place, as on a full disk, is not left beside it.
func TestAFailedNoteOfWhatWasCheckedLeavesNothing(t *testing.T) {
	s := newSite(t)
	checked := filepath.Join(s.root, ".bagpipe", "checked")
	s.must(os.Remove(checked))
	s.must(os.MkdirAll(filepath.Join(checked, "in the way"), 0o755))
	s.do(func(e *engine.Engine) { s.must(e.Act.Hold(context.Background(), s.item, "rights unclear")) })
	s.run()
	if left, err := filepath.Glob(checked + ".*"); err != nil || len(left) > 0 {
		t.Errorf("left %q, %v", left, err)
	}
}

// What was acknowledged after the last look, and by an engine that is gone, is not
// lost when a push takes it away before anyone looked.
func TestAPushAfterAnOldLook(t *testing.T) {
	s := newSite(t)
	first := s.record()
	checked := filepath.Join(s.root, ".bagpipe", "checked")
	old, err := os.ReadFile(checked)
	s.must(err)
	s.do(func(e *engine.Engine) { s.must(e.Act.Hold(context.Background(), s.item, "rights unclear")) })
	s.push(func(dir string) { s.must(os.RemoveAll(dir)) })
	s.must(os.WriteFile(checked, old, 0o644))
	if warned := s.run(); len(warned) != 1 || !strings.Contains(warned[0], "removed the item's records") {
		t.Fatalf("warned %q", warned)
	}
	if x := s.record(); !strings.Contains(x, "rights unclear") || !strings.Contains(x, "removed the item's records") {
		t.Fatalf("the hold is lost, or there is no answer:\n%s", x)
	}
	// And an attempt that was removed with a valid record in its place.
	s.do(func(e *engine.Engine) { s.must(e.Act.Release(context.Background(), s.item, "")) })
	s.run()
	s.push(func(dir string) {
		s.must(os.WriteFile(filepath.Join(dir, layout.ExecutionJSON), []byte(strings.Replace(first, `"runner": "`, `"runner": "x`, 1)), 0o644)) // no mere revert
	})
	s.must(os.WriteFile(checked, old, 0o644))
	s.run()
	if x := s.record(); strings.Count(x, `"state": "completed"`) != 3 || !strings.Contains(x, "changed attempt 1-") {
		t.Fatalf("attempts are lost, or there is no answer:\n%s", x)
	}
	if warned := s.run(); len(warned) != 0 {
		t.Fatalf("answered again: %q", warned)
	}
}

// An attempt in the name of the engine that runs here is kept and the item held,
// once, whoever else looks.
func TestAPushInTheEnginesName(t *testing.T) {
	s := newSite(t)
	ctx := context.Background()
	e, err := engine.Open(ctx, s.root, s.options())
	s.must(err)
	s.must(e.Act.Hold(ctx, s.item, "rights unclear"))
	forged := `"step1": { "attempts": {"1-` + string(e.ID()) + `": {"state": "in-progress", "claimed": "2026-11-20T10:00:00Z", "started": "2026-11-20T10:00:00Z"}},`
	git(t, s.clone, "config", "user.name", "Bagpipe")
	git(t, s.clone, "config", "user.email", "bagpipe@elsewhere")
	s.push(func(dir string) {
		s.replace(filepath.Join(dir, layout.ExecutionJSON), `"step1": {`, forged)
	})
	s.run() // another engine finds nothing to object to
	for range 3 {
		s.must(e.Act.Release(ctx, s.item, ""))
		x := s.record()
		if n := strings.Count(x, "in the name of the engine that runs here"); n != 1 {
			t.Fatalf("%d answers:\n%s", n, x)
		}
		s.must(e.Act.Hold(ctx, s.item, "again"))
	}
	s.must(e.Close())
	if out := git(t, s.root, "fsck", "--strict", "--no-dangling"); out != "" {
		t.Error(out)
	}
}

// What was done by nobody is told of, and the item held: an attempt that ended and that no
// commit claimed, a robot's in a person's own commit, and one in another person's name.
func TestAPushOfWhatNobodyDid(t *testing.T) {
	for _, test := range []struct{ name, email, attempt, warns string }{
		{"Bagpipe", "bagpipe@elsewhere", `"state": "completed"`, "which no commit before claimed"},
		{"Eve", "eve@example.org", `"state": "completed"`, "which is a robot's"},
		{"Eve", "eve@example.org", `"state": "in-progress", "claimed": "2026-11-20T10:00:00Z"`, "which is a robot's"},
		{"Eve", "eve@example.org", `"state": "completed", "by": "Ada <ada@example.org>"`, "in the name of Ada <ada@example.org>"},
		{"Eve", "eve@example.org", `"state": "completed", "by": "Eve <eve@example.org>"`, ""},
	} {
		s := newSite(t)
		s.do(func(e *engine.Engine) { s.must(e.Act.Hold(context.Background(), s.item, "rights unclear")) })
		git(t, s.clone, "config", "user.name", test.name)
		git(t, s.clone, "config", "user.email", test.email)
		s.push(func(dir string) {
			s.replace(filepath.Join(dir, layout.ExecutionJSON), `"step1": {`,
				`"step1": { "attempts": {"1-b0b0b0b0": {`+test.attempt+`, "started": "2026-11-20T10:00:00Z", "ended": "2026-11-20T10:00:00Z"}},`)
		})
		warned := strings.Join(s.run(), "\n")
		if test.warns == "" && warned != "" || !strings.Contains(warned, test.warns) {
			t.Errorf("%s by %s: warned %q", test.attempt, test.name, warned)
		}
		if again := s.run(); len(again) > 0 {
			t.Errorf("%s by %s: answered again: %q", test.attempt, test.name, again)
		}
	}
}

// What an answer left out does not come back, nor count as removed, by a merge of
// a branch that still has it.
func TestAMergeOfWhatWasLeftOut(t *testing.T) {
	s := newSite(t)
	s.do(func(e *engine.Engine) { s.must(e.Act.Hold(context.Background(), s.item, "rights unclear")) })
	made := `"step2": { "attempts": {"1-b0b0b0b0": {"state": "completed", "started": "2026-11-20T10:00:00Z", "ended": "2026-11-20T10:00:00Z"}},`
	s.push(func(dir string) {
		s.replace(filepath.Join(dir, layout.ExecutionJSON), `"step2": {`, made)
	})
	if warned := s.run(); len(warned) != 1 || !strings.Contains(warned[0], "which waits for step1") {
		t.Fatalf("warned %q", warned)
	}
	dir := filepath.Join(s.clone, filepath.FromSlash(layout.ItemDir(s.item)))
	s.replace(filepath.Join(dir, layout.ManifestJSON), `"label": "drop.txt"`, `"label": "better"`)
	git(t, s.clone, "commit", "-qam", "A better label")
	git(t, s.clone, "pull", "-q", "--no-rebase", "--no-edit")
	git(t, s.clone, "push", "-q")
	if warned := s.run(); len(warned) != 0 {
		t.Fatalf("warned %q", warned)
	}
	if x := s.record(); strings.Contains(x, `"1-b0b0b0b0": {`) {
		t.Fatalf("what was left out is back:\n%s", x)
	}
}

// An item that a person made by a push is held, as no workspace admitted it; released, one without a workflow says so.
func TestANewItemWithoutAWorkflow(t *testing.T) {
	s := newSite(t)
	other, err := layout.NewItemID(bytes.NewReader([]byte("another")))
	s.must(err)
	s.push(func(dir string) {
		text, err := os.ReadFile(filepath.Join(dir, layout.ManifestJSON))
		s.must(err)
		for name, text := range map[string]string{
			layout.ManifestJSON:  strings.ReplaceAll(string(text), string(s.item), string(other)),
			layout.ExecutionJSON: `{"schema": 1, "item": "` + string(other) + `", "workflows": {}}`,
		} {
			p := filepath.Join(s.clone, filepath.FromSlash(layout.ItemDir(other)), name)
			s.must(os.MkdirAll(filepath.Dir(p), 0o777))
			s.must(os.WriteFile(p, []byte(text), 0o666))
		}
	})
	if warned := s.run(); len(warned) != 1 || !strings.Contains(warned[0], "made the item up, which no workspace admitted so") {
		t.Errorf("warned %q", warned)
	}
	s.do(func(e *engine.Engine) {
		s.must(e.Act.Release(context.Background(), other, ""))
		s.must(e.Index.Load(context.Background()))
		rows, err := e.Ask.Items(ask.Filter{Status: "waiting"}, ask.Page{})
		if err != nil {
			t.Fatal(err)
		}
		if len(rows) != 1 || rows[0].Item != other || rows[0].Why != "no workflow was started on it" {
			t.Errorf("%+v", rows)
		}
	})
}

func (s *site) replace(file, old, new string) {
	s.t.Helper()
	text, err := os.ReadFile(file)
	s.must(err)
	if !bytes.Contains(text, []byte(old)) {
		s.t.Fatalf("%s does not hold %s:\n%s", file, old, text)
	}
	s.must(os.WriteFile(file, bytes.Replace(text, []byte(old), []byte(new), 1), 0o666))
}

// All items removed at once: all come back, each by a commit of its own, while
// other work goes on. BAGPIPE_SOAK=1 takes 100,000.
func TestAPushThatRemovesEverythingSoak(t *testing.T) {
	n := 1000
	if testing.Short() {
		n = 200
	}
	if os.Getenv("BAGPIPE_SOAK") != "" {
		n = 100_000
	}
	s := newSite(t)
	s.multiply(n)
	s.run()
	s.push(func(string) { s.must(os.RemoveAll(filepath.Join(s.clone, "items"))) })
	begun := time.Now()
	if warned := s.run(); len(warned) != 21 {
		t.Errorf("%d warnings: %q", len(warned), warned)
	}
	answered := strings.Fields(git(t, s.root, "log", "--format=%ct", "--grep=^Bagpipe-Answers", fmt.Sprintf("--since=%d", begun.Unix())))
	t.Logf("%d items brought back: answered between second %s and %s of the run; with their folders after %s", n+1,
		since(begun, answered[len(answered)-1]), since(begun, answered[0]), time.Since(begun).Round(time.Millisecond))
	s.do(func(e *engine.Engine) {
		s.must(e.Index.Load(context.Background()))
		st, err := e.Ask.Status(context.Background(), ask.Filter{})
		s.must(err)
		if st.Items != n+1 || st.Held != n+1 || len(st.Failures) != 0 {
			t.Errorf("%d items, %d held, %d broken", st.Items, st.Held, len(st.Failures))
		}
	})
	if warned := s.run(); len(warned) != 0 {
		t.Errorf("answered again: %q", warned)
	}
	if out := git(t, s.root, "fsck", "--strict", "--no-dangling"); out != "" {
		t.Error(out)
	}
}

func since(begun time.Time, unix string) string {
	n, _ := strconv.ParseInt(unix, 10, 64)
	return strconv.FormatInt(n-begun.Unix(), 10)
}

// multiply commits n more items like the first.
func (s *site) multiply(n int) {
	s.t.Helper()
	dir := layout.ItemDir(s.item) + "/"
	manifest, execution := git(s.t, s.root, "show", "HEAD:"+dir+layout.ManifestJSON), git(s.t, s.root, "show", "HEAD:"+dir+layout.ExecutionJSON)
	store, err := gitstore.Open(s.root, gitstore.Options{Now: time.Now, Committer: gitstore.Signature{Name: "Bagpipe", Email: "bagpipe@host"}})
	s.must(err)
	files := map[string][]byte{}
	for i := range n {
		var seed [8]byte
		binary.BigEndian.PutUint64(seed[:], uint64(i+1)*0x9e3779b97f4a7c15)
		id, err := layout.NewItemID(bytes.NewReader(seed[:]))
		s.must(err)
		as := func(text string) []byte { return []byte(strings.ReplaceAll(text, string(s.item), string(id))) }
		files[layout.ItemDir(id)+"/"+layout.ManifestJSON] = as(manifest)
		files[layout.ItemDir(id)+"/"+layout.ExecutionJSON] = as(strings.Replace(execution, `"intents": {}`, `"intents": {"01KAGCR0000123456789ABCDEF-b0b0b0b0": {"kind": "hold", "at": "2026-11-20T10:00:00Z", "by": "x"}}`, 1))
		if len(files) == 4000 || i == n-1 {
			_, err := store.Commit(context.Background(), func(gitstore.Reader) (*gitstore.Change, error) {
				return &gitstore.Change{Files: files, Message: "many items\n"}, nil
			})
			s.must(err)
			files = map[string][]byte{}
		}
	}
	s.must(store.Close())
}
