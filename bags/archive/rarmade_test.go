package archive

import (
	"bytes"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash/crc32"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"bagpipe/bags/files"
)

// What the program that the format belongs to has made (testdata/rar/README.md).

func TestRarOfItsOwnMaker(t *testing.T) {
	dir, x, err := extractFile(t, "testdata/rar/parts.part01.rar", ExtractOptions{})
	if err != nil || x.Files != 1 || len(x.Warnings) != 0 {
		t.Fatalf("%+v, %v", x, err)
	}
	data, err := os.ReadFile(filepath.Join(dir, "test.txt"))
	if sum := sha1.Sum(data); err != nil || hex.EncodeToString(sum[:]) != "4da7f88f69b44a3fdb705667019a65f4c6e058a3" {
		t.Errorf("%d bytes, %x, %v", len(data), sum, err)
	}
	dir, _, err = extractFile(t, "testdata/rar/one.rar", ExtractOptions{})
	if err != nil {
		t.Fatal(err)
	}
	data, err = os.ReadFile(filepath.Join(dir, "asd.go"))
	if sum := sha256.Sum256(data); err != nil || !strings.HasPrefix(hex.EncodeToString(sum[:]), "721174c519e8711bb119") {
		t.Errorf("%d bytes, %x, %v", len(data), sum, err)
	}
	dir, x, err = extractFile(t, "testdata/rar/four.rar", ExtractOptions{})
	if err != nil || x.Files != 1 || len(x.Warnings) != 0 {
		t.Fatalf("%+v, %v", x, err)
	}
	if data, err := os.ReadFile(filepath.Join(dir, "rar")); err != nil || string(data) != "unarr\n" {
		t.Errorf("%q, %v", data, err)
	}
	in, err := Inspect(t.Context(), "testdata/rar/links.rar", InspectOptions{Data: true})
	if err != nil || in.Files != 5 || in.Bytes != 9161 || len(in.Problems) != 2 {
		t.Fatalf("%+v, %v", in, err)
	}
	for _, p := range in.Problems {
		if p.Rule != files.RuleSymlink {
			t.Errorf("%v", p)
		}
	}
}

// A part that is cut, or with other bytes than zeros behind its end, is refused.
func TestRarPartsOfItsOwnMakerThatAreDamaged(t *testing.T) {
	one, err := os.ReadFile("testdata/rar/parts.part01.rar")
	if err != nil {
		t.Fatal(err)
	}
	two, err := os.ReadFile("testdata/rar/parts.part02.rar")
	if err != nil {
		t.Fatal(err)
	}
	for about, c := range map[string]struct {
		one, two []byte
		rule     files.Rule
	}{
		"a byte behind the end": {flip(one, len(one)-1), two, files.RuleTrailing},
		"a changed byte":        {flip(one, 500), two, files.RuleChecksum},
		"the second is cut":     {one, two[:100], files.RuleTruncated},
		"the second is missing": {one, nil, files.RuleMultiDisk},
	} {
		t.Run(about, func(t *testing.T) {
			archive := put(t, "parts.part01.rar", c.one)
			if c.two != nil {
				if err := os.WriteFile(strings.Replace(archive, "part01", "part02", 1), c.two, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			_, _, err := extractFile(t, archive, ExtractOptions{})
			wantRuleOnly(t, about, err, c.rule)
		})
	}
}

// The 7z archives that the reading library is tested with were made by 7z itself, and
// lie in the module cache: what 7z makes is read where 7z is not installed.
func TestSevenZipOfItsOwnMaker(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/bodgit/sevenzip").Output()
	dir := filepath.Join(strings.TrimSpace(string(out)), "testdata")
	if _, serr := os.Stat(dir); err != nil || serr != nil {
		t.Skipf("the module's test data is not there: %v, %v", err, serr)
	}
	for name, files := range map[string]int64{
		"arm.7z": 1, "arm64.7z": 1, "bcj.7z": 1, "bcj2.7z": 10, "brotli.7z": 10, "bzip2.7z": 10, "copy.7z": 10, "deflate.7z": 10, "delta.7z": 10,
		"empty.7z": 5, "file_and_empty.7z": 2, "lz4.7z": 10, "lzma.7z": 10, "lzma2.7z": 10, "ppc.7z": 1, "ppmd.7z": 10, "sparc.7z": 1,
		"zstd.7z": 10, "lzma1900.7z": 633, "multi.7z.001": 10,
	} {
		_, x, err := extractFile(t, filepath.Join(dir, name), ExtractOptions{})
		if err != nil || x.Files != files {
			t.Errorf("%s: %d files, want %d, %v", name, x.Files, files, err)
		}
	}
	for name, rule := range map[string]files.Rule{"aes7z.7z": files.RuleEncrypted, "t2.7z": files.RuleEncrypted} {
		_, _, err := extractFile(t, filepath.Join(dir, name), ExtractOptions{})
		wantRuleOnly(t, name, err, rule)
	}
}

// A deflated stream below a BCJ2 filter is read to its last byte, and properties at the
// beginning of a header are passed over.
func TestOddSevenZips(t *testing.T) {
	want, err := os.ReadFile("testdata/7z/code.bin")
	if err != nil {
		t.Fatal(err)
	}
	plain, err := os.ReadFile("testdata/7z/plain-header.7z")
	if err != nil {
		t.Fatal(err)
	}
	with := func(properties string) string {
		name := filepath.Join(t.TempDir(), "with.7z")
		if err := os.WriteFile(name, withProperties(plain, properties), 0o644); err != nil {
			t.Fatal(err)
		}
		return name
	}
	for about, archive := range map[string]string{
		"bcj2 over deflate": "testdata/7z/bcj2-deflate.7z",
		"one property":      with("\x19\x03abc\x00"),
		"no property":       with("\x00"),
		"a long one":        with("\x19\x81\x2c" + strings.Repeat("x", 300) + "\x20\x00\x00"),
	} {
		dir, x, err := extractFile(t, archive, ExtractOptions{})
		if err != nil || x.Files != 1 {
			t.Errorf("%s: %d files, %v", about, x.Files, err)
			continue
		}
		if got, err := os.ReadFile(filepath.Join(dir, "code.bin")); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: other bytes, %v", about, err)
		}
	}
	_, _, err = extractFile(t, with("\x19\xff\xff\xff\xff\xff\xff\xff\xff\xff\x00"), ExtractOptions{})
	wantRuleOnly(t, "a property without end", err, files.RuleDamaged)
}

// withProperties puts archive properties into the header of a 7z.
func withProperties(archive []byte, properties string) []byte {
	le := binary.LittleEndian
	at := 32 + le.Uint64(archive[12:])
	header := slices.Concat([]byte("\x01\x02"), []byte(properties), archive[at+1:])
	out := append(bytes.Clone(archive[:at]), header...)
	le.PutUint64(out[20:], uint64(len(header)))
	le.PutUint32(out[28:], crc32.ChecksumIEEE(header))
	le.PutUint32(out[8:], crc32.ChecksumIEEE(out[12:32]))
	return out
}
