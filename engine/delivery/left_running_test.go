package delivery

import (
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestWhatAProgramLeftRunning: what the program of a killed engine started has ended before the target is asked; what began a session of
// its own goes on, and so does what runs for others.
func TestWhatAProgramLeftRunning(t *testing.T) {
	c := commandOutlet{argv: []string{"sh", "-c", "exit 77", "--"}, root: t.TempDir(), timeout: time.Minute}
	left := func(own bool, key string) *exec.Cmd {
		cmd := exec.Command("sh", "-c", "sleep 1000 & wait")
		cmd.Env = append(os.Environ(), append(c.known(parcel{Key: key}), "BAGPIPE_ACT=put")...)
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: !own, Setsid: own}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // it may have ended
			_ = cmd.Wait()
		})
		for deadline := time.Now().Add(10 * time.Second); !hasAll(cmd.Process.Pid, c.known(parcel{Key: key})); { // it is there once it is executed
			if time.Now().After(deadline) {
				t.Fatal("a program that does not start")
			}
		}
		return cmd
	}
	mine, own, other := left(false, "a-v1-portal"), left(true, "a-v1-portal"), left(false, "b-v1-portal")
	if _, has, err := c.ask(t.Context(), parcel{Key: "a-v1-portal"}); has || err != nil {
		t.Errorf("%v, %v", has, err)
	}
	overdue := time.AfterFunc(10*time.Second, func() { _ = syscall.Kill(-mine.Process.Pid, syscall.SIGTERM) }) // it has been killed
	defer overdue.Stop()
	if err := mine.Wait(); err == nil || mine.ProcessState.Sys().(syscall.WaitStatus).Signal() != unix.SIGKILL {
		t.Errorf("what was left: %v", mine.ProcessState)
	}
	for name, cmd := range map[string]*exec.Cmd{"a session of its own": own, "another delivery": other} {
		var info unix.Siginfo
		if err := unix.Waitid(unix.P_PID, cmd.Process.Pid, &info, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil); err != nil || info.Signo != 0 {
			t.Errorf("%s has ended: %v", name, err)
		}
	}
}
