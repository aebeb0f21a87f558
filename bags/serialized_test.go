package bags

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"bagpipe/bags/archive"
	"bagpipe/bags/finding"
)

var allFormats = []archive.Format{archive.Zip, archive.Tar, archive.TarGzip, archive.TarZstd}

// packed is an archive in memory, its members in the order of their names.
func packed(t testing.TB, f archive.Format, members map[string]string) []byte {
	t.Helper()
	names := slices.Sorted(maps.Keys(members))
	if f == archive.Zip {
		var b bytes.Buffer
		w := zip.NewWriter(&b)
		for _, n := range names {
			m, err := w.CreateHeader(&zip.FileHeader{Name: n, Method: zip.Deflate})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := m.Write([]byte(members[n])); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, n := range names {
		if err := w.WriteHeader(&tar.Header{Name: n, Mode: 0o644, Size: int64(len(members[n])), Typeflag: tarType(n)}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(members[n])); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	switch f {
	case archive.TarGzip:
		return gz(t, b.Bytes())
	case archive.TarZstd:
		return zst(t, b.Bytes())
	}
	return b.Bytes()
}

func tarType(name string) byte {
	if strings.HasSuffix(name, "/") {
		return tar.TypeDir
	}
	return tar.TypeReg
}

func inFolder(base string, b bag) map[string]string {
	out := map[string]string{}
	for p, data := range b {
		out[base+"/"+p] = data
	}
	return out
}

func archiveFile(t testing.TB, name string, data []byte) string {
	t.Helper()
	p := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(p, data, 0o644); err != nil {
		t.Fatal(err)
	}
	return p
}

// A serialized bag is judged as its folder is, in every format.
func TestSerializedBagIsJudgedAsItsFolder(t *testing.T) {
	long := strings.Repeat("a long payload file ", 200_000) // larger than is hashed from memory
	for about, change := range map[string]func(b bag){
		"good":       func(bag) {},
		"large file": func(b bag) { b["data/long"] = long; delete(b, "bag-info.txt"); b.seal() },
		"line ends":  func(b bag) { b["data/x\ny\r"] = "1"; delete(b, "bag-info.txt"); b.seal() },
		"two algorithms": func(b bag) {
			b["manifest-sha256.txt"] = hex256("one") + "  data/a.txt\n" + hex256("two") + "  data/d/b.txt\n"
			b.sealTags()
		},
		"changed":        func(b bag) { b["data/a.txt"] = "ONE" },
		"tag changed":    func(b bag) { b["notes/tag.txt"] += "x" },
		"missing":        func(b bag) { delete(b, "data/a.txt") },
		"unlisted":       func(b bag) { b["data/c"] = "x" },
		"no declaration": func(b bag) { delete(b, "bagit.txt") },
		"no manifest":    func(b bag) { delete(b, "manifest-sha512.txt") },
		"not UTF-8":      func(b bag) { b["bag-info.txt"] += "Name: M\xfcller\n" },
		"holey": func(b bag) {
			b["fetch.txt"] = "https://example.org/a 3 data/a.txt\n"
			delete(b, "data/a.txt")
			b.sealTags()
		},
		"bag in bag":      func(b bag) { b["data/bagit.txt"], b["data/data/x"], b["bag-info.txt"] = "x", "y", ""; b.seal() },
		"case collisions": func(b bag) { b["data/A.TXT"], b["bag-info.txt"] = "x", ""; b.seal() },
		"long names":      func(b bag) { b["data/"+strings.Repeat("long/", 30)+"x"] = "1"; delete(b, "bag-info.txt"); b.seal() },
	} {
		t.Run(about, func(t *testing.T) {
			b := goodBag()
			change(b)
			want, err := Validate(t.Context(), b.write(t), ValidateOptions{})
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range allFormats {
				got, err := Validate(t.Context(), archiveFile(t, "bag."+string(f), packed(t, f, inFolder("bag", b))), ValidateOptions{})
				if err != nil {
					t.Fatal(err)
				}
				if got.Archive != f || got.Valid != want.Valid || got.Complete != want.Complete || got.PayloadBytes != want.PayloadBytes {
					t.Errorf("%s: %+v, want %+v", f, got, want)
				}
				if !slices.Equal(got.Findings, want.Findings) {
					t.Errorf("%s: findings\n%+v\nwant\n%+v", f, got.Findings, want.Findings)
				}
			}
		})
	}
}

func TestWhereTheBagLiesInTheArchive(t *testing.T) {
	good := inFolder("bag", goodBag())
	with := func(more map[string]string) map[string]string {
		all := maps.Clone(good)
		maps.Copy(all, more)
		return all
	}
	for _, c := range []struct {
		about   string
		name    string
		members map[string]string
		valid   bool
		code    finding.Code
		sev     finding.Severity
	}{
		{"another name", "other", good, true, finding.BaseName, finding.Warning},
		{"without a folder", "bag", goodBag(), true, finding.Serialization, finding.Warning},
		{"what macOS leaves", "bag", with(map[string]string{"__MACOSX/._bag": "x", ".DS_Store": "y"}), true, finding.Serialization, finding.Warning},
		{"what macOS writes for the bag", "bag", with(map[string]string{"._bag": "x", "__MACOSX/bag/._data": "y"}), true, finding.Serialization, finding.Warning},
		{"a leading ./", "other", func() map[string]string {
			all := map[string]string{}
			for p, data := range good {
				all["./"+p] = data
			}
			return all
		}(), true, finding.BaseName, finding.Warning},
		{"one folder too deep", "bag", inFolder("outer/bag", goodBag()), false, finding.NoDeclaration, finding.Error},
		{"two bags, one broken", "bag", with(map[string]string{"bag2/data/x": "x"}), false, finding.Serialization, finding.Error},
		{"a file beside", "bag", with(map[string]string{"readme.txt": "x"}), false, finding.Serialization, finding.Error},
		{"a folder beside", "bag", with(map[string]string{"other/x": "x"}), false, finding.Serialization, finding.Error},
		{"two bags", "bag", with(inFolder("bag2", goodBag())), false, finding.Serialization, finding.Error},
		{"no bag", "bag", map[string]string{"x/y": "z"}, false, finding.NoDeclaration, finding.Error},
		{"nothing", "bag", nil, false, finding.NoDeclaration, finding.Error},
		{"a parent path", "bag", with(map[string]string{"bag/../../x": "x"}), false, finding.Archive, finding.Error},
		{"an absolute path", "bag", with(map[string]string{"/etc/x": "x"}), false, finding.Archive, finding.Error},
		{"two spellings", "bag", with(map[string]string{"bag/./data/a.txt": "x"}), false, finding.Archive, finding.Error},
		{"file and folder", "bag", with(map[string]string{"bag/data/a.txt/x": "x"}), false, finding.Archive, finding.Error},
	} {
		t.Run(c.about, func(t *testing.T) {
			for _, f := range allFormats {
				r, err := Validate(t.Context(), archiveFile(t, c.name+"."+string(f), packed(t, f, c.members)), ValidateOptions{})
				if err != nil {
					t.Fatal(err)
				}
				if r.Valid != c.valid || !hasFinding(r, c.code, c.sev) {
					t.Errorf("%s: valid %v, findings %+v", f, r.Valid, r.Findings)
				}
			}
		})
	}
}

func TestDamagedArchivesAreNotValid(t *testing.T) {
	b := goodBag()
	for i := range 40 {
		b[fmt.Sprintf("data/%d", i)] = string(noise(3000, uint64(i)))
	}
	delete(b, "bag-info.txt")
	b.seal()
	b.sealTags()
	for _, f := range allFormats {
		whole := packed(t, f, inFolder("bag", b))
		if r, err := Validate(t.Context(), archiveFile(t, "bag."+string(f), whole), ValidateOptions{}); err != nil || !r.Valid {
			t.Fatalf("%s: %+v, %v", f, r.Findings, err)
		}
		for about, data := range map[string][]byte{
			"cut":      whole[:len(whole)/2],
			"cut late": whole[:len(whole)-min(len(whole)/4, 3000)],
			"trailing": append(slices.Clone(whole), "something"...),
			"empty":    {},
			"flipped":  flipped(whole, inMember(t, f, whole)),
		} {
			r, err := Validate(t.Context(), archiveFile(t, "bag."+string(f), data), ValidateOptions{})
			if err != nil {
				t.Fatalf("%s %s: %v", f, about, err)
			}
			if r.Valid || r.Errors == 0 {
				t.Errorf("%s %s: valid", f, about)
			}
		}
	}
}

// inMember is an offset among a member's own bytes.
func inMember(t *testing.T, f archive.Format, whole []byte) int {
	t.Helper()
	if f != archive.Zip {
		return len(whole) / 2
	}
	z, err := zip.NewReader(bytes.NewReader(whole), int64(len(whole)))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range z.File {
		if at, err := m.DataOffset(); err == nil && m.CompressedSize64 > 1000 {
			return int(at) + 500
		}
	}
	t.Fatal("no large member")
	return 0
}

func flipped(b []byte, at int) []byte {
	b = slices.Clone(b)
	b[at] ^= 1
	return b
}

func TestLinksInSerializedBags(t *testing.T) {
	b := goodBag()
	for _, typ := range []byte{tar.TypeSymlink, tar.TypeLink, tar.TypeFifo, tar.TypeChar} {
		var buf bytes.Buffer
		w := tar.NewWriter(&buf)
		for p, data := range inFolder("bag", b) {
			if err := w.WriteHeader(&tar.Header{Name: p, Mode: 0o644, Size: int64(len(data))}); err != nil {
				t.Fatal(err)
			}
			if _, err := w.Write([]byte(data)); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.WriteHeader(&tar.Header{Name: "bag/data/link", Typeflag: typ, Linkname: "bag/data/a.txt"}); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		for _, data := range [][]byte{buf.Bytes(), gz(t, buf.Bytes())} {
			r, err := Validate(t.Context(), archiveFile(t, "bag.tar", data), ValidateOptions{})
			if err != nil || r.Valid || !hasFinding(r, finding.Link, finding.Error) && !hasFinding(r, finding.Special, finding.Error) {
				t.Errorf("type %c: %+v, %v", typ, r.Findings, err)
			}
		}
	}
}

// Nothing is unpacked: not even the temporary folder is written to, but for tag
// files without a name.
func TestValidatingAnArchiveLeavesNothing(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	for _, f := range allFormats {
		p := archiveFile(t, "bag."+string(f), packed(t, f, inFolder("bag", goodBag())))
		if r, err := Validate(t.Context(), p, ValidateOptions{}); err != nil || !r.Valid {
			t.Fatalf("%+v, %v", r.Findings, err)
		}
	}
	names, err := os.ReadDir(os.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range names {
		if strings.HasPrefix(n.Name(), "bagpipe-") {
			t.Errorf("left behind: %s", n.Name())
		}
	}
}

// Without unpacking them, the real archives are judged as in TestRealArchivedBags.
func TestRealBagsAsStreams(t *testing.T) {
	dir := fixtures(t, "bags-btr")
	found, err := filepath.Glob(filepath.Join(dir, "*.t*"))
	if err != nil || len(found) < 10 {
		t.Fatalf("%d archives, %v", len(found), err)
	}
	for _, archived := range found {
		to := t.TempDir()
		if _, err := archive.Extract(t.Context(), archived, to, archive.ExtractOptions{}); err != nil {
			t.Fatal(err)
		}
		bag, ok, err := FindBag(to)
		if err != nil || !ok {
			t.Fatalf("no bag found: %v", err)
		}
		want, err := Validate(t.Context(), bag, ValidateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		got, err := Validate(t.Context(), archived, ValidateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		got.drop(finding.BaseName)
		got.drop(finding.Archive) // what is odd about the archive itself, such as a missing end mark
		if got.Valid != want.Valid || got.Complete != want.Complete || !slices.Equal(got.Findings, want.Findings) {
			t.Errorf("%s:\n%+v\nwant\n%+v", filepath.Base(archived), got, want)
		}
	}
}

func TestSerialize(t *testing.T) {
	for _, f := range allFormats {
		dir := goodBag().write(t)
		var before []byte
		for i := range 2 {
			dest := filepath.Join(t.TempDir(), "bag."+string(f))
			r, err := Serialize(t.Context(), dir, dest, SerializeOptions{Format: f, Verify: true, Time: bagDate})
			if err != nil || !r.Valid {
				t.Fatalf("%s: %+v, %v", f, r.Findings, err)
			}
			data, err := os.ReadFile(dest)
			if err != nil {
				t.Fatal(err)
			}
			if i == 1 && !bytes.Equal(data, before) {
				t.Errorf("%s: two archives of one bag differ", f)
			}
			before = data
			if _, err := Serialize(t.Context(), dir, dest, SerializeOptions{Format: f}); err == nil {
				t.Errorf("%s: an archive was replaced", f)
			}
			names, err := os.ReadDir(filepath.Dir(dest))
			if err != nil || len(names) != 1 {
				t.Errorf("%s: beside the archive: %v, %v", f, names, err)
			}
		}
		if err := os.Remove(filepath.Join(dir, "data/a.txt")); err != nil {
			t.Fatal(err)
		}
		outer := t.TempDir()
		if _, err := Serialize(t.Context(), dir, filepath.Join(outer, "x"), SerializeOptions{Format: f}); err == nil {
			t.Errorf("%s: an incomplete bag was serialized", f)
		}
		expectNothing(t, outer)
	}
}

// Bags are validated in every compression that a tar is unpacked from.
func TestSerializedInEveryCompression(t *testing.T) {
	plain := filepath.Join(t.TempDir(), "bag.tar")
	if _, err := Serialize(t.Context(), goodBag().write(t), plain, SerializeOptions{Format: archive.Tar, NoSync: true}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ program, suffix string }{{"gzip", ".gz"}, {"zstd", ".zst"}, {"bzip2", ".bz2"}, {"xz", ".xz"}, {"lz4", ".lz4"}} {
		t.Run(c.program, func(t *testing.T) {
			program := tool(t, c.program)
			dir := t.TempDir()
			data, err := os.ReadFile(plain)
			if err != nil {
				t.Fatal(err)
			}
			archived := filepath.Join(dir, "bag.tar")
			if err := os.WriteFile(archived, data, 0o644); err != nil {
				t.Fatal(err)
			}
			args := []string{"-k", "bag.tar"}
			if c.program == "lz4" { // which writes to standard output where that is no terminal
				args = []string{"-q", "bag.tar", "bag.tar.lz4"}
			}
			runIn(t, dir, program, args...)
			r, err := Validate(t.Context(), archived+c.suffix, ValidateOptions{})
			if err != nil || !r.Valid || r.Archive != archive.Format("tar"+c.suffix) {
				t.Fatalf("%+v, %v", r, err)
			}
			if data, err = os.ReadFile(archived + c.suffix); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(archived+c.suffix, data[:len(data)*3/4], 0o644); err != nil {
				t.Fatal(err)
			}
			r, err = Validate(t.Context(), archived+c.suffix, ValidateOptions{})
			if err != nil || r.Valid || r.Errors == 0 {
				t.Errorf("cut: %+v, %v", r, err)
			}
		})
	}
}
