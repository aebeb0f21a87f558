package folder

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"bagpipe/engine/inbox"
	"bagpipe/layout"
)

// SourceChanged goes by the digest; the first file that differs is named, and what has the
// stamp that it was read with is not read again.
func TestSourceChanged(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(t *testing.T, dir string)
		want   string // begins the change; "": there is none
	}{
		{"nothing", func(*testing.T, string) {}, ""},
		{"its times", func(t *testing.T, dir string) {
			chtimes(t, filepath.Join(dir, "tape", "1.mov"), time.Now().Add(time.Hour))
		}, ""},
		{"more bytes", func(t *testing.T, dir string) { put(t, dir, map[string]string{"tape/1.mov": "one and more"}) }, "1.mov has 12 bytes, and had 3; "},
		{"other bytes", func(t *testing.T, dir string) { put(t, dir, map[string]string{"tape/1.mov": "eno"}) }, "1.mov has other bytes; 6 bytes (files: 2) are there, 6 (files: 2) were taken in"},
		{"other bytes and the same times", func(t *testing.T, dir string) {
			path := filepath.Join(dir, "tape", "1.mov")
			info, err := os.Stat(path)
			if err != nil {
				t.Fatal(err)
			}
			put(t, dir, map[string]string{"tape/1.mov": "eno"})
			chtimes(t, path, info.ModTime())
		}, "1.mov has other bytes; "},
		{"one more file", func(t *testing.T, dir string) { put(t, dir, map[string]string{"tape/3.mov": "three"}) }, "3.mov came to it; "},
		{"a file gone", func(t *testing.T, dir string) {
			if err := os.Remove(filepath.Join(dir, "tape", "2.mov")); err != nil {
				t.Fatal(err)
			}
		}, "2.mov is gone; "},
		{"a file beside it", func(t *testing.T, dir string) { put(t, dir, map[string]string{"beside": "b"}) }, "source/beside came to it"},
		{"a link in it", func(t *testing.T, dir string) {
			if err := os.Symlink("1.mov", filepath.Join(dir, "tape", "link")); err != nil {
				t.Fatal(err)
			}
		}, "link: "},
	} {
		t.Run(c.name, func(t *testing.T) {
			root, now := t.TempDir(), time.Now().Add(time.Hour)
			fo := New(root, func() time.Time { return now }, nil)
			m := layout.Manifest{Item: "3fa9c0d2e1b7a45"}
			dir := filepath.Join(root, layout.ItemDir(m.Item), layout.SourceDir)
			put(t, dir, map[string]string{"tape/1.mov": "one", "tape/2.mov": "two"})
			sum, err := inbox.Digest(t.Context(), filepath.Join(dir, "tape"))
			if err != nil {
				t.Fatal(err)
			}
			m.Source = layout.Source{Name: "tape", Digest: sum.Digest, Files: sum.Files, Bytes: sum.Bytes, Taken: now}
			inventory := layout.Inventory{Files: map[string]layout.InventoryFile{}}
			for _, name := range []string{"1.mov", "2.mov"} {
				of, err := inbox.Digest(t.Context(), filepath.Join(dir, "tape", name))
				if err != nil {
					t.Fatal(err)
				}
				inventory.Files[name] = layout.InventoryFile{Size: of.Bytes, SHA256: strings.TrimPrefix(of.Digest, "sha256:")}
			}
			committed, err := inventory.Encode()
			if err != nil {
				t.Fatal(err)
			}
			for range 2 { // the second time by the stamp
				if change, err := fo.SourceChanged(t.Context(), m, committed); change != "" || err != nil {
					t.Fatalf("untouched: %q, %v", change, err)
				}
			}
			c.change(t, dir)
			change, err := fo.SourceChanged(t.Context(), m, committed)
			if err != nil || !strings.HasPrefix(change, c.want) || (change == "") != (c.want == "") {
				t.Errorf("%q, %v, want %q", change, err, c.want)
			}
			path, is := ChangedSource(ChangeText(m, change))
			if !is || path != "source/tape" {
				t.Errorf("the failure tells source %q, %v", path, is)
			}
		})
	}
	if path, is := ChangedSource("tape changed after it was taken in: it has 2 bytes"); is {
		t.Errorf("another failure tells source %q", path)
	}
}

// A step that gives all files a further name, right before the source is verified again, does not
// have them read again; a file that another came in place of is.
func TestSourceWithFurtherNames(t *testing.T) {
	root, old := t.TempDir(), time.Now().Add(-time.Hour)
	fo := New(root, time.Now, nil)
	m := layout.Manifest{Item: "3fa9c0d2e1b7a45"}
	dir := filepath.Join(root, layout.ItemDir(m.Item), layout.SourceDir, "tape")
	names := []string{filepath.Join(dir, "1.mov"), filepath.Join(dir, "2.mov")}
	put(t, dir, map[string]string{"1.mov": "one", "2.mov": "two"})
	for _, name := range names {
		chtimes(t, name, old)
	}
	sum, err := inbox.Digest(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	m.Source = layout.Source{Name: "tape", Digest: sum.Digest, Files: sum.Files, Bytes: sum.Bytes}
	changed := func() string {
		t.Helper()
		change, err := fo.SourceChanged(t.Context(), m, nil)
		if err != nil {
			t.Fatal(err)
		}
		return change
	}
	if change := changed(); change != "" {
		t.Fatal(change)
	}
	for _, name := range names {
		if err := os.Link(name, filepath.Join(root, filepath.Base(name))); err != nil {
			t.Fatal(err)
		}
	}
	put(t, dir, map[string]string{"1.mov": "eno"})
	chtimes(t, names[0], old) // whoever sets a time back is found by the names' digests
	if change := changed(); change != "" {
		t.Errorf("the files were read again: %s", change)
	}
	put(t, dir, map[string]string{"1.mov": "eno"})
	if change := changed(); change == "" {
		t.Error("a write was taken for a further name")
	}
}

func chtimes(t *testing.T, path string, at time.Time) {
	t.Helper()
	if err := os.Chtimes(path, at, at); err != nil {
		t.Fatal(err)
	}
}
