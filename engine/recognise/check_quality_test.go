package recognise

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"bagpipe/layout"
)

const rastersOpen = `quality:
  - checks:
      - {id: opens, level: total.usable, raster: opens}
`

func opens(t *testing.T, path string) Checked {
	t.Helper()
	c := Candidate{Path: path, Name: filepath.Base(path), File: true}
	all, err := NewBook([]*File{rules(t, rastersOpen)}).Quality(context.Background(), Subject{Candidate: c, Manifest: []byte(`{}`)}, Options{}, time.Now())
	if err != nil || len(all) != 1 {
		t.Fatal(all, err)
	}
	return all[0]
}

// Every lawful TIFF opens, whatever its bands, bits, compression and offsets; one that was cut
// off does not, wherever that was.
func TestRastersOpen(t *testing.T) {
	all, _ := filepath.Glob("../../../shared/fixtures/geotiff/*.tif*")
	if len(all) == 0 {
		t.Skip("the fixtures are not here")
	}
	for _, path := range all {
		if got := opens(t, path); got.Result != layout.QualityPass {
			t.Errorf("%s: %+v", path, got)
		}
	}
	whole, err := os.ReadFile("../../../shared/fixtures/geotiff/RGBA.uint16.tif")
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{2, len(whole) / 2, len(whole) - 1} {
		path := filepath.Join(t.TempDir(), "cut.tif")
		if err := os.WriteFile(path, whole[:n], 0o600); err != nil {
			t.Fatal(err)
		}
		if got := opens(t, path); got.Result != layout.QualityFail || n > 2 && !strings.Contains(got.Text, "at byte ") {
			t.Errorf("%d bytes: %+v", n, got)
		}
	}
}
