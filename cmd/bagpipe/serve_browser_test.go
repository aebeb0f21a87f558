package main

import (
	"context"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/tidwall/gjson"
)

// browser is a Chromium that looks at a site. Where there is none its tests are skipped.
type browser struct {
	s   *site
	ctx context.Context

	mu    sync.Mutex // guards wrong
	wrong []string   // on the console, and requests elsewhere
}

func (s *site) browser() *browser {
	t := s.b.t
	t.Helper()
	program := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if at, err := exec.LookPath(name); err == nil && program == "" {
			program = at
		}
	}
	if program == "" {
		t.Skip("no Chromium is here; on Debian the package chromium brings it")
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(program), chromedp.NoSandbox, chromedp.UserDataDir(t.TempDir()))
	allocator, end := chromedp.NewExecAllocator(t.Context(), options...)
	ctx, stop := chromedp.NewContext(allocator)
	ctx, late := context.WithTimeout(ctx, 2*time.Minute)
	t.Cleanup(func() { late(); stop(); end() })
	br := &browser{s: s, ctx: ctx}
	chromedp.ListenTarget(ctx, br.note)
	br.do(network.Enable(), log.Enable())
	return br
}

// note keeps what a page says on the console, and requests to other servers.
func (br *browser) note(event any) {
	br.mu.Lock()
	defer br.mu.Unlock()
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		br.wrong = append(br.wrong, e.ExceptionDetails.Error())
	case *runtime.EventConsoleAPICalled:
		br.wrong = append(br.wrong, "console: "+string(e.Type))
	case *log.EventEntryAdded:
		if e.Entry.Level != log.LevelVerbose { // advice
			br.wrong = append(br.wrong, e.Entry.Text)
		}
	case *network.EventRequestWillBeSent:
		if !strings.HasPrefix(e.Request.URL, br.s.base) {
			br.wrong = append(br.wrong, "a request to "+e.Request.URL)
		}
	}
}

func (br *browser) do(actions ...chromedp.Action) {
	br.s.b.t.Helper()
	br.s.b.must(chromedp.Run(br.ctx, actions...))
}

// judge opens a page, and wants nothing to be wrong with it. With BAGPIPE_SCREENSHOTS, a
// folder, its picture is kept there.
func (br *browser) judge(path, name, check string) {
	t := br.s.b.t
	t.Helper()
	var found []string
	var shot []byte
	br.do(chromedp.Navigate(br.s.base+path), chromedp.WaitReady("main"), chromedp.Evaluate(check, &found))
	if dir := os.Getenv("BAGPIPE_SCREENSHOTS"); dir != "" {
		br.do(chromedp.FullScreenshot(&shot, 100))
		br.s.b.must(os.WriteFile(filepath.Join(dir, name+".png"), shot, 0o644))
	}
	br.mu.Lock()
	defer br.mu.Unlock()
	for _, what := range append(found, br.wrong...) {
		t.Errorf("%s (%s): %s", path, name, what)
	}
	br.wrong = nil
}

// Each page, small and dark, large and light: nothing is wider than the window, everything has
// its name, texts are seen, the console is silent, and nothing is asked elsewhere. Then a person
// uploads, decides, and looks, by keys alone.
func TestServeInABrowser(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.ok("collection", "add", "reading-room", "--approval", "approve")
	b.write("in/a letter with a rather long name that goes on and on without any end.txt", "Dear")
	b.ok("add", "--collection", "reading-room", filepath.Join(b.top, "in/a letter with a rather long name that goes on and on without any end.txt"))
	b.drop("zip", "parent.zip")
	b.start("run", "--batch", "june").code(4)
	s := b.serve()
	br := s.browser()
	check, err := os.ReadFile("testdata/browser/check.js")
	b.must(err)
	item := gjson.Get(b.ok("items", "--collection", "reading-room", "--json"), "0.item").String()
	u, err := url.Parse(s.link)
	b.must(err)
	br.do(chromedp.Navigate(s.base+u.RequestURI()), chromedp.SendKeys("button.first", kb.Enter), chromedp.WaitReady("nav"))
	pages := []string{"/", "/items", "/items/" + item, "/mine", "/failures", "/queues", "/queues/accession/approve?for=people", "/batches", "/batches/june", "/workflows", "/workflows/accession",
		"/stats", "/inbox", "/engines", "/settings", "/users", "/log", "/nowhere"}
	for _, screen := range []struct {
		name, scheme string
		width        int64
	}{{"small", "dark", 320}, {"large", "light", 1440}} {
		br.do(chromedp.EmulateViewport(screen.width, 800), emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: screen.scheme}}))
		for _, page := range pages {
			name := strings.NewReplacer("/", "-", "?", "-", item, "ITEM").Replace(strings.Trim(page, "/"))
			if page == "/nowhere" { // the console tells of the 404, as it should
				br.do(chromedp.Navigate(s.base + page))
				br.wrong = nil
				continue
			}
			br.judge(page, screen.name+"-"+name, string(check))
		}
	}
	br.uploads()
	br.decides(item)
}

// uploads sends a file by the page's script, which needs no more than the form.
func (br *browser) uploads() {
	b := br.s.b
	b.write("up/sent.txt", "sent by a browser")
	br.do(chromedp.Navigate(br.s.base+"/inbox"), chromedp.SetUploadFiles(`input[name="file"]`, []string{filepath.Join(b.top, "up/sent.txt")}, chromedp.ByQuery),
		chromedp.SendKeys("form.drop button.first", kb.Enter, chromedp.ByQuery), chromedp.WaitVisible("p.note"))
	b.await("the upload is taken in", func() bool { return strings.Contains(b.ok("items"), "sent.txt") })
}

// decides completes what waits for a person, by keys alone.
func (br *browser) decides(item string) {
	b := br.s.b
	br.do(chromedp.Navigate(br.s.base+"/mine"), chromedp.WaitReady("main"), chromedp.KeyEvent("c"), chromedp.KeyEvent(kb.Enter), chromedp.WaitVisible("p.note"))
	b.await("the decision", func() bool {
		return gjson.Get(b.ok("show", item, "--json"), `workflows.0.steps.#(step=="approve").status`).String() == "completed"
	})
}
