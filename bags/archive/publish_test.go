package archive

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"bagpipe/bags/files"
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
	wantRule(t, err, files.RuleParent, "../c")
	only(t, dir)

	ctx, cancel := context.WithCancel(t.Context())
	_, err = ExtractTo(ctx, put(t, "x.tar", tarOf(t, file("a", "x"), file("b", "y"))), filepath.Join(dir, "x"),
		ExtractOptions{Progress: func(files.Progress) { cancel() }})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want cancelled", err)
	}
	only(t, dir)
}
