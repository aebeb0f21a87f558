package main

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"bagpipe/cmd/bagpipe/internal/screen"
)

// Who may not write to a workspace can look at everything, is told so, and can
// change nothing.
func TestLookingWithoutTheRightToWrite(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.drop("zip")
	b.ok("run")
	before := b.git("rev-parse", "main")
	credential := b.withoutWriting()
	as := func(code int, args ...string) string {
		t.Helper()
		p := &process{b: b, cmd: exec.Command("bagpipe", append([]string{"-C", b.dir}, args...)...), end: make(chan struct{})}
		p.cmd.Env, p.cmd.Stdout, p.cmd.Stderr = b.env, &p.out, &p.out
		p.cmd.SysProcAttr = &syscall.SysProcAttr{Credential: credential}
		b.must(p.cmd.Start())
		p.err = p.cmd.Wait()
		close(p.end)
		return p.code(code)
	}
	label := b.labels("completed")[0]
	for _, look := range []string{"status", "items", "queue", "failures", "milestones", "workflow list", "show " + label, "log " + label} {
		out := as(0, strings.Fields(look)...)
		if !strings.HasPrefix(out, "read-only: this workspace belongs to ") && os.Getuid() == 0 {
			t.Errorf("%s: %s", look, out)
		}
	}
	for _, act := range []string{"run", "hold " + label + " -m x", "add " + b.dir + "/bagpipe.yaml"} {
		as(1, strings.Fields(act)...)
	}
	if now := b.git("rev-parse", "main"); now != before {
		t.Errorf("the branch moved from %s to %s", before, now)
	}
}

// On a full disk everything can be looked at, too, though nothing can be remembered.
func TestLookingOnAFullDisk(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size=8m", "bagpipe-test", b.dir).CombinedOutput(); err != nil {
		t.Skipf("no right to mount: %s", out)
	}
	t.Cleanup(func() {
		if out, err := exec.Command("umount", b.dir).CombinedOutput(); err != nil {
			t.Errorf("umount: %s", out)
		}
	})
	b.ok("init", b.dir)
	b.must(hasten(b.dir))
	b.must(edit(filepath.Join(b.dir, "bagpipe.yaml"), "free: 256MiB", "free: 1"))
	b.write("page.txt", "a page")
	b.ok("add", filepath.Join(b.top, "page.txt"))
	b.start("run").code(int(screen.ExitSomeFailed)) // the deposit waits for room in the store
	b.must(os.RemoveAll(filepath.Join(b.dir, ".bagpipe")))
	ballast := filepath.Join(b.dir, "ballast")
	if err := os.WriteFile(ballast, make([]byte, 16<<20), 0o666); err == nil {
		t.Fatal("the disk is not full")
	}
	for _, look := range []string{"status", "items", "log"} {
		if out := b.ok(look); !strings.Contains(out, "no space left on device") {
			t.Errorf("%s: %s", look, out)
		}
	}
	b.start("run").code(1)
	service := b.start("run", "--watch")
	time.Sleep(3 * time.Second) // it looks for room once meanwhile, and does not end
	b.must(os.Remove(ballast))
	b.await("that it goes on", func() bool { return strings.Contains(b.ok("status"), "1 engine running") })
	b.must(service.cmd.Process.Signal(syscall.SIGTERM))
	service.code(0)
	for _, said := range []string{"the workspace cannot be written to", "it is gone on with when there is room"} {
		if n := strings.Count(service.out.String(), said); n != 1 {
			t.Errorf("%q is said %d times: %s", said, n, service.out.String())
		}
	}
	b.start("run").code(int(screen.ExitSomeFailed)) // the deposit waits for room in the store
}

// withoutWriting takes the right to write the workspace away from who runs with
// the credential it gives: from root only another user has none.
func (b *bench) withoutWriting() *syscall.Credential {
	b.t.Helper()
	if os.Getuid() != 0 {
		mode := func(writable fs.FileMode) error {
			return filepath.WalkDir(b.dir, func(path string, d fs.DirEntry, err error) error {
				if err != nil || d.Type()&fs.ModeSymlink != 0 {
					return err
				}
				info, err := d.Info()
				if err != nil {
					return err
				}
				return os.Chmod(path, info.Mode()&^0o222|writable)
			})
		}
		b.must(mode(0))
		b.t.Cleanup(func() { b.must(mode(0o200)) })
		return nil
	}
	program, err := exec.LookPath("bagpipe")
	b.must(err)
	real, err := filepath.EvalSymlinks(program)
	b.must(err)
	for _, path := range []string{b.dir, program, real} {
		b.letThrough(filepath.Dir(path))
	}
	const nobody = 65534
	return &syscall.Credential{Uid: nobody, Gid: uint32(os.Getgid())} // readers are in the service's group
}

// letThrough gives everybody the way to a folder, by the modes of the tests' own
// temporary folders alone.
func (b *bench) letThrough(dir string) {
	b.t.Helper()
	for ; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		info, err := os.Stat(dir)
		b.must(err)
		switch {
		case info.Mode()&0o005 == 0o005:
		case strings.HasPrefix(dir, os.TempDir()+"/"):
			b.must(os.Chmod(dir, info.Mode()|0o055))
		default:
			b.t.Skipf("another user cannot reach %s", dir)
		}
	}
}
