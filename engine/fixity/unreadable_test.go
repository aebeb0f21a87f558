package fixity_test

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"bagpipe/engine/fixity"
	"bagpipe/layout"
	"bagpipe/layout/disk"
)

// A file that is not given is neither changed nor missing, and is on its item's record. Root may read all, so as root
// this test runs itself again as nobody.
func TestACopyThatCannotBeRead(t *testing.T) {
	if os.Getuid() == 0 {
		asNobody(t, "TestACopyThatCannotBeRead")
		return
	}
	b := newBench(t, 2)
	sources, err := filepath.Glob(filepath.Join(b.dir, "ws", layout.ItemDir(b.item[0]), "source/*/*"))
	if b.must(err); len(sources) != 1 {
		t.Fatal(sources)
	}
	b.must(os.Chmod(sources[0], 0))
	s, found, err := b.sweep(time.Hour, fixity.Sweep{})
	b.must(err)
	if how := found[b.item[0]].Copies[fixity.Source].How; s.Unreadable != 1 || s.OK != 1 || s.Changed+s.Missing > 0 || how != fixity.HowUnreadable {
		t.Errorf("the source is %q: %+v", how, s)
	}
	_, rec, err := b.e.Ledger.ReadTip(b.item[0], "")
	if b.must(err); len(rec.Execution.Holds()) != 1 {
		t.Error("its item is not held")
	}
	b.must(os.Chmod(sources[0], 0o444))
	if s, _, err = b.sweep(time.Hour, fixity.Sweep{}); err != nil || s.OK != 2 {
		t.Errorf("once it can be read again: %+v, %v", s, err)
	}
}

// asNobody runs a test of this program again, as a user to whom modes apply.
func asNobody(t *testing.T, test string) {
	t.Helper()
	const nobody = 65534
	dir, err := os.MkdirTemp("", "bp-nobody")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { disk.RemoveTree(dir) }) //nolint:errcheck // of a test
	program := filepath.Join(dir, "test")
	if err := errors.Join(os.Chmod(dir, 0o755), copyProgram(program), os.Chown(dir, nobody, nobody)); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, "-test.run=^"+test+"$", "-test.v")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "TMPDIR="+dir, "HOME="+dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS: "+test) {
		t.Errorf("as nobody: %v\n%s", err, out)
	}
}

func copyProgram(to string) (err error) {
	in, err := os.Open(os.Args[0])
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY, 0o755)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	_, err = io.Copy(out, in)
	return err
}
