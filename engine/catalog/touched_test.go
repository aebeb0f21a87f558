package catalog_test

import (
	"bytes"
	"os"
	"testing"
	"time"

	"bagpipe/engine/catalog"
	"bagpipe/engine/gitstore"
	"bagpipe/layout"

	"pgregory.net/rapid"
)

// Of objects that were only touched the records have another stamp, and are else as they were, also where somebody put a like
// text into one.
func TestTouchedObjects(t *testing.T) {
	check(t, 1)
	rapid.Check(t, func(r *rapid.T) {
		w := newWorld(r)
		for _, name := range []string{"a", "b"} {
			w.must(os.WriteFile(w.at(name), []byte(name), 0o644))
		}
		manifests := func() map[string][]byte {
			v, err := w.e.Ledger.Store.Tip()
			w.must(err)
			all := map[string][]byte{}
			for path, id := range w.list() {
				all[path], err = v.ReadFile(layout.ItemDir(id) + "/" + layout.ManifestJSON)
				w.must(err)
			}
			return all
		}
		_, err := w.e.Catalog.Scan(t.Context(), "c", catalog.Options{})
		w.must(err)
		before := manifests()
		m, err := layout.DecodeManifest(before["b"])
		w.must(err)
		m.Metadata = map[string]any{"stamp": m.Source.Place.Stamp}
		described, err := m.Encode(before["b"])
		w.must(err)
		_, err = w.e.Ledger.Store.Commit(t.Context(), func(gitstore.Reader) (*gitstore.Change, error) {
			return &gitstore.Change{Files: map[string][]byte{layout.ItemDir(m.Item) + "/" + layout.ManifestJSON: described}, Author: gitstore.Signature{Name: "A", Email: "a@example.org"}, Message: "described"}, nil
		})
		w.must(err)
		before = manifests()
		for name := range before {
			w.must(os.Chtimes(w.at(name), time.Now(), time.Now().Add(-time.Hour)))
		}
		done, err := w.e.Catalog.Scan(t.Context(), "c", catalog.Options{})
		if w.must(err); done.Versions != 0 || done.New != 0 || len(before) != 2 {
			r.Fatalf("touched: %+v", done.Counts)
		}
		for name, now := range manifests() {
			m, err := layout.DecodeManifest(before[name])
			w.must(err)
			is, err := layout.DecodeManifest(now)
			w.must(err)
			if is.Source.Place.Stamp == m.Source.Place.Stamp {
				r.Errorf("%s has the stamp that it had", name)
			}
			m.Source.Place.Stamp = is.Source.Place.Stamp
			if want, err := m.Encode(before[name]); err != nil || !bytes.Equal(want, now) {
				r.Errorf("touched, %s has\n%s\nnot\n%s: %v", name, now, want, err)
			}
		}
	})
}
