package bags

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func TestExtractTo(t *testing.T) {
	dir := t.TempDir()
	dest := filepath.Join(dir, "x")
	x, err := ExtractTo(t.Context(), put(t, "x.tar", tarOf(t, file("a/b", "bee"))), dest, ExtractOptions{})
	if err != nil || x.Files != 1 {
		t.Fatalf("%+v, %v", x, err)
	}
	if got, err := os.ReadFile(filepath.Join(dest, "a/b")); err != nil || string(got) != "bee" {
		t.Errorf("%q, %v", got, err)
	}
	only(t, dir, "x")
	if _, err := ExtractTo(t.Context(), put(t, "x.tar", tarOf(t, file("c", "x"))), dest, ExtractOptions{}); err == nil {
		t.Error("wrote into a folder that was there")
	}
	only(t, dir, "x")
}

func only(t *testing.T, dir string, want ...string) {
	t.Helper()
	names, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(names) != len(want) {
		t.Fatalf("in the folder: %v; want %v", names, want)
	}
	for i := range want {
		if names[i].Name() != want[i] {
			t.Errorf("in the folder: %v; want %v", names, want)
		}
	}
}

// Whatever ends it, nothing stands under the name, and nothing beside it.
func TestNothingPartialIsPublished(t *testing.T) {
	whole := tarOf(t, file("a", "x"), file("b", "y"), file("../c", "z"))
	dir := t.TempDir()
	_, err := ExtractTo(t.Context(), put(t, "x.tar", whole), filepath.Join(dir, "x"), ExtractOptions{})
	wantRule(t, err, RuleParent, "../c")
	only(t, dir)

	ctx, cancel := context.WithCancel(t.Context())
	_, err = ExtractTo(ctx, put(t, "x.tar", tarOf(t, file("a", "x"), file("b", "y"))), filepath.Join(dir, "x"),
		ExtractOptions{Progress: func(Progress) { cancel() }})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want cancelled", err)
	}
	only(t, dir)
}

func TestScratchOfTheDeadIsRemoved(t *testing.T) {
	dir := t.TempDir()
	dest := filepath.Join(dir, "x")
	living, err := newScratch(dest)
	if err != nil {
		t.Fatal(err)
	}
	dead, err := newScratch(dest)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.MkdirAll(filepath.Join(dead.made(), "half"), 0o755), dead.lock.Unlock()); err != nil {
		t.Fatal(err)
	}
	next, err := newScratch(dest)
	if err != nil {
		t.Fatal(err)
	}
	if err := next.close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(dead.dir); !os.IsNotExist(err) {
		t.Errorf("what a crash left is still there: %v", err)
	}
	if _, err := os.Lstat(living.dir); err != nil {
		t.Errorf("a living one's folder: %v", err)
	}
	if err := living.close(); err != nil {
		t.Error(err)
	}
}

// A killed Create or Serialize leaves a hidden folder, and the next takes it away,
// wherever the kill was: before the lock, at work, or while it was tidying up.
func TestCreateAndSerializeRemoveWhatACrashLeft(t *testing.T) {
	bag := goodBag().write(t)
	for name, call := range map[string]func(dest string) error{
		"create": func(dest string) error {
			_, err := Create(t.Context(), CreateOptions{Payload: filepath.Join(bag, "data"), Dest: dest})
			return err
		},
		"serialize": func(dest string) error {
			_, err := Serialize(t.Context(), bag, dest, SerializeOptions{Format: Tar, NoSync: true})
			return err
		},
	} {
		dir := t.TempDir()
		dest := filepath.Join(dir, "x")
		if err := os.MkdirAll(filepath.Join(dir, ".x.bagpipe-1/made/data"), 0o755); err != nil {
			t.Fatal(err)
		}
		writeFile(t, filepath.Join(dir, ".x.bagpipe-1/lock"), "")
		if err := os.Mkdir(filepath.Join(dir, ".x.bagpipe-1234"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := call(dest); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		only(t, dir, "x")
	}
}
