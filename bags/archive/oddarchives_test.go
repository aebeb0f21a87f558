package archive

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"bagpipe/bags/archive/internal/codepage"
	"bagpipe/bags/archive/internal/tars"
	"bagpipe/bags/files"

	"github.com/pierrec/lz4/v4"
)

// zipWith is a zip of one member, and what the test makes of it.
func zipWith(t testing.TB, comment string, before string) []byte {
	t.Helper()
	var b bytes.Buffer
	b.WriteString(before)
	w := zip.NewWriter(&b)
	w.SetOffset(int64(len(before)))
	m, err := w.CreateHeader(&zip.FileHeader{Name: "a.txt", Method: zip.Deflate, Modified: someDay})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(m, "one"); err != nil {
		t.Fatal(err)
	}
	if err := w.SetComment(comment); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// retyped changes the type of a tar's first member.
func retyped(b []byte, kind byte) []byte {
	b = bytes.Clone(b)
	b[156] = kind
	sum := 0
	copy(b[148:156], "        ")
	for _, c := range b[:tars.Block] {
		sum += int(c)
	}
	copy(b[148:156], []byte{'0' + byte(sum>>15&7), '0' + byte(sum>>12&7), '0' + byte(sum>>9&7), '0' + byte(sum>>6&7), '0' + byte(sum>>3&7), '0' + byte(sum&7), 0, ' '})
	return b
}

func lz4Of(t testing.TB, data []byte, o ...lz4.Option) []byte {
	t.Helper()
	var b bytes.Buffer
	w := lz4.NewWriter(&b)
	if err := w.Apply(o...); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// by runs a program as a filter.
func by(t testing.TB, data []byte, name string, args ...string) []byte {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), tool(t, name), args...)
	cmd.Stdin = bytes.NewReader(data)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %v: %v", name, args, err)
	}
	return out
}

func joined(parts ...[]byte) []byte { return bytes.Join(parts, nil) }

// Archives as strangers make them, whole and broken. Where no rule is wanted, a.txt is
// in it and holds "one".
func TestOddArchives(t *testing.T) {
	plain := tarOf(t, file("a.txt", "one"))
	zeros, skippable := make([]byte, 700), []byte("\x50\x2a\x4d\x18\x03\x00\x00\x00abc")
	head, rest := plain[:700], plain[700:]
	aZip := zipWith(t, "", "")
	for _, c := range []struct {
		name     string
		data     func(t *testing.T) []byte
		rule     files.Rule
		warnings int
	}{
		{"comment.zip", func(t *testing.T) []byte { return zipWith(t, "Fonds 12", "") }, "", 0},
		{"comment with the end's mark.zip", func(t *testing.T) []byte { return zipWith(t, strings.Repeat("x PK\x05\x06 y", 3), "") }, "", 0},
		{"comment that is a zip.zip", func(t *testing.T) []byte { return zipWith(t, string(aZip), "") }, files.RuleHeaders, 0},
		{"a program before it.zip", func(t *testing.T) []byte { return zipWith(t, "", "#!/bin/sh\n") }, "", 1},
		{"filled up with zeros.zip", func(*testing.T) []byte { return joined(aZip, zeros) }, "", 1},
		{"a comment, and zeros.zip", func(t *testing.T) []byte { return joined(zipWith(t, "Fonds 12", ""), zeros) }, "", 1},
		{"in parts.zip.001", func(*testing.T) []byte { return aZip[:60] }, files.RuleMultiDisk, 0},
		{"in parts.z01", func(*testing.T) []byte { return joined([]byte("PK\x07\x08"), aZip[:60]) }, files.RuleMultiDisk, 0},
		{"cut.zip", func(*testing.T) []byte { return aZip[:60] }, files.RuleTruncated, 0},
		{"zeros and a byte.zip", func(*testing.T) []byte { return joined(aZip, zeros, []byte("x")) }, files.RuleTrailing, 0},

		{"in two members.tar.gz", func(t *testing.T) []byte { return joined(gz(t, head), gz(t, rest)) }, "", 0},
		{"with empty members.tar.gz", func(t *testing.T) []byte { return joined(gz(t, nil), gz(t, plain), gz(t, nil)) }, "", 0},
		{"filled up with zeros.tar.gz", func(t *testing.T) []byte { return joined(gz(t, plain), zeros) }, "", 0},
		{"filled up far.tar.gz", func(t *testing.T) []byte { return joined(gz(t, plain), make([]byte, 1<<20)) }, "", 0},
		{"zeros and a byte.tar.gz", func(t *testing.T) []byte { return joined(gz(t, plain), zeros, []byte("x")) }, files.RuleTrailing, 0},
		{"zeros between.tar.gz", func(t *testing.T) []byte { return joined(gz(t, head), zeros, gz(t, rest)) }, files.RuleTrailing, 0},
		{"nothing but zeros behind the name.tar.gz", func(*testing.T) []byte { return zeros }, files.RuleDamaged, 0},

		{"in two frames.tar.zst", func(t *testing.T) []byte { return joined(zst(t, head), zst(t, rest)) }, "", 0},
		{"skipped before.tar.zst", func(t *testing.T) []byte { return joined(skippable, zst(t, plain)) }, "", 0},
		{"skipped between.tar.zst", func(t *testing.T) []byte { return joined(zst(t, head), skippable, zst(t, rest)) }, "", 0},
		{"skipped behind.tar.zst", func(t *testing.T) []byte { return joined(zst(t, plain), skippable) }, "", 0},

		{"in two frames.tar.lz4", func(t *testing.T) []byte { return joined(lz4Of(t, head), lz4Of(t, rest)) }, "", 0},
		{"skipped before.tar.lz4", func(t *testing.T) []byte { return joined(skippable, lz4Of(t, plain)) }, "", 0},
		{"skipped behind.tar.lz4", func(t *testing.T) []byte { return joined(lz4Of(t, plain), skippable) }, "", 0},
		{"legacy.tar.lz4", func(t *testing.T) []byte { return lz4Of(t, plain, lz4.LegacyOption(true)) }, "", 0},
		{"sized.tar.lz4", func(t *testing.T) []byte { return lz4Of(t, plain, lz4.SizeOption(uint64(len(plain)))) }, "", 0},

		{"in two streams.tar.bz2", func(t *testing.T) []byte { return joined(by(t, head, "bzip2"), by(t, rest, "bzip2")) }, "", 0},
		{"in two streams.tar.xz", func(t *testing.T) []byte { return joined(by(t, head, "xz"), by(t, rest, "xz")) }, "", 0},
		{"padded.tar.xz", func(t *testing.T) []byte { return joined(by(t, head, "xz"), zeros[:8], by(t, rest, "xz"), zeros[:4]) }, "", 0},
		{"padded by three bytes.tar.xz", func(t *testing.T) []byte { return joined(by(t, plain, "xz"), zeros[:3]) }, files.RuleDamaged, 0},
		{"without a check.tar.xz", func(t *testing.T) []byte { return by(t, plain, "xz", "-Cnone") }, "", 0},
		{"with SHA-256.tar.xz", func(t *testing.T) []byte { return by(t, plain, "xz", "-Csha256") }, "", 0},
		{"through a filter.tar.xz", func(t *testing.T) []byte { return by(t, plain, "xz", "--x86", "--lzma2") }, "", 0},
		{"of before xz.tar.lzma", func(t *testing.T) []byte { return by(t, plain, "xz", "-Flzma") }, files.RuleNotArchive, 0},

		{"filled up with zeros.tar", func(*testing.T) []byte { return joined(plain, zeros) }, "", 0},
		{"two, one after the other.tar", func(*testing.T) []byte { return joined(plain, plain) }, files.RuleTrailing, 0},
		{"a file of its own type.tar", func(*testing.T) []byte { return retyped(plain, 'Z') }, files.RuleSpecial, 0},
		{"Solaris.tar", func(*testing.T) []byte { return retyped(plain, 'X') }, files.RuleMethod, 0},
		{"another volume.tar", func(*testing.T) []byte { return retyped(plain, 'M') }, files.RuleMultiDisk, 0},
		{"contiguous.tar", func(*testing.T) []byte { return retyped(plain, '7') }, "", 0},
		{"incremental.tar", func(t *testing.T) []byte {
			return joined(retyped(tarOf(t, file("folder", "Ya.txt\x00\x00")), 'D')[:1024], plain)
		}, "", 0},
		{"all paths are one.tar", func(t *testing.T) []byte {
			return tarOf(t, tarEntry{tar.Header{Typeflag: tar.TypeXGlobalHeader, PAXRecords: map[string]string{"path": "../evil", "comment": "x"}}, ""}, file("a.txt", "one"))
		}, "", 0},
		{"before all time.tar", func(t *testing.T) []byte {
			return tarOf(t, tarEntry{tar.Header{Name: "a.txt", ModTime: time.Unix(-1<<40, 0), Format: tar.FormatGNU, Uid: 1 << 40}, "one"})
		}, "", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir, x, err := extract(t, c.name, c.data(t), Limits{})
			if c.rule != "" {
				wantRuleOnly(t, c.name, err, c.rule)
				return
			}
			if err != nil || len(x.Warnings) != c.warnings {
				t.Fatalf("%+v, %v; want %d warnings", x, err, c.warnings)
			}
			if got, err := os.ReadFile(filepath.Join(dir, "a.txt")); err != nil || string(got) != "one" {
				t.Errorf("a.txt: %q, %v", got, err)
			}
		})
	}
}

// A link is refused with its name, and with where it leads, wherever that is.
func TestLinksAreRefusedByName(t *testing.T) {
	for kind, says := range map[byte]string{
		tar.TypeSymlink: "x.tar: d/link: symbolic-link: symbolic links are not taken, wherever they lead; this one leads to d/a.txt",
		tar.TypeLink:    "x.tar: d/link: hard-link: hard links are not taken, wherever they lead; this one leads to d/a.txt",
	} {
		_, _, err := extract(t, "x.tar", tarOf(t, file("d/a.txt", "one"), tarEntry{tar.Header{Name: "d/link", Typeflag: kind, Linkname: "d/a.txt"}, ""}), Limits{})
		if err == nil || err.Error() != says {
			t.Errorf("%v; want %s", err, says)
		}
	}
}

// A tar says nothing of its names' code page; a person may.
func TestTarNamesInACodePage(t *testing.T) {
	archive := put(t, "x.tar", tarOf(t, file("\x8f\xe0\xa8.txt", "one"), file("größe.txt", "two")))
	for page, want := range map[string]string{"": "\x8f\xe0\xa8.txt", codepage.Raw: "\x8f\xe0\xa8.txt", "cp866": "При.txt"} {
		dir, _, err := extractFile(t, archive, ExtractOptions{Names: page})
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{want, "größe.txt"} {
			if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
				t.Errorf("%q: %v", page, err)
			}
		}
	}
}

// 7z archives that were filled up are read; what else follows is not passed over.
func TestSevenZipsThatWereFilledUp(t *testing.T) {
	empty := sevenZipOf(nil, nil)
	if _, x, err := extract(t, "x.7z", joined(empty, make([]byte, 2000)), Limits{}); err != nil || len(x.Warnings) != 1 {
		t.Errorf("%+v, %v", x, err)
	}
	_, _, err := extract(t, "x.7z", joined(empty, make([]byte, 2000), []byte("x")), Limits{})
	wantRule(t, err, files.RuleTrailing, "")
}
