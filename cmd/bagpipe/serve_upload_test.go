package main

import (
	"crypto/sha256"
	"encoding/base64"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"bagpipe/layout/disk"
)

// tus sends a call of tus; headers are names and values in turn.
func (s *site) tus(method, path, body string, headers ...string) answer {
	s.b.t.Helper()
	return s.ask(method, path, body, append(headers, "Tus-Resumable", "1.0.0")...)
}

// announce makes an upload; metadata are names and values in turn.
func (s *site) announce(size int, metadata ...string) answer {
	s.b.t.Helper()
	var pairs []string
	for i := 0; i+1 < len(metadata); i += 2 {
		pairs = append(pairs, metadata[i]+" "+base64.StdEncoding.EncodeToString([]byte(metadata[i+1])))
	}
	return s.tus("POST", "/api/v1/uploads", "", "Upload-Length", strconv.Itoa(size), "Upload-Metadata", strings.Join(pairs, ","))
}

// send appends bytes to an upload.
func (s *site) send(at string, offset int, data string, headers ...string) answer {
	s.b.t.Helper()
	return s.tus("PATCH", at, data, append(headers, "Upload-Offset", strconv.Itoa(offset), "Content-Type", "application/offset+octet-stream")...)
}

// A folder is sent in parts; a kill between them costs nothing, and it is one drop when all of
// it has come.
func TestServeUploads(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := b.serve("--no-run")
	s.program("operator")
	if a := s.tus("OPTIONS", "/api/v1/uploads", ""); a.header.Get("Tus-Extension") != "creation,creation-with-upload,termination,checksum,expiration" {
		t.Errorf("extensions: %+v", a)
	}
	folder := []string{"collection", "default", "set", "0123456789abcdef", "name", "letters", "files", "3", "path"}
	one := s.announce(8, append(folder, "one.txt")...)
	two := s.announce(6, append(folder, "below/two.txt")...)
	at := two.header.Get("Location")
	if one.code != 201 || two.code != 201 || !strings.HasPrefix(at, "/api/v1/uploads/") || two.header.Get("Upload-Expires") == "" {
		t.Fatalf("announced: %+v %+v", one, two)
	}
	if a := s.send(one.header.Get("Location"), 0, "Dear"); a.code != 204 || a.header.Get("Upload-Offset") != "4" {
		t.Errorf("the first half: %+v", a)
	}
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
	token := s.token
	s = b.serve("--no-run")
	s.token = token
	if a := s.tus("HEAD", one.header.Get("Location"), ""); a.header.Get("Upload-Offset") != "4" {
		t.Errorf("after a kill: %+v", a)
	}
	s.program("operator") // another account
	if a := s.tus("HEAD", one.header.Get("Location"), ""); a.code != 404 {
		t.Errorf("another's upload: %+v", a)
	}
	s.token = token
	if a := s.send(one.header.Get("Location"), 4, " Ada"); a.code != 204 {
		t.Errorf("the second half: %+v", a)
	}
	sum := sha256.Sum256([]byte("Dearly"))
	good, bad := "sha256 "+base64.StdEncoding.EncodeToString(sum[:]), "sha256 "+base64.StdEncoding.EncodeToString(make([]byte, 32))
	if a := s.send(at, 0, "Dearly", "Upload-Checksum", bad); a.code != 460 {
		t.Errorf("a wrong sum: %+v", a)
	}
	if a := s.send(at, 0, "Dearly", "Upload-Checksum", good); a.code != 204 {
		t.Errorf("a right sum: %+v", a)
	}
	inbox := "ws/inbox/default/"
	if b.exists(inbox + "letters") {
		t.Error("the drop is there before all of it came")
	}
	if a := s.announce(0, append(folder, "empty.txt")...); a.code != 201 {
		t.Errorf("an empty file: %+v", a)
	}
	for name, want := range map[string]string{"one.txt": "Dear Ada", "below/two.txt": "Dearly", "empty.txt": ""} {
		if data, err := os.ReadFile(filepath.Join(b.dir, "inbox/default/letters", name)); err != nil || string(data) != want {
			t.Errorf("%s: %q %v", name, data, err)
		}
	}
	if a := s.tus("HEAD", at, ""); a.code != 200 || a.header.Get("Upload-Offset") != "6" {
		t.Errorf("a client that did not get the last answer: %+v", a)
	}
	for _, c := range []struct {
		want     int
		metadata []string
	}{
		{409, []string{"collection", "default", "filename", "letters"}},
		{404, []string{"collection", "nowhere", "filename", "x"}},
		{400, []string{"filename", "x"}},
		{400, []string{"collection", "default", "filename", ".hidden"}},
		{400, []string{"collection", "default", "name", "x", "path", "../x"}},
		{400, []string{"collection", "default", "name", "a/b", "path", "x"}},
		{400, []string{"collection", "..", "filename", "x"}},
		{400, []string{"collection", "default", "filename", "x", "set", "../../x"}},
		{400, []string{"collection", "default", "filename", "x", "files", "many"}},
	} {
		if a := s.announce(1, c.metadata...); a.code != c.want {
			t.Errorf("%v: %d, not %d: %s", c.metadata, a.code, c.want, a.body)
		}
	}
	gone := s.announce(5, "collection", "default", "filename", "gone.txt").header.Get("Location")
	if a := s.tus("DELETE", gone, ""); a.code != 204 {
		t.Errorf("given up: %+v", a)
	}
	s.program("viewer")
	if a := s.announce(1, "collection", "default", "filename", "x"); a.code != 403 {
		t.Errorf("a viewer's: %+v", a)
	}
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
	b.abandoned()
	b.serve("--no-run")
	b.await("what was given up is removed", func() bool {
		left, err := filepath.Glob(filepath.Join(b.dir, "inbox/default/.uploading-*"))
		b.must(err)
		return len(left) == 1 // the set of letters, which ended a moment ago
	})
}

// A file is announced with its first bytes, or with all of them.
func TestServeUploadsWithTheAnnouncement(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := b.serve("--no-run")
	s.program("operator")
	announce := func(name, part string, size int) answer {
		return s.tus("POST", "/api/v1/uploads", part, "Upload-Length", strconv.Itoa(size), "Content-Type", "application/offset+octet-stream",
			"Upload-Metadata", "collection "+base64.StdEncoding.EncodeToString([]byte("default"))+",filename "+base64.StdEncoding.EncodeToString([]byte(name)))
	}
	whole, half := announce("whole.txt", "Dear Ada", 8), announce("half.txt", "Dear", 8)
	if whole.code != 201 || whole.header.Get("Upload-Offset") != "8" || half.code != 201 || half.header.Get("Upload-Offset") != "4" {
		t.Errorf("announced: %+v %+v", whole, half)
	}
	if b.exists("ws/inbox/default/half.txt") {
		t.Error("a half is a drop")
	}
	if a := s.send(half.header.Get("Location"), 4, " Bob"); a.code != 204 {
		t.Errorf("the rest: %+v", a)
	}
	for name, want := range map[string]string{"whole.txt": "Dear Ada", "half.txt": "Dear Bob"} {
		if data, err := os.ReadFile(filepath.Join(b.dir, "inbox/default", name)); err != nil || string(data) != want {
			t.Errorf("%s: %q %v", name, data, err)
		}
	}
}

// A file that is announced again with its key is the same, also after a kill and when it is a drop by then; another file with
// that key is refused.
func TestServeUploadsByKey(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := b.serve("--no-run")
	s.program("operator")
	announce := func(name, size, key string) answer {
		return s.tus("POST", "/api/v1/uploads", "", "Upload-Length", size, "Idempotency-Key", key,
			"Upload-Metadata", "collection "+base64.StdEncoding.EncodeToString([]byte("default"))+",filename "+base64.StdEncoding.EncodeToString([]byte(name)))
	}
	first := announce("letter.txt", "8", "one")
	at := first.header.Get("Location")
	same := func(when string) {
		t.Helper()
		if a := announce("letter.txt", "8", "one"); a.code != 201 || a.header.Get("Location") != at {
			t.Errorf("%s: %+v, first %+v", when, a, first)
		}
		for _, other := range [][2]string{{"letter.txt", "9"}, {"another.txt", "8"}} {
			if a := announce(other[0], other[1], "one"); a.code != 422 {
				t.Errorf("%s, another file: %+v", when, a)
			}
		}
	}
	same("at once")
	s = s.again("--no-run")
	same("after a kill")
	if a := s.send(at, 0, "Dear Ada"); a.code != 204 || !b.exists("ws/inbox/default/letter.txt") {
		t.Errorf("the bytes: %+v", a)
	}
	same("once it is a drop")
	if a := announce("letter.txt", "8", "two"); a.code != 409 {
		t.Errorf("another call: %+v", a)
	}
	if drops, err := os.ReadDir(filepath.Join(b.dir, "inbox/default")); err != nil || len(drops) != 2 { // and the set
		t.Errorf("the inbox holds %v: %v", drops, err)
	}
}

// An inbox may be a file system of its own: what is on its way into it lies there, and becomes a drop by a rename.
func TestServeUploadsIntoAMountedInbox(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	inbox := filepath.Join(b.dir, "inbox/default")
	b.mount("tmpfs", inbox, "-t", "tmpfs", "-o", "size=8g")
	s := b.serve("--no-run")
	s.program("operator")
	at := s.announce(8, "collection", "default", "filename", "letter.txt").header.Get("Location")
	s.send(at, 0, "Dear")
	infos, err := filepath.Glob(filepath.Join(inbox, ".uploading-*/parts/*.info"))
	b.must(err)
	if len(infos) != 1 {
		t.Fatalf("the parts are %v", infos)
	}
	var part, drop syscall.Stat_t
	b.must(syscall.Stat(strings.TrimSuffix(infos[0], ".info"), &part))
	if a := s.send(at, 4, " Ada"); a.code != 204 {
		t.Errorf("the rest: %+v", a)
	}
	b.must(syscall.Stat(filepath.Join(inbox, "letter.txt"), &drop))
	if data, err := os.ReadFile(filepath.Join(inbox, "letter.txt")); err != nil || string(data) != "Dear Ada" || drop.Dev != part.Dev || drop.Ino != part.Ino {
		t.Errorf("%q, of %d:%d, that were %d:%d: %v", data, drop.Dev, drop.Ino, part.Dev, part.Ino, err)
	}
}

// A file of a set that is announced again, as whoever sent it did not get the answer, begins
// anew; one that is whole is never replaced. A name that the inbox passes over is refused.
func TestServeUploadsAnnouncedTwice(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := b.serve("--no-run")
	s.program("operator")
	folder := []string{"collection", "default", "set", "0123456789abcdef", "name", "letters", "files", "2", "path"}
	lost := s.announce(9, append(folder, "one.txt")...) // an answer that did not arrive
	s.send(lost.header.Get("Location"), 0, "half")
	one := s.announce(8, append(folder, "one.txt")...)
	if a := s.send(one.header.Get("Location"), 0, "Dear Ada"); a.code != 204 {
		t.Fatalf("announced again: %+v, then %+v", one, a)
	}
	if a := s.announce(5, append(folder, "one.txt")...); a.code != 409 {
		t.Errorf("another file of the same name: %+v", a)
	}
	two := s.announce(6, append(folder, "two.txt")...)
	s.send(two.header.Get("Location"), 0, "Dearly")
	for name, want := range map[string]string{"one.txt": "Dear Ada", "two.txt": "Dearly"} {
		if data, err := os.ReadFile(filepath.Join(b.dir, "inbox/default/letters", name)); err != nil || string(data) != want {
			t.Errorf("%s: %q %v", name, data, err)
		}
	}
	if a := s.announce(1, "collection", "default", "filename", "scan.part"); a.code != 400 {
		t.Errorf("a name that is passed over: %+v", a)
	}
}

// abandoned lays an upload that nothing came of for two days.
func (b *bench) abandoned() {
	b.t.Helper()
	dir := filepath.Join(b.dir, "inbox/default/.uploading-00ff")
	b.must(disk.MkdirAll(filepath.Join(dir, "drop"), 0o755))
	old := time.Now().Add(-48 * time.Hour)
	b.must(os.WriteFile(filepath.Join(dir, "drop/x"), []byte("x"), 0o644))
	for _, at := range []string{"drop/x", "drop", ""} {
		b.must(os.Chtimes(filepath.Join(dir, at), old, old))
	}
}
