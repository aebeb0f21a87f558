package attempt

import (
	"maps"
	"os"
	"path/filepath"
	"testing"

	"bagpipe/engine/folder"
	"bagpipe/engine/ledger"
	"bagpipe/layout"
)

// Two engines may sweep at once: what the other has removed meanwhile is no error.
func TestScratchThatAnotherEngineRemoves(t *testing.T) {
	root := t.TempDir()
	r := &Recovery{rooms{ledger: &ledger.Ledger{Options: ledger.Options{Root: root, ID: "5c1e9a70"}}}}
	dead := r.ledger.Path(layout.ScratchDir + "/0badcafe")
	if err := os.MkdirAll(dead, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dead, "x"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	another := func(layout.EngineID) (bool, error) { return false, os.RemoveAll(dead) }
	if err := r.SweepScratch(another); err != nil {
		t.Error(err)
	}
}

func TestScratchNamesTellTheirAttempts(t *testing.T) {
	folders := folder.New("/w", nil, nil)
	for _, step := range []layout.Name{"unpack", "x.2", "a.b"} {
		// The identifier's check digit must be right, as names are not trusted.
		a := layout.AttemptRef{Item: "", Workflow: "acc.essi.on.12", Step: step, Key: layout.AttemptKey{N: 3, Engine: "5c1e9a70"}}
		for _, d := range "0123456789abcdef" {
			if id, err := layout.ParseItemID("3fa9c0d2e1b7a4" + string(d)); err == nil {
				a.Item = id
			}
		}
		got, ok := folder.AttemptOf(filepath.Base(folders.ScratchDir(a)))
		if !ok || got != a {
			t.Errorf("%+v, %v; want %+v", got, ok, a)
		}
	}
}

// A pass over the attempts looks once at the file of each engine that lives. An engine that is dead, or whose file cannot be read, is
// looked for at each of its attempts.
func TestALivingEngineIsLookedForOnce(t *testing.T) {
	asked := map[layout.EngineID]int{}
	alive := livingOnce(func(id layout.EngineID) (bool, error) {
		asked[id]++
		if id == "0badf11e" {
			return true, os.ErrPermission
		}
		return id == "5c1e9a70", nil
	})
	for range 3 {
		for id, want := range map[layout.EngineID]bool{"5c1e9a70": true, "0badcafe": false, "0badf11e": true} {
			if lives, err := alive(id); lives != want || (err != nil) != (id == "0badf11e") {
				t.Errorf("engine %s lives: %v, %v", id, lives, err)
			}
		}
	}
	if want := map[layout.EngineID]int{"5c1e9a70": 1, "0badcafe": 3, "0badf11e": 3}; !maps.Equal(asked, want) {
		t.Errorf("looked for: %v, want %v", asked, want)
	}
}
