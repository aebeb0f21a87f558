package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"bagpipe/engine/remote/bus"
	"bagpipe/engine/remote/wire"
	"bagpipe/engine/worker"
	"bagpipe/steps"

	"github.com/tidwall/gjson"
)

// A robot that acts outside, of a worker that does not hear the engine, is ended before another acts.
func TestARobotThatActsAlone(t *testing.T) {
	t.Parallel()
	f := newFleetWith(t, "3s", "  - name: act\n    command: [acting]\n", "{far/act: {only: true, alone: true}}")
	program := filepath.Join(f.top, "acting")
	f.must(os.WriteFile(program, []byte("#!/bin/sh\nuntil [ -e \"$TOP/go\" ]; do echo x >>\"$TOP/acts-$WORKER\"; sleep 0.05; done\n"), 0o755))
	cable, port := newLink(t, f.port)
	f.ok("remote", "invite", "w1", filepath.Join(f.top, "w1.key"), "--url", fmtURL(port))
	start := func(name string) {
		w := f.worker(name, "  - command: ["+program+"]\n    env: {WORKER: "+name+"}\nbytes: transfer\n")
		if !w.running() {
			t.Fatal(w.out.String())
		}
	}
	start("w1")
	f.write("in/a", "a")
	f.ok("add", "--workflow", "far", filepath.Join(f.top, "in/a"))
	f.await("it acts", func() bool { return f.effects("acts-w1") > 0 })
	cable.set(true)
	start("w2")
	f.await("the other acts", func() bool { return f.effects("acts-w2") > 0 })
	before := f.effects("acts-w1")
	time.Sleep(time.Second)
	if after := f.effects("acts-w1"); after != before {
		t.Errorf("both act: %d, then %d acts of the first", before, after)
	}
	f.write("go", "")
	f.done("a")
}

func fmtURL(port int) string { return fmt.Sprintf("nats://127.0.0.1:%d", port) }

// A worker whose clock is a day off works as others do: leases are judged by the engine's clock, and certificates
// hold for longer.
func TestAClockThatIsADayOff(t *testing.T) {
	t.Parallel()
	f := newFleet(t, "  - name: count\n    robot: inventory\n", "{far/count: {only: true}}")
	for name, off := range map[string]time.Duration{"before": -24 * time.Hour, "ahead": 24 * time.Hour} {
		file := filepath.Join(f.top, name+".key")
		f.ok("remote", "invite", name, file, "--url", fmtURL(f.port))
		data, err := os.ReadFile(file)
		f.must(err)
		key, err := wire.DecodeKey(data)
		f.must(err)
		now := func() time.Time { return time.Now().Add(off) }
		config, err := key.TLS()
		f.must(err)
		config.Time = now
		link, err := bus.Dial(bus.DialOptions{Outside: bus.Outside{URLs: key.URLs, Seed: key.Seed, TLS: config}, Name: key.Name, Changed: func(string) {}})
		f.must(err)
		defer link.Close()
		settings, err := worker.ParseConfig("worker.yaml", []byte("schema: 1\nbytes: transfer\nfolder: "+filepath.Join(f.top, "at-"+name)+"\nrobots: [{builtin: inventory}]\n"), steps.Builtins())
		f.must(err)
		build := f.status().Get("build").String()
		w, err := worker.New(worker.Options{Config: settings, Key: key, Link: linkOf{link}, Engine: "0ff0ff01", Build: build, Host: "far", Builtins: steps.Builtins(), Log: slog.New(slog.DiscardHandler), Say: func(string) {}, Now: now})
		f.must(err)
		ctx, stop := context.WithCancel(t.Context())
		drain, ended := make(chan struct{}), make(chan error, 1)
		go func() { ended <- w.Run(ctx, drain) }()
		f.await("the worker", func() bool { return f.state(name) == "ready" })
		n := len(f.labels("completed"))
		f.folder(name)
		f.await("the item", func() bool { return len(f.labels("completed")) == n+1 })
		if a := f.step(name, "count").Get("attempts"); a.Get("#").Int() != 1 || time.Since(a.Get("0.ended").Time()).Abs() > time.Hour {
			t.Errorf("%s: %s", name, a)
		}
		close(drain)
		f.must(<-ended)
		stop()
	}
	f.ok("audit")
}

// linkOf is a connection as a worker uses it.
type linkOf struct{ *bus.Worker }

func (l linkOf) Pull(ctx context.Context, class string, wait time.Duration) (worker.Pulled, bool, error) {
	p, ok, err := l.Worker.Pull(ctx, class, wait)
	return p, ok, err
}

// What a step leaves in the records is the same wherever it was done, but for who did it and when: completed with
// outputs and metadata, skipped, tried again, out of time and passed over, failed by the content, with kept inputs and children.
func TestTheSameRecordsHereAndThere(t *testing.T) {
	t.Parallel()
	const flow = "  - name: derive\n    command: [far-robot, --with, words]\n    keepInputs: true\n  - name: count\n    robot: inventory\n    milestone: counted\n" +
		"  - name: pass\n    command: [far-robot, skip]\n    optional: true\n  - name: again\n    command: [far-robot, once]\n    retries: 2\n    backoff: {first: 1ms, most: 1ms}\n" +
		"  - name: slow\n    command: [far-robot, slow]\n    timeout: 1s\n    retries: 0\n    continueOnFailure: true\n" +
		"  - name: parts\n    robot: split\n    with: {each: file, workflow: small}\n  - name: torn\n    command: [far-robot, bad]\n"
	told := map[string]string{}
	for _, where := range []string{"here", "there"} {
		placement := "{}"
		if where == "there" {
			placement = "{far/derive: {only: true}, far/count: {only: true}, far/pass: {only: true}, far/again: {only: true}, far/slow: {only: true}, far/parts: {only: true}, far/torn: {only: true}}"
		}
		f := newFleet(t, flow, placement)
		f.workflow("small", "  - name: look\n    robot: noop\n")
		program := filepath.Join(f.top, "far-robot")
		f.must(os.WriteFile(program, []byte(strings.Replace(farRobot, "set -e\n", "set -e\n"+
			"[ \"$1\" != skip ] || { echo \"no need\"; exit 77; }\n[ \"$1\" != once ] || [ -e \"$TOP/tried\" ] || { touch \"$TOP/tried\"; echo \"no luck\"; exit 1; }\n[ \"$1\" != slow ] || sleep 60\n", 1)), 0o755))
		if where == "there" {
			f.worker("w", "bytes: transfer\n")
		} else {
			f.write("ws/workflows/far.yaml", strings.ReplaceAll("schema: 1\nname: far\nsteps:\n  - name: register\n"+flow, "[far-robot", "["+program))
		}
		f.folder("box")
		f.await("the end", func() bool { return len(f.labels("failed")) == 1 && len(f.labels("completed")) == 2 })
		told[where] = f.told("box")
		if versions := strings.Count(f.git("log", "--format=%(trailers)"), "\nBagpipe-Robot-Version: 7\n"); (versions > 0) != (where == "there") {
			t.Errorf("%s: %d commits name the version of a worker's robot", where, versions)
		}
	}
	if told["here"] != told["there"] {
		here, there := strings.Split(told["here"], "\n"), strings.Split(told["there"], "\n")
		for i := range max(len(here), len(there)) {
			if i >= len(here) || i >= len(there) || here[i] != there[i] {
				t.Fatalf("line %d differs.\nhere:\n%s\nthere:\n%s", i, told["here"], told["there"])
			}
		}
	}
}

// told is an item's records and the history's words about it, without what differs between two runs.
func (f *fleet) told(label string) string {
	f.t.Helper()
	shown := f.ok("show", label, "--json")
	var all strings.Builder
	for _, name := range []string{"manifest.json", "inventory.json", "execution.json"} {
		all.WriteString(f.git("show", "main:"+gjson.Get(shown, "folder").String()+"/"+name)) // the files follow the commit
	}
	id := gjson.Get(shown, "manifest.item").String()
	all.WriteString(f.git("log", "--reverse", "--format=%s%n%(trailers)", "--", gjson.Get(shown, "folder").String()))
	text := regexp.MustCompile(`(?m)^ *"cpu": .*\n`).ReplaceAllString(strings.ReplaceAll(all.String(), id, "ITEM"), "") // 0 is not told
	for pattern, by := range map[string]string{
		`\d{4}-\d\d-\d\dT[0-9:.]+Z`:         "TIME",
		`"(elapsed)": [0-9.e-]+`:            `"$1": N`,
		`(\d+)-[0-9a-f]{8}`:                 "$1-ENGINE",
		`"(runner|version|agent)": "[^"]*"`: `"$1": "WHO"`,
		`(Bagpipe-Agent: \w+) .*`:           "$1 WHO",
		`Bagpipe-Robot-Version: .*\n`:       "",
		`sha256:[0-9a-f]{64}`:               "DIGEST",
		`done by ?\w*`:                      "done by WHO",
		`\b[0-9a-f]{15}\b`:                  "CHILD",
		`/[^" ]*/far-robot`:                 "far-robot",
	} {
		text = regexp.MustCompile(pattern).ReplaceAllString(text, by)
	}
	return text
}
