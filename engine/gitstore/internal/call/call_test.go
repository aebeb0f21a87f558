package call

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

func git(t *testing.T, dir string, args ...string) {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-C", dir, "-c", "user.name=Ada", "-c", "user.email=ada@example.org"}, args...)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("git %v: %v: %s", args, err, out)
	}
}

// repositories makes one with a file that cannot be compressed, and an empty one.
func repositories(t *testing.T) (full, empty string) {
	t.Helper()
	dir := t.TempDir()
	full, empty = filepath.Join(dir, "full"), filepath.Join(dir, "empty.git")
	git(t, dir, "init", "-q", "-b", "main", full)
	git(t, dir, "init", "-q", "--bare", "-b", "main", empty)
	noise := make([]byte, 300<<10)
	_, _ = rand.Read(noise)
	if err := os.WriteFile(filepath.Join(full, "noise"), noise, 0o644); err != nil {
		t.Fatal(err)
	}
	git(t, full, "add", "noise")
	git(t, full, "commit", "-qm", "noise")
	return full, empty
}

// serve answers each connection.
func serve(t *testing.T, answer func(net.Conn)) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go answer(c)
		}
	}()
	return l.Addr().String()
}

func TestASilentRemoteIsGivenUp(t *testing.T) {
	_, empty := repositories(t)
	silent := serve(t, func(c net.Conn) { _, _ = io.Copy(io.Discard, c) })
	for _, scheme := range []string{"git://", "http://"} {
		begin := time.Now()
		_, err := Run(t.Context(), time.Second, empty, os.Environ(), io.Discard, "fetch", "--progress", scheme+silent+"/x", "main")
		if is, ok := errors.AsType[*SilentError](err); !ok || is.For != time.Second {
			t.Errorf("%s: %v", scheme, err)
		}
		if took := time.Since(begin); took > 10*time.Second {
			t.Errorf("%s was given up after %v", scheme, took)
		}
	}
}

func hook(t *testing.T, repo, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(repo, "hooks", "pre-receive"), []byte("#!/bin/sh\n"+text), 0o755); err != nil {
		t.Fatal(err)
	}
}

// A hook that hangs is ended with the call, and at once where the caller is interrupted.
func TestAHookThatHangsIsEnded(t *testing.T) {
	full, empty := repositories(t)
	hook(t, empty, "echo begun >&2; echo $$ > ../pid.new; mv ../pid.new ../pid; exec sleep 600\n")
	file := filepath.Join(filepath.Dir(empty), "pid")
	hangs := func(what string, ctx context.Context, silence time.Duration) error {
		said, err := Run(ctx, silence, full, append(os.Environ(), "LC_ALL=C"), io.Discard, "push", "--progress", empty, "main")
		if !strings.Contains(said, "remote: begun") {
			t.Errorf("%s: %q: %v", what, said, err)
		}
		data, _ := os.ReadFile(file)
		pid, errPid := strconv.Atoi(strings.TrimSpace(string(data)))
		for deadline := time.Now().Add(10 * time.Second); errPid != nil || syscall.Kill(pid, 0) == nil && !dead(pid); time.Sleep(10 * time.Millisecond) {
			if errPid != nil || time.Now().After(deadline) {
				t.Errorf("%s: the hook goes on as %s", what, data)
				break
			}
		}
		return errors.Join(err, os.Remove(file))
	}
	if err := hangs("silent", t.Context(), 2*time.Second); !GivenUp(err) || !strings.Contains(err.Error(), "the last was: remote: begun") {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var stopped time.Time
	go func() {
		for {
			if _, err := os.Stat(file); err == nil {
				break
			}
			time.Sleep(10 * time.Millisecond)
		}
		stopped = time.Now()
		cancel()
	}()
	if err := hangs("interrupted", ctx, time.Minute); !errors.Is(err, context.Canceled) || GivenUp(err) {
		t.Error(err)
	}
	if took := time.Since(stopped); took > 5*time.Second {
		t.Errorf("ended %v after the interrupt", took)
	}
}

// dead reports whether a process ended and nobody asked how.
func dead(pid int) bool {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return err != nil || bytes.Contains(stat, []byte(") Z "))
}

// A transfer that takes longer than the silence goes on while bytes come, and its progress is not kept.
func TestASlowTransferGoesOn(t *testing.T) {
	full, empty := repositories(t)
	slow := serve(t, func(c net.Conn) {
		defer c.Close()
		cmd := exec.Command("git", "daemon", "--inetd", "--export-all", "--base-path="+filepath.Dir(full))
		cmd.Stdin = c
		out, err := cmd.StdoutPipe()
		if err != nil || cmd.Start() != nil {
			return
		}
		for buf := make([]byte, 4096); ; time.Sleep(60 * time.Millisecond) {
			n, err := out.Read(buf)
			if _, errWrite := c.Write(buf[:n]); err != nil || errWrite != nil {
				break
			}
		}
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	begin := time.Now()
	said, err := Run(t.Context(), 3*time.Second, empty, append(os.Environ(), "LC_ALL=C"), io.Discard, "-c", "fetch.unpackLimit=1", "fetch", "--progress", "git://"+slow+"/full", "main:main")
	if err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	if took := time.Since(begin); took < 4*time.Second {
		t.Errorf("the transfer took %v: it shows nothing", took)
	}
	if strings.Contains(said, "objects") || !strings.Contains(said, "main") {
		t.Errorf("kept: %q", said)
	}
	git(t, empty, "fsck", "--strict")
}
