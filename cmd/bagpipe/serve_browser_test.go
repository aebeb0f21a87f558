package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"image/png"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
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
	ctx, late := context.WithTimeout(ctx, 10*time.Minute)
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

// judge opens a page, and wants nothing to be wrong with it: by the rules of check, and by those of
// axe-core where testdata/browser.sh has brought it. Its picture is kept in .cache/screenshots, or in the folder
// that BAGPIPE_SCREENSHOTS names.
func (br *browser) judge(path, name, check, axe string) {
	t := br.s.b.t
	t.Helper()
	var found, broken []string
	var shot []byte
	br.do(chromedp.Navigate(br.s.base+path), chromedp.WaitReady("main"),
		chromedp.Evaluate(`for (const d of document.querySelectorAll("details")) d.open = true`, nil), chromedp.Evaluate(check, &found)) // what is closed is not judged
	if axe != "" {
		br.do(chromedp.Evaluate(axe, nil), chromedp.Evaluate(axeRules, &broken, func(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }))
	}
	br.do(chromedp.FullScreenshot(&shot, 100))
	br.s.b.must(os.WriteFile(filepath.Join(screenshots(), name+".png"), shot, 0o644))
	br.mu.Lock()
	defer br.mu.Unlock()
	for _, what := range append(append(found, broken...), br.wrong...) {
		t.Errorf("%s (%s): %s", path, name, what)
	}
	br.wrong = nil
}

// screenshots is the folder of the pictures of pages.
func screenshots() string {
	return cmp.Or(os.Getenv("BAGPIPE_SCREENSHOTS"), "../../.cache/screenshots")
}

// axeRules asks axe-core for what breaks WCAG 2.2 AA or its best practices.
const axeRules = `axe.run(document, {resultTypes: ["violations"], rules: {"target-size": {enabled: true}}}).then((r) => r.violations.map((v) => v.id + ": " + v.help + ": " + v.nodes.slice(0, 3).map((n) => n.html.slice(0, 160) + " " + (n.any[0] || n.all[0] || n.none[0] || {message: ""}).message).join(" | ")))`

// axeCore is the script, or "" where it is not there. It is given to the page by the browser, not by
// the page itself, whose policy would not let it in.
func axeCore(t *testing.T) string {
	t.Helper()
	data, err := os.ReadFile("../../.cache/node_modules/axe-core/axe.min.js")
	if err != nil {
		t.Log("axe-core is not there; testdata/browser.sh brings it where it can")
		return ""
	}
	return string(data) + ";0"
}

// Each page, small and large, light and dark: nothing is wider than the window, everything has
// its name, texts are seen, axe-core finds nothing, the console is silent, and nothing is asked
// elsewhere. Then a person uploads, decides, and looks, by keys alone.
func TestServeInABrowser(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.ok("collection", "add", "reading-room", "--approval", "approve")
	long := "a letter with a rather long name that goes on and on without any end.txt"
	b.write("in/"+long, "Dear")
	b.ok("add", "--collection", "reading-room", filepath.Join(b.top, "in", long))
	b.drop("zip", "parent.zip")
	b.busied()
	b.start("run", "--batch", "june").code(4)
	b.ok("dispose", "propose", "new.txt", "-m", "a copy of another")
	s := b.serve()
	br := s.browser()
	check, err := os.ReadFile("testdata/browser/check.js")
	b.must(err)
	b.must(os.MkdirAll(screenshots(), 0o777))
	axe := axeCore(t)
	item := gjson.Get(b.ok("items", "--collection", "reading-room", "--json"), "0.item").String()
	link, err := url.Parse(s.link)
	b.must(err)
	br.judge("/signin", "signin", string(check), axe)
	br.judge(link.RequestURI(), "enter", string(check), axe)
	br.enter()
	for _, old := range picturesKept(b) {
		b.must(os.Remove(old))
	}
	pages := []string{"/", "/items", "/items?facet=status:failed&columns=lane,label", "/items/" + item, "/items/" + item + "/log", "/items/" + item + "/files/" + url.PathEscape(long) + "?look=yes", "/mine", "/failures", "/queues", "/queues/accession/approve?for=people",
		"/batches", "/batches/june", "/workflows", "/workflows/accession", "/stats", "/inbox", "/engines", "/settings", "/users", "/log",
		"/schedules", "/deliveries", "/deliveries?state=all", "/catalogs", "/disposals", "/search", "/search?q=txt&collection=maps", "/nowhere"}
	s.signInAs(br)
	change := gjson.Get(s.ask("GET", "/api/v1/items/"+item+"/log", "").body, "0.commit").String()
	preview := s.post("/bulk", "item", item, "act", "hold").header.Get("Location")
	pages = append(pages, "/items/"+item+"/log/"+change, preview)
	for _, screen := range []struct {
		name, scheme string
		width        int64
	}{{"small-dark", "dark", 320}, {"small-light", "light", 320}, {"large-light", "light", 1440}, {"large-dark", "dark", 1440}} {
		br.do(chromedp.EmulateViewport(screen.width, 800), emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: screen.scheme}}))
		for _, page := range pages {
			name := strings.NewReplacer("/", "-", "?", "-", item, "ITEM", change, "CHANGE", preview, "bulk-ID", url.PathEscape(long), "FILE", "&", "-", "=", "-", ":", "-", ",", "-").Replace(strings.Trim(page, "/"))
			if page == "/nowhere" { // the console tells of the 404, as it should
				br.do(chromedp.Navigate(s.base + page))
				br.wrong = nil
				continue
			}
			br.judge(page, screen.name+"-"+name, string(check), axe)
		}
	}
	br.s.b.keptPictures(len(pages)-1, 320, 1440) // of all but /nowhere
	br.deposits()
}

func picturesKept(b *bench) []string {
	b.t.Helper()
	kept, err := filepath.Glob(filepath.Join(screenshots(), "[sl][ma][ar][lg][le]-*.png")) // small-…, large-…
	b.must(err)
	return kept
}

// keptPictures wants a picture of each page to be kept, as wide as each of the screens, light and dark.
func (b *bench) keptPictures(pages int, widths ...int) {
	b.t.Helper()
	wide := map[int]int{}
	for _, at := range picturesKept(b) {
		f, err := os.Open(at)
		b.must(err)
		picture, err := png.DecodeConfig(f)
		b.must(errors.Join(err, f.Close()))
		wide[picture.Width]++
	}
	for _, width := range widths {
		if wide[width] != 2*pages {
			b.t.Errorf("%d pictures of %d pixels are kept, of %d pages light and dark: %v", wide[width], width, pages, wide)
		}
	}
}

// enter signs a browser in by the link, by keys.
func (br *browser) enter() {
	u, err := url.Parse(br.s.link)
	br.s.b.must(err)
	br.do(chromedp.Navigate(br.s.base+u.RequestURI()), chromedp.WaitReady("button.first"), chromedp.KeyEvent(kb.Enter), chromedp.WaitReady("header nav"))
}

// signInAs gives the test the session of a browser.
func (s *site) signInAs(br *browser) {
	var cookies []*network.Cookie
	br.do(chromedp.ActionFunc(func(ctx context.Context) (err error) {
		cookies, err = network.GetCookies().Do(ctx)
		return err
	}))
	at, err := url.Parse(s.base)
	s.b.must(err)
	for _, c := range cookies {
		s.jar.SetCookies(at, []*http.Cookie{{Name: c.Name, Value: c.Value}})
	}
}

// tabTo presses the tab key until something has the focus.
func (br *browser) tabTo(what string) {
	br.s.b.t.Helper()
	for range 200 {
		var there bool
		br.do(chromedp.KeyEvent(kb.Tab), chromedp.Evaluate("document.activeElement !== null && document.activeElement.matches("+strconv.Quote(what)+")", &there))
		if there {
			return
		}
	}
	br.s.b.t.Fatalf("no tab leads to %s", what)
}

// deposits brings a file in on the inbox's page, approves it, and sees it deposited, by keys alone. The
// chooser of files is the system's, not the page's: what it would answer is given.
func (br *browser) deposits() {
	b := br.s.b
	b.t.Helper()
	b.write("up/sent.txt", "sent by a browser")
	br.do(chromedp.EmulateViewport(1440, 800), chromedp.Navigate(br.s.base+"/"), chromedp.WaitReady("main"))
	br.tabTo(`a[href="/inbox"]`)
	br.do(chromedp.KeyEvent(kb.Enter), chromedp.WaitReady("form.drop"))
	br.tabTo(`select[name="collection"]`)
	br.do(chromedp.KeyEvent("r")) // reading-room
	br.tabTo(`input[name="file"]`)
	br.do(chromedp.SetUploadFiles(`input[name="file"]`, []string{filepath.Join(b.top, "up/sent.txt")}, chromedp.ByQuery))
	br.tabTo("form.drop button.first")
	br.do(chromedp.KeyEvent(kb.Enter), chromedp.WaitVisible("p.note"))
	b.await("the upload to wait for a person", func() bool { return strings.Contains(b.ok("queue"), "sent.txt") })
	br.do(chromedp.Navigate(br.s.base+"/mine"), chromedp.WaitReady("main"))
	for range 3 { // the older one comes first
		var label string
		br.do(chromedp.Text("main h2 a", &label, chromedp.ByQuery))
		if label == "sent.txt" {
			break
		}
		br.do(chromedp.KeyEvent("n"), chromedp.Sleep(300*time.Millisecond), chromedp.WaitReady("main h2 a"))
	}
	for key, act := range map[string]string{"s": "skip", "f": "fail", "c": "complete"} { // each leads to its button, and does nothing yet
		var at string
		if br.do(chromedp.KeyEvent(key), chromedp.Evaluate("document.activeElement.value", &at)); at != act {
			b.t.Errorf("the key %s leads to %q", key, at)
		}
	}
	br.do(chromedp.Focus("main h2 a"))
	br.tabTo("#message")
	br.do(chromedp.KeyEvent("Read and agreed"))
	br.tabTo(`button[data-key="c"]`)
	br.do(chromedp.KeyEvent(kb.Enter), chromedp.WaitVisible("p.note"))
	b.await("the deposit", func() bool {
		return gjson.Get(b.ok("show", "sent.txt", "--json"), `workflows.0.steps.#(step=="deposit").status`).String() == "completed"
	})
	if log := b.git("log", "-1", "--grep=^approve: completed .*sent.txt", "--format=%an|%b"); !strings.HasPrefix(log, "Ada Keeper|") || !strings.Contains(log, "Read and agreed") {
		b.t.Errorf("the history: %s", log)
	}
}

// Without script: sign in, filter, approve, act on several.
func TestServeWithoutScript(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.workflow("trial", "  - name: look\n    manual: true\n")
	b.addItems("trial", 4)
	s := b.serve()
	br := s.browser()
	br.do(emulation.SetScriptExecutionDisabled(true))
	u, err := url.Parse(s.link)
	b.must(err)
	at := func(path string) chromedp.Action { return chromedp.Navigate(s.base + path) }
	br.do(at(u.RequestURI()), chromedp.Click("button.first", chromedp.ByQuery), chromedp.WaitReady("header nav", chromedp.ByQuery))
	br.do(at("/items"), chromedp.SendKeys(`input[name="q"]`, "i2", chromedp.ByQuery), chromedp.Click("form[role=search] button", chromedp.ByQuery), chromedp.WaitReady(".chips", chromedp.ByQuery))
	var text string
	br.do(chromedp.Text(".count", &text, chromedp.ByQuery))
	if !strings.HasPrefix(text, "1 to 1 of 1 item ") {
		t.Errorf("filtered: %q", text)
	}
	br.do(at("/mine"), chromedp.Click(`button[value="complete"]`, chromedp.ByQuery), chromedp.WaitReady("p.note", chromedp.ByQuery))
	br.do(at("/items?workflow=trial&status=in-progress"), chromedp.Click(`input[name="all"][value="filter"]`, chromedp.ByQuery), chromedp.SetValue(`select[name="act"]`, "complete", chromedp.ByQuery),
		chromedp.SendKeys(`input[name="step"]`, "look", chromedp.ByQuery), chromedp.Click("fieldset button", chromedp.ByQuery), chromedp.WaitReady("#bulk form button", chromedp.ByQuery))
	br.do(chromedp.Click("#bulk form button.first", chromedp.ByQuery), chromedp.WaitReady("progress", chromedp.ByQuery))
	b.await("all done", func() bool {
		return gjson.Get(b.ok("items", "--workflow", "trial", "--status", "completed", "--json"), "#").Int() == 4
	})
}

// Many tabs share one stream; each shows what moves, also the one that was opened last, and those
// that are left when the one that had the stream is closed. What somebody has opened, chosen or
// focused stays so.
func TestServeManyTabs(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.workflow("trial", "  - name: look\n    manual: true\n    retries: 1\n")
	b.addItems("trial", 2)
	s := b.serve()
	br := s.browser()
	br.enter()
	var tabs []context.Context
	var ends []context.CancelFunc
	for range 30 {
		tab, end := chromedp.NewContext(br.ctx)
		defer end()
		ends = append(ends, end)
		b.must(chromedp.Run(tab, chromedp.ActionFunc(func(ctx context.Context) error {
			_, err := page.AddScriptToEvaluateOnNewDocument(countsStreams).Do(ctx)
			return err
		}), chromedp.Navigate(s.base+"/"), chromedp.WaitReady("[data-part]", chromedp.ByQuery)))
		tabs = append(tabs, tab)
	}
	last := tabs[len(tabs)-1]
	in := func(tab context.Context, what string) (out string) {
		t.Helper()
		b.must(chromedp.Run(tab, chromedp.Evaluate(what, &out)))
		return out
	}
	b.must(chromedp.Run(last, chromedp.Evaluate(`document.querySelector("table.grid td.person a").focus(); window.was = document.activeElement; 0`, nil)))
	began := time.Now()
	b.ok("step", "complete", "i0", "look")
	b.await("the change in the last tab", func() bool {
		return in(last, `[...document.querySelectorAll('tr[data-id="look"] td')].map((e) => e.textContent).join(" ")`) == "1 · 1 · · · 1"
	})
	t.Logf("the tab shows a commit %v after the command began", time.Since(began))
	if kept := in(last, `String(document.activeElement === window.was && window.was.isConnected)`); kept != "true" {
		t.Error("what had the focus was exchanged")
	}
	// What is selected stays, and what is paused stands still, until that ends.
	held := func(tab context.Context) string {
		return in(tab, `document.querySelectorAll(".figures b")[3].textContent`)
	}
	b.must(chromedp.Run(last, chromedp.Evaluate(`getSelection().selectAllChildren(document.querySelector("table.grid")); scrollTo(0, 40); 0`, nil)))
	b.ok("hold", "i1")
	b.await("the hold in another tab", func() bool { return held(tabs[0]) == "1" })
	if got := held(last) + in(last, `String(getSelection().isCollapsed)`); got != "0false" {
		t.Errorf("beside a selection: %s", got)
	}
	b.must(chromedp.Run(last, chromedp.Evaluate(`getSelection().removeAllRanges(); 0`, nil)))
	b.await("the hold once nothing is selected", func() bool { return held(last) == "1" })
	b.must(chromedp.Run(last, chromedp.Evaluate(`document.getElementById("live").click(); 0`, nil)))
	b.ok("release", "i1")
	b.await("the release in another tab", func() bool { return held(tabs[0]) == "0" })
	if got := held(last) + in(last, `document.getElementById("live").getAttribute("aria-pressed")`); got != "1false" {
		t.Errorf("paused: %s", got)
	}
	b.must(chromedp.Run(last, chromedp.Evaluate(`document.getElementById("live").click(); 0`, nil)))
	b.await("the release once it goes on", func() bool { return held(last) == "0" })
	// The tab that has the stream is closed: another has it then.
	streams := func() (all, at int) {
		for i, tab := range tabs {
			if n := in(tab, `String(streams.filter((s) => s.readyState !== EventSource.CLOSED).length)`); n != "0" {
				all, at = all+int(n[0]-'0'), i
			}
		}
		return all, at
	}
	b.must(chromedp.Run(br.ctx, chromedp.Navigate(s.base+"/static/x/icon.svg"))) // the first tab may have it
	leads := 0
	b.await("one stream", func() bool {
		n, at := streams()
		leads = at
		return n == 1
	})
	ends[leads]()
	tabs = slices.Delete(tabs, leads, leads+1)
	b.await("one stream again", func() bool { n, _ := streams(); return n == 1 })
	b.ok("hold", "i0")
	for i, tab := range tabs {
		b.await(fmt.Sprintf("the hold in tab %d", i), func() bool { return held(tab) == "1" })
	}
	if n, _ := streams(); n != 1 {
		t.Errorf("%d streams for %d tabs", n, len(tabs))
	}
	br.keepsPlace()
}

// countsStreams has a page note the streams that its scripts open.
const countsStreams = `window.streams = []; window.EventSource = class extends EventSource { constructor(...of) { super(...of); streams.push(this); } };`

// keepsPlace opens a row of an item, i1 at its step look, scrolls to it, and wants both to stay so when something changes around it.
func (br *browser) keepsPlace() {
	s, b := br.s, br.s.b
	s.program("operator")
	if a := s.ask("PUT", "/workflow/objects/i1/workflows/trial/look", `<process name="look" status="error" message="torn" text="`+strings.Repeat("a line of it&#10;", 60)+`"/>`, "Content-Type", "application/xml"); a.code != 200 {
		b.t.Fatalf("an attempt that failed: %+v", a)
	}
	s.token = ""
	tab, end := chromedp.NewContext(br.ctx)
	defer end()
	const place = `(() => { const d = document.querySelector("[data-part] td details"); return [d === window.was, d.open, Math.round(d.getBoundingClientRect().top), d.closest(".scroll").scrollLeft].join(" ") })()`
	var before, after string
	var shown bool
	b.must(chromedp.Run(tab, chromedp.EmulateViewport(500, 400), chromedp.Navigate(s.base+"/items/i1"), chromedp.WaitReady("[data-part] td details", chromedp.ByQuery),
		chromedp.Evaluate(`window.was = document.querySelector("[data-part] td details"); was.open = true; was.closest(".scroll").scrollLeft = 120; scrollTo(0, scrollY + was.getBoundingClientRect().top - 40); 0`, nil),
		chromedp.Sleep(300*time.Millisecond), chromedp.Evaluate(place, &before)))
	b.ok("hold", "i1", "-m", "wait for the list")
	b.await("the hold on the item's page", func() bool {
		b.must(chromedp.Run(tab, chromedp.Evaluate(`document.querySelector("[data-part]").textContent.includes("wait for the list")`, &shown)))
		return shown
	})
	b.must(chromedp.Run(tab, chromedp.Evaluate(place, &after)))
	if before != after || !strings.HasPrefix(before, "true true 4") || !strings.HasSuffix(before, " 120") {
		b.t.Errorf("the opened row stood at %q, and then at %q", before, after)
	}
}
