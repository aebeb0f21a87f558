package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/tidwall/gjson"
)

// A service's log has every end with time and level, and goes on in a new file when the old one
// was moved away.
func TestALogIsKeptAndRotated(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	log := filepath.Join(b.top, "log")
	service := b.start("run", "--watch", "--log", log, "--log-format", "json")
	b.await("the start in the log", func() bool { return len(logged(b, "log", "started")) == 1 })
	started := logged(b, "log", "started")[0]
	if started.Get("version").String() == "" || started.Get("workspace").String() == "" || len(started.Get("commit").String()) != 40 ||
		!strings.HasSuffix(started.Get("time").String(), "Z") {
		t.Errorf("%s", started)
	}
	b.must(os.Rename(log, log+".1"))
	b.must(service.cmd.Process.Signal(syscall.SIGHUP))
	b.await("the new log", func() bool { return b.exists("log") })
	b.workflow("w", "  - name: fails\n    command: ['false']\n    retries: 0\n")
	b.addItems("w", 1)
	b.await("the step's end in the log", func() bool { return len(logged(b, "log", "step ended")) > 0 })
	if end := logged(b, "log", "step ended")[0]; end.Get("level").String() != "ERROR" || end.Get("step").String() != "fails" || end.Get("status").String() != "failed" {
		t.Errorf("%s", end)
	}
	b.must(service.cmd.Process.Signal(syscall.SIGTERM))
	service.code(0)
	if n := len(logged(b, "log", "ended")); n != 1 {
		t.Errorf("the end stands %d times in the log", n)
	}
}

// logged gives the records of a log, by message.
func logged(b *bench, name, message string) (found []gjson.Result) {
	data, err := os.ReadFile(filepath.Join(b.top, name))
	if err != nil {
		return nil
	}
	gjson.ForEachLine(string(data), func(r gjson.Result) bool {
		if r.Get("msg").String() == message {
			found = append(found, r)
		}
		return true
	})
	return found
}
