package engine_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"bagpipe/engine"
	"bagpipe/engine/ask"
	"bagpipe/engine/settings"
)

// What is dropped after another process committed settings goes by them, although the
// engine that takes it in has not heard of them yet.
func TestADropGoesByTheSettingsCommittedBeforeIt(t *testing.T) {
	s := newSite(t)
	ctx := context.Background()
	s.must(os.WriteFile(filepath.Join(s.root, "bagpipe.yaml"), []byte("schema: 1\nlanes: [normal, urgent]\ndefaults: {workflow: noops}\ninbox: {quiet: 1ms, collections: open}\n"), 0o644))
	s.do(func(running *engine.Engine) {
		s.do(func(other *engine.Engine) {
			s.must(other.Settings.AddCollection(ctx, "maps", settings.Collection{Lane: "urgent"}))
		})
		s.must(os.WriteFile(filepath.Join(s.root, "inbox", "maps", "map.txt"), []byte("a map"), 0o644))
		_, err := running.Run(ctx, engine.RunOptions{Parallel: 1})
		s.must(err)
		rows, err := running.Ask.Items(ask.Filter{Collection: "maps"}, ask.Page{})
		s.must(err)
		if len(rows) != 1 || rows[0].Lane != "urgent" {
			t.Errorf("%+v", rows)
		}
	})
}

// A refused edit is found by each look at the settings, and told of once.
func TestARefusedEditIsToldOfOnce(t *testing.T) {
	s := newSite(t)
	ctx := context.Background()
	file := filepath.Join(s.root, "bagpipe.yaml")
	good, err := os.ReadFile(file)
	s.must(err)
	told := func(e *engine.Engine, text string, want int) {
		t.Helper()
		s.must(os.WriteFile(file, []byte(text), 0o644))
		for range 3 {
			s.must(e.Settings.Sync(ctx))
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if len(s.warns) != want {
			t.Errorf("told of %d, not of %d: %q", len(s.warns), want, s.warns)
		}
	}
	s.do(func(e *engine.Engine) {
		told(e, "schema: 1\nspeed: 3\n", 1)
		told(e, "schema: 1\nspeeds: 3\n", 2)
		told(e, string(good), 2)
		told(e, "schema: 1\nspeeds: 3\n", 3)
		s.must(os.WriteFile(file, good, 0o644))
	})
}
