package archive

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

	"bagpipe/bags/archive/internal/codepage"
	"bagpipe/bags/archive/internal/compress"
	"bagpipe/bags/archive/internal/frames"
	"bagpipe/bags/archive/internal/sevens"
	"bagpipe/bags/files"
)

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
		for _, c := range compress.All() {
			if c.Is(data) {
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
		if bytes.HasPrefix(data, []byte(sevens.Magic)) {
			fuzzExtract(t, "x.7z", sealed7z(data))
		}
	})
}

// sealed7z mends the check sums, which no change would pass otherwise.
func sealed7z(b []byte) []byte {
	if len(b) < sevens.StartLen {
		return b
	}
	offset, size := le64(b[12:]), le64(b[20:])
	if rest := uint64(len(b) - sevens.StartLen); offset <= rest && size <= rest-offset {
		return sevenZipOf(b[sevens.StartLen:sevens.StartLen+offset], b[sevens.StartLen+offset:sevens.StartLen+offset+size])
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
	w := frames.Writer{W: bufio.NewWriter(&b)}
	for _, err := range []error{
		w.PutJSON(frames.Member, frames.Head{Name: []byte("a"), Size: 1}), w.Put(frames.Data, []byte("x")), w.Put(frames.End, nil), w.Last(nil), w.W.Flush(),
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
		out, ctx := s.stream(t.Context())
		err = out.wait(takeMembers(ctx, out, &frames.Reader{R: bufio.NewReader(bytes.NewReader(data))}, codepage.Namer{}, s))
		var e *files.Error
		var m frames.Fault
		if err != nil && !errors.As(err, &e) && !errors.As(err, &m) && !errors.Is(err, frames.ErrCut) {
			t.Fatalf("an error of no kind: %v", err)
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
	var e *files.Error
	if err != nil && !errors.As(err, &e) {
		t.Fatalf("an error that names no rule: %v", err)
	}
	names, rerr := os.ReadDir(outer)
	if rerr != nil || len(names) != 2 {
		t.Fatalf("beside the folder: %v, %v", names, rerr)
	}
	tree, serr := files.Scan(t.Context(), dir)
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
