package disk

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"
)

func amendTo(t *testing.T, name, data string) bool {
	t.Helper()
	done, err := OS{}.Amend(name, func([]byte) []byte { return []byte(data) })
	if err != nil {
		t.Fatal(err)
	}
	return done
}

// amendableDir skips the test where files cannot be amended at all.
func amendableDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	name := filepath.Join(dir, "probe")
	if err := os.WriteFile(name, []byte("a"), 0o644); err != nil {
		t.Fatal(err)
	}
	if !amendTo(t, name, "ab") {
		t.Skip("no leases on the file system of the temporary folder")
	}
	return dir
}

func TestAmend(t *testing.T) {
	dir := amendableDir(t)
	name := filepath.Join(dir, "file")
	if err := os.WriteFile(name, []byte("old"), 0o644); err != nil {
		t.Fatal(err)
	}
	before, err := os.Stat(name)
	if err != nil {
		t.Fatal(err)
	}
	is := func(want string) {
		t.Helper()
		if got, err := os.ReadFile(name); err != nil || string(got) != want {
			t.Errorf("the file is %q, %v, want %q", got, err, want)
		}
	}
	if !amendTo(t, name, "newer") {
		t.Error("not amended")
	}
	is("newer")
	if after, err := os.Stat(name); err != nil || !os.SameFile(before, after) {
		t.Errorf("another file stands there: %v", err)
	}
	for what, data := range map[string][]byte{"nothing": nil, "fewer bytes": []byte("new"), "too much": bytes.Repeat([]byte("x"), amendable+1)} {
		if done, err := (OS{}).Amend(name, func([]byte) []byte { return data }); done || err != nil {
			t.Errorf("%s: %v, %v", what, done, err)
		}
	}
	is("newer")
}

func TestWhatIsNotAmended(t *testing.T) {
	dir := amendableDir(t)
	file := func(name, data string) string {
		name = filepath.Join(dir, name)
		if err := os.WriteFile(name, []byte(data), 0o644); err != nil {
			t.Fatal(err)
		}
		return name
	}
	open := file("open", "old")
	reader, err := os.Open(open)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	linked := file("linked", "old")
	if err := os.Link(linked, filepath.Join(dir, "second name")); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink(file("target", "old"), link); err != nil {
		t.Fatal(err)
	}
	fifo := filepath.Join(dir, "fifo")
	if err := unix.Mkfifo(fifo, 0o644); err != nil {
		t.Fatal(err)
	}
	large := file("large", string(bytes.Repeat([]byte("x"), amendable+1)))
	for _, name := range []string{open, linked, link, fifo, large, dir, filepath.Join(open, "below a file")} {
		if amendTo(t, name, "newer") {
			t.Errorf("%s was amended", filepath.Base(name))
		}
	}
	if done, err := (OS{}).Amend(filepath.Join(dir, "missing"), func([]byte) []byte { return []byte("new") }); done || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("what is not there was amended: %v, %v", done, err)
	}
	for _, name := range []string{open, linked, link} {
		if data, err := os.ReadFile(name); err != nil || string(data) != "old" {
			t.Errorf("%s is %q, %v", filepath.Base(name), data, err)
		}
	}
}

// Whoever reads while a file is amended again and again sees one of its versions.
func TestReadersSeeOneVersion(t *testing.T) {
	name := filepath.Join(amendableDir(t), "file")
	version := func(n int) []byte { return bytes.Repeat([]byte{byte('a' + n%26)}, 100+n) }
	if err := os.WriteFile(name, version(0), 0o644); err != nil {
		t.Fatal(err)
	}
	var ended atomic.Bool
	var readers sync.WaitGroup
	for range 3 {
		readers.Go(func() {
			for !ended.Load() {
				data, err := os.ReadFile(name)
				if err != nil || len(data) < 100 || !bytes.Equal(data, version(len(data)-100)) {
					t.Errorf("read %d bytes that no version has, %v", len(data), err)
					return
				}
			}
		})
	}
	amended := 0
	for n, tries := 1, 0; n < 3000 && tries < 200_000; tries++ {
		if amendTo(t, name, string(version(n))) {
			n++
			amended++
		}
	}
	ended.Store(true)
	readers.Wait()
	if amended == 0 {
		t.Error("the readers left no moment to amend the file")
	}
}

// A new file has its bytes; one that is there keeps its own.
func TestWriteNew(t *testing.T) {
	name := filepath.Join(t.TempDir(), "new")
	large := bytes.Repeat([]byte("0123456789"), 1<<18)
	if err := (OS{}).WriteNew(name, large, 0o640); err != nil {
		t.Fatal(err)
	}
	if err := (OS{}).WriteNew(name, []byte("other"), 0o640); !errors.Is(err, fs.ErrExist) {
		t.Errorf("over a file: %v", err)
	}
	info, err := os.Stat(name)
	if data, errRead := os.ReadFile(name); err != nil || errRead != nil || !bytes.Equal(data, large) || info.Mode().Perm()&^0o640 != 0 {
		t.Errorf("%d bytes, %v, %v, %v", len(data), info.Mode(), err, errRead)
	}
	if err := (OS{}).WriteNew(filepath.Join(name, "below"), nil, 0o640); err == nil {
		t.Error("a file was made below a file")
	}
	if err := (OS{}).WriteNew(name+" empty", nil, 0o640); err != nil {
		t.Error(err)
	}
}
