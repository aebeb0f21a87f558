package sample

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"bagpipe/layout/disk"
)

// AsNobody runs a test of this program again, as a user to whom modes apply; root alone can ask it.
func AsNobody(t *testing.T) {
	t.Helper()
	const nobody = 65534
	test := t.Name()
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
