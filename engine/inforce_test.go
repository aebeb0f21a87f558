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
		_, err := running.Run(ctx, engine.RunOptions{Jobs: 1})
		s.must(err)
		rows, err := running.Ask.Items(ask.Filter{Collection: "maps"}, ask.Page{})
		s.must(err)
		if len(rows) != 1 || rows[0].Lane != "urgent" {
			t.Errorf("%+v", rows)
		}
	})
}
