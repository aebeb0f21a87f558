package bags

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"syscall"
	"testing"

	"bagpipe/bags/archive"
	"bagpipe/bags/files"

	"go.uber.org/goleak"
)

// TestMain lets this test binary be the reader of 7z and rar archives, and a
// process that is killed while it makes a bag.
func TestMain(m *testing.M) {
	if code, ok := archive.Reader(); ok {
		os.Exit(code)
	}
	if at, err := strconv.Atoi(os.Getenv("BAGS_KILL_AT")); err == nil {
		os.Exit(killedChild(at))
	}
	goleak.VerifyTestMain(m)
}

// killedChild makes a bag in place, in a process that kills itself just before its
// at-th change of the file system.
func killedChild(at int) int {
	n := 0
	_, err := createInPlace(context.Background(), CreateOptions{
		Payload: os.Getenv("BAGS_KILL_DIR"), Date: bagDate, Algorithms: []files.Algorithm{files.SHA256},
	}, func() {
		if n++; n == at {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}
