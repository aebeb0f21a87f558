package engine_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"bagpipe/engine"
	"bagpipe/engine/intake"
)

// A disk that is full at some write of a repair: what is damaged stays where nothing replaced it,
// no object is said to be found nowhere that a copy has, and once there is room it is mended.
func TestFullDiskWhileRepairing(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	base := t.TempDir()
	small := filepath.Join(base, "room")
	mountRoom(t, small, "16m")
	s := &sites{T: t, ctx: ctx, dir: base}
	root, copied := filepath.Join(small, "w"), filepath.Join(base, "copy.git")
	s.must(engine.Init(ctx, root, s.options()))
	s.must(os.WriteFile(filepath.Join(root, "bagpipe.yaml"), fmt.Appendf(nil, fullDiskSettings, 0.0001), 0o644))
	s.must(os.WriteFile(filepath.Join(root, "workflows/plain.yaml"), []byte(plainWorkflow), 0o644))
	e := s.open(root)
	for i := range 6 {
		drop := filepath.Join(base, "letter.txt")
		s.must(os.WriteFile(drop, fmt.Appendf(nil, "letter %d\n", i), 0o644))
		_, err := e.Intake.Add(ctx, drop, intake.AddOptions{Label: fmt.Sprint("letter ", i)})
		s.must(err)
	}
	s.must(e.Close())
	s.git("", "clone", "-q", "--mirror", root, copied)
	objects := filepath.Join(root, ".git", "objects")
	spoil := func(path string, at int) {
		data, err := os.ReadFile(path)
		s.must(err)
		data[at%len(data)] ^= 0x55
		s.must(os.Chmod(path, 0o644))
		s.must(os.WriteFile(path, data, 0o644))
	}
	sound := func() bool {
		out, err := exec.Command("git", "-C", root, "fsck", "--strict", "--no-dangling", "--no-progress").CombinedOutput()
		return err == nil && len(out) == 0
	}
	refused, mended := 0, 0
	for i := 0; i < 60 && mended == 0; i++ {
		packs, err := filepath.Glob(filepath.Join(objects, "pack", "*.pack"))
		s.must(err)
		spoil(packs[i%len(packs)], 40+i)
		cmd := exec.Command("git", "hash-object", "-w", "--stdin") // a loose one, which the copy alone has besides
		cmd.Dir, cmd.Stdin = root, strings.NewReader(fmt.Sprint("loose ", i))
		name, err := cmd.Output()
		s.must(err)
		loose := filepath.Join(objects, string(name[:2]), strings.TrimSpace(string(name[2:])))
		put := exec.Command("git", "hash-object", "-w", "--stdin")
		put.Dir, put.Stdin = copied, strings.NewReader(fmt.Sprint("loose ", i))
		s.must(put.Run())
		s.git(copied, "update-ref", fmt.Sprint("refs/kept/", i), strings.TrimSpace(string(name)))
		spoil(loose, 8)

		filler := fill(t, small, i*2<<12)
		m, err := engine.Repair(ctx, root, []string{copied}, s.options())
		s.must(os.Remove(filler))
		if err == nil && len(m.Missing) == 0 {
			mended++
		} else if refused++; err == nil {
			t.Fatalf("round %d: the copy has %q; silent: %q", i, m.Missing, m.Silent)
		}
		if _, gone := os.Lstat(loose); err != nil && gone != nil {
			t.Fatalf("round %d: a damaged object went, and none is in its place: %v", i, err)
		}
		if _, err := os.Lstat(packs[i%len(packs)]); mended == 0 && err != nil {
			t.Fatalf("round %d: a damaged pack went: %v", i, err)
		}
		if left, _ := filepath.Glob(filepath.Join(root, ".git", "mending-*")); len(left) > 0 {
			t.Fatalf("round %d left %q", i, left)
		}
		m, err = engine.Repair(ctx, root, []string{copied}, s.options())
		if err != nil || len(m.Missing) > 0 {
			t.Fatalf("round %d, with room: %+v, %v", i, m, err)
		}
		if !sound() {
			t.Fatalf("round %d: the repository is not sound", i)
		}
	}
	if refused < 3 || mended == 0 {
		t.Errorf("%d repairs found no room, and %d did: some should", refused, mended)
	}
}
