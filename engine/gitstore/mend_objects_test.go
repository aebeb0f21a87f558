package gitstore_test

import (
	"context"
	"fmt"
	"math/rand"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"bagpipe/engine/gitstore"
)

// A byte is flipped in each of fifty packs: a repair from a copy makes the repository whole, and
// without one leaves it as it is.
func TestFiftyDamagedPacksAreMended(t *testing.T) {
	ctx := context.Background()
	root := filepath.Join(t.TempDir(), "w")
	o := gitstore.Options{Now: time.Now}
	if err := gitstore.Init(ctx, root, o, map[string][]byte{"a": []byte("a\n")}, "init\n", gitstore.Signature{}); err != nil {
		t.Fatal(err)
	}
	s, err := gitstore.Open(root, o)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 49 {
		_, err := s.Commit(ctx, func(gitstore.Reader) (*gitstore.Change, error) {
			return &gitstore.Change{Files: map[string][]byte{fmt.Sprintf("dir/%d/file", i%7): fmt.Appendf(nil, "content %d\n", i)}, Message: fmt.Sprintf("commit %d\n", i)}, nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	git := filepath.Join(root, ".git")
	say := func(args ...string) (string, error) {
		out, err := exec.Command("git", append([]string{"--git-dir=" + git}, args...)...).CombinedOutput()
		return string(out), err
	}
	clone := filepath.Join(t.TempDir(), "copy.git")
	if out, err := exec.Command("git", "clone", "-q", "--mirror", "--no-hardlinks", root, clone).CombinedOutput(); err != nil {
		t.Fatal(string(out))
	}
	packs, err := filepath.Glob(filepath.Join(git, "objects/pack/*.pack"))
	if err != nil || len(packs) < 40 {
		t.Fatalf("%d packs, %v", len(packs), err)
	}
	r := rand.New(rand.NewSource(1))
	for _, p := range packs {
		data, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		data[r.Intn(len(data))] ^= byte(1 + r.Intn(255))
		if err := os.Chmod(p, 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if m, err := gitstore.MendObjects(ctx, root, nil, nil); err != nil || len(m.Missing) == 0 {
		t.Fatalf("without a copy: %+v, %v", m, err)
	}
	if left, err := filepath.Glob(filepath.Join(git, "objects/pack/*.pack")); err != nil || len(left) < len(packs) {
		t.Fatalf("a damaged pack went though something is missing: %d of %d, %v", len(left), len(packs), err)
	}
	m, err := gitstore.MendObjects(ctx, root, []string{clone}, nil)
	if err != nil || len(m.Missing) > 0 || len(m.Packs) != len(packs) {
		t.Fatalf("mended %+v, %v", m, err)
	}
	if out, err := say("fsck", "--strict", "--no-dangling", "--no-progress"); err != nil || out != "" {
		t.Errorf("fsck: %v\n%s", err, out)
	}
	if m, err := gitstore.MendObjects(ctx, root, nil, nil); err != nil || len(m.Packs)+m.Loose+m.Found+len(m.Missing) > 0 {
		t.Errorf("again: %+v, %v", m, err)
	}
}
