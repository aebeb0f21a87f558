package confined

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime/debug"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// slack is the memory of a Go process beside its decoder's: its heap grows by 64 MiB
// at a time, and all of it counts from the first byte.
const slack = 256 << 20

// Limit bounds what this process may do. RLIMIT_DATA counts what is written to, and not
// the address space that Go's runtime reserves; a file may not be written at all.
func Limit(memory int64) error {
	data := uint64(memory + slack)
	for _, l := range []struct {
		what int
		max  uint64
	}{{unix.RLIMIT_DATA, data}, {unix.RLIMIT_FSIZE, 0}, {unix.RLIMIT_CORE, 0}} {
		if err := unix.Setrlimit(l.what, &unix.Rlimit{Cur: l.max, Max: l.max}); err != nil {
			return fmt.Errorf("limit the process: %w", err)
		}
	}
	debug.SetMemoryLimit(memory)
	return unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
}

// Command is this program again, with variable=value as its environment and the files open
// from descriptor 3 on. The Tail has what the process said on its standard error.
func Command(ctx context.Context, variable, value string, files ...*os.File) (*exec.Cmd, *Tail) {
	said := &Tail{}
	cmd := exec.CommandContext(ctx, "/proc/self/exe")
	cmd.Args = []string{os.Args[0]}
	cmd.Env = []string{variable + "=" + value, "GOTRACEBACK=none"}
	cmd.Dir = "/"
	cmd.Stderr = said
	cmd.ExtraFiles = files
	return cmd, said
}

// Exhausted reports whether the last words of a process say that it had no memory left.
func Exhausted(text string) bool {
	for _, sign := range []string{"out of memory", "cannot allocate memory", "cannot map pages", "failed to allocate",
		"SIGSEGV: segmentation violation", "failed to create new OS thread", "pthread_create failed"} { // of the runtime itself, which had no memory for its own
		if strings.Contains(text, sign) {
			return true
		}
	}
	return false
}

// Tail keeps the first words that a process said.
type Tail struct {
	mu   sync.Mutex // guards kept
	kept []byte
}

const tailBytes = 2 << 10

// Write keeps the first bytes, and drops the rest.
func (t *Tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kept = append(t.kept, p[:min(len(p), max(tailBytes-len(t.kept), 0))]...)
	return len(p), nil
}

// String is the first line, and the cause that a Go program states in the next.
func (t *Tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	first, rest, _ := strings.Cut(string(t.kept), "\n")
	if cause, ok := strings.CutPrefix(strings.TrimSpace(rest), "fatal error: "); ok {
		cause, _, _ = strings.Cut(cause, "\n")
		first += ": " + cause
	}
	return strings.TrimSpace(first)
}
