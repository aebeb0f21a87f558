package archive

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"strings"
	"testing"

	"bagpipe/bags/archive/internal/zips"
	"bagpipe/bags/files"

	"github.com/klauspost/compress/zip"
)

func TestDamagedZips(t *testing.T) {
	good := zipOf(t, "one.txt", "two.txt")
	central := bytes.Index(good, []byte("PK\x01\x02"))
	end := bytes.LastIndex(good, []byte("PK\x05\x06"))
	edit := func(do func(b []byte)) []byte {
		b := bytes.Clone(good)
		do(b)
		return b
	}
	le := binary.LittleEndian
	for _, c := range []struct {
		about  string
		data   []byte
		rule   files.Rule
		member string
	}{
		{"cut", good[:len(good)-30], files.RuleTruncated, ""},
		{"trailing", append(bytes.Clone(good), "x"...), files.RuleTrailing, ""},
		{"prefix cut out", append(bytes.Clone(good[:4]), good[9:]...), files.RuleHeaders, ""},
		{"encrypted", edit(func(b []byte) { b[6] |= 1; b[central+8] |= 1 }), files.RuleEncrypted, "one.txt"},
		{"encrypted in one place", edit(func(b []byte) { b[central+8] |= 1 }), files.RuleHeaders, "one.txt"},
		{"method", edit(func(b []byte) { b[8] = 98; b[central+10] = 98 }), files.RuleMethod, "one.txt"},
		{"multi-disk", edit(func(b []byte) { b[end+4] = 1 }), files.RuleMultiDisk, ""},
		{"more members than said", edit(func(b []byte) { b[end+8] = 1; b[end+10] = 1 }), files.RuleHeaders, ""},
		{"fewer members than said", edit(func(b []byte) { b[end+8] = 3; b[end+10] = 3 }), files.RuleHeaders, ""},
		{"local name", edit(func(b []byte) { b[zips.LocalLen] = 'X' }), files.RuleHeaders, "one.txt"},
		{"size", edit(func(b []byte) { le.PutUint32(b[central+24:], 5) }), files.RuleSize, "one.txt"},
		{"size too large", edit(func(b []byte) { le.PutUint32(b[central+24:], 50) }), files.RuleTruncated, "one.txt"},
		{"data beyond the end", edit(func(b []byte) { le.PutUint32(b[central+20:], 1<<20) }), files.RuleTruncated, "one.txt"},
		{"crc", edit(func(b []byte) { b[central+16] ^= 1 }), "", "one.txt"},
	} {
		t.Run(c.about, func(t *testing.T) {
			_, _, err := extract(t, "x.zip", c.data, Limits{})
			var e *files.Error
			if !errors.As(err, &e) {
				t.Fatalf("error %v, want rule %s", err, c.rule)
			}
			if c.rule != "" && e.Rule != c.rule || e.Member != c.member {
				t.Errorf("%v; want %s of %q", err, c.rule, c.member)
			}
		})
	}
}

// storedZip has no data descriptors, so that the central directory alone says
// what the check sum is.
func storedZip(t *testing.T, data string, crc uint32) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	f, err := w.CreateRaw(&zip.FileHeader{Name: "a", Method: zip.Store, CRC32: crc,
		CompressedSize64: uint64(len(data)), UncompressedSize64: uint64(len(data))})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(f, data); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestZipCheckSums(t *testing.T) {
	for _, crc := range []uint32{0, 1} {
		_, _, err := extract(t, "x.zip", storedZip(t, "data", crc), Limits{})
		wantRule(t, err, files.RuleChecksum, "a")
	}
	if _, _, err := extract(t, "x.zip", storedZip(t, "", 0), Limits{}); err != nil {
		t.Error(err)
	}
}

// The bomb that makes petabytes of kilobytes lets members share their data.
func TestOverlappingMembers(t *testing.T) {
	good := zipOf(t, "a", "b")
	first := bytes.Index(good, []byte("PK\x01\x02"))
	second := first + bytes.Index(good[first+4:], []byte("PK\x01\x02")) + 4
	b := bytes.Clone(good)
	// The second entry is made to be the first one under the same local header,
	// named alike so that only the overlap is wrong.
	copy(b[second+42:second+46], b[first+42:first+46])
	b[second+zips.CentralLen] = 'a'
	_, _, err := extract(t, "x.zip", b, Limits{})
	wantRule(t, err, files.RuleOverlap, "a")
}

func TestZipBombByDeclaredRatio(t *testing.T) {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	f, err := w.Create("bomb")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(f, strings.NewReader(strings.Repeat("0", 2<<20))); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	_, _, err = extract(t, "x.zip", b.Bytes(), Limits{ratioFloor: 1 << 20})
	wantRule(t, err, files.RuleRatio, "bomb")
}

func TestSniff(t *testing.T) {
	aTar := tarOf(t, file("a", "x"))
	for _, c := range []struct {
		name string
		data []byte
		want Format
	}{
		{"x.zip", zipOf(t, "a"), Zip},
		{"no extension", zipOf(t, "a"), Zip},
		{"empty.zip", zipOf(t), Zip},
		{"x.docx", zipOf(t, "word/document.xml"), None},
		{"x.JAR", zipOf(t, "META-INF/"), None},
		{"renamed.zip", zipOf(t, "mimetype", "content.xml"), None},
		{"office", zipOf(t, "[Content_Types].xml"), None},
		{"x.tar", aTar, Tar},
		{"tar by content", aTar, Tar},
		{"x.tgz", gz(t, aTar), TarGzip},
		{"compressed", gz(t, aTar), TarGzip},
		{"compressed", zst(t, aTar), TarZstd},
		{"log.gz", gz(t, []byte("just a log")), None},
		{"log.zst", zst(t, []byte("just a log")), None},
		{"broken.tar.gz", gz(t, aTar)[:5], TarGzip},
		{"broken.zip", []byte("nothing"), Zip},
		{"empty.tar", make([]byte, 1024), Tar},
		{"zeros", make([]byte, 1024), None},
		{"text.txt", []byte("text"), None},
		{"empty", nil, None},
	} {
		got, err := Sniff(put(t, c.name, c.data))
		if err != nil || got != c.want {
			t.Errorf("%s: %q, %v; want %q", c.name, got, err, c.want)
		}
	}
	if got, err := Sniff(t.TempDir()); got != None || err != nil {
		t.Errorf("folder: %q, %v", got, err)
	}
}
