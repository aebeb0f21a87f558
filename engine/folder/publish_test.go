package folder

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"bagpipe/layout"
	"bagpipe/steps"
)

// TestPutBackRestoresWhatWasReplaced: a crash after publishing and before the
// commit must leave the next attempt what this one began with.
func TestPutBackRestoresWhatWasReplaced(t *testing.T) {
	for name, before := range map[string]map[string]string{
		"content was there": {"content/f": "old", "derived/x/r": "old report"},
		"content was not":   {"derived/x/r": "old report"},
	} {
		t.Run(name, func(t *testing.T) {
			e := New(t.TempDir(), nil, nil)
			a := layout.AttemptRef{Item: "3fa9c0d2e1b7a45", Workflow: "w.1", Step: "x", Key: layout.AttemptKey{N: 1, Engine: "5c1e9a70"}}
			dir := e.path(layout.ItemDir(a.Item))
			put(t, dir, before)
			put(t, dir, map[string]string{"source/f": "src"})
			scratch := t.TempDir()
			put(t, scratch, map[string]string{"c/f": "new", "d/r": "new report", "e/new": "only mine"})
			res := steps.Result{Outputs: []steps.Output{{From: "c", To: "content"}, {From: "d", To: "derived/x"}, {From: "e", To: "derived/y"}}}
			writing, err := e.Begin()
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(e.Publish(a, scratch, writing, res), writing.End()); err != nil {
				t.Fatal(err)
			}
			want(t, dir, map[string]string{"content/f": "new", "derived/x/r": "new report", "derived/y/new": "only mine"})
			for range 2 { // again after a crash in it: nothing more to do
				if err := e.PutBack(a); err != nil {
					t.Fatal(err)
				}
				want(t, dir, before)
			}
			if _, there := before["content/f"]; !there {
				if _, err := os.Lstat(filepath.Join(dir, "content")); err == nil {
					t.Error("content is there, and was not")
				}
			}
			if left, _ := filepath.Glob(filepath.Join(dir, replacedPrefix+"*")); len(left) > 0 {
				t.Errorf("%v was left", left)
			}
		})
	}
}

// That there was no content is kept by a file where nothing else is to be kept; PutBack and
// ForgetReplaced know it.
func TestPutBackOfContentAlone(t *testing.T) {
	for name, before := range map[string]map[string]string{"content was there": {"content/f": "old"}, "content was not": {}} {
		for _, putBack := range []bool{true, false} {
			t.Run(fmt.Sprint(name, ", put back: ", putBack), func(t *testing.T) {
				e := New(t.TempDir(), nil, nil)
				a := layout.AttemptRef{Item: "3fa9c0d2e1b7a45", Workflow: "w.1", Step: "x", Key: layout.AttemptKey{N: 1, Engine: "5c1e9a70"}}
				dir := e.path(layout.ItemDir(a.Item))
				put(t, dir, before)
				put(t, dir, map[string]string{"source/f": "src"})
				scratch := t.TempDir()
				put(t, scratch, map[string]string{"c/f": "new"})
				writing, err := e.Begin()
				if err != nil {
					t.Fatal(err)
				}
				if err := errors.Join(e.Publish(a, scratch, writing, steps.Result{Outputs: []steps.Output{{From: "c", To: "content"}}}), writing.End()); err != nil {
					t.Fatal(err)
				}
				want(t, dir, map[string]string{"content/f": "new"})
				info, err := os.Lstat(e.AsideOf(a))
				if err != nil || info.IsDir() != (len(before) > 0) {
					t.Errorf("what was replaced is kept as %v, %v", info, err)
				}
				end, after := e.ForgetReplaced, map[string]string{"content/f": "new"}
				if putBack {
					end, after = e.PutBack, before
				}
				for range 2 { // again after a crash in it: nothing more to do
					if err := end(a); err != nil {
						t.Fatal(err)
					}
					want(t, dir, after)
					if _, err := os.Lstat(filepath.Join(dir, "content")); (err == nil) != (len(after) > 0) {
						t.Errorf("content: %v", err)
					}
				}
				if left, _ := filepath.Glob(filepath.Join(dir, replacedPrefix+"*")); len(left) > 0 {
					t.Errorf("%v was left", left)
				}
			})
		}
	}
}

func put(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		p := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func want(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		if data, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(data) != text {
			t.Errorf("%s: %q, %v; want %q", name, data, err, text)
		}
	}
}
