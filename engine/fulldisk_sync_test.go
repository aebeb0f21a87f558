package engine_test

import (
	"context"
	"fmt"
	"math/rand"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"bagpipe/engine"
	"bagpipe/engine/act"
	"bagpipe/engine/audit"
	"bagpipe/engine/claim"
	"bagpipe/engine/gitstore"
	"bagpipe/engine/intake"
	"bagpipe/engine/sync"
	"bagpipe/layout"
	"bagpipe/steps"
)

// sites are two workspaces and the repository through which they sync.
type sites struct {
	*testing.T
	ctx        context.Context
	dir, hub   string
	lab, field *engine.Engine
	items      []layout.ItemID
	n          int64
}

// twoSites makes the workspace field in a folder of its own, which may be a small file system.
func twoSites(t *testing.T, field, hub string) *sites {
	ctx, cancel := context.WithTimeout(context.Background(), 4*time.Minute)
	t.Cleanup(cancel)
	s := &sites{T: t, ctx: ctx, dir: t.TempDir(), hub: hub}
	s.git("", "init", "-q", "--bare", "-b", "main", hub)
	lab := filepath.Join(s.dir, "lab")
	s.must(engine.Init(ctx, lab, s.options()))
	s.must(os.WriteFile(filepath.Join(lab, "bagpipe.yaml"), fmt.Appendf(nil, fullDiskSettings, 0.0001), 0o644))
	s.must(os.WriteFile(filepath.Join(lab, "workflows/plain.yaml"), []byte(plainWorkflow), 0o644))
	s.must(gitstore.AddRemote(ctx, lab, "origin", hub))
	s.lab = s.open(lab)
	s.must(sync.New(s.lab.Ledger, s.lab.Guard).Name(ctx, "lab"))
	s.must(s.lab.Close())
	s.lab = s.open(lab)
	for i := range 4 {
		drop := filepath.Join(s.dir, "letter.txt")
		s.must(os.WriteFile(drop, fmt.Appendf(nil, "letter %d\n", i), 0o644))
		got, err := s.lab.Intake.Add(ctx, drop, intake.AddOptions{Label: fmt.Sprint("letter ", i)})
		s.must(err)
		s.items = append(s.items, got.Item)
	}
	s.must(s.sync(s.lab))
	s.must(engine.Clone(ctx, hub, field, "field", s.options()))
	s.field = s.open(field)
	t.Cleanup(func() {
		s.must(s.lab.Close())
		s.must(s.field.Close())
	})
	return s
}

func (s *sites) options() engine.Options {
	s.n++
	return engine.Options{Now: time.Now, Random: rand.New(rand.NewSource(s.n)), Robots: steps.Builtins(),
		Person: gitstore.Signature{Name: "Ada", Email: "ada@example.org"}, Host: claim.Host{Name: "host", BootID: "b", PID: os.Getpid()}}
}

func (s *sites) open(root string) *engine.Engine {
	s.Helper()
	e, err := engine.Open(s.ctx, root, s.options())
	s.must(err)
	return e
}

func (s *sites) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

func (s *sites) git(dir string, args ...string) string {
	s.Helper()
	cmd := exec.CommandContext(s.ctx, "git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_AUTHOR_NAME=Eve", "GIT_AUTHOR_EMAIL=eve@example.org", "GIT_COMMITTER_NAME=Eve", "GIT_COMMITTER_EMAIL=eve@example.org")
	out, err := cmd.CombinedOutput()
	if err != nil {
		s.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

func (s *sites) sync(e *engine.Engine) error {
	_, err := sync.New(e.Ledger, e.Guard).Sync(s.ctx, true)
	return err
}

// label has a person give an item another label, and push that to a repository as for/NAME.
func (s *sites) label(to string, id layout.ItemID, label string) {
	s.Helper()
	clone := filepath.Join(s.dir, "clone-"+label)
	s.git("", "clone", "-q", s.hub, clone)
	at := filepath.Join(clone, filepath.FromSlash(layout.ItemDir(id)), layout.ManifestJSON)
	data, err := os.ReadFile(at)
	s.must(err)
	m, err := layout.DecodeManifest(data)
	s.must(err)
	s.must(os.WriteFile(at, []byte(strings.Replace(string(data), fmt.Sprintf(`"label": %q`, m.Label), fmt.Sprintf(`"label": %q`, label), 1)), 0o644))
	s.git(clone, "commit", "-qam", "label")
	s.git(clone, "-c", "core.hooksPath=none", "push", "-q", to, "HEAD:refs/heads/for/"+label)
	s.must(os.RemoveAll(clone))
}

// notes is how many notes an item has, and its label, at the tip of a workspace or of the hub.
func (s *sites) notes(root string, id layout.ItemID) (n int, label string) {
	s.Helper()
	dir := "main:" + layout.ItemDir(id) + "/"
	m, err := layout.DecodeManifest([]byte(s.git(root, "show", dir+layout.ManifestJSON)))
	s.must(err)
	return strings.Count(s.git(root, "show", dir+layout.ExecutionJSON), `"kind": "note"`), m.Label
}

// A disk that is full at some write of a sync, of this workspace or of the hub, or as a branch
// for/NAME is joined: what was acknowledged stands, and once there is room all is joined.
func TestFullDiskWhileSyncing(t *testing.T) {
	for small, pages := range map[string]int{"field": 3, "hub": 6} { // more room with each round
		t.Run(small, func(t *testing.T) {
			base := t.TempDir()
			room := filepath.Join(base, "room")
			mountRoom(t, room, "24m")
			field, hub := filepath.Join(base, "field"), filepath.Join(base, "hub.git")
			if small == "field" {
				field = filepath.Join(room, "field")
			} else {
				hub = filepath.Join(room, "hub.git")
			}
			s := twoSites(t, field, hub)
			const rounds = 40
			refused, done := 0, 0
			for i := 0; i < rounds && done == 0; i++ {
				at := s.items[i%len(s.items)]
				s.must(act.Note(s.ctx, s.lab.Act, at, fmt.Sprint("lab ", i)))
				s.must(s.sync(s.lab))
				label := fmt.Sprint("pushed-", i)
				s.label(s.hub, at, label)
				s.must(act.Note(s.ctx, s.field.Act, at, fmt.Sprint("field ", i)))
				filler := fill(t, room, i*pages<<12)
				err := s.sync(s.field)
				if err == nil {
					done++
				} else {
					refused++
				}
				for _, pattern := range []string{"objects/pack/tmp_*", "objects/??/tmp_obj_*", "fast_import_crash_*"} {
					if left, _ := filepath.Glob(filepath.Join(field, ".git", pattern)); len(left) > 0 {
						t.Fatalf("round %d left %q after %v", i, left, err)
					}
				}
				s.must(os.Remove(filler))
				s.must(s.field.Ledger.Store.CaughtUp(s.ctx))
				s.must(s.sync(s.field))
				s.must(s.sync(s.lab))
				for _, root := range []string{s.lab.Root(), field, hub} {
					n, is := s.notes(root, at)
					if want := 2 * (i/len(s.items) + 1); n != want {
						t.Fatalf("round %d: %s has %d notes of %d", i, filepath.Base(root), n, want)
					}
					if is != label {
						t.Fatalf("round %d: %s has the label %q", i, filepath.Base(root), is)
					}
				}
				if a, b := s.git(field, "rev-parse", "main"), s.git(s.lab.Root(), "rev-parse", "main"); a != b {
					t.Fatalf("round %d: the sites have not come to rest", i)
				}
				if left := s.git(hub, "for-each-ref", "refs/heads/for/"); left != "" {
					t.Fatalf("round %d: left at the hub: %s", i, left)
				}
			}
			t.Logf("%d syncs found no room, %d did", refused, done)
			if refused < 2 || done == 0 {
				t.Errorf("%d syncs found no room, and %d did: some should", refused, done)
			}
			for _, root := range []string{field, hub} {
				if out := s.git(root, "fsck", "--strict", "--no-dangling", "--no-progress"); out != "" {
					t.Errorf("git fsck of %s:\n%s", root, out)
				}
			}
			report, err := s.audit(s.field)
			s.must(err)
			if report.Findings > 0 {
				t.Errorf("%d findings", report.Findings)
			}
		})
	}
}

func (s *sites) audit(e *engine.Engine) (audit.Report, error) {
	return audit.New(e.Ledger, e.Guard).Run(s.ctx, audit.Options{}, func(f audit.Finding) { s.Errorf("%+v", f) })
}
