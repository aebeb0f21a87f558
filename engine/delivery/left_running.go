package delivery

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"time"

	"bagpipe/steps/target"

	"golang.org/x/sys/unix"
)

// The rules are: a target's program ends with its engine, but what it started may not, where the engine was killed. It is known by the
// variables that the program was given, and is ended before the target is asked what it holds: it might go on sending. What the
// program started in a session of its own is meant to go on.

// endLeft ends what was left running with these variables (NAME=VALUE), and returns once it has ended.
func endLeft(ctx context.Context, variables ...string) error {
	for {
		found := false
		entries, err := os.ReadDir("/proc")
		if err != nil {
			return err
		}
		for _, e := range entries {
			pid, err := strconv.Atoi(e.Name())
			if err != nil || pid == os.Getpid() || !hasAll(pid, variables) || apart(pid, variables) {
				continue
			}
			if found = true; ctx.Err() != nil {
				return ctx.Err()
			}
			if !end(pid, variables) {
				return &target.Down{Err: fmt.Errorf("process %d, which an engine that is gone left at work, cannot be ended", pid)}
			}
		}
		if !found { // what it started meanwhile, too
			return nil
		}
	}
}

// apart reports whether a process runs in a session that was begun with these variables.
func apart(pid int, variables []string) bool {
	session, err := unix.Getsid(pid)
	return err == nil && session != 0 && hasAll(session, variables)
}

// hasAll reports whether a process has the variables; none that has ended, or is another account's, is known to.
func hasAll(pid int, variables []string) bool {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	if err != nil {
		return false
	}
	lines := bytes.Split(data, []byte{0})
	return !slices.ContainsFunc(variables, func(v string) bool {
		return !slices.ContainsFunc(lines, func(line []byte) bool { return string(line) == v })
	})
}

// endGrace is how long a killed process is waited for.
const endGrace = 5 * time.Second

// end kills a process, and reports whether it has ended. Its identifier may be another's by now: then that one is left alone.
func end(pid int, variables []string) bool {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return err == unix.ESRCH
	}
	defer unix.Close(fd) // nothing can be lost
	if !hasAll(pid, variables) {
		return true
	}
	if err := unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0); err != nil {
		return err == unix.ESRCH
	}
	n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(endGrace.Milliseconds()))
	return err == nil && n == 1
}
