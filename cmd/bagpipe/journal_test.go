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

// Commands of every kind log where they are told to: also those that stay, which go on in a new file once
// the old one was moved away, and those that fail.
func TestEveryCommandKeepsALog(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	log := filepath.Join(b.top, "log")
	to := []string{"--log", log, "--log-format", "json"}
	b.write("in/one", "x")
	ended := func(command string, code int) func() bool {
		return func() bool {
			for _, r := range logged(b, "log", "command ended") {
				if r.Get("command").String() == command && r.Get("code").Int() == int64(code) {
					return true
				}
			}
			return false
		}
	}
	for command, args := range map[string][]string{
		"add <path>": {"add", filepath.Join(b.top, "in/one")}, "status": {"status"}, "items": {"items"}, "fixity run": {"fixity", "run"},
		"schedule list": {"schedule", "list"}, "collection list": {"collection", "list"}, "rules list": {"rules", "list"},
	} {
		if b.ok(append(args, to...)...); !ended(command, 0)() {
			t.Errorf("%s is not in its log", command)
		}
	}
	b.ok(append(to, "note", "one", "-m", "not-for-the-log")...) // before the command, too
	if !ended("note <item>", 0)() {
		t.Error("note is not in its log")
	}
	b.start(append([]string{"why", "nothing"}, to...)...).code(1)
	if !ended("why <item>", 1)() {
		t.Error("a command that failed is not in its log")
	}
	for _, args := range [][]string{{"serve", "--listen", "127.0.0.1:0"}, {"run", "--watch"}} {
		service := b.start(append(args, to...)...)
		b.await("the start in the log", func() bool { return len(logged(b, "log", "started")) == 1 })
		b.must(os.Rename(log, log+".1"))
		b.must(service.cmd.Process.Signal(syscall.SIGHUP))
		b.await("the new log", func() bool { return b.exists("log") })
		b.must(service.cmd.Process.Signal(syscall.SIGTERM))
		service.code(0)
		if !ended(args[0], 0)() {
			t.Errorf("%s is not in the log that was opened anew", args[0])
		}
		for _, name := range []string{log, log + ".1"} {
			data, err := os.ReadFile(name)
			if b.must(err); strings.Contains(string(data), "not-for-the-log") {
				t.Error("what a person wrote is in the log")
			}
		}
		b.must(os.Remove(log))
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
