package bags

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"
)

func FuzzManifestLine(f *testing.F) {
	for _, s := range []string{"aa  data/x", "aa *data/x", "aa\tdata/%0A%25", "", " ", "x", "aa  ./data/../x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		m, err := parseManifestLine(s)
		if err != nil {
			return
		}
		if m.path == "" || m.sum == "" {
			t.Fatalf("%q: an entry without a path or sum", s)
		}
		if p, bare := decodeManifestPath(m.path); !bare {
			if q, _ := decodeManifestPath(encodeManifestPath(p)); q != p {
				t.Fatalf("%q: encoding %q gives %q back", s, p, q)
			}
		}
	})
}

func FuzzInfo(f *testing.F) {
	for _, s := range []string{"A: b\n", "A: b\n c\n", "A:b\r\nB : c\r", "\ufeffA: b", " x\n", ":\n"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		fields, err := ReadInfo(strings.NewReader(s))
		if err != nil {
			return
		}
		for _, in := range fields {
			if in.Check() != nil || strings.ContainsFunc(in.Value, isLineControl) || !utf8.ValidString(in.Value) {
				continue
			}
			out, err := ReadInfo(strings.NewReader(foldField(in)))
			if err != nil || len(out) != 1 || out[0] != in {
				t.Fatalf("%q became %q, %v", in, out, err)
			}
		}
	})
}

func FuzzDeclaration(f *testing.F) {
	f.Add([]byte("BagIt-Version: 1.0\nTag-File-Character-Encoding: UTF-8\n"))
	for _, s := range []string{
		"BagIt-Version : 1.0\nTag-File-Character-Encoding : UTF-8\n", "BagIt-Version:1.0\rTag-File-Character-Encoding:UTF-8\r", "\ufeffBagIt-Version: 1.0\n",
		"Tag-File-Character-Encoding: UTF-8\r\nBagIt-Version: 0.97\r\n\r\n", "bagit-version: .97\n", "BagIt-Version: 1.0\nBagIt-Version: 0.97\n",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		d := parseDeclaration(data)
		if d.version == "1.0" && len(d.problems) == 0 && d.encoding == "UTF-8" {
			clean := strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(string(data))
			if clean != "BagIt-Version: 1.0\nTag-File-Character-Encoding: UTF-8\n" {
				t.Fatalf("%q passes for a clean declaration", data)
			}
		}
	})
}

func FuzzZip(f *testing.F) {
	f.Add(zipOf(f, "a", "d/", "d/b"))
	f.Add(zipOf(f, "../x"))
	f.Add(zipOf(f))
	for _, data := range seedZips(f) {
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) { fuzzExtract(t, "x.zip", data) })
}

func FuzzTar(f *testing.F) {
	whole := tarOf(f, file("a", "x"), file("d/", ""), file("d/"+strings.Repeat("n", 150), "y"))
	f.Add(whole)
	f.Add(whole[:1300])
	f.Add(gz(f, whole))
	f.Add(zst(f, whole))
	for _, data := range seedTars(f) {
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) { fuzzExtract(t, "x.tar", data) })
}

// The compressions' readers, each with a tar in it and cut short.
func FuzzCompressed(f *testing.F) {
	for name, data := range everyFormat(f) {
		if strings.HasPrefix(name, "x.tar") {
			f.Add(data)
			f.Add(data[:len(data)/2])
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, c := range compressions() {
			if c.is(data) {
				fuzzExtract(t, "x."+string(tarIn(c)), data)
			}
		}
	})
}

// These two start a process for each try.
func FuzzSevenZip(f *testing.F) {
	f.Add(sevenZipHungry("\x21", 40))
	f.Add(sevenZipOf(nil, nil))
	if data, ok := everyFormat(f)["x.7z"]; ok {
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if bytes.HasPrefix(data, []byte(sevenZipMagic)) {
			fuzzExtract(t, "x.7z", sealed7z(data))
		}
	})
}

// sealed7z mends the check sums, which no change would pass otherwise.
func sealed7z(b []byte) []byte {
	if len(b) < sevenZipStart {
		return b
	}
	offset, size := le64(b[12:]), le64(b[20:])
	if rest := uint64(len(b) - sevenZipStart); offset <= rest && size <= rest-offset {
		return sevenZipOf(b[sevenZipStart:sevenZipStart+offset], b[sevenZipStart+offset:sevenZipStart+offset+size])
	}
	return b
}

func le64(b []byte) uint64 { return binary.LittleEndian.Uint64(b) }

func FuzzRar(f *testing.F) {
	f.Add(rar4Of(someRar[0], someRar[1]))
	f.Add(rar5Of(someRar[0], someRar[1]))
	f.Add(rar5Parts("x", "a", "b")[0])
	f.Add(rar4Parts("x", true, "a", "b")[1])
	for _, data := range seedRars() {
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if bytes.HasPrefix(data, []byte("Rar!")) {
			fuzzExtract(t, "x.part1.rar", data)
		}
	})
}

// A reading process's words are not believed either: it decodes hostile bytes.
func FuzzFrames(f *testing.F) {
	var b bytes.Buffer
	w := frameWriter{bufio.NewWriter(&b)}
	for _, err := range []error{
		w.putJSON(frameMember, frameHead{Name: []byte("a"), Size: 1}), w.put(frameData, []byte("x")), w.put(frameEnd, nil), w.last(nil), w.w.Flush(),
	} {
		if err != nil {
			f.Fatal(err)
		}
	}
	f.Add(b.Bytes())
	f.Fuzz(func(t *testing.T, data []byte) {
		root, err := os.OpenRoot(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		defer root.Close()
		s := newSink(root, "x.7z", int64(len(data)), ExtractOptions{Limits: Limits{Files: 100, Bytes: 1 << 20}})
		out := s.stream(t.Context())
		err = out.wait(takeMembers(out, &frameReader{r: bufio.NewReader(bytes.NewReader(data))}, namer{}, s))
		var e *Error
		var m readerFault
		if err != nil && !errors.As(err, &e) && !errors.As(err, &m) && !errors.Is(err, errCut) {
			t.Fatalf("an error of no kind: %v", err)
		}
	})
}

func FuzzCodePage(f *testing.F) {
	f.Add("Gr\x94\xe1e.txt")
	f.Add("\x93\xfa\x96\x7b")
	f.Fuzz(func(t *testing.T, stored string) {
		n, _, err := newNamer("", []string{stored})
		if err != nil {
			t.Fatal(err)
		}
		if got := n.decode(stored); got != stored && !utf8.ValidString(got) {
			t.Fatalf("%q became %q", stored, got)
		}
	})
}

// fuzzExtract checks the laws of extraction: every error is a broken rule, only
// folders and regular files appear, within the limits, and nothing appears
// beside the folder.
func fuzzExtract(t *testing.T, name string, data []byte) {
	outer := t.TempDir()
	archive := filepath.Join(outer, name)
	dir := filepath.Join(outer, "to")
	if err := os.WriteFile(archive, data, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	limits := Limits{Files: 100, Bytes: 1 << 20}
	x, err := Extract(t.Context(), archive, dir, ExtractOptions{Limits: limits, Workers: 2})
	var e *Error
	if err != nil && !errors.As(err, &e) {
		t.Fatalf("an error that names no rule: %v", err)
	}
	names, rerr := os.ReadDir(outer)
	if rerr != nil || len(names) != 2 {
		t.Fatalf("beside the folder: %v, %v", names, rerr)
	}
	tree, serr := Scan(t.Context(), dir)
	if serr != nil {
		t.Fatal(serr)
	}
	if len(tree.Others) > 0 || tree.Bytes() > limits.Bytes {
		t.Fatalf("%d links or specials, %d bytes", len(tree.Others), tree.Bytes())
	}
	for _, f := range tree.Files {
		if f.Mode&(fs.ModeSetuid|fs.ModeSetgid|fs.ModeSticky) != 0 {
			t.Fatalf("%s has mode %v", f.Path, f.Mode)
		}
	}
	if err == nil && int64(len(tree.Files)) != x.Files {
		t.Fatalf("%d files, reported %d", len(tree.Files), x.Files)
	}
	if err == nil && bytes.HasPrefix(data, []byte("PK\x03\x04")) && x.Format != Zip {
		t.Fatalf("a zip was read as %s", x.Format)
	}
}

func FuzzFetchLine(f *testing.F) {
	for _, s := range []string{"https://example.org/a 3 data/a", "file:///x - data/a b", "x", "", " ", "a:b\t-\tdata/%0A"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		l, err := parseFetchLine(s)
		if err == nil && (l.url == "" || l.path == "" || l.length < -1 || strings.ContainsAny(l.url, " \t")) {
			t.Fatalf("%q: %+v", s, l)
		}
	})
}

func FuzzProfile(f *testing.F) {
	f.Add([]byte(`{"BagIt-Profile-Info":{"Version":"1"},"Bag-Info":{"A":{"required":true,"values":["x"]}},"Accept-BagIt-Version":["1.0"]}`))
	f.Add([]byte(`{"Tag-Files-Allowed":["*","a*b"],"Allow-Fetch.txt":"false"}`))
	f.Add([]byte(`null`))
	dir := goodBag().write(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := ParseProfile(data)
		if err != nil {
			return
		}
		r, err := Validate(t.Context(), dir, ValidateOptions{Level: Complete, Profiles: []*Profile{p}})
		if err != nil || !r.Complete {
			t.Fatalf("%+v, %v", r.Findings, err)
		}
	})
}

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
	files := map[string]string{}
	tree, err := Scan(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range tree.Files {
		data, err := os.ReadFile(filepath.Join(dir, e.Path))
		if err != nil {
			t.Fatal(err)
		}
		files[e.Path] = string(data)
	}
	return files
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
		r, err := Validate(t.Context(), p, ValidateOptions{Limits: Limits{Files: 200, Bytes: 1 << 20}})
		if err != nil {
			t.Fatal(err)
		}
		if r.Valid && r.Errors > 0 {
			t.Fatalf("%+v", r)
		}
	})
}
