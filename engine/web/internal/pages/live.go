package pages

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"bagpipe/engine/web/internal/desk"
)

// apart is how long lies between two looks of one stream at what moved; what moves after a rest is shown at
// once. What is at the tip is counted a moment later: once a move was told, looks at longer and longer times follow,
// the first soon. A stream says something at least every silent, so that whoever is gone is noticed.
const apart, soon, silent, patience = 600 * time.Millisecond, 400 * time.Millisecond, 20 * time.Second, 30 * time.Second

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
	sent := make([][]byte, len(parts))
	w.Header().Set("Content-Type", "text/event-stream")
	c := http.NewResponseController(w)
	texts, wait := [][]byte{[]byte("retry: 2000\n\n")}, soon
	for {
		tip, moved := p.d.Pulse.At()
		next, looked := wait, time.Now()
		for i, at := range parts {
			event, again, err := p.parts.get(ctx, p, at, tip)
			if again > 0 {
				next = min(next, again)
			}
			if err == nil && !bytes.Equal(event, sent[i]) { // a part that cannot be shown stays as it is; the page says why
				texts = append(texts, event)
				sent[i] = event
			}
		}
		if len(texts) == 0 {
			texts = append(texts, []byte(": nothing new\n\n"))
		}
		_ = c.SetWriteDeadline(time.Now().Add(patience))
		for _, text := range texts {
			if _, err := w.Write(text); err != nil { // at once: a string would be copied out in small pieces
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
			if next == wait {
				wait = min(3*wait, silent)
			}
			continue
		case <-moved:
			timer.Stop()
			wait = soon
		}
		select {
		case <-ctx.Done():
			return "", nil, nil
		case <-time.After(apart - time.Since(looked)):
		}
	}
}

func eventOf(at, html string) ([]byte, error) {
	data, err := json.Marshal(map[string]string{"part": at, "html": html})
	return slices.Concat([]byte("event: part\ndata: "), data, []byte("\n\n")), err
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
	came  time.Time // when it was first rendered at the tip
	at    time.Time
	last  time.Duration // that it took to render it
	took  time.Duration // the shorter of the last two times: one that is cold tells nothing
	event []byte        // which is not changed
	err   error
}

// rested is how many times as long as it took a part is not rendered again: one that reads every item
// must not keep a processor busy. rest is how long it is not in any case.
const rested, rest = 5, 250 * time.Millisecond

// stale is after how long a part is rendered again although the branch did not move: as long again as the branch
// has not, for what is counted late, and for what it says of the time.
func (p *part) stale() time.Duration { return max(soon*3/4, p.at.Sub(p.came)) }

// get gives a part, as an event, as it is at a tip. It is rendered once for all who look at it. again above 0: the
// part is an older one, as it was rendered lately or takes long, and may be asked for again after that time.
func (ps *parts) get(ctx context.Context, p *Pages, at, tip string) (event []byte, again time.Duration, err error) {
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
	now := time.Now()
	if one.tip == tip && one.err == nil && now.Sub(one.at) <= one.stale() {
		return one.event, 0, nil
	}
	if again = max(one.took*rested, rest) - now.Sub(one.at); again > 0 {
		return one.event, again, one.err
	}
	html, err := p.part(context.WithoutCancel(ctx), at)
	if err == nil {
		event, err = eventOf(at, html)
	}
	if one.err = err; err == nil && !bytes.Equal(event, one.event) { // else whoever has it compares no bytes
		one.event = event
	}
	one.at = time.Now()
	if one.tip != tip {
		one.tip, one.came = tip, one.at
	}
	took := one.at.Sub(now)
	one.took, one.last = min(one.last, took), took
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
	return string(upright(out.Bytes())), err
}
