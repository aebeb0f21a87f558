package bags

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"bagpipe/bags/archive"
	"bagpipe/bags/files"
)

// FuzzPlan: no plan touches anything outside of the folder, or deletes payload.
func FuzzPlan(f *testing.F) {
	f.Add([]byte(`{"schema":1,"moves":true,"move":["notes"],"put":["x"],"remove":["bag-info.txt"]}`))
	f.Add([]byte(`{"schema":1,"put":["../x"],"remove":["data/a.txt"]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		b := goodBag()
		b[WorkDir+"/new/x"], b[WorkDir+"/plan.json"] = "new", string(data)
		dir := b.write(t)
		_, _ = Recover(t.Context(), dir)
		names, err := os.ReadDir(filepath.Dir(dir))
		if err != nil || len(names) != 1 {
			t.Fatalf("beside the folder: %v, %v", names, err)
		}
		found := 0
		for p, data := range anyFiles(t, dir) {
			if strings.HasSuffix(p, "a.txt") && data == "one" || strings.HasSuffix(p, "d/b.txt") && data == "two" {
				found++
			}
		}
		if found != 2 {
			t.Fatalf("payload is gone: %v", anyFiles(t, dir))
		}
	})
}

// anyFiles is filesOf for folders where paths may be anything.
func anyFiles(t *testing.T, dir string) map[string]string {
	t.Helper()
	inside := map[string]string{}
	tree, err := files.Scan(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range tree.Files {
		data, err := os.ReadFile(filepath.Join(dir, e.Path))
		if err != nil {
			t.Fatal(err)
		}
		inside[e.Path] = string(data)
	}
	return inside
}

// FuzzBagText: whatever the tag files hold, validation ends with an answer, and
// never finds a bag valid whose payload its manifest does not have.
func FuzzBagText(f *testing.F) {
	good := goodBag()
	f.Add(good["bagit.txt"], good["manifest-sha512.txt"], good["bag-info.txt"], "https://example.org/a 3 data/a.txt\n")
	f.Add("BagIt-Version: 0.97\r", "", "A: b\n c", "")
	for _, line := range seedManifests() {
		f.Add(good["bagit.txt"], line, "Payload-Oxum: 3.1\n", "")
		f.Add(strings.Replace(good["bagit.txt"], "1.0", "0.97", 1), line, "Payload-Oxum:3\n\n: x\n  folded\n", "file:///x - data/a.txt\n")
	}
	for _, encoding := range []string{"ISO-8859-1", "UTF-16", "UTF-32BE", "Shift_JIS", "none"} {
		f.Add("BagIt-Version: 1.0\nTag-File-Character-Encoding: "+encoding+"\n", utf16be(good["manifest-sha512.txt"]), "Name: M\xfcller\n", "")
	}
	f.Fuzz(func(t *testing.T, declaration, manifest, info, fetch string) {
		b := bag{"bagit.txt": declaration, "manifest-sha512.txt": manifest, "bag-info.txt": info, "fetch.txt": fetch, "data/a.txt": "one"}
		r, err := Validate(t.Context(), b.write(t), ValidateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if r.Valid && !strings.Contains(strings.ToLower(strings.ReplaceAll(manifest, "\x00", "")), hex512("one")) {
			t.Fatalf("valid by %q", manifest)
		}
	})
}

// FuzzSerialized: an archive of any bytes is answered for, and leaves nothing.
func FuzzSerialized(f *testing.F) {
	for _, format := range allFormats {
		f.Add(packed(f, format, inFolder("bag", goodBag())))
	}
	for _, data := range append(seedZips(f), seedTars(f)...) {
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		p := filepath.Join(t.TempDir(), "bag.tar")
		if err := os.WriteFile(p, data, 0o644); err != nil {
			t.Fatal(err)
		}
		r, err := Validate(t.Context(), p, ValidateOptions{Limits: archive.Limits{Files: 200, Bytes: 1 << 20}})
		if err != nil {
			t.Fatal(err)
		}
		if r.Valid && r.Errors > 0 {
			t.Fatalf("%+v", r)
		}
	})
}
