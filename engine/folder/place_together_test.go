package folder

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"bagpipe/bags/archive"
	"bagpipe/engine/fault"
	"bagpipe/layout"
)

// Of an object that is files side by side a step gets these alone, where they are; each of them is stamped.
func TestFilesSideBySide(t *testing.T) {
	root, ws := t.TempDir(), t.TempDir()
	for _, name := range []string{"a.tif", "a.tfw", "a.prj", "other.txt"} {
		if err := os.WriteFile(filepath.Join(root, name), []byte(name), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	fo := New(ws, time.Now, func() uint64 { return 0 })
	fo.Roots = func(layout.Name) (string, bool) { return root, false }
	m := layout.Manifest{Item: "3fa9c0d2e1b7a45", Source: layout.Source{Name: "a", Kind: "folder", Place: &layout.Place{Catalog: "c", Path: "a.tif", With: []string{"a.prj", "a.tfw"}}}}
	stamp := func() (at string) {
		with, err := m.Source.Place.Beside()
		if err == nil {
			at, err = StampPlace(t.Context(), filepath.Join(root, "a.tif"), with, false)
		}
		if err != nil {
			t.Fatal(err)
		}
		return at
	}
	m.Source.Place.Stamp = stamp()
	o, err := fo.OpenPlace(t.Context(), m, filepath.Join(ws, "scratch"), archive.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	entries, err := os.ReadDir(o.Content)
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(o.Content, e.Name()))
		if err != nil || string(data) != e.Name() {
			t.Errorf("%s holds %q, %v", e.Name(), data, err)
		}
		got = append(got, e.Name())
	}
	if err != nil || !slices.Equal(got, []string{"a.prj", "a.tfw", "a.tif"}) || filepath.Dir(o.Content) != o.Source {
		t.Errorf("%v in %s, %v", got, o.Content, err)
	}
	if err := o.Close(); err != nil {
		t.Fatal(err)
	}
	for name, there := range map[string]bool{"a.tif": true, "a.tfw": true, "other.txt": false, "../a.tif": false} {
		f, err := fo.OpenInPlace(t.Context(), m, name)
		if !there {
			if !fault.Is(err, fault.NotFound) {
				t.Errorf("%s: %v, expected that it is not there", name, err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(f)
		if err != nil || string(data) != name || f.Close() != nil {
			t.Errorf("%s holds %q, %v", name, data, err)
		}
	}
	for about, change := range map[string]func() error{
		"a file beside that is written": func() error { return os.WriteFile(filepath.Join(root, "a.tfw"), []byte("other"), 0o644) },
		"a file beside that is gone":    func() error { return os.Remove(filepath.Join(root, "a.prj")) },
	} {
		m.Source.Place.Stamp = stamp()
		if why, err := fo.PlaceChanged(t.Context(), m); err != nil || why != "" {
			t.Fatal(why, err)
		}
		if err := change(); err != nil {
			t.Fatal(err)
		}
		if why, err := fo.PlaceChanged(t.Context(), m); err != nil || why == "" || why == NotThere {
			t.Errorf("%s: %q, %v", about, why, err)
		}
	}
	if err := os.Remove(filepath.Join(root, "a.tif")); err != nil {
		t.Fatal(err)
	}
	if why, err := fo.PlaceChanged(t.Context(), m); err != nil || why != NotThere {
		t.Errorf("without its main file: %q, %v", why, err)
	}
	m.Source.Place.With = []string{"../../etc/passwd"}
	if _, err := fo.PlaceChanged(t.Context(), m); err == nil {
		t.Error("a name that leads out of the folder was taken")
	}
}
