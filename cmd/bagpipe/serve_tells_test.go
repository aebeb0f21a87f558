package main

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/tidwall/gjson"
)

// What pages tell beside lists: differences of a commit, a picture drawn anew, how long an attempt
// waited, what fills a limit, versions in use, who else decides, columns, and the log to its beginning.
func TestServePagesTell(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	steps := "  - name: count\n    robot: inventory\n  - name: look\n    manual: true\n  - name: scan\n    command: ['true']\n    limit: 1\n"
	b.write("ws/workflows/trial.yaml", "schema: 1\nname: trial\ninFlight: 3\nsteps:\n  - name: register\n"+steps)
	picture := image.NewRGBA(image.Rect(0, 0, 40, 30))
	for i := range 40 * 30 {
		picture.Set(i%40, i/40, color.RGBA{uint8(6 * i), 90, uint8(i), 255})
	}
	var drawn bytes.Buffer
	b.must(png.Encode(&drawn, picture))
	b.write("in/scans/page one.png", drawn.String())
	b.write("in/scans/notes.txt", "seen")
	b.ok("register", "--workflow", "trial", "--label", "scans", "--identifier", "barcode=35112103187")
	b.ok("attach", "scans", filepath.Join(b.top, "in/scans"))
	b.addItems("trial", 2)
	b.start("run").code(0)
	s := b.serve("--no-run")
	s.signIn()
	item := gjson.Get(b.ok("show", "scans", "--json"), "manifest.item").String()
	page := func(path string) string {
		t.Helper()
		a := s.ask("GET", path, "")
		if a.code != 200 {
			t.Fatalf("%s: %d %s", path, a.code, a.body)
		}
		return a.body
	}
	wants := func(path string, texts ...string) {
		t.Helper()
		body := page(path)
		for _, text := range texts {
			if !strings.Contains(body, text) {
				t.Errorf("%s does not tell %q:\n%s", path, text, body)
			}
		}
	}
	// A picture is drawn anew, small, as a JPEG.
	look := "/items/" + item + "/files/page%20one.png"
	wants(look+"?look=yes", `<img class="picture"`)
	jpeg := s.ask("GET", look+"?look=picture", "")
	if !strings.HasPrefix(jpeg.body, "\xff\xd8\xff") || jpeg.header.Get("Content-Type") != "image/jpeg" {
		t.Errorf("the picture: %d %v %.2000s", jpeg.code, jpeg.header, jpeg.body)
	}
	// The history, and what a commit changed.
	s.post("/items/"+item+"/acts", "act", "hold", "message", "to be weighed", "back", "")
	lines := page("/items/" + item + "/log")
	commit := regexp.MustCompile(`/log/([0-9a-f]{40})"`).FindStringSubmatch(lines)
	if commit == nil || !strings.Contains(lines, "to be weighed") {
		t.Fatalf("the history: %s", lines)
	}
	wants("/items/"+item+"/log/"+commit[1], "<h2>execution.json</h2>", "<ins>", "to be weighed")
	if a := s.ask("GET", "/items/"+item+"/log/"+strings.Repeat("0", 40), ""); a.code != 404 {
		t.Errorf("no such commit: %d", a.code)
	}
	s.post("/items/"+item+"/acts", "act", "release", "back", "")
	wants("/items/"+item, `<th scope="col" class="n">Waited</th>`, "Start it")
	wants("/queues/trial", "limit: of the step", "inFlight: of the workflow", "trial/scan in progress")
	wants("/workflows/trial", "The graph as a table", `<th scope="row">scan</th><td>a command</td><td>look</td>`)
	// A newer definition: the items go on by theirs.
	b.write("ws/workflows/trial.yaml", "schema: 1\nname: trial\ndescription: a newer one\nsteps:\n  - name: register\n"+steps)
	b.ok("add", "--workflow", "trial", "--label", "newer", filepath.Join(b.top, "in/i0"))
	b.await("both versions", func() bool {
		body := page("/workflows/trial")
		return strings.Contains(body, "Versions in use") && strings.Contains(body, "no; its items go on by it") && strings.Contains(body, "<td>yes</td>")
	})
	// Facets and columns; a text is looked for in identifiers.
	b.ok("hold", "i1", "-m", "wait")
	wants("/items?columns=lane,identifiers.barcode&q=35112103", "35112103187", `<th scope="col">identifiers.barcode</th>`, "1 to 1 of 1 item ")
	b.await("the facet", func() bool { return strings.Contains(page("/items?facet=held:yes"), "1 to 1 of 1 item ") })
	wants("/items?facet=held:yes", `class="on"`)
	for path, want := range map[string]int{"/items?sort=nix": 400, "/items?limit=x": 400, "/items?sort=-lane,metadata.year&limit=1": 200, "/items/nowhere": 404} {
		if a := s.ask("GET", path, ""); a.code != want || strings.Contains(a.body, "bagpipe items lists") {
			t.Errorf("%s: %d, not %d: %.500s", path, a.code, want, a.body)
		}
	}
	if a := s.ask("GET", "/items.csv?columns=label,identifiers.barcode&q=scans", ""); a.body != "item,label,identifiers.barcode\n"+item+",scans,35112103187\n" {
		t.Errorf("the table: %q", a.body)
	}
	if a := s.ask("GET", "/items?columns=..", ""); a.code != 400 {
		t.Errorf("no column: %d", a.code)
	}
	// Who else decides.
	add := exec.Command("bagpipe", "-C", b.dir, "user", "add", "zoe", "--role", "operator", "--full-name", "Zoé Reader")
	add.Env, add.Stdin = b.env, strings.NewReader("correct horse battery\n")
	if out, err := add.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	other := b.serve("--no-run", "--proxy-header", "X-Remote-User", "--proxy-from", "127.0.0.1")
	mine := "/mine?item=" + item + "&step=look"
	other.ask("GET", mine, "", "X-Remote-User", "zoe")
	other.signIn()
	if a := other.ask("GET", mine, ""); !strings.Contains(a.body, "Open elsewhere, too: Zoé Reader") {
		t.Errorf("who else has it open: %s", a.body)
	}
	// The log goes on to the beginning.
	for i := range 110 {
		act := []string{"hold", "release"}[i%2]
		s.post("/items/"+item+"/acts", "act", act, "message", fmt.Sprint("no. ", i), "back", "")
	}
	next, seen := "/log", ""
	for range 10 {
		body := page(next)
		seen += body
		m := regexp.MustCompile(`href="(/log\?after=[0-9a-f]+)"`).FindStringSubmatch(body)
		if m == nil {
			break
		}
		next = m[1]
	}
	if !strings.Contains(seen, "init: new workspace") || next == "/log" {
		t.Errorf("the log does not lead to its beginning")
	}
}

// An item that has become another version says which, since when, and how each went; the files are those of now.
func TestServePagesTellVersions(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.workflow("trial", "  - name: count\n    robot: inventory\n")
	b.write("in/letters/one.txt", "one")
	b.write("later/letters/two.txt", "two")
	b.ok("add", "--workflow", "trial", filepath.Join(b.top, "in/letters"))
	b.start("run").code(0)
	b.ok("add", "--version-of", "letters", filepath.Join(b.top, "later/letters"))
	b.start("run").code(0)
	s := b.serve("--no-run")
	s.signIn()
	since := gjson.Get(b.ok("show", "letters", "--json"), "manifest.since").Time().UTC().Format("2006-01-02 15:04:05Z")
	s.holds("/items/letters", "<dt>Version</dt><dd>2, since "+since+"</dd>", `<h2>trial.1 <span class="status completed">`, `<h2>trial.2 <span class="status completed">`, ">two.txt</a>",
		`<td class="n">3 B</td><td>text/plain; charset=utf-8</td><td class="id digest">`+fmt.Sprintf("%x", sha256.Sum256([]byte("two"))))
	if a := s.ask("GET", "/items/letters", ""); strings.Contains(a.body, ">one.txt</a>") {
		t.Errorf("a file of the version before is listed as one of now: %s", a.body)
	}
	if a := s.ask("GET", "/workflow/objects/letters/workflows/trial/count", ""); attr(t, a.body, "process", "count", "version") != "2" {
		t.Errorf("by the call of WorkDo: %s", a.body)
	}
}

// What needs somebody stands on the pages where it is looked for: what pauses, which steps are out of the flow, what was
// rejected and why, the cause of a failure, and whose part an item is.
func TestServePagesWarn(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.workflow("cut", "  - name: cut\n    robot: split\n    with: {workflow: part}\n")
	b.workflow("part", "  - name: play\n    command: [sh, -c, 'echo it is torn >&2; exit 65']\n")
	b.write("in/tape/a.txt", "a")
	b.write("in/tape/b.txt", "b")
	b.ok("add", "--workflow", "cut", filepath.Join(b.top, "in/tape"))
	b.must(os.Mkdir(filepath.Join(b.dir, "inbox/default/empty"), 0o777))
	b.start("run").code(4)
	b.write("ws/inbox/.pause", "the store is being moved")
	b.ok("step", "disable", "part/play", "-m", "the player is mended")
	s := b.serve("--no-run")
	s.signIn()
	part := gjson.Get(b.ok("items", "--parent", "tape", "--json"), "0.item").String()
	for path, texts := range map[string][]string{
		"/":                          {"Not taken in", "the store is being moved", "Steps out of the flow", "part/play: disabled by Ada Keeper", "the player is mended"},
		"/inbox":                     {"default/empty", "is empty"},
		"/items?facet=status:failed": {"it is torn"},
		"/failures":                  {"it is torn", "2 × part/play"},
		"/items/tape":                {"<h2>Parts</h2>", "a.txt", "2 failed"},
		"/items/" + part:             {"<dt>Part of</dt>", ">tape</a>", "it is torn"},
		"/queues/part/play":          {"disabled"},
		"/stats":                     {"part/play", "cut/cut"},
		"/workflows/part":            {"Enable play"},
	} {
		a := s.ask("GET", path, "")
		for _, text := range texts {
			if a.code != 200 || !strings.Contains(a.body, text) {
				t.Errorf("%s: %d, and does not tell %q:\n%s", path, a.code, text, tags.ReplaceAllString(a.body, " "))
			}
		}
	}
}
