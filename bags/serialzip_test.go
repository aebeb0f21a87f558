package bags

import (
	"archive/zip"
	"bytes"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"bagpipe/bags/finding"

	"golang.org/x/text/encoding/charmap"
)

// Every method that a zip is unpacked by is read in a bag, too.
func TestBagsInZipsOfEveryMethod(t *testing.T) {
	seven := tool(t, "7zz", "7z")
	dir := goodBag().write(t)
	for _, method := range []string{"Copy", "Deflate", "BZip2", "xz"} {
		archived := filepath.Join(t.TempDir(), "bag.zip")
		runIn(t, filepath.Dir(dir), seven, "a", "-bd", "-tzip", "-mm="+method, archived, "bag")
		if r, err := Validate(t.Context(), archived, ValidateOptions{}); err != nil || !r.Valid || len(r.Findings) > 0 {
			t.Errorf("%s: %+v, %v", method, r.Findings, err)
		}
	}
	archived := filepath.Join(t.TempDir(), "bag.zip")
	runIn(t, filepath.Dir(dir), seven, "a", "-bd", "-tzip", "-mm=Deflate64", archived, "bag")
	r, err := Validate(t.Context(), archived, ValidateOptions{})
	if err != nil || r.Valid || !hasFinding(r, finding.Archive, finding.Error) || !strings.Contains(r.Findings[0].Text, "deflate64") {
		t.Errorf("%+v, %v", r.Findings, err)
	}
}

// The names of a bag's files are those that unpacking the zip gives them.
func TestBagsInZipsWithNamesInACodePage(t *testing.T) {
	b := bare("1.0", bag{"data/Größe.txt": "one", "data/Übersicht für alle.txt": "two"})
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for _, p := range slices.Sorted(maps.Keys(b)) {
		name, err := charmap.CodePage850.NewEncoder().String("bag/" + p)
		if err != nil {
			t.Fatal(err)
		}
		m, err := w.CreateHeader(&zip.FileHeader{Name: name, NonUTF8: true, Method: zip.Deflate})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(m, b[p]); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	r, err := Validate(t.Context(), put(t, "bag.zip", out.Bytes()), ValidateOptions{})
	if err != nil || !r.Valid || len(r.Findings) != 1 || !hasFinding(r, finding.Archive, finding.Warning) {
		t.Errorf("%+v, %v; want a warning that says the code page", r.Findings, err)
	}
}
