package steps

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func bagged(t *testing.T) *item {
	t.Helper()
	it := newItem(t, "drop", map[string]string{"a": "A", "d/b": "B"})
	it.pass("unpack", "inventory", "bag")
	return it
}

func TestDepositIsACopy(t *testing.T) {
	it := bagged(t)
	it.pass("deposit")
	a, err := os.Stat(filepath.Join(it.bagPath(), "data/a"))
	must(t, err)
	b, err := os.Stat(filepath.Join(it.deposited(), "data/a"))
	must(t, err)
	if os.SameFile(a, b) {
		t.Error("the deposit shares its bytes with the item")
	}
}

func TestDepositNeverOverwrites(t *testing.T) {
	it := bagged(t)
	it.pass("deposit")
	thaw(t, it.deposited())
	must(t, os.WriteFile(filepath.Join(it.deposited(), "data/a"), []byte("Z"), 0o644))
	before := it.state()
	_, err := it.run("deposit")
	wantFailure(t, err, System, "not valid", "nothing was overwritten", "until a mend from a sound copy, or a backup")

	must(t, os.WriteFile(filepath.Join(it.deposited(), "tagmanifest-sha512.txt"), nil, 0o644))
	_, err = it.run("deposit")
	wantFailure(t, err, System, "not valid", "nothing was overwritten")
	_, err = it.run("cleanup")
	wantFailure(t, err, System, "nothing was removed")
	must(t, os.RemoveAll(it.deposited()))
	must(t, os.Mkdir(it.deposited(), 0o755)) // someone's empty folder
	_, err = it.run("deposit")
	wantFailure(t, err, System, "another bag")
	if !strings.Contains(before, "Z") {
		t.Error("the changed file was replaced")
	}
}

func TestDepositRemovesWhatADeadAttemptLeft(t *testing.T) {
	it := bagged(t)
	shelf := filepath.Dir(it.deposited())
	writeFiles(t, filepath.Join(shelf, "."+string(testItem)+".7-00000000"), map[string]string{"data/half": "x"})
	writeFiles(t, filepath.Join(shelf, ".other.7-00000000"), map[string]string{"data/half": "x"})
	it.pass("deposit")
	names, err := os.ReadDir(shelf)
	must(t, err)
	if len(names) != 2 || names[0].Name() != ".other.7-00000000" || names[1].Name() != string(testItem) {
		t.Errorf("on the shelf: %v", names)
	}
}

func TestDepositWithoutABag(t *testing.T) {
	it := newItem(t, "drop", map[string]string{"a": "A"})
	_, err := it.run("deposit")
	wantFailure(t, err, System, "no bag to deposit")
	c := it.call()
	c.Store = "relative"
	writeFiles(t, it.bagPath(), map[string]string{"bagit.txt": "x"})
	_, err = Builtins()["deposit"].Robot.Run(t.Context(), c)
	wantFailure(t, err, System, "absolute")
}

func TestDepositLeavesNothingOfAnInvalidBag(t *testing.T) {
	it := bagged(t)
	must(t, os.Remove(filepath.Join(it.bagPath(), "data/a")))
	_, err := it.run("deposit")
	wantFailure(t, err, System, "not valid", "data/a")
	names, err := os.ReadDir(filepath.Dir(it.deposited()))
	must(t, err)
	if len(names) > 0 {
		t.Errorf("left behind: %v", names)
	}
}

func TestDepositStopsWhenToldTo(t *testing.T) {
	it := bagged(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := Builtins()["deposit"].Robot.Run(ctx, it.call())
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	if _, err := os.Stat(it.deposited()); !os.IsNotExist(err) {
		t.Errorf("deposited all the same: %v", err)
	}
}

func TestCleanupWantsTheDeposit(t *testing.T) {
	it := bagged(t)
	_, err := it.run("cleanup")
	wantFailure(t, err, System, "not at", "nothing was removed")
	it.pass("deposit")
	thaw(t, it.deposited())
	must(t, os.Remove(filepath.Join(it.deposited(), "data/a")))
	_, err = it.run("cleanup")
	wantFailure(t, err, System, "not sound", "data/a")
	if _, err := os.Stat(it.bagPath()); err != nil {
		t.Error(err)
	}
}

func TestCleanupSaysWhatItFreed(t *testing.T) {
	it := bagged(t)
	it.pass("deposit")
	r, err := it.run("cleanup")
	if err != nil || !strings.Contains(r.Message, "bytes freed (2 more are shared with the content)") {
		t.Errorf("%q, %v", r.Message, err)
	}
	if got := it.read("content/a"); got != "A" {
		t.Errorf("content %q", got)
	}
}

// thaw lets an ordinary account damage a deposited bag.
func thaw(t *testing.T, dir string) {
	t.Helper()
	must(t, filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Chmod(path, 0o755)
	}))
}
