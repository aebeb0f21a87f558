package roots

import (
	"path/filepath"
	"testing"
)

// FuzzParse: a catalog's file is refused, or names a folder by its full path and a part that may be gone.
func FuzzParse(f *testing.F) {
	f.Add([]byte("schema: 1\nname: scans\nroot: /mnt/scans\ncollection: default\n"))
	f.Add([]byte("schema: 1\nname: scans\nroot: /mnt/scans\ncollection: default\nworkflow: accession\ngone: 2.5%\ntrust: [mtime, size]\n"))
	f.Add([]byte("schema: 1\nname: scans\nroot: /mnt/../etc\ncollection: default\ngone: NaN%\ntrust: &t [*t]\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := Parse("catalogs/scans.yaml", data)
		if (err == nil) == (c == nil) {
			t.Fatalf("%v, %v", c, err)
		}
		if c != nil && (c.Name != "scans" || !filepath.IsAbs(c.Root) || filepath.Clean(c.Root) != c.Root || !(c.GonePart >= 0 && c.GonePart <= 1)) {
			t.Errorf("%+v is taken", c)
		}
	})
}
