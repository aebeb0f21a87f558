package bags

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"bagpipe/bags/files"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

var someDay = time.Date(2019, 3, 4, 5, 6, 7, 0, time.UTC)

// tarOf writes a tar; a header without a type is a file, and a name that ends in
// a slash a folder.
func tarOf(t testing.TB, members ...tarEntry) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, m := range members {
		h := m.header
		h.Size = int64(len(m.data))
		if h.Mode == 0 && h.Typeflag != tar.TypeXGlobalHeader {
			h.Mode = 0o644
		}
		if h.ModTime.IsZero() && h.Typeflag != tar.TypeXGlobalHeader {
			h.ModTime = someDay
		}
		if h.Typeflag == 0 && strings.HasSuffix(h.Name, "/") {
			h.Typeflag = tar.TypeDir
		}
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, m.data); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

type tarEntry struct {
	header tar.Header
	data   string
}

func file(name, data string) tarEntry { return tarEntry{tar.Header{Name: name}, data} }

func zipOf(t testing.TB, names ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, n := range names {
		f, err := w.CreateHeader(&zip.FileHeader{Name: n, Method: zip.Deflate, Modified: someDay})
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(n, "/") {
			if _, err := io.WriteString(f, "content of "+n); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func gz(t testing.TB, data []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func zst(t testing.TB, data []byte) []byte {
	t.Helper()
	w, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	return w.EncodeAll(data, nil)
}

func put(t testing.TB, name string, data []byte) string {
	t.Helper()
	p := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(p, data, 0o644); err != nil {
		t.Fatal(err)
	}
	return p
}

func wantRule(t *testing.T, err error, rule files.Rule, member string) {
	t.Helper()
	var e *files.Error
	if !errors.As(err, &e) {
		t.Fatalf("error %v, want rule %s", err, rule)
	}
	if e.Rule != rule || e.Member != member {
		t.Fatalf("rule %s, member %q, want %s, %q (%v)", e.Rule, e.Member, rule, member, err)
	}
}

// hostileNames break a rule each, or come near one.
var hostileNames = []string{
	"../x", "a/../../x", "/etc/x", "C:/x", "C:x", `\\server\x`, `a\..\x`, "a\x00b", "a\x01", "./a", "a//b", "a/./b", "a/", "con.txt", "a. ",
	"caf\xe9", "cafe\u0301", "caf\u00e9", strings.Repeat("n", 255), strings.Repeat("n", 256), strings.Repeat("d/", 70) + "x", strings.Repeat("long/", 500),
}

// edited changes one little-endian field of an archive.
func edited(b []byte, at int, v uint32) []byte {
	b = bytes.Clone(b)
	binary.LittleEndian.PutUint32(b[at:], v)
	return b
}

func seedZips(t testing.TB) (all [][]byte) {
	for _, n := range hostileNames {
		all = append(all, zipOf(t, n))
	}
	good := zipOf(t, "one.txt", "two.txt")
	central, end := bytes.Index(good, []byte("PK\x01\x02")), bytes.LastIndex(good, []byte("PK\x05\x06"))
	second := central + 4 + bytes.Index(good[central+4:], []byte("PK\x01\x02"))
	all = append(all, zipOf(t, "a", "a"), zipOf(t, "a", "a/b"), zipOf(t, "A", "a"), good[:len(good)-30], append(bytes.Clone(good), "more"...),
		append([]byte("before"), good...), edited(good, second+42, 0), edited(good, central+24, 1<<31), edited(good, central+20, 1<<31),
		edited(good, central+16, 0), edited(good, end+8, 0x00010001), edited(good, end+4, 1), edited(good, central+8, 0x00080009), edited(good, 6, 0x00080009))
	for _, method := range []uint32{9, 12, 14, 93, 95, 98, 99} {
		all = append(all, edited(edited(good, 8, method), central+10, method))
	}
	return all
}

func seedTars(t testing.TB) (all [][]byte) {
	for _, n := range hostileNames {
		if !strings.Contains(n, "\x00") {
			all = append(all, tarOf(t, file(n, "")))
		}
	}
	for _, kind := range []byte{tar.TypeSymlink, tar.TypeLink, tar.TypeFifo, tar.TypeChar, tar.TypeBlock} {
		all = append(all, tarOf(t, file("a", "x"), tarEntry{tar.Header{Name: "l", Linkname: "../a", Typeflag: kind}, ""}, file("l/x", "y")))
	}
	good := tarOf(t, file("a", strings.Repeat("x", 700)), file("b/c", "y"))
	return append(all, tarOf(t, file("a", "x"), file("a", "y")), tarOf(t, file("a", "x"), file("a/b", "y")), tarOf(t, file("a/b", "x"), file("a", "y")),
		tarOf(t, tarEntry{tar.Header{Name: "s", Mode: 0o6755}, "x"}), good[:512], good[:1200], good[:len(good)-1024], append(bytes.Clone(good), "more"...))
}

// seedManifests are lines as bags of several makers have them.
func seedManifests() (all []string) {
	sum := hex512("one")
	for _, p := range []string{
		"data/a.txt", "./data/a.txt", "data/d/../a.txt", "../a.txt", "/etc/passwd", "~/x", "data/%0A", "data/%25", "data/100%", `data\a.txt`, "DATA/a.txt",
		"data/cafe\u0301", "notes/tag.txt", "tagmanifest-md5.txt", "data/",
	} {
		for _, between := range []string{"  ", " *", "\t", " "} {
			all = append(all, sum+between+p+"\n")
		}
	}
	return append(all, strings.ToUpper(sum)+"  data/a.txt\r\n", sum+"  data/a.txt\r", sum+"  data/a.txt", "\ufeff"+sum+"  data/a.txt\n", sum[:20]+"  data/a.txt\n", "\n\n")
}

func only(t *testing.T, dir string, want ...string) {
	t.Helper()
	names, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(names) != len(want) {
		t.Fatalf("in the folder: %v; want %v", names, want)
	}
	for i := range want {
		if names[i].Name() != want[i] {
			t.Errorf("in the folder: %v; want %v", names, want)
		}
	}
}

// tool finds one of other people's programs, or skips the test: testdata/tools.sh
// installs them.
func tool(t testing.TB, names ...string) string {
	t.Helper()
	for _, n := range names {
		if p, err := exec.LookPath(n); err == nil {
			return p
		}
	}
	t.Skipf("%s is not installed; testdata/tools.sh installs it where it can", strings.Join(names, " or "))
	return ""
}

func runIn(t testing.TB, dir, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %v: %v\n%s", name, args, err, out)
	}
	return string(out)
}
