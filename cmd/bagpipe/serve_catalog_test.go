package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidwall/gjson"
)

// What stays in a catalog is sent from there, while it is as it was catalogued; else the answer says why not.
func TestFilesOfACatalogAreSent(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.workflow("listed", "  - name: list\n    robot: inventory\n")
	b.write("photos/one.txt", "one\n")
	b.write("photos/two.txt", "two\n")
	b.ok("catalog", "add", "ph", b.top+"/photos", "--workflow", "listed")
	b.ok("catalog", "scan")
	b.ok("run")
	s := b.serve()
	s.program("viewer")
	one := "/api/v1/items/one.txt/files/one.txt"
	a := s.ask("GET", one, "")
	if a.code != 200 || a.body != "one\n" || !strings.HasPrefix(a.header.Get("Content-Disposition"), "attachment") ||
		a.header.Get("X-Content-Type-Options") != "nosniff" || !strings.HasPrefix(a.header.Get("Content-Security-Policy"), "sandbox") {
		t.Errorf("a file: %+v", a)
	}
	if a := s.ask("GET", one, "", "Range", "bytes=1-2"); a.code != 206 || a.body != "ne" {
		t.Errorf("a range: %+v", a)
	}
	if a := s.ask("GET", "/api/v1/items/one.txt/files/two.txt", ""); a.code != 404 {
		t.Errorf("another's file: %+v", a)
	}
	says := func(path string, code int, text string) {
		t.Helper()
		if a := s.ask("GET", path, ""); a.code != code || !strings.Contains(gjson.Get(a.body, "detail").String(), text) {
			t.Errorf("%s: %+v", text, a)
		}
	}
	b.must(os.Rename(filepath.Join(b.top, "photos"), filepath.Join(b.top, "away")))
	says(one, 503, "its root cannot be read")
	b.must(os.Rename(filepath.Join(b.top, "away"), filepath.Join(b.top, "photos")))
	b.write("photos/two.txt", "other\n")
	says("/api/v1/items/two.txt/files/two.txt", 409, "has changed since it was catalogued")
	b.must(os.Rename(filepath.Join(b.top, "photos/one.txt"), filepath.Join(b.top, "photos/uno.txt")))
	says(one, 404, "is gone from catalog ph")
	b.ok("catalog", "scan")
	b.await("the file under its new name", func() bool {
		a := s.ask("GET", "/api/v1/items/uno.txt/files/one.txt", "")
		return a.code == 200 && a.body == "one\n"
	})
}

// A program over HTTP gets no object that stays in a catalog, and its step fails with the reason.
func TestAProgramIsRefusedWhatStaysInACatalog(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.workflow("far", "  - name: ocr\n    external: true\n")
	b.write("photos/one.txt", "one\n")
	b.ok("catalog", "add", "ph", b.top+"/photos", "--workflow", "far")
	b.ok("catalog", "scan")
	s := b.serve()
	s.program("operator")
	at := s.claim("20s")
	if said := s.json("GET", at, "", 409); !strings.Contains(said, "the object stays where it is") {
		t.Errorf("given: %s", said)
	}
	s.json("POST", at+"/end", `{"exit":0}`, 409)
	if shown := b.ok("show", "one.txt", "--json"); !strings.Contains(shown, "the object stays where it is") || len(b.labels("completed")) > 0 {
		t.Errorf("shown: %s", shown)
	}
}
