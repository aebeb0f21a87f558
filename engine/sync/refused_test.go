package sync_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"bagpipe/engine/sync"
	"bagpipe/layout"
)

// A branch that was refused is not judged anew while what it was refused for is the same; a change of the settings, or of the
// records of the item that it is refused for, is another.
func TestRefusedIsNotJudgedAnew(t *testing.T) {
	w := newWorld(t)
	s, ctx := sync.New(w.e.Ledger, w.e.Guard), context.Background()
	w.git(nil, "update-ref", "refs/heads/for/bad", w.commit(w.base, map[string][]byte{layout.SettingsFile: []byte("schema: 1\nno-such-key: 1\n")}).String())
	forged := layout.ItemDir(w.items[0]) + "/" + layout.ExecutionJSON
	w.git(nil, "update-ref", "refs/heads/for/forged", w.commit(w.base, map[string][]byte{forged: []byte("{}\n")}).String())
	file := filepath.Join(w.e.Root(), layout.StateDir, "offers.json")
	const mark = "as it was remembered"
	look := func(what string, remembered int) {
		t.Helper()
		looked, err := s.TakeOffers(ctx, true)
		n := 0
		for _, o := range looked {
			if o.Refused == "" {
				t.Errorf("%s: %s was joined", what, o.Branch)
			}
			if o.Refused == mark {
				n++
			}
		}
		if err != nil || len(looked) != 2 || n != remembered {
			t.Errorf("%s: %d of %d are remembered, want %d of 2; %v", what, n, len(looked), remembered, err)
		}
		var all map[string]map[string]any
		data, err := os.ReadFile(file)
		if err := errors.Join(err, json.Unmarshal(data, &all)); err != nil {
			t.Fatal(err)
		}
		for _, r := range all {
			r["refused"] = mark
		}
		if data, err = json.Marshal(all); err == nil {
			err = os.WriteFile(file, data, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	moved := func(files map[string][]byte) {
		t.Helper()
		v, err := w.e.Ledger.Store.Tip()
		if err == nil {
			w.git(nil, "update-ref", "refs/heads/main", w.commit(v.Commit(), files).String())
			err = w.e.Ledger.Store.Refresh(ctx)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	look("first", 0)
	look("unchanged", 2)
	moved(map[string][]byte{"batches/note.txt": []byte("a record\n")})
	look("after a record", 2)
	moved(map[string][]byte{"rules/other.txt": []byte("a setting\n")})
	look("after settings", 0)
	look("unchanged again", 2)
}
