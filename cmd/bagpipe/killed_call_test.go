package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
)

// calls are those of the system that change names or make bytes durable, by their kinds, and with each at how many of a
// kind the program is killed once.
var calls = map[string]int{"rename,renameat,renameat2": 5, "fsync,fdatasync,syncfs": 5, "link,linkat": 2, "unlink,unlinkat": 5, "pwrite64": 3, "mkdir,mkdirat": 19, "write": 19}

// eachCall kills the program at each call that changes something on the disk, in turn, each time in a copy of a workspace, and
// has after look at what is left. strace counts each call by itself, and those of each thread: some are passed over.
func eachCall(t *testing.T, base *bench, after func(*bench), args ...string) {
	t.Helper()
	kills := 0
	for kind, step := range calls {
		for n := 1; ; n += soak(step, 1) {
			b := base.copied(t, fmt.Sprintf("killed-%d-%d", kills, n))
			killed := b.killedAt(kind, n, args...)
			if after(b); t.Failed() {
				t.Fatalf("killed at call %d of %s: %v", n, kind, killed)
			}
			b.must(os.RemoveAll(b.top))
			if !killed {
				break
			}
			kills++
		}
	}
	if kills < len(calls) {
		t.Errorf("killed %d times", kills)
	}
}

// killedAt runs the program, and kills it at the n-th of a call of this kind that one of its threads makes. It answers
// false where the program ended before.
func (b *bench) killedAt(kind string, n int, args ...string) bool {
	b.t.Helper()
	code, out := b.injected(kind, fmt.Sprintf("signal=KILL:when=%d", n), args...)
	if code > 0 {
		b.t.Fatalf("at call %d: exit code %d: %s", n, code, out)
	}
	return code < 0
}

// injected runs the program with what strace does to its calls of a kind. The exit code is below 0 where the program was killed.
func (b *bench) injected(kind, what string, args ...string) (code int, out string) {
	b.t.Helper()
	return b.injectedAt("", kind, what, args...)
}

// injectedAt does it to the calls that are about one path; "": to all.
func (b *bench) injectedAt(path, kind, what string, args ...string) (code int, out string) {
	b.t.Helper()
	strace, err := exec.LookPath("strace")
	if err != nil {
		b.t.Skip(err)
	}
	options := []string{"-f", "-qq", "-o", filepath.Join(b.top, "calls"), "-e", "trace=" + kind, "-e", "inject=" + kind + ":" + what}
	if path != "" {
		options = append(options, "-P", path)
	}
	cmd := exec.Command(strace, slices.Concat(options, []string{"bagpipe", "-C", b.dir}, args)...)
	cmd.Env = b.env
	told, err := cmd.CombinedOutput()
	if bytes.Contains(told, []byte("ptrace")) {
		b.t.Skipf("%v: %s", err, told)
	}
	return cmd.ProcessState.ExitCode(), string(told)
}
