package archive

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// More members than the old end record can count.
func TestZipOfManyMembers(t *testing.T) {
	const members = 1<<16 + 10
	names := make([]string, members)
	for i := range names {
		names[i] = fmt.Sprintf("d%d/", i)
	}
	archive := put(t, "x.zip", zipOf(t, names...))
	in, err := Inspect(t.Context(), archive, InspectOptions{Data: true})
	if err != nil || in.Folders != members || len(in.Problems) > 0 || len(in.Warnings) > 0 {
		t.Errorf("%d folders, want %d; %v, %v, %v", in.Folders, members, in.Problems, in.Warnings, err)
	}
}

// A writer that cannot go back writes sizes behind the data, of 32 bits or of 64.
func TestZipsWrittenAsStreams(t *testing.T) {
	python := tool(t, "python3")
	dir := t.TempDir()
	runIn(t, dir, python, "-c", `
import zipfile
class Stream:
    def __init__(self, f): self.f = f
    def write(self, b): return self.f.write(b)
    def flush(self): self.f.flush()
for wide in (False, True):
    for method in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2):
        with open("%d-%d.zip" % (wide, method), "wb") as out, zipfile.ZipFile(Stream(out), "w", method) as z:
            for name in ("a.txt", "d/b.txt"):
                with z.open(name, "w", force_zip64=wide) as f: f.write(b"one two " * 500)
`)
	archives, err := filepath.Glob(filepath.Join(dir, "*.zip"))
	if err != nil || len(archives) != 6 {
		t.Fatalf("%q, %v", archives, err)
	}
	for _, a := range archives {
		to, x, err := extractFile(t, a, ExtractOptions{})
		if err != nil || x.Files != 2 || x.Bytes != 8000 || len(x.Warnings) > 0 {
			t.Errorf("%s: %+v, %v", filepath.Base(a), x, err)
			continue
		}
		if data, err := os.ReadFile(filepath.Join(to, "d/b.txt")); err != nil || len(data) != 4000 {
			t.Errorf("%s: %d bytes, %v", filepath.Base(a), len(data), err)
		}
	}
}
