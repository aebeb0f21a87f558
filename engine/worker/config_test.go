package worker

import (
	"os"
	"strings"
	"testing"

	"bagpipe/engine/remote/wire"
	"bagpipe/layout"
	"bagpipe/steps"
)

const sound = `schema: 1
name: w1
slots: 2
prefetch: 1
labels: {gpu: a100}
folder: /var/lib/worker
cache: 20GiB
bytes: transfer
robots:
  - builtin: inventory
  - name: ocr-robot
    command: [/opt/ocr/run, --fast]
    version: "4.1"
    instances: 2
    env: {OMP_NUM_THREADS: "2"}
    warmUp: [/opt/ocr/run, --warm-up]
`

func TestConfig(t *testing.T) {
	c, err := ParseConfig("worker.yaml", []byte(sound), steps.Builtins())
	if err != nil {
		t.Fatal(err)
	}
	if o, ok := c.robot("ocr-robot"); !ok || o.Instances != 2 || c.Cache != 20<<30 {
		t.Errorf("%+v", c)
	}
	if _, err := ParseConfig("worker.yaml", []byte("schema: 1\nrobots: [{command: [/bin/true]}, {command: [/bin/sh]}]\n"), steps.Builtins()); err != nil {
		t.Errorf("two programs that have the names of their files: %v", err)
	}
	for text, want := range map[string]string{
		"schema: 1\nrobots: [{builtin: bag}]\n":                                 `no built-in robot "bag"`,
		"schema: 1\nrobots: [{command: [/bin/sh]}, {command: [/usr/bin/sh]}]\n": "sh is offered twice",
		"schema: 2\n": "expected schema: 1",
		"schema: 1\n": "a worker that offers none",
		"schema: 1\nrobots: [{builtin: deposit}]\n":                                             `no built-in robot "deposit"`,
		"schema: 1\nrobots: [{builtin: nothing}]\n":                                             `no built-in robot "nothing"`,
		"schema: 1\nrobots: [{command: [ocr]}]\n":                                               "whole path",
		"schema: 1\nrobots: [{name: x}]\n":                                                      "expected builtin: or command:",
		"schema: 1\nrobots: [{builtin: noop, name: x}]\n":                                       "stands alone",
		"schema: 1\nrobots: [{builtin: noop}, {builtin: noop}]\n":                               "noop is offered twice",
		"schema: 1\nslots: -1\nrobots: [{builtin: noop}]\n":                                     "expected 1 to 10000",
		"schema: 1\nbytes: maybe\nrobots: [{builtin: noop}]\n":                                  "expected auto or transfer",
		"schema: 1\nrobots: [{builtin: noop}]\nrobot: x\n":                                      `unknown key "robot"`,
		"schema: 1\nname: a b\nrobots: [{builtin: noop}]\n":                                     "a b",
		"schema: 1\nrobots: [{command: [/bin/true], instances: -2}]\n":                          "expected a number from 1",
		"schema: 1\nrobots: [{command: [/bin/true], name: a}, {command: [/bin/sh], name: a}]\n": "a is offered twice",
	} {
		_, err := ParseConfig("worker.yaml", []byte(text), steps.Builtins())
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

func FuzzConfig(f *testing.F) {
	f.Add(sound)
	builtins := steps.Builtins()
	f.Fuzz(func(t *testing.T, text string) {
		c, err := ParseConfig("worker.yaml", []byte(text), builtins)
		if err == nil && len(c.Robots) == 0 {
			t.Error("a worker without robots")
		}
	})
}

// The cache gives what it was given, by its digest, and keeps within its size.
func TestTheCacheKeepsWithinItsSize(t *testing.T) {
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	c := newCache(dir+"/cache", 250)
	var files []wire.File
	for i, text := range []string{strings.Repeat("a", 100), strings.Repeat("b", 100), strings.Repeat("c", 100)} {
		name := string(rune('a' + i))
		if err := os.WriteFile(dir+"/"+name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := described(dir+"/"+name, layout.EncodePath(name))
		if err != nil {
			t.Fatal(err)
		}
		c.keep(root, name, f)
		f.Path = "again-" + name
		files = append(files, f)
	}
	given := 0
	for _, f := range files {
		if c.give(root, f) {
			given++
			if got, err := described(dir+"/"+f.Path, f.Path); err != nil || got.SHA256 != f.SHA256 {
				t.Errorf("%s: %v %v", f.Path, got, err)
			}
		}
	}
	if given != 2 || !c.give(root, files[2]) {
		t.Errorf("%d of 3 files are in a cache of 250 bytes, the newest: %v", given, c.give(root, files[2]))
	}
	// One that was spoiled is fetched again.
	if err := os.WriteFile(c.path(files[2].SHA256), []byte("spoiled"), 0o600); err != nil {
		t.Fatal(err)
	}
	if c.give(root, files[2]) {
		t.Error("a spoiled file was given")
	}
}
