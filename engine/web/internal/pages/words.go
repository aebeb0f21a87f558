package pages

import (
	"fmt"
	"html/template"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"bagpipe/engine/ask"
	"bagpipe/engine/state"
	"bagpipe/engine/web/internal/bulk"
	"bagpipe/layout"
)

// words are the functions of the templates.
func (p *Pages) words() template.FuncMap {
	return template.FuncMap{
		"to":     func(path string) string { return p.d.Base + strings.TrimPrefix(path, "/") },
		"static": func(name string) string { return p.d.Base + "static/" + p.stamp + "/" + name },
		"query":  func(pairs ...any) template.URL { return template.URL(query(pairs...)) }, // it is escaped
		"when":   when,
		"iso":    func(t time.Time) string { return layout.FormatTime(t) },
		"ago":    func(t time.Time) string { return ago(p.d.Now().Sub(t)) },
		"took":   took,
		"bytes":  bytesText,
		"version": func() string {
			return p.d.Version
		},
		"readonly":  func() bool { return p.d.ReadOnly },
		"dict":      dict,
		"sorts":     func() []menuSort { return sorts },
		"fileAt":    fileAt,
		"span":      span,
		"open":      func(s state.Status) bool { return s != state.Completed && s != state.Skipped },
		"pageList":  func() []menuItem { return menu },
		"said":      timesIn,
		"runs":      func() bool { return p.d.Lender != nil },
		"did":       func(what string) string { return done[what] },
		"waits":     waits,
		"way":       helps,
		"first":     first,
		"noun":      noun,
		"count":     func(n int, what ...string) string { return thousands(n) + " " + noun(n, what...) },
		"more":      func(rows []bulk.Row) int { return max(0, len(rows)-mostRows) },
		"left":      func(j bulk.Act) int { return len(j.Rows) - j.Done },
		"done":      func(b ask.BatchRow) int { return b.Items - b.Open },
		"gridHeads": gridHeads,
		"gridCells": gridCells,
		"number":    thousands,
		"tone":      func(word string) state.Status { return tones[word] },
		"percent":   func(part float64) string { return fmt.Sprintf("%.0f %%", 100*part) },
	}
}

// instant is a time as records have it.
var instant = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`)

// timesIn writes the times in a sentence as those beside it are written.
func timesIn(text string) string {
	return instant.ReplaceAllStringFunc(text, func(at string) string {
		t, err := time.Parse(time.RFC3339Nano, at)
		if err != nil {
			return at
		}
		return when(t)
	})
}

// mostRows is how many of the items of an act a page lists; those that were refused are all listed.
const mostRows = 200

func first(rows []bulk.Row) []bulk.Row { return rows[:min(len(rows), mostRows)] }

// waits words how long each attempt at a step had waited: since what ended last before its claim.
func waits(run ask.WorkflowDetail, s ask.StepDetail) []string {
	words := make([]string, len(s.Attempts))
	for i, a := range s.Attempts {
		since := run.Created
		for _, other := range run.Steps {
			for _, b := range other.Attempts {
				if b.Ended.After(since) && !b.Ended.After(a.Claimed) {
					since = b.Ended
				}
			}
		}
		if !a.Claimed.IsZero() && a.Claimed.After(since) {
			words[i] = took(a.Claimed.Sub(since).Seconds())
		}
	}
	return words
}

// span is how wide a bar of a chart is, of 160.
func span(part, whole float64) int {
	if whole <= 0 {
		return 0
	}
	return max(1, int(part/whole*160))
}

// query builds the part of an address after ?, from names and values in turn.
func query(pairs ...any) string {
	q := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		if v := fmt.Sprint(pairs[i+1]); v != "" {
			q.Add(fmt.Sprint(pairs[i]), v)
		}
	}
	return q.Encode()
}

func dict(pairs ...any) map[string]any {
	m := map[string]any{}
	for i := 0; i+1 < len(pairs); i += 2 {
		m[fmt.Sprint(pairs[i])] = pairs[i+1]
	}
	return m
}

func when(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02 15:04:05Z")
}

// ago words a length of time in the largest unit that fits.
func ago(d time.Duration) string {
	switch {
	case d < time.Minute:
		return strconv.Itoa(max(0, int(d.Seconds()))) + " s"
	case d < time.Hour:
		return strconv.Itoa(int(d.Minutes())) + " min"
	case d < 48*time.Hour:
		return strconv.Itoa(int(d.Hours())) + " h"
	}
	return strconv.Itoa(int(d.Hours()/24)) + " d"
}

// took words seconds.
func took(seconds float64) string {
	d := time.Duration(seconds * float64(time.Second))
	switch {
	case d == 0:
		return "0 s"
	case d < time.Second:
		return strconv.Itoa(int(d.Milliseconds())) + " ms"
	case d < time.Minute:
		return strconv.FormatFloat(d.Seconds(), 'f', 1, 64) + " s"
	}
	return ago(d)
}

func bytesText(n int64) string {
	const unit = 1000
	if n < unit {
		return strconv.FormatInt(n, 10) + " B"
	}
	value, names := float64(n), "kMGTPE"
	i := -1
	for value >= unit && i+1 < len(names) {
		value /= unit
		i++
	}
	return strconv.FormatFloat(value, 'f', 1, 64) + " " + names[i:i+1] + "B"
}

// noun is the word for so many: what is the word for one, and, where it is not formed by an s, for
// several.
func noun(n int, what ...string) string {
	switch {
	case n == 1:
		return what[0]
	case len(what) > 1:
		return what[1]
	}
	return what[0] + "s"
}

// thousands parts the digits of a number by threes.
func thousands(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "\u202f" + s[i:]
	}
	return s
}

// menuItem is a page in the head of every page.
type menuItem struct {
	Name, Page string // the page is its address, but for the first
	Whole      bool   // it is for accounts that reach all collections
}

var menu = []menuItem{{"Overview", "", false}, {"Items", "items", false}, {"Search", "search", false}, {"For people", "mine", false}, {"Failures", "failures", false}, {"Queues", "queues", true},
	{"Batches", "batches", true}, {"Workflows", "workflows", false}, {"Schedules", "schedules", true}, {"Deliveries", "deliveries", false}, {"Catalogs", "catalogs", true},
	{"Disposals", "disposals", true}, {"Stats", "stats", true}, {"Inbox", "inbox", false}, {"Engines", "engines", true}, {"Settings", "settings", true}, {"Users", "users", true}, {"Log", "log", true}}

// menuSort is an order of the list of items.
type menuSort struct{ Name, Value string }

var sorts = []menuSort{{"oldest first", ""}, {"newest first", "-created"}, {"label", "label"}, {"collection", "collection"}, {"lane", "lane"}}

// done are the words for acts that were done.
var done = map[string]string{"complete": "completed", "skip": "skipped", "fail": "failed", "retry": "it is tried again", "reset": "it is done anew", "cancel": "cancelled",
	"hold": "held", "release": "released", "start": "started", "activate": "activated", "deactivate": "taken out of the queues", "migrate": "moved to the definition in force",
	"close": "closed", "enable": "enabled", "disable": "disabled", "uploaded": "uploaded; it is taken in when it has settled", "added": "added", "removed": "removed",
	"delivery-approve": "approved; it is brought there", "delivery-refuse": "refused", "delivery-retry": "it is tried again", "delivery-withdraw": "taken back",
	"disposal-approve": "approved", "disposal-refuse": "refused; the items stay", "schedule-start": "started", "schedule-stop": "stopped", "schedule-restart": "started anew",
	"schedule-fire": "fired", "nothing": "nothing; it was so already"}

// tones are the statuses of steps as which the words of other rooms are coloured.
var tones = map[string]state.Status{"running": state.InProgress, "stopped": state.Waiting, "broken": state.Failed, "failed": state.Failed, "timeout": state.Failed, "lost": state.Failed,
	"missed": state.Waiting, "completed": state.Completed, "waits": state.Waiting, "sending": state.InProgress, "delivered": state.Completed, "unconfirmed": state.Waiting, "unreadable": state.Failed,
	"here": state.Completed, "away": state.Failed, "proposed": state.Waiting, "approved": state.InProgress, "begun": state.InProgress, "refused": state.Failed, "done": state.Completed}
