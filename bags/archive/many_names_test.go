package archive

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"bagpipe/bags/files"
)

// Names are bounded by the memory that a decoder may have: a small archive can hold
// gigabytes of them.
func TestNamesAreBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "names.tar.gz")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	z := gzip.NewWriter(f)
	w := tar.NewWriter(z)
	long := strings.Repeat(strings.Repeat("n", 200)+"/", 9)
	for i := range 2000 {
		if err := w.WriteHeader(&tar.Header{Name: fmt.Sprintf("%s%d", long, i), Typeflag: tar.TypeReg, Mode: 0o644}); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []interface{ Close() error }{w, z, f} {
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if in, err := Inspect(context.Background(), path, InspectOptions{}); err != nil || len(in.Problems) > 0 {
		t.Errorf("within the limit: %v, %v", in.Problems, err)
	}
	in, err := Inspect(context.Background(), path, InspectOptions{Limits: Limits{Memory: 4 << 20}})
	if err != nil || len(in.Problems) != 1 || in.Problems[0].Rule != files.RuleMemory {
		t.Errorf("%v, %v", in.Problems, err)
	}
	_, err = Extract(context.Background(), path, t.TempDir(), ExtractOptions{Limits: Limits{Memory: 4 << 20}})
	wantRuleOnly(t, "extract", err, files.RuleMemory)
}
