package engine_test

import (
	"crypto/rand"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"bagpipe/engine"
	"bagpipe/engine/fault"
	"bagpipe/engine/intake"
	"bagpipe/engine/ledger"
	"bagpipe/engine/state"
	"bagpipe/engine/web"
	"bagpipe/engine/web/access"

	"github.com/tidwall/gjson"
)

// plainWords words remedies by their verbs.
type plainWords struct{}

func (plainWords) Command(r fault.Remedy) string { return string(r.Verb) }
func (plainWords) With(text string, remedies ...fault.Remedy) string {
	for _, r := range remedies {
		text += "; " + string(r.Verb)
	}
	return text
}

// browse gives what looks at a page, or a call, of the workspace, as its own person.
func (p *policy) browse(e *engine.Engine) func(path string) string {
	p.t.Helper()
	p.must(e.Index.Load(p.ctx))
	site, err := web.New(web.Rooms{Ask: e.Ask, Act: e.Act, Intake: e.Intake, Settings: e.Settings},
		web.Place{Root: e.Root(), Base: "/", Words: plainWords{}, Now: p.clock.now, Random: rand.Reader, Log: slog.New(slog.DiscardHandler)}, web.Options{Local: true, Watched: http.NotFoundHandler()})
	p.must(err)
	handler, err := site.Handler()
	p.must(err)
	link, err := site.Link(access.Who{Name: "Ada", Role: access.Admin})
	p.must(err)
	ask := func(method, path, body string, cookies ...*http.Cookie) *http.Response {
		r := httptest.NewRequestWithContext(p.ctx, method, path, strings.NewReader(body))
		r.Host = "localhost"
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		for _, c := range cookies {
			r.AddCookie(c)
		}
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		return w.Result()
	}
	_, once, _ := strings.Cut(link, "?")
	entered := ask("POST", "/signin", once)
	return func(path string) string {
		p.t.Helper()
		a := ask("GET", path, "", entered.Cookies()...)
		var body strings.Builder
		if err := a.Write(&body); err != nil || a.StatusCode != http.StatusOK {
			p.t.Errorf("%s: %s %v %s", path, a.Status, err, body.String())
		}
		_, text, _ := strings.Cut(body.String(), "\r\n\r\n")
		return text
	}
}

// The pages of a workspace whose history takes weeks tell what has stalled, since when items stand as they do, how long
// steps wait and take, which one keeps the others up, and what would help.
func TestPagesOfWeeks(t *testing.T) {
	p := newPolicy(t, "  - name: read\n    robot: trial\n    milestone: known\n  - name: look\n    manual: true\n    milestone: seen\n", 6)
	p.says = func(string, int) error { p.clock.seconds.Add(9); return nil } // ten seconds each
	p.run()
	p.do(func(e *engine.Engine) {
		for i := range 5 {
			p.clock.seconds.Add(20)
			id, err := e.Ask.Resolve(p.ctx, fmt.Sprintf("item-%d", i+1))
			p.must(err)
			_, err = e.Act.Decide(p.ctx, ledger.StepRef{Item: id, Step: "look"}, state.Completed, "")
			p.must(err)
		}
		p.clock.seconds.Add(3 * 24 * 3600)
	})
	o := p.options()
	o.Random = rand.Reader // other items than those before
	late, err := engine.Open(p.ctx, p.root, o)
	p.must(err)
	func(e *engine.Engine) {
		defer func() { p.must(e.Close()) }()
		drop := filepath.Join(p.t.TempDir(), "new.txt")
		p.must(os.WriteFile(drop, []byte("new"), 0o644))
		for i := range 12 { // which no engine reads yet
			_, err := e.Intake.Add(p.ctx, drop, intake.AddOptions{Workflow: "flow", Label: fmt.Sprintf("new-%d", i)})
			p.must(err)
		}
	}(late)
	p.do(func(e *engine.Engine) {
		page := p.browse(e)
		_, stalled, _ := strings.Cut(page("/"), "<h2>Stalled</h2>")
		stalled, _, _ = strings.Cut(stalled, "</ul>")
		if strings.Count(stalled, "<li") != 1 || !strings.Contains(stalled, ">item-6</a>") || !strings.Contains(stalled, "flow.1/look</span> for 3 d; of twenty, nineteen took ") || !strings.Contains(stalled, "waits for a person") {
			t.Errorf("stalled: %s", stalled)
		}
		p.tellsHowStepsGo(page)
		for _, at := range []struct {
			later time.Duration
			ages  map[string]int64
		}{
			{0, map[string]int64{"under an hour": 12, "under a week": 6}},
			{2 * time.Hour, map[string]int64{"under a day": 12, "under a week": 6}},
			{20 * 24 * time.Hour, map[string]int64{"under 30 days": 18}},
			{40 * 24 * time.Hour, map[string]int64{"longer": 18}},
		} {
			p.clock.seconds.Add(int64(at.later.Seconds()))
			page := p.browse(e) // who signed in before may be out again
			told := map[string]int64{}
			for _, f := range gjson.Get(page("/api/v1/facets"), `#(facet=="age")#`).Array() {
				told[f.Get("value").String()] = f.Get("items").Int()
			}
			if fmt.Sprint(told) != fmt.Sprint(at.ages) {
				t.Errorf("%v later the ages are %v, not %v", at.later, told, at.ages)
			}
			for age, n := range at.ages {
				q := url.Values{"facet": {"age:" + age}}.Encode()
				if body := page("/items?" + q); !strings.Contains(body, fmt.Sprintf("1 to %d of %d items", n, n)) {
					t.Errorf("%v later, chosen %s: %s", at.later, age, body)
				}
			}
		}
	})
}

// tellsHowStepsGo looks at what is told of the steps of TestPagesOfWeeks.
func (p *policy) tellsHowStepsGo(page func(string) string) {
	t := p.t
	t.Helper()
	read := gjson.Get(page("/api/v1/stats"), `steps.#(step=="read")`)
	for path, want := range map[string]float64{"waitMedian": 23, "waitP95": 50, "runMedian": 10, "runP95": 10, "ready": 12, "completed": 6, "lastDay": 0} {
		if got := read.Get(path).Float(); got != want {
			t.Errorf("%s is %v, not %v: %s", path, got, want, read)
		}
	}
	n := func(words ...string) string {
		return `<td class="n">` + strings.Join(words, `</td><td class="n">`) + "</td>"
	}
	body := page("/stats")
	for _, text := range []string{
		"The bottleneck is <b>flow/read</b>.", "<li>flow/read is the bottleneck: 12 are ready, 0 run, and one takes 10s (median); no engine works on it; run</li>",
		"flow/read</th>" + n("12", "0", "0", "6", "0", "0 %", "23.0 s", "50.0 s", "10.0 s", "10.0 s", "0", "0") + `<td><svg width="160" height="20" aria-hidden="true"><rect class="bar-b" width="72"`,
		"flow/look</th>" + n("0", "1", "0", "5", "0", "0 %", "1 min", "1 min"), "<td>registered</td><td>known</td>" + n("6", "37.5 s", "55.5 s"), ">known</a></th>" + n("6"),
	} {
		if !strings.Contains(body, text) {
			t.Errorf("/stats does not tell %q: %s", text, body)
		}
	}
}
