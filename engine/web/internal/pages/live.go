package pages

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"bagpipe/engine/web/internal/desk"
)

// apart is how long lies between two looks at what moved; a stream says something at least every
// silent, so that whoever is gone is noticed.
// What others committed is at the tip a moment before it is counted: once a move was told, one more
// look comes soon.
const apart, soon, silent, patience = 400 * time.Millisecond, time.Second, 20 * time.Second, 30 * time.Second

// mostParts is how many parts one stream carries: a browser with more tabs looks at the others when
// they are shown.
const mostParts = 40

// live sends, on a stream, the parts of pages that a browser shows, whenever one has changed. All its tabs
// share the stream.
func (p *Pages) live(w http.ResponseWriter, r *http.Request) (string, any, error) {
	ctx := r.Context()
	parts := r.URL.Query()["part"]
	if len(parts) > mostParts {
		parts = parts[:mostParts]
	}
	sent := make([]string, len(parts))
	w.Header().Set("Content-Type", "text/event-stream")
	c := http.NewResponseController(w)
	texts, wait := []string{"retry: 2000\n\n"}, soon
	for {
		tip, moved := p.d.Pulse.At()
		next := wait
		for i, at := range parts {
			event, again, err := p.parts.get(ctx, p, at, tip)
			if again > 0 {
				next = min(next, again)
			}
			if err == nil && event != sent[i] { // a part that cannot be shown stays as it is; the page says why
				texts = append(texts, event)
				sent[i] = event
			}
		}
		if len(texts) == 0 {
			texts = append(texts, ": nothing new\n\n")
		}
		_ = c.SetWriteDeadline(time.Now().Add(patience))
		for _, text := range texts {
			if _, err := io.WriteString(w, text); err != nil {
				return "", nil, nil // who asked is gone
			}
		}
		if err := c.Flush(); err != nil {
			return "", nil, nil
		}
		texts = texts[:0]
		timer := time.NewTimer(next)
		select {
		case <-ctx.Done():
			timer.Stop()
			return "", nil, nil
		case <-timer.C:
			wait = silent
			continue
		case <-moved:
			timer.Stop()
			wait = soon
		}
		select {
		case <-ctx.Done():
			return "", nil, nil
		case <-time.After(apart):
		}
	}
}

func eventOf(at, html string) (string, error) {
	data, err := json.Marshal(map[string]string{"part": at, "html": html})
	return "event: part\ndata: " + string(data) + "\n\n", err
}

// parts are the live parts of pages as they were rendered last: once for all who may see the same.
// The lock guards the map; each part has a turn of its own.
type parts struct {
	mu  sync.Mutex
	all map[string]*part
}

type part struct {
	mu    sync.Mutex // guards the rest
	tip   string
	at    time.Time
	last  time.Duration // that it took to render it
	took  time.Duration // the shorter of the last two times: one that is cold tells nothing
	event string
	err   error
}

// rested is how many times as long as it took a part is not rendered again: one that reads every item
// must not keep a processor busy.
const rested = 5

// get gives a part, as an event, as it is at a tip. Tips are looked at some times a second, so that is
// how often it is rendered, however many look at it. again above 0: the part is an older one, as it
// takes long, and may be asked for again after that time.
func (ps *parts) get(ctx context.Context, p *Pages, at, tip string) (event string, again time.Duration, err error) {
	who := desk.Who(ctx)
	const most = 1000
	key := string(who.Role) + "\x00" + strings.Join(who.Collections, "\x00") + "\x01" + at
	ps.mu.Lock()
	if ps.all == nil || len(ps.all) > most {
		ps.all = map[string]*part{}
	}
	one := ps.all[key]
	if one == nil {
		one = &part{}
		ps.all[key] = one
	}
	ps.mu.Unlock()
	one.mu.Lock()
	defer one.mu.Unlock()
	if now := time.Now(); one.tip != tip || one.err != nil || now.Sub(one.at) > soon*3/4 {
		if again = one.took*rested - now.Sub(one.at); again > 0 {
			return one.event, again, one.err
		}
		html := ""
		if html, one.err = p.part(context.WithoutCancel(ctx), at); one.err == nil {
			one.event, one.err = eventOf(at, html)
		}
		one.tip, one.at = tip, time.Now()
		took := one.at.Sub(now)
		one.took, one.last = min(one.last, took), took
	}
	return one.event, 0, one.err
}

// part renders the live part of a page, which its address names.
func (p *Pages) part(ctx context.Context, at string) (string, error) {
	to, err := url.Parse("/" + at)
	if err != nil {
		return "", err
	}
	r := (&http.Request{Method: http.MethodGet, URL: to, Header: http.Header{}}).WithContext(ctx)
	view, c := p.overview, capabilities{p.d}
	first, rest, deep := strings.Cut(strings.TrimPrefix(to.Path, "/"), "/")
	switch {
	case first == "items" && deep:
		r.SetPathValue("id", rest)
		view = p.item
	case first == "workflows" && deep:
		r.SetPathValue("name", rest)
		view = lists{p.d}.workflow
	case first == "failures":
		view = lists{p.d}.failures
	case first == "schedules":
		view = c.schedules
	case first == "deliveries":
		view = c.deliveries
	case first == "catalogs":
		view = c.catalogs
	case first == "disposals":
		view = c.disposals
	case first == "search" && r.URL.RawQuery != "":
		view = c.search
	case first != "":
		return "", desk.ErrForbidden
	}
	page, data, err := view(nil, r)
	if err != nil {
		return "", err
	}
	var out bytes.Buffer
	err = p.pages[page].ExecuteTemplate(&out, "live", p.frame(r, page, data))
	return out.String(), err
}
