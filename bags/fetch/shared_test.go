package fetch

import (
	"crypto/sha512"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"bagpipe/bags"
	"bagpipe/bags/finding"
	"bagpipe/bags/tagfile"
)

// noise is bytes that do not compress and differ from file to file.
func noise(n int, seed uint64) []byte {
	b := make([]byte, n)
	x := seed*2654435761 + 1
	for i := range b {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		b[i] = byte(x)
	}
	return b
}

func payloadFolder(t testing.TB, files bag) string {
	t.Helper()
	return files.write(t)
}

// expectBag checks both answers and the first error's code, "" for none.
func expectBag(t *testing.T, dir string, complete, valid bool, first finding.Code) bags.Report {
	t.Helper()
	r, err := bags.Validate(t.Context(), dir, bags.ValidateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	f, _ := r.FirstError()
	if r.Complete != complete || r.Valid != valid || f.Code != first {
		t.Errorf("complete %v, valid %v, first error %q; want %v, %v, %q\n%+v",
			r.Complete, r.Valid, f.Code, complete, valid, first, r.Findings)
	}
	return r
}

func expectGone(t *testing.T, p string) {
	t.Helper()
	if _, err := os.Lstat(p); !os.IsNotExist(err) {
		t.Errorf("%s is still there", p)
	}
}

// bag is a folder's files by path.
type bag map[string]string

// goodBag is a valid 1.0 bag with two payload files and one tag manifest.
func goodBag() bag {
	b := bag{
		"bagit.txt":     "BagIt-Version: 1.0\nTag-File-Character-Encoding: UTF-8\n",
		"bag-info.txt":  "Source-Organization: Archive\nPayload-Oxum: 6.2\n",
		"data/a.txt":    "one",
		"data/d/b.txt":  "two",
		"notes/tag.txt": "a tag file",
	}
	b.seal()
	return b
}

// seal writes the sha512 manifest and the tag manifest anew.
func (b bag) seal() {
	b["manifest-sha512.txt"] = b.manifest("data/")
	b.sealTags()
}

func (b bag) manifest(prefix string) string {
	var s strings.Builder
	for _, p := range slices.Sorted(maps.Keys(b)) {
		if strings.HasPrefix(p, "data/") == (prefix == "data/") && !strings.HasPrefix(p, "tagmanifest-") {
			fmt.Fprintf(&s, "%x  %s\n", sha512.Sum512([]byte(b[p])), tagfile.EncodeManifestPath(p))
		}
	}
	return s.String()
}

func (b bag) sealTags() { b["tagmanifest-sha512.txt"] = b.manifest("") }

// write puts the bag on disk. A path that ends in a slash is a folder.
func (b bag) write(t testing.TB) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "bag")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for p, data := range b {
		to := filepath.Join(dir, p)
		if strings.HasSuffix(p, "/") {
			if err := os.MkdirAll(to, 0o755); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(to, []byte(data), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func writeFile(t testing.TB, p, data string) {
	t.Helper()
	if err := os.WriteFile(p, []byte(data), 0o644); err != nil {
		t.Fatal(err)
	}
}
