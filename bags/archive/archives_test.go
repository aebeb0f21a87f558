package archive

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
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

// extract unpacks data and gives the folder.
func extract(t testing.TB, name string, data []byte, l Limits) (string, Extracted, error) {
	t.Helper()
	dir := t.TempDir()
	x, err := Extract(t.Context(), put(t, name, data), dir, ExtractOptions{Limits: l})
	return dir, x, err
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

func TestExtractKeepsContent(t *testing.T) {
	long := strings.Repeat("long/", 30) + strings.Repeat("n", 120)
	plain := tarOf(t,
		file("./", ""), file("a/", ""), file("a/empty/", ""), file("a/b.txt", "bee"), file("a/\xff\xfe", "raw"),
		file(long, "deep"), file("größe/日本.txt", "unicode"), file("./c", "see"),
		tarEntry{tar.Header{Name: "run.sh", Mode: 0o4755}, "#!"},
	)
	for name, data := range map[string][]byte{
		"x.tar": plain, "x.tar.gz": gz(t, plain), "x.tar.zst": zst(t, plain), "x": gz(t, plain),
	} {
		t.Run(name, func(t *testing.T) {
			dir, x, err := extract(t, name, data, Limits{})
			if err != nil {
				t.Fatal(err)
			}
			if x.Files != 6 || x.Bytes != 3+3+4+7+3+2 {
				t.Errorf("report %+v", x)
			}
			for p, want := range map[string]string{
				"a/b.txt": "bee", "a/\xff\xfe": "raw", long: "deep", "größe/日本.txt": "unicode", "c": "see", "run.sh": "#!",
			} {
				got, err := os.ReadFile(filepath.Join(dir, p))
				if err != nil || string(got) != want {
					t.Errorf("%q: %q, %v; want %q", p, got, err, want)
				}
			}
			info, err := os.Stat(filepath.Join(dir, "run.sh"))
			if err != nil || info.Mode() != 0o755 || !info.ModTime().Equal(someDay) {
				t.Errorf("run.sh: %v %v, %v", info.Mode(), info.ModTime(), err)
			}
			info, err = os.Stat(filepath.Join(dir, "a", "empty"))
			if err != nil || !info.IsDir() || !info.ModTime().Equal(someDay) {
				t.Errorf("a/empty: %v, %v", info, err)
			}
		})
	}
}

func TestExtractZip(t *testing.T) {
	names := []string{"d/", "d/e/", "d/one.txt", "two.txt", "größe.txt", "caf\xe9.txt"}
	dir, x, err := extract(t, "x.zip", zipOf(t, names...), Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if x.Files != 4 || x.Folders != 2 {
		t.Errorf("report %+v", x)
	}
	for _, stored := range names {
		n := strings.Replace(stored, "\xe9", "é", 1)
		info, err := os.Stat(filepath.Join(dir, n))
		if err != nil {
			t.Errorf("%q: %v", n, err)
			continue
		}
		if info.IsDir() {
			continue
		}
		if got, _ := os.ReadFile(filepath.Join(dir, n)); string(got) != "content of "+stored {
			t.Errorf("%q: %q", n, got)
		}
		if !info.ModTime().Equal(someDay) {
			t.Errorf("%q: time %v", n, info.ModTime())
		}
	}
}

func TestExtractEmptyArchives(t *testing.T) {
	empty := tarOf(t)
	for name, data := range map[string][]byte{
		"x.zip": zipOf(t), "x.tar": empty, "x.tar.gz": gz(t, empty), "x.tar.zst": zst(t, empty),
	} {
		if _, x, err := extract(t, name, data, Limits{}); err != nil || x.Files != 0 {
			t.Errorf("%s: %+v, %v", name, x, err)
		}
	}
}

func TestHostileNames(t *testing.T) {
	for _, c := range []struct {
		name string
		rule files.Rule // in a tar
		zip  files.Rule // in a zip, where it is another
	}{
		{"../evil", files.RuleParent, ""},
		{"a/../../evil", files.RuleParent, ""},
		{"a/..", files.RuleParent, ""},
		{"/etc/passwd", files.RuleAbsolute, ""},
		{"//host/share", files.RuleAbsolute, ""},
		{`\\host\share`, files.RuleAbsolute, ""},
		{`\windows`, files.RuleAbsolute, ""},
		{`C:\windows\x`, files.RuleDrive, ""},
		{"c:/windows", files.RuleDrive, ""},
		{`a\..\..\x`, files.RuleParent, ""},
		{"a\nb", files.RuleControl, ""},
		{"a\x1bb", files.RuleControl, ""},
		{"a\x7fb", files.RuleControl, ""},
		{strings.Repeat("n", 256), files.RuleLongName, ""},
		{strings.Repeat("d/", 70) + "x", files.RuleDepth, ""},
		{strings.Repeat("dddddddd/", 300) + "x", files.RulePathLength, ""},
		{`a\b`, "", files.RuleBackslash},
	} {
		if c.rule != "" {
			_, _, err := extract(t, "x.tar", tarOf(t, file(c.name, "x")), Limits{})
			wantRule(t, err, c.rule, c.name)
		}
		rule := c.rule
		if c.zip != "" {
			rule = c.zip
		}
		_, _, err := extract(t, "x.zip", zipOf(t, c.name), Limits{})
		wantRule(t, err, rule, c.name)
	}
}

func TestNUL(t *testing.T) {
	_, _, err := extract(t, "x.zip", zipOf(t, "a\x00b"), Limits{})
	wantRule(t, err, files.RuleControl, "a\x00b")
}

func TestBackslashInTarIsAName(t *testing.T) {
	dir, x, err := extract(t, "x.tar", tarOf(t, file(`a\b`, "x")), Limits{})
	if err != nil || len(x.Warnings) != 1 {
		t.Fatalf("%+v, %v", x, err)
	}
	if _, err := os.Stat(filepath.Join(dir, `a\b`)); err != nil {
		t.Error(err)
	}
}

func TestHostileMembers(t *testing.T) {
	link := func(typ byte) tarEntry {
		return tarEntry{tar.Header{Name: "l", Linkname: "/etc/passwd", Typeflag: typ}, ""}
	}
	for _, c := range []struct {
		about   string
		members []tarEntry
		rule    files.Rule
		member  string
	}{
		{"symbolic link", []tarEntry{link(tar.TypeSymlink)}, files.RuleSymlink, "l"},
		{"write through a link", []tarEntry{link(tar.TypeSymlink), file("l/x", "x")}, files.RuleSymlink, "l"},
		{"hard link", []tarEntry{file("a", "x"), link(tar.TypeLink)}, files.RuleHardLink, "l"},
		{"FIFO", []tarEntry{link(tar.TypeFifo)}, files.RuleSpecial, "l"},
		{"device", []tarEntry{link(tar.TypeChar)}, files.RuleSpecial, "l"},
		{"twice", []tarEntry{file("a", "x"), file("a", "y")}, files.RuleDuplicate, "a"},
		{"twice, spelled differently", []tarEntry{file("a/b", "x"), file("./a//b", "y")}, files.RuleDuplicate, "./a//b"},
		{"file, then folder", []tarEntry{file("a", "x"), file("a/b", "y")}, files.RuleConflict, "a/b"},
		{"folder, then file", []tarEntry{file("a/b", "x"), file("a", "y")}, files.RuleConflict, "a"},
		{"file, then explicit folder", []tarEntry{file("a", "x"), file("a/", "")}, files.RuleConflict, "a/"},
	} {
		t.Run(c.about, func(t *testing.T) {
			_, _, err := extract(t, "x.tar", tarOf(t, c.members...), Limits{})
			wantRule(t, err, c.rule, c.member)
		})
	}
}

func TestHostileZipMembers(t *testing.T) {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	h := &zip.FileHeader{Name: "link"}
	h.SetMode(fs.ModeSymlink | 0o777)
	f, err := w.CreateHeader(h)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(f, "/etc/passwd"); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	_, _, err = extract(t, "x.zip", b.Bytes(), Limits{})
	wantRule(t, err, files.RuleSymlink, "link")

	_, _, err = extract(t, "x.zip", zipOf(t, "a", "a"), Limits{})
	wantRule(t, err, files.RuleDuplicate, "a")
	_, _, err = extract(t, "x.zip", zipOf(t, "a", "a/b"), Limits{})
	wantRule(t, err, files.RuleConflict, "a/b")
}

func TestNamesThatFoldAreKeptAndWarnedAbout(t *testing.T) {
	dir, x, err := extract(t, "x.tar", tarOf(t, file("Readme", "1"), file("README", "2"), file("caf\u00e9", "3"), file("cafe\u0301", "4")), Limits{})
	if err != nil || len(x.Warnings) != 2 {
		t.Fatalf("%+v, %v", x, err)
	}
	for n, want := range map[string]string{"Readme": "1", "README": "2", "caf\u00e9": "3", "cafe\u0301": "4"} {
		if got, _ := os.ReadFile(filepath.Join(dir, n)); string(got) != want {
			t.Errorf("%s: %q", n, got)
		}
	}
}

func TestLimits(t *testing.T) {
	big := strings.Repeat("0", 2<<20)
	low := Limits{ratioFloor: 1 << 20}
	members := []tarEntry{file("a", "12345"), file("b", "67890")}
	for _, c := range []struct {
		about  string
		limits Limits
		data   []byte
		rule   files.Rule
		member string
	}{
		{"files", Limits{Files: 1}, tarOf(t, members...), files.RuleFiles, "b"},
		{"bytes", Limits{Bytes: 9}, tarOf(t, members...), files.RuleBytes, "b"},
		{"one file", Limits{FileBytes: 4}, tarOf(t, members...), files.RuleFileBytes, "a"},
		{"ratio", low, gz(t, tarOf(t, file("bomb", big))), files.RuleRatio, "bomb"},
		{"ratio, zstd", low, zst(t, tarOf(t, file("bomb", big))), files.RuleRatio, "bomb"},
		{"zeros after the end", low, gz(t, append(tarOf(t), make([]byte, 2<<20)...)), files.RuleRatio, ""},
	} {
		t.Run(c.about, func(t *testing.T) {
			_, _, err := extract(t, "x.tar.gz", c.data, c.limits)
			wantRule(t, err, c.rule, c.member)
		})
	}
	_, _, err := extract(t, "x.zip", zipOf(t, "a", "b"), Limits{Files: 1})
	wantRule(t, err, files.RuleFiles, "")
	_, _, err = extract(t, "x.zip", zipOf(t, "a", "b"), Limits{Bytes: 15})
	wantRule(t, err, files.RuleBytes, "b")
}

func TestDamagedStreams(t *testing.T) {
	body := make([]byte, 100_000) // does not compress
	for i, x := 0, uint32(1); i < len(body); i++ {
		x = x*1664525 + 1013904223
		body[i] = byte(x >> 24)
	}
	plain := tarOf(t, file("first", "x"), file("scan-7.tif", string(body)))
	for _, c := range []struct {
		name   string
		data   []byte
		rule   files.Rule
		member string
	}{
		{"cut.tar", plain[:50_000], files.RuleTruncated, "scan-7.tif"},
		{"cut.tar.gz", gz(t, plain)[:50_000], files.RuleTruncated, "scan-7.tif"},
		{"cut.tar.zst", zst(t, plain)[:50_000], files.RuleTruncated, ""},
		{"no-crc.tar.gz", gz(t, plain)[:len(gz(t, plain))-8], files.RuleTruncated, ""},
		{"bad-crc.tar.gz", flip(gz(t, plain), -6), files.RuleChecksum, ""},
		{"bad-crc.tar.zst", flip(zst(t, plain), -2), files.RuleChecksum, ""},
		{"trailing.tar", append(bytes.Clone(plain), "more"...), files.RuleTrailing, ""},
		{"trailing.tar.gz", append(gz(t, plain), "more than a header"...), files.RuleTrailing, ""},
		{"trailing.tar.zst", append(zst(t, plain), "more than a header"...), files.RuleTrailing, ""},
		{"second.tar.gz", append(gz(t, plain), gz(t, []byte("hidden"))...), files.RuleTrailing, ""},
		{"empty.tar.gz", nil, files.RuleDamaged, ""},
		{"text.zip", []byte("this is no zip at all, whatever its name says"), files.RuleTruncated, ""},
		{"text.tar", bytes.Repeat([]byte("this is no tar either"), 100), files.RuleDamaged, ""},
		{"header.tar", flip(plain, 1024+3), files.RuleDamaged, "first"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, _, err := extract(t, c.name, c.data, Limits{})
			var e *files.Error
			if !errors.As(err, &e) || e.Rule != c.rule {
				t.Fatalf("error %v, want rule %s", err, c.rule)
			}
			if c.member != "" && e.Member != c.member {
				t.Errorf("member %q, want %q", e.Member, c.member)
			}
			if !strings.HasPrefix(err.Error(), c.name+": ") {
				t.Errorf("%q does not name the archive", err)
			}
		})
	}
}

// Writers that leave the end mark out exist; a cut just there looks the same.
func TestTarWithoutEndMark(t *testing.T) {
	whole := tarOf(t, file("a", "x"), file("b", strings.Repeat("\x00", 512)))
	_, x, err := extract(t, "x.tar", whole[:len(whole)-1024], Limits{})
	if err != nil || x.Files != 2 || len(x.Warnings) != 1 {
		t.Errorf("%+v, %v; want a warning", x, err)
	}
	_, x, err = extract(t, "x.tar", whole, Limits{})
	if err != nil || len(x.Warnings) != 0 {
		t.Errorf("%+v, %v; want no warning", x, err)
	}
	_, _, err = extract(t, "cut.tar.gz", gz(t, whole[:len(whole)-1024])[:30], Limits{})
	var e *files.Error
	if !errors.As(err, &e) || e.Rule != files.RuleTruncated {
		t.Errorf("cut gzip: %v", err)
	}
}

// flip changes one byte; a negative place counts from the end.
func flip(b []byte, at int) []byte {
	b = bytes.Clone(b)
	if at < 0 {
		at += len(b)
	}
	b[at] ^= 0x55
	return b
}

func TestExtractWantsAnEmptyFolder(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "x"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	_, err := Extract(t.Context(), put(t, "x.tar", tarOf(t, file("a", "x"))), dir, ExtractOptions{})
	var e *files.Error
	if err == nil || errors.As(err, &e) {
		t.Errorf("error %v, want one that is not about the archive", err)
	}
}

// A name that is no text is kept, and said to be none; the rule is said of a path of
// any length.
func TestOddNamesAreSaid(t *testing.T) {
	_, x, err := extract(t, "x.tar", tarOf(t, file("caf\xe9.txt", "x")), Limits{})
	if err != nil || len(x.Warnings) != 1 || !strings.Contains(x.Warnings[0], "not UTF-8") {
		t.Errorf("%+v, %v", x, err)
	}
	_, _, err = extract(t, "x.tar", tarOf(t, file(strings.Repeat("dd/", 1300)+"x", "x")), Limits{})
	wantRuleOnly(t, "a path of 3,901 bytes", err, files.RulePathLength)
	if len(err.Error()) > 400 || !strings.HasSuffix(err.Error(), "longer than 2048 bytes") {
		t.Errorf("%v", err)
	}
	_, x, err = extract(t, "x.tar", tarOf(t, file("d/con.txt", "x")), Limits{})
	if err != nil || len(x.Warnings) != 1 || strings.Count(x.Warnings[0], "con.txt") != 1 {
		t.Errorf("%q, %v", x.Warnings, err)
	}
}
