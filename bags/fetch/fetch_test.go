package fetch

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"bagpipe/bags"
	"bagpipe/bags/finding"
)

// holes is a bag whose payload is to be fetched from base; the first file's length
// is given, the second's is not.
func holes(base string) bag {
	b := goodBag()
	b["fetch.txt"] = base + "/a.txt 3 data/a.txt\n" + base + "/b.txt - data/d/b.txt\n"
	b.sealTags()
	delete(b, "data/a.txt")
	delete(b, "data/d/b.txt")
	b["data/"] = ""
	return b
}

// served answers for files by path, with ranges, and counts.
type served struct {
	mu      sync.Mutex
	files   map[string]string
	asked   []string // "PATH RANGE"
	handler func(w http.ResponseWriter, r *http.Request) bool
}

func (s *served) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.asked = append(s.asked, r.URL.Path+" "+r.Header.Get("Range"))
	data, ok := s.files[r.URL.Path]
	handler := s.handler
	s.mu.Unlock()
	if handler != nil && handler(w, r) {
		return
	}
	if !ok {
		http.NotFound(w, r)
		return
	}
	http.ServeContent(w, r, "", time.Time{}, strings.NewReader(data))
}

func serve(t *testing.T) (*served, string, Allowed) {
	t.Helper()
	s := &served{files: map[string]string{"/a.txt": "one", "/b.txt": "two"}}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	u, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	return s, server.URL, Allowed{Hosts: []string{u.Host}}
}

func fetchIn(t *testing.T, dir string, allowed Allowed) Fetched {
	t.Helper()
	did, err := Complete(t.Context(), dir, Options{Allowed: allowed, Pause: time.Millisecond, Stall: 5 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	return did
}

func TestFetchCompletesABag(t *testing.T) {
	s, base, allowed := serve(t)
	dir := holes(base).write(t)
	r := expectBag(t, dir, false, false, finding.Unfetched)
	if !r.Incomplete() {
		t.Errorf("not only incomplete: %+v", r.Findings)
	}
	did := fetchIn(t, dir, allowed)
	if did.Files != 2 || did.Bytes != 6 || len(did.Failed) > 0 {
		t.Errorf("%+v", did)
	}
	expectBag(t, dir, true, true, "")
	expectGone(t, filepath.Join(dir, Dir))
	asked := len(s.asked)
	if did := fetchIn(t, dir, allowed); did.There != 2 || len(s.asked) != asked {
		t.Errorf("fetched again: %+v", did)
	}
}

func TestFetchAllowsNothingUnlessListed(t *testing.T) {
	s, base, _ := serve(t)
	secret := payloadFolder(t, bag{"a.txt": "one", "b.txt": "two"})
	for _, from := range []string{base, "file://" + secret, "ftp://example.org", "data:,x"} {
		dir := holes(from).write(t)
		for _, allowed := range []Allowed{{}, {Hosts: []string{"example.org"}, Folders: []string{t.TempDir()}}} {
			did := fetchIn(t, dir, allowed)
			if did.Files != 0 || len(did.Failed) != 2 {
				t.Errorf("%s: %+v", from, did)
			}
		}
		expectBag(t, dir, false, false, finding.Unfetched)
	}
	if len(s.asked) > 0 {
		t.Errorf("the server was asked: %v", s.asked)
	}
}

func TestFetchFollowsNoRedirectionElsewhere(t *testing.T) {
	other, otherBase, _ := serve(t)
	s, base, allowed := serve(t)
	s.handler = func(w http.ResponseWriter, r *http.Request) bool {
		http.Redirect(w, r, otherBase+r.URL.Path, http.StatusFound)
		return true
	}
	did := fetchIn(t, holes(base).write(t), allowed)
	if did.Files != 0 || len(did.Failed) != 2 || len(other.asked) > 0 {
		t.Errorf("%+v, the other was asked %v", did, other.asked)
	}
}

func TestFetchComparesSizeAndDigest(t *testing.T) {
	for about, data := range map[string]string{"another": "ONE", "longer": "one and more", "shorter": "on", "empty": ""} {
		s, base, allowed := serve(t)
		s.files["/a.txt"], s.files["/b.txt"] = data, data
		dir := holes(base).write(t)
		did := fetchIn(t, dir, allowed)
		if did.Files != 0 || len(did.Failed) != 2 {
			t.Errorf("%s: %+v", about, did)
		}
		expectGone(t, filepath.Join(dir, "data/a.txt"))
		expectBag(t, dir, false, false, finding.Unfetched)
	}
}

// A transfer that breaks off is gone on with, by the next try or the next call.
func TestFetchResumes(t *testing.T) {
	s, base, allowed := serve(t)
	long := string(noise(300_000, 7))
	b := goodBag()
	b["data/a.txt"] = long
	delete(b, "bag-info.txt")
	b.seal()
	b["fetch.txt"] = fmt.Sprintf("%s/a.txt %d data/a.txt\n", base, len(long))
	b.sealTags()
	delete(b, "data/a.txt")
	dir := b.write(t)
	s.files["/a.txt"] = long
	s.handler = func(w http.ResponseWriter, r *http.Request) bool {
		if r.Header.Get("Range") != "" {
			http.Error(w, "later", http.StatusServiceUnavailable)
			return true
		}
		w.Header().Set("Content-Length", fmt.Sprint(len(long)))
		_, _ = w.Write([]byte(long[:100_000]))
		panic(http.ErrAbortHandler)
	}
	if did := fetchIn(t, dir, allowed); len(did.Failed) != 1 {
		t.Fatalf("%+v", did)
	}
	s.mu.Lock()
	s.handler, s.asked = nil, nil
	s.mu.Unlock()
	did := fetchIn(t, dir, allowed)
	if did.Files != 1 || did.Resumed != 1 || len(did.Failed) > 0 {
		t.Errorf("%+v", did)
	}
	if len(s.asked) != 1 || s.asked[0] == "/a.txt " || s.asked[0] == "/a.txt bytes=0-" {
		t.Errorf("asked %v", s.asked)
	}
	expectBag(t, dir, true, true, "")
}

// A part of another file is noticed, and begun anew.
func TestFetchBeginsAnewWhereThePartIsAnother(t *testing.T) {
	_, base, allowed := serve(t)
	dir := holes(base).write(t)
	if err := os.Mkdir(filepath.Join(dir, Dir), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{"data/a.txt", "data/d/b.txt"} {
		writeFile(t, filepath.Join(dir, partOf(p)), "XX")
	}
	if did := fetchIn(t, dir, allowed); did.Files != 2 || len(did.Failed) > 0 {
		t.Errorf("%+v", did)
	}
	expectBag(t, dir, true, true, "")
}

func TestFetchTriesAgain(t *testing.T) {
	s, base, allowed := serve(t)
	n := 0
	s.handler = func(w http.ResponseWriter, r *http.Request) bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		if n++; n <= 3 {
			http.Error(w, "busy", http.StatusServiceUnavailable)
			return true
		}
		return false
	}
	if did := fetchIn(t, holes(base).write(t), allowed); did.Files != 2 {
		t.Errorf("%+v", did)
	}
}

func TestFetchGivesUpAServerThatStalls(t *testing.T) {
	s, base, allowed := serve(t)
	s.handler = func(w http.ResponseWriter, r *http.Request) bool {
		_, _ = w.Write([]byte("o"))
		w.(http.Flusher).Flush()
		<-r.Context().Done()
		return true
	}
	did, err := Complete(t.Context(), holes(base).write(t), Options{Allowed: allowed, Pause: time.Millisecond, Stall: 50 * time.Millisecond})
	if err != nil || len(did.Failed) != 2 || !strings.Contains(did.Failed[0].Text, "nothing came") {
		t.Errorf("%+v, %v", did, err)
	}
}

func TestFetchFromFolders(t *testing.T) {
	store := payloadFolder(t, bag{"a.txt": "one", "b.txt": "two"})
	dir := holes("file://" + store).write(t)
	if did := fetchIn(t, dir, Allowed{Folders: []string{store}}); did.Files != 2 {
		t.Errorf("%+v", did)
	}
	expectBag(t, dir, true, true, "")

	outside := payloadFolder(t, bag{"a.txt": "one", "b.txt": "two"})
	linked := t.TempDir()
	for _, n := range []string{"a.txt", "b.txt"} {
		if err := os.Symlink(filepath.Join(outside, n), filepath.Join(linked, n)); err != nil {
			t.Fatal(err)
		}
	}
	for about, from := range map[string]string{"a link that leads out": linked, "a parent path": linked + "/../" + filepath.Base(filepath.Dir(outside))} {
		dir := holes("file://" + from).write(t)
		if did := fetchIn(t, dir, Allowed{Folders: []string{linked}}); did.Files != 0 {
			t.Errorf("%s: %+v", about, did)
		}
	}
}

func TestFetchRefusesABagThatIsWrong(t *testing.T) {
	_, base, allowed := serve(t)
	b := holes(base)
	b["fetch.txt"] += base + "/c 1 notes/tag.txt\n"
	b.sealTags()
	if _, err := Complete(t.Context(), b.write(t), Options{Allowed: allowed}); !errors.Is(err, bags.ErrNotValid) {
		t.Errorf("error %v", err)
	}
}

func TestAllowedHosts(t *testing.T) {
	a := Allowed{Hosts: []string{"example.org", "*.example.net", "localhost:8080"}}
	for u, want := range map[string]bool{
		"https://example.org/x": true, "http://EXAMPLE.org/x": true, "https://example.org:443/x": true, "https://example.org./x": true,
		"https://example.org:8443/x": false, "http://example.org:443/x": false, "https://a.example.org/x": false, "https://notexample.org/x": false,
		"https://a.b.example.net/": true, "https://example.net/": false, "https://evilexample.net/": false, "http://localhost:8080/": true,
		"http://localhost/": false, "https://example.org@evil.test/": false, "https://user:pass@example.org/": false, "ftp://example.org/": false,
		"https://example.org.evil.test/": false,
	} {
		p, err := url.Parse(u)
		if err != nil {
			t.Fatal(err)
		}
		if got := a.host(p) == nil; got != want {
			t.Errorf("%s: %v", u, got)
		}
	}
	for _, bad := range []string{"", "*", "https://example.org", "a/b", "*.*.org", "a:b:c"} {
		if (Allowed{Hosts: []string{bad}}).Check() == nil {
			t.Errorf("host %q passes", bad)
		}
	}
}
