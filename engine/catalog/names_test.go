package catalog_test

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"bagpipe/engine/catalog"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"
)

// Folders of any name are recorded, also of those that Git refuses, and the records are read as they were written.
func TestFoldersOfAnyName(t *testing.T) {
	check(t, 1)
	rapid.Check(t, func(r *rapid.T) {
		w := newWorld(r)
		names := []string{`a\b`, "a%5Cb", `C:\data`, "git~1", "GIT~1 ..", "git~1:x", `git~1\`, ".git", ".GIT ", ".g\u200cit", "\u200cgit~1", "g\ufeffit~1",
			"\u200f", "a\xffb", "%67it~1", ".", "..."}
		visible := 0
		for _, name := range names {
			if name != "." {
				w.must(os.MkdirAll(filepath.Join(w.dir, name, "in"), 0o755))
			}
			w.must(os.WriteFile(filepath.Join(w.dir, name, "in x.dat"), []byte(name), 0o644))
			if name == "." || name[0] != '.' {
				visible++
			}
		}
		scan := func() *catalog.Report {
			report, err := w.e.Catalog.Scan(t.Context(), "c", catalog.Options{})
			w.must(err)
			return report
		}
		if first := scan(); first.Folders != 2*len(names)-1 || first.New != visible {
			r.Errorf("the first scan: %+v", first.Counts)
		}
		was := w.list()
		w.must(os.RemoveAll(filepath.Join(w.e.Root(), ".bagpipe/catalogs"))) // the records are read
		if again := scan(); again.Records != 0 || again.New+again.Versions+again.Moved+again.Gone != 0 || again.Trouble() {
			r.Errorf("the second scan: %+v", again)
		}
		if now := w.list(); !maps.Equal(was, now) {
			r.Errorf("known: %q, and was %q", slices.Sorted(maps.Keys(now)), slices.Sorted(maps.Keys(was)))
		}
	})
}

// A folder whose path is longer than the system takes is unread, and what is above it and beside it is catalogued.
func TestPathLongerThanTheSystemTakes(t *testing.T) {
	check(t, 1)
	rapid.Check(t, func(r *rapid.T) {
		w := newWorld(r)
		fd, err := unix.Open(w.dir, unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		w.must(err)
		w.must(os.WriteFile(w.at("beside.dat"), []byte("beside"), 0o644))
		files, name := 1, strings.Repeat("n", 200)
		for at := len(w.dir); at < unix.PathMax+3*len(name); at += 1 + len(name) {
			w.must(unix.Mkdirat(fd, name, 0o755))
			below, err := unix.Openat(fd, name, unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
			w.must(errors.Join(err, unix.Close(fd)))
			fd = below
			f, err := unix.Openat(fd, "f.dat", unix.O_CREAT|unix.O_WRONLY|unix.O_CLOEXEC, 0o644)
			w.must(errors.Join(err, unix.Close(f)))
			if at+1+len(name) < unix.PathMax-len("/f.dat") {
				files++
			}
		}
		w.must(unix.Close(fd))
		for round := range 2 {
			report, err := w.e.Catalog.Scan(t.Context(), "c", catalog.Options{})
			w.must(err)
			if want := files * (1 - round); report.New != want || len(report.Unread) != 1 || !report.Trouble() {
				r.Errorf("scan %d: %d new of %d, unread: %v", round, report.New, want, report.Unread)
			}
		}
	})
}
