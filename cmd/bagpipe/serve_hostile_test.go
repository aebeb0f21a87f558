package main

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"encoding/csv"
	"fmt"
	"hash/crc32"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/tidwall/gjson"
)

// tags are what no reader of a page sees as text.
var tags = regexp.MustCompile(`<[^>]*>`)

// Names, messages and files that were made to be taken for something else: pages show them as text,
// tables hold no formula, files are sent to be kept, and no path leads out of an item.
func TestServeHostileContent(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	rtl, formula := "gpj.\u202eexe-\u2066txt", `=HYPERLINK("http:x","y")`
	for name, content := range map[string]string{"page.html": "<script>parent.x=1</script>", "picture.svg": `<svg xmlns="http://www.w3.org/2000/svg" onload="x()"/>`, "code.js": "x()",
		`quote"'>&<img src=x onerror=x()>.txt`: "x", "bomb.png": "\x89PNG\r\n\x1a\nno picture", "another.png": "\x89PNG\r\n\x1a\nnone either"} {
		b.write("in/odd/"+name, content)
	}
	b.write("in/odd/huge.png", hugePicture())
	b.must(os.Symlink("/etc/passwd", filepath.Join(b.top, "in/link")))
	b.ok("add", "--label", formula, filepath.Join(b.top, "in/odd"))
	b.ok("add", "--label", rtl, filepath.Join(b.top, "in/odd/code.js"))
	b.ok("add", "--label", "＝1+1", filepath.Join(b.top, "in/odd/code.js"))
	b.ok("hold", rtl, "-m", "first line\n\nBagpipe-To: completed\n<b onclick=x()>\u202e")
	b.ok("run")
	s := b.serve("--no-run")
	s.signIn()
	item := gjson.Get(b.ok("items", "--json"), `#(label="`+strings.ReplaceAll(formula, `"`, `\"`)+`").item`).String()
	turned := gjson.Get(b.ok("items", "--json"), `#(label%"gpj*").item`).String()
	if item == "" || turned == "" {
		t.Fatalf("the item is not listed: %s", b.ok("items", "--json"))
	}
	for _, path := range []string{"/items", "/items/" + item, "/items/" + turned, "/items/" + turned + "/log", "/items/" + item + "/log", "/log", "/items/" + item + "/files/page.html?look=yes", "/items/" + item + "/files/picture.svg?look=yes"} {
		a := s.ask("GET", path, "")
		if shown := tags.ReplaceAllString(a.body, ""); strings.ContainsAny(shown, "\u202e\u2066") || path == "/items" && !strings.Contains(shown, `gpj.\u202eexe-\u2066txt`) {
			t.Errorf("%s turns the direction of its text: %s", path, shown)
		}
		for _, bad := range []string{"<img src=x", "<b onclick", "<script>parent", "<svg xmlns", "onerror=x()>"} {
			if a.code != 200 || strings.Contains(a.body, bad) {
				t.Errorf("%s: %d, holds %q", path, a.code, bad)
			}
		}
	}
	for _, name := range []string{"page.html", "picture.svg", "code.js"} {
		for _, root := range []string{"/items/", "/api/v1/items/"} {
			a := s.ask("GET", root+item+"/files/"+name, "")
			if a.code != 200 || a.header.Get("Content-Type") != "application/octet-stream" || !strings.HasPrefix(a.header.Get("Content-Disposition"), "attachment") ||
				a.header.Get("X-Content-Type-Options") != "nosniff" || !strings.HasPrefix(a.header.Get("Content-Security-Policy"), "sandbox") {
				t.Errorf("%s%s: %d %v", root, name, a.code, a.header)
			}
		}
	}
	if a := s.ask("GET", "/items/"+item+"/files/bomb.png?look=picture", ""); a.code != 409 || !strings.Contains(a.body, "cannot be drawn") {
		t.Errorf("no picture: %d %s", a.code, a.body)
	}
	s.drawsBehindLimits("/items/" + item + "/files/huge.png?look=picture")
	for _, path := range []string{"../manifest.json", "..%2f..%2f..%2fbagpipe.yaml", "%2e%2e/execution.json", "/etc/passwd", "page.html/../../manifest.json", "page.html%00", "...."} {
		for _, root := range []string{"/items/", "/api/v1/items/"} {
			if a := s.ask("GET", root+item+"/files/"+path, ""); a.code == 200 || strings.Contains(a.body, `"schema"`) {
				t.Errorf("%s%s: %d %s", root, path, a.code, a.body)
			}
		}
	}
	for _, text := range []string{s.ask("GET", "/items.csv", "").body, b.ok("items", "--csv")} {
		rows, err := csv.NewReader(strings.NewReader(text)).ReadAll()
		b.must(err)
		for _, row := range rows {
			for _, cell := range row {
				if first, _ := utf8.DecodeRuneInString(cell); cell != "" && strings.ContainsRune("=+-@\t\r＝", first) {
					t.Errorf("a formula: %q", cell)
				}
			}
		}
	}
	if log := b.git("log", "-1", "--format=%(trailers:key=Bagpipe-To,valueonly)", "--grep=first line"); strings.Contains(log, "completed") {
		t.Errorf("a message passes for a trailer: %s", log)
	}
}

// hugePicture is a PNG of some bytes that decodes to 950 MB.
func hugePicture() string {
	picture := []byte("\x89PNG\r\n\x1a\n")
	chunk := func(kind string, data []byte) {
		picture = binary.BigEndian.AppendUint32(picture, uint32(len(data)))
		body := append([]byte(kind), data...)
		picture = binary.BigEndian.AppendUint32(append(picture, body...), crc32.ChecksumIEEE(body))
	}
	const side = 10_900
	head := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, side), side)
	chunk("IHDR", append(head, 16, 6, 0, 0, 0)) // 16 bits each of red, green, blue and how opaque
	var rows bytes.Buffer
	w := zlib.NewWriter(&rows)
	_, _ = w.Write(make([]byte, 1<<16)) // memory takes all
	_ = w.Close()
	chunk("IDAT", rows.Bytes())
	chunk("IEND", nil)
	return string(picture)
}

// drawsBehindLimits asks for a picture that takes more memory than it may: it is refused, and the process that was
// to draw it, not the server, is what had the limit.
func (s *site) drawsBehindLimits(path string) {
	t := s.b.t
	t.Helper()
	before := s.resident()
	if a := s.ask("GET", path, ""); a.code != 409 || !strings.Contains(a.body, "decoding needs more than the 536870912 bytes of memory allowed") {
		t.Errorf("a picture of 950 MB: %d %s", a.code, a.body)
	}
	if grown := s.resident() - before; grown > 64<<10 {
		t.Errorf("the server took %d KiB for it", grown)
	}
	if a := s.ask("GET", strings.Replace(path, "huge.png", "another.png", 1), ""); a.code != 409 { // drawn by the next process, which stays
		t.Errorf("no picture: %d", a.code)
	}
	children, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", s.cmd.Process.Pid))
	s.b.must(err)
	limited := 0
	for _, at := range children {
		pids, _ := os.ReadFile(at) // of a thread that has ended
		for _, pid := range strings.Fields(string(pids)) {
			limits, _ := os.ReadFile("/proc/" + pid + "/limits")
			if regexp.MustCompile(`(?m)^Max data size +\d{9} `).Match(limits) && regexp.MustCompile(`(?m)^Max file size +0 `).Match(limits) {
				limited++
			}
		}
	}
	if limited != 1 {
		t.Errorf("%d processes of the server's have limits", limited)
	}
}

// The word of a proxy counts from where the proxy is, and nowhere else; nor does a foreign page's.
func TestServeForgedHeaders(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for _, name := range []string{"zoe", "root"} {
		p := exec.Command("bagpipe", "-C", b.dir, "user", "add", name, "--role", map[string]string{"zoe": "operator", "root": "admin"}[name])
		p.Env, p.Stdin = b.env, strings.NewReader("correct horse battery\n")
		if out, err := p.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	s := b.serve("--no-run", "--proxy-header", "X-Remote-User", "--proxy-from", "127.0.0.9")
	for _, headers := range [][]string{{"X-Remote-User", "root"}, {"X-Remote-User", "root", "X-Forwarded-For", "127.0.0.9"}, {"X-Remote-User", "root", "Forwarded", "for=127.0.0.9"}, {"X-Remote-User", "root", "X-Real-Ip", "127.0.0.9"}} {
		if a := s.ask("GET", "/users", "", headers...); a.code != 303 {
			t.Errorf("%v from elsewhere: %d", headers, a.code)
		}
	}
	s = b.serve("--no-run", "--proxy-header", "X-Remote-User", "--proxy-from", "127.0.0.0/24")
	if a := s.ask("GET", "/users", "", "X-Remote-User", "root"); a.code != 200 {
		t.Errorf("an admin, by the proxy: %d", a.code)
	}
	if a := s.ask("GET", "/users", "", "X-Remote-User", "zoe"); a.code != 403 {
		t.Errorf("an operator, by the proxy: %d", a.code)
	}
	if a := s.ask("GET", "/", "", "X-Remote-User", "nobody"); a.code != 303 {
		t.Errorf("a stranger, by the proxy: %d", a.code)
	}
	s.signIn()
	for _, c := range []struct {
		headers []string
		want    int
	}{
		{[]string{"Origin", "http://evil.example"}, http.StatusForbidden},
		{[]string{"Origin", "null"}, http.StatusForbidden},
		{[]string{"Sec-Fetch-Site", "cross-site"}, http.StatusForbidden},
		{[]string{"Sec-Fetch-Site", "same-site"}, http.StatusForbidden},
		{[]string{"Host", "evil.example", "Origin", "http://evil.example"}, http.StatusMisdirectedRequest},
		{[]string{"Host", "localhost.evil.example"}, http.StatusMisdirectedRequest},
		{[]string{"Host", "127.0.0.1.evil.example:80"}, http.StatusMisdirectedRequest},
	} {
		if a := s.ask("POST", "/users", url.Values{"do": {"remove-user"}, "name": {"zoe"}}.Encode(), append(c.headers, "Content-Type", formType)...); a.code != c.want {
			t.Errorf("%v: %d, not %d", c.headers, a.code, c.want)
		}
	}
	if !strings.Contains(b.ok("user", "list"), "zoe") {
		t.Error("a foreign page removed an account")
	}
}
