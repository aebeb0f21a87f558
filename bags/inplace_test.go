package bags

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"bagpipe/bags/files"
	"bagpipe/bags/finding"

	"golang.org/x/sys/unix"
)

// hostileToMoves has names that a move into data/ could stumble over.
func hostileToMoves() bag {
	return bag{
		"data/inner.txt": "one", "data/data/x": "two", "manifest-sha256.txt": "three", "tagmanifest-sha256.txt": "four",
		"bag-info.txt": "five", "new": "six", "a/b/c.txt": "seven", "line\nend": "eight", "100%": "nine", ".hidden": "ten",
	}
}

func TestCreateInPlaceMovesEverything(t *testing.T) {
	files := hostileToMoves()
	dir := payloadFolder(t, files)
	inode := inodeOf(t, filepath.Join(dir, "a/b/c.txt"))
	c := mustCreateInPlace(t, dir)
	if c.Files != int64(len(files)) || c.Recovered != "" {
		t.Errorf("%+v", c)
	}
	expectBag(t, dir, true, true, "")
	if got := filesOf(t, filepath.Join(dir, "data")); !maps.Equal(got, files) {
		t.Errorf("payload %q", got)
	}
	if inodeOf(t, filepath.Join(dir, "data/a/b/c.txt")) != inode {
		t.Error("a file was copied")
	}
	expectGone(t, filepath.Join(dir, WorkDir))
}

func inodeOf(t *testing.T, p string) uint64 {
	t.Helper()
	var s unix.Stat_t
	if err := unix.Stat(p, &s); err != nil {
		t.Fatal(err)
	}
	return s.Ino
}

func expectGone(t *testing.T, p string) {
	t.Helper()
	if _, err := os.Lstat(p); !os.IsNotExist(err) {
		t.Errorf("%s is still there", p)
	}
}

// A process is killed before each of its changes in turn. What it leaves is the
// folder as it was or a valid bag, or becomes one of them by the next call, which
// says which.
func TestCreateInPlaceKilledAtEveryStep(t *testing.T) {
	files := hostileToMoves()
	seen := map[Outcome]int{}
	for at := 1; ; at++ {
		dir := payloadFolder(t, files)
		killed := runKilled(t, dir, at)
		was, err := Recover(t.Context(), dir)
		if err != nil {
			t.Fatalf("killed before change %d: %v", at, err)
		}
		seen[was]++
		got := filesOf(t, dir)
		isBag := got["bagit.txt"] != "" && got["data/bag-info.txt"] == "five"
		switch {
		case was == Completed && !isBag, was == Undone && isBag:
			t.Fatalf("killed before change %d: said %q, bag %v", at, was, isBag)
		case isBag:
			expectBag(t, dir, true, true, "")
			if p := filesOf(t, filepath.Join(dir, "data")); !maps.Equal(p, files) {
				t.Fatalf("killed before change %d: payload %q", at, p)
			}
		case !maps.Equal(got, files):
			t.Fatalf("killed before change %d: neither as it was nor a bag: %q", at, got)
		}
		expectGone(t, filepath.Join(dir, WorkDir))
		if !killed {
			break
		}
		if at > 200 {
			t.Fatal("the child never ends")
		}
	}
	if seen[Completed] < 5 || seen[Undone] < 3 || seen[""] < 2 {
		t.Errorf("outcomes %v: the sweep does not reach them all", seen)
	}
}

// A killed change that is completed can be killed again while it is completed.
func TestRecoveryCanBeKilledToo(t *testing.T) {
	files := hostileToMoves()
	step := 3
	if testing.Short() {
		step = 9
	}
	for first := 10; first < 24; first += step {
		for second := 1; second < 30; second += step + 1 {
			dir := payloadFolder(t, files)
			if !runKilled(t, dir, first) {
				continue
			}
			runKilled(t, dir, second)
			if _, err := Recover(t.Context(), dir); err != nil {
				t.Fatalf("killed at %d and %d: %v", first, second, err)
			}
			got := filesOf(t, dir)
			if got["bagit.txt"] == "" {
				if !maps.Equal(got, files) {
					t.Fatalf("killed at %d and %d: %q", first, second, got)
				}
				continue
			}
			expectBag(t, dir, true, true, "")
			if p := filesOf(t, filepath.Join(dir, "data")); !maps.Equal(p, files) {
				t.Fatalf("killed at %d and %d: payload %q", first, second, p)
			}
		}
	}
}

// runKilled reports whether the child was killed before it was done.
func runKilled(t *testing.T, dir string, at int) bool {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), fmt.Sprintf("BAGS_KILL_AT=%d", at), "BAGS_KILL_DIR="+dir)
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL {
		return true
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return false
}

func TestInterruptedCreateIsReportedByValidate(t *testing.T) {
	b := goodBag()
	b[WorkDir+"/plan.json"] = "{}"
	r, err := Validate(t.Context(), b.write(t), ValidateOptions{})
	if err != nil || r.Valid || !hasFinding(r, finding.Unfinished, finding.Error) {
		t.Errorf("%+v, %v", r.Findings, err)
	}
}

// A plan may have been written by whoever sent the folder.
func TestHostilePlansMoveNothing(t *testing.T) {
	for _, p := range []string{
		`{"schema":1,"moves":true,"move":["../x"],"put":[],"remove":[]}`,
		`{"schema":1,"moves":false,"put":["../../x"]}`,
		`{"schema":1,"moves":false,"remove":["/etc/hosts"]}`,
		`{"schema":1,"moves":false,"remove":["data/a.txt"]}`,
		`{"schema":1,"moves":false,"put":["data/a.txt"]}`,
		`{"schema":1,"moves":false,"put":[".bagpipe-bag/x"]}`,
		`{"schema":2}`, `[]`, `{`, ``,
	} {
		b := goodBag()
		b[WorkDir+"/plan.json"], b[WorkDir+"/new/x"] = p, "y"
		dir := b.write(t)
		if _, err := Recover(t.Context(), dir); err == nil {
			t.Errorf("%s: was carried out", p)
		}
		if got := filesOf(t, dir); !maps.Equal(got, map[string]string(b)) {
			t.Errorf("%s: changed: %q", p, got)
		}
	}
}

// Payload that stands in the folder of the change is never deleted, even when the
// plan is gone.
func TestMovedPayloadWithoutPlanIsKept(t *testing.T) {
	b := bag{WorkDir + "/data/only-copy.txt": "x", WorkDir + "/new/bagit.txt": "y"}
	dir := b.write(t)
	if _, err := Recover(t.Context(), dir); err == nil || !strings.Contains(err.Error(), "by hand") {
		t.Errorf("error %v", err)
	}
	if got := filesOf(t, dir); got[WorkDir+"/data/only-copy.txt"] != "x" {
		t.Errorf("the payload is gone: %q", got)
	}
}

func TestTwoDoNotChangeOneFolder(t *testing.T) {
	dir := payloadFolder(t, bag{"a": "x"})
	r, _, err := openRewrite(dir, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := CreateInPlace(t.Context(), CreateOptions{Payload: dir}); !errors.Is(err, ErrBusy) {
		t.Errorf("error %v, want ErrBusy", err)
	}
	if err := r.close(nil); err != nil {
		t.Fatal(err)
	}
	mustCreateInPlace(t, dir)
}

func TestContentThatChangesMeanwhileMovesNothing(t *testing.T) {
	for about, change := range map[string]func(dir string) error{
		"changed":     func(dir string) error { return os.WriteFile(filepath.Join(dir, "a"), []byte("other"), 0o644) },
		"appeared":    func(dir string) error { return os.WriteFile(filepath.Join(dir, "new"), nil, 0o644) },
		"disappeared": func(dir string) error { return os.Remove(filepath.Join(dir, "b")) },
	} {
		dir := payloadFolder(t, bag{"a": "x", "b": "y"})
		n := 0
		_, err := CreateInPlace(t.Context(), CreateOptions{Payload: dir, Progress: func(p files.Progress) {
			if p.Files == p.TotalFiles && n == 0 {
				n++
				if err := change(dir); err != nil {
					t.Error(err)
				}
			}
		}})
		wantRuleOnly(t, about, err, files.RuleFixity)
		expectGone(t, filepath.Join(dir, "data"))
		expectGone(t, filepath.Join(dir, WorkDir))
	}
}

func wantRuleOnly(t *testing.T, about string, err error, rule files.Rule) {
	t.Helper()
	var e *files.Error
	if !errors.As(err, &e) || e.Rule != rule {
		t.Errorf("%s: error %v, want %s", about, err, rule)
	}
}

func TestCreateInPlaceReportsNames(t *testing.T) {
	dir := payloadFolder(t, bag{"A.txt": "x", "a.TXT": "y", "caf\u00e9": "z", "cafe\u0301": "z", "con.txt": "w"})
	c := mustCreateInPlace(t, dir)
	count := map[finding.Code]int{}
	for _, f := range c.Findings {
		count[f.Code]++
	}
	if count[finding.Collision] != 2 || count[finding.WindowsName] != 1 {
		t.Errorf("findings %+v", c.Findings)
	}
	expectBag(t, dir, true, true, "")
}
