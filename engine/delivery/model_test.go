package delivery_test

import (
	"cmp"
	"context"
	crand "crypto/rand"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"bagpipe/engine"
	"bagpipe/engine/claim"
	"bagpipe/engine/delivery"
	"bagpipe/engine/fault"
	"bagpipe/engine/gitstore"
	"bagpipe/engine/ledger"
	"bagpipe/engine/state"
	"bagpipe/layout"

	"pgregory.net/rapid"
)

// portal is a target that does what its mode says at the next request that changes it.
type portal struct {
	mu     sync.Mutex        // guards the rest
	held   map[string]string // by ITEM or, where versions stand apart, ITEM/VERSION
	digest map[string]string
	mode   string
	crash  func()
	goes   func(item layout.ItemID, text string) bool
	wrong  []string
}

var modes = []string{"", "", "", "down", "refuses", "drops", "half", "dies before", "dies after"}

func (p *portal) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	item, body := strings.TrimPrefix(r.URL.Path, "/"), ""
	id, _, _ := strings.Cut(item, "/")
	if r.Method == http.MethodGet {
		if text, ok := p.held[item]; ok {
			io.WriteString(w, text)
			return
		}
		http.NotFound(w, r)
		return
	}
	data, _ := io.ReadAll(r.Body)
	mode := p.mode
	p.mode = ""
	switch body = string(data); mode {
	case "down":
		http.Error(w, "down", http.StatusServiceUnavailable)
		return
	case "refuses":
		http.Error(w, "no", http.StatusForbidden)
		return
	case "drops":
		return // 200, and nothing is kept
	case "half":
		body = body[:len(body)/2]
	case "dies before":
		p.crash()
		panic(http.ErrAbortHandler)
	}
	if was, there := p.held[item]; r.Method == http.MethodPut {
		if there && was == body && p.digest[item] == r.Header.Get("Bagpipe-Digest") {
			p.wrong = append(p.wrong, item+" was sent again")
		}
		if !p.goes(layout.ItemID(id), string(data)) {
			p.wrong = append(p.wrong, item+" was sent, and nobody let it go: "+string(data))
		}
		p.held[item], p.digest[item] = body, r.Header.Get("Bagpipe-Digest")
	} else {
		delete(p.held, item)
	}
	if mode == "dies after" {
		p.crash()
		panic(http.ErrAbortHandler)
	}
}

// thing is an item as the model knows it.
type thing struct {
	version, fit, n int
	asks            bool
	decided         string
	of              int // version that was approved
	out             int // whether a republication found that no rule wants it: no, perhaps, sure
}

const (
	no = iota
	perhaps
	sure
)

func (i *thing) text() string { return fmt.Sprintf("version %d, edition %d", i.version, i.n) }

// trade is a workspace with one target, and what must be there.
type trade struct {
	t       *rapid.T
	root    string
	e       *engine.Engine
	now     atomic.Int64 // Unix time, read by what an engine does beside
	server  *httptest.Server
	portal  *portal
	items   map[layout.ItemID]*thing
	apart   bool // versions at the target
	fit     int  // that the rule wants
	changed bool // the rule since the last republication
}

func (w *trade) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatalf("%+v", err)
	}
}

func (w *trade) time() time.Time { return time.Unix(w.now.Load(), 0).UTC() }

func (w *trade) wait(d time.Duration) { w.now.Add(int64(d / time.Second)) }

func (w *trade) options() engine.Options {
	return engine.Options{Now: w.time, Random: crand.Reader, Host: claim.Host{Name: "host", PID: os.Getpid()}, Person: gitstore.Signature{Name: "A", Email: "a@example.org"}}
}

func (w *trade) open() {
	e, err := engine.Open(context.Background(), w.root, w.options())
	w.must(err)
	w.e = e
}

func newTrade(t *rapid.T, dir string) *trade {
	w := &trade{t: t, root: filepath.Join(dir, "ws"), fit: 1, apart: rapid.Bool().Draw(t, "versions stand apart"), items: map[layout.ItemID]*thing{},
		portal: &portal{held: map[string]string{}, digest: map[string]string{}}}
	w.now.Store(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Unix())
	w.portal.goes = func(id layout.ItemID, text string) bool { return w.goes(w.items[id]) && w.items[id].text() == text }
	w.server = httptest.NewServer(w.portal)
	w.must(engine.Init(context.Background(), w.root, w.options()))
	address := w.server.URL + "/{item}"
	if w.apart {
		address += "/{version}"
	}
	w.must(os.WriteFile(filepath.Join(w.root, "bagpipe.yaml"), fmt.Appendf(nil, "schema: 1\ntargets:\n  portal: {kind: url, url: '%s', format: text, template: card.tmpl}\n", address), 0o644))
	w.must(os.WriteFile(filepath.Join(w.root, "card.tmpl"), []byte("{{.metadata.text}}"), 0o644))
	w.rule(1)
	w.open()
	for range 3 {
		id, err := layout.NewItemID(crand.Reader)
		w.must(err)
		w.items[id] = &thing{version: 1, fit: 1}
		w.put(id)
	}
	return w
}

func (w *trade) rule(fit int) {
	w.fit = fit
	w.must(os.WriteFile(filepath.Join(w.root, "rules", "portal.yaml"), fmt.Appendf(nil,
		"schema: 1\nname: portal\ndelivery:\n  - {to: portal, for: metadata.fit = %d, approve: metadata.asks = yes}\n", fit), 0o644))
	if w.e != nil {
		w.must(w.e.Settings.Sync(context.Background()))
	}
}

func (w *trade) commit(files map[string][]byte) {
	_, err := w.e.Ledger.Store.Commit(context.Background(), func(gitstore.Reader) (*gitstore.Change, error) {
		return &gitstore.Change{Files: files, Message: "changed\n", Author: gitstore.Signature{Name: "A", Email: "a@b"}}, nil
	})
	w.must(err)
}

func (w *trade) put(id layout.ItemID) {
	i := w.items[id]
	m := layout.Manifest{Item: id, Version: i.version, Collection: "default", Label: "x", Lane: "normal", Created: w.time(), Source: layout.Source{Name: "x"},
		Metadata: map[string]any{"fit": i.fit, "asks": map[bool]string{true: "yes", false: "no"}[i.asks], "text": i.text()}}
	manifest, err := m.Encode(nil)
	w.must(err)
	dir := layout.ItemDir(id) + "/"
	w.commit(map[string][]byte{dir + layout.ManifestJSON: manifest, dir + layout.ExecutionJSON: (&state.Execution{Item: id}).Encode()})
}

var decisions = []string{layout.DeliveryApproved, layout.DeliveryRefused, layout.DeliveryTakeBack}

// goes reports whether rules and people let an item go as it is now.
func (w *trade) goes(i *thing) bool {
	return i.fit == w.fit && i.decided != layout.DeliveryTakeBack && i.decided != layout.DeliveryRefused && (!i.asks || i.decided == layout.DeliveryApproved && i.of == i.version)
}

func (w *trade) pick() (layout.ItemID, *thing) {
	id := rapid.SampledFrom(slices.Sorted(maps.Keys(w.items))).Draw(w.t, "item")
	return id, w.items[id]
}

func (w *trade) edit(t *rapid.T) {
	id, i := w.pick()
	i.n++
	i.version += rapid.IntRange(0, 1).Draw(t, "version")
	i.fit, i.asks = rapid.IntRange(1, 2).Draw(t, "fit"), rapid.IntRange(0, 3).Draw(t, "asks") == 0
	w.put(id)
}

func (w *trade) rules(t *rapid.T) {
	fit := rapid.IntRange(1, 2).Draw(t, "fit")
	w.changed = w.changed || fit != w.fit
	w.rule(fit)
}

// daring runs do with a target that misbehaves once, as mode says; where that kills the engine, another is
// opened.
func (w *trade) daring(do func(context.Context) error) (mode string) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	w.portal.mu.Lock()
	mode = rapid.SampledFrom(modes).Draw(w.t, "mode")
	w.portal.mode, w.portal.crash = mode, cancel
	w.portal.mu.Unlock()
	err := do(ctx)
	if ctx.Err() == nil {
		if !fault.Is(err, fault.Refused) {
			w.must(err)
		}
		return mode
	}
	if err != nil && !errors.Is(err, context.Canceled) {
		w.t.Fatalf("%v", err)
	}
	w.must(w.e.Close())
	w.open()
	return mode
}

// looked notes which items are wanted back after a pass, or a republication, with a target like that.
func (w *trade) looked(mode string, republished bool) {
	for _, i := range w.items {
		refused := mode == "refuses" || mode == "drops" // then it is not tried again
		killed := mode == "dies before" || mode == "dies after"
		switch {
		case i.fit == w.fit && !killed:
			i.out = no
		case i.fit != w.fit && republished && !refused:
			i.out = sure
		case i.fit != w.fit && republished, i.out == sure && (refused || i.fit == w.fit):
			i.out = perhaps
		}
	}
}

func (w *trade) pass(*rapid.T) {
	w.wait(time.Hour)
	w.looked(w.daring(func(ctx context.Context) error { return w.e.Delivery.Pass(ctx, 0, func(delivery.Told) {}) }), false)
}

func (w *trade) republish(*rapid.T) {
	ended := false
	mode := w.daring(func(ctx context.Context) error {
		_, err := w.e.Delivery.Republish(ctx, func(string) {})
		ended = err == nil
		w.changed = w.changed && err != nil
		return err
	})
	w.looked(mode, ended)
}

func (w *trade) decide(t *rapid.T) {
	id, i := w.pick()
	ctx, d := context.Background(), w.e.Delivery
	what := rapid.SampledFrom(decisions).Draw(t, "decision")
	mode := rapid.SampledFrom([]string{"", "down", "refuses"}).Draw(t, "mode")
	w.portal.mode = mode
	defer func() { w.portal.mode = "" }()
	do := map[string]func(context.Context, ledger.Actor, layout.ItemID, layout.Name, string) error{
		layout.DeliveryApproved: d.Approve, layout.DeliveryRefused: d.Refuse, layout.DeliveryTakeBack: d.Withdraw}[what]
	switch err := do(ctx, w.e.Ledger.ByPerson(), id, "portal", ""); {
	case err == nil || what == layout.DeliveryTakeBack && !fault.Is(err, fault.Refused): // what a target keeps is taken back later
		i.decided, i.of = what, i.version
	case !fault.Is(err, fault.Refused):
		w.must(err)
	}
}

// push has a decision come with a commit of a person.
func (w *trade) push(t *rapid.T) {
	id, i := w.pick()
	path := layout.ItemDir(id) + "/" + layout.DeliveryJSON
	v, err := w.e.Ledger.Store.Tip()
	w.must(err)
	data, err := v.ReadFile(path)
	if err != nil {
		return // it is on no list
	}
	all, err := layout.DecodeDeliveries(data)
	w.must(err)
	d := all.Targets["portal"]
	if d == nil || d.Engine != "" {
		return
	}
	i.decided, i.of = rapid.SampledFrom(decisions).Draw(t, "decision"), i.version
	d.Decision = &layout.DeliveryDecision{What: i.decided, By: "P <p@example.org>", At: w.time(), Version: i.of}
	data, err = all.Encode()
	w.must(err)
	w.commit(map[string][]byte{path: data})
}

// kept are the items that a person took back, and that the target refused to give: they are told of, and left alone.
func (w *trade) kept() (items []layout.ItemID) {
	ctx := context.Background()
	rows, err := w.e.Delivery.Rows(ctx, "portal", layout.DeliveryUnconfirmed)
	w.must(err)
	for _, r := range rows {
		if r.Decision != nil && r.Decision.What == layout.DeliveryTakeBack && r.Decision.Kept {
			items = append(items, r.Item)
		}
	}
	return items
}

// holds is what a target holds of an item.
func (w *trade) holds(held map[string]string, id layout.ItemID) (all string) {
	for _, at := range slices.Sorted(maps.Keys(held)) {
		if strings.HasPrefix(at, string(id)) {
			all += held[at]
		}
	}
	return all
}

// settle lets the target be well, republishes where the rule changed, and tries what failed
// again: then it holds what it must.
func (w *trade) settle(*rapid.T) {
	ctx := context.Background()
	v, err := w.e.Ledger.Store.Tip()
	w.must(err)
	_, err = v.ReadFile(layout.DeliveryControl)
	republished := w.changed || err == nil // the passes go on with one that was cut short
	w.portal.mu.Lock()
	before := maps.Clone(w.portal.held)
	w.portal.mode = ""
	w.portal.mu.Unlock()
	if w.changed {
		_, err := w.e.Delivery.Republish(ctx, func(string) {})
		w.must(err)
		w.changed = false
	}
	for range 4 {
		w.wait(24 * time.Hour)
		rows, err := w.e.Delivery.Rows(ctx, "portal", layout.DeliveryFailed)
		w.must(err)
		for _, r := range rows {
			_, err := w.e.Delivery.Retry(ctx, w.e.Ledger.ByPerson(), r.Item, "portal")
			w.must(err)
		}
		w.must(w.e.Delivery.Pass(ctx, 0, func(delivery.Told) {}))
		for _, to := range w.kept() {
			if _, err := w.e.Delivery.Retry(ctx, w.e.Ledger.ByPerson(), to, "portal"); !fault.Is(err, fault.Refused) {
				w.must(err)
			}
		}
	}
	w.looked("", republished)
	rows, err := w.e.Delivery.Rows(ctx, "", "")
	w.must(err)
	states := map[layout.ItemID]string{}
	for _, r := range rows {
		states[r.Item] = fmt.Sprintf("%s, sent %+v", r.State, r.Sent)
		if s := r.Sent; r.State == layout.DeliveryDelivered && (s == nil || s.Maybe || s.Version != r.Version || s.Digest != r.Digest) {
			w.t.Fatalf("item %s: version %d, %s, is told as delivered; sent was %+v", r.Item, r.Version, r.Digest, s)
		}
	}
	for id, i := range w.items {
		must, is := w.holds(before, id), w.holds(w.portal.held, id)
		switch {
		case w.goes(i):
			must = i.text()
			if w.apart { // earlier versions stay
				is = w.portal.held[fmt.Sprintf("%s/%d", id, i.version)]
			}
		case i.fit != w.fit && i.out == sure, i.decided == layout.DeliveryTakeBack:
			must = ""
		}
		if is != must && !(is == "" && i.out == perhaps) {
			w.t.Fatalf("item %s (%+v, rule %d, republished %v): the target holds %q, and must hold %q; it is %s",
				id, *i, w.fit, republished, is, must, cmp.Or(states[id], "on no list"))
		}
	}
	if len(w.portal.wrong) > 0 {
		w.t.Fatalf("%v", w.portal.wrong)
	}
}

// lawful holds every commit against the one before: what was done to deliveries is not taken for another's mistake.
func (w *trade) lawful() {
	store := w.e.Ledger.Store
	var later map[layout.ItemID][]byte
	for c, err := range store.History(context.Background(), gitstore.HistoryOptions{}) {
		w.must(err)
		v, err := store.At(c.Hash)
		w.must(err)
		now := map[layout.ItemID][]byte{}
		for id := range w.items {
			data, err := ledger.ReadOptional(v, layout.ItemDir(id)+"/"+layout.DeliveryJSON)
			w.must(err)
			if now[id] = data; later == nil {
				continue
			}
			if wrong := ledger.UntrueDelivery(data, later[id]); wrong != "" {
				w.t.Fatalf("the commit after %s: item %s: %s:\n%s\n%s", c.Hash, id, wrong, data, later[id])
			}
		}
		later = now
	}
}

// Whatever targets do, and wherever an engine dies, they hold at last what rules and people say;
// what is held there is not sent again, and nothing that a person has not approved is sent.
func TestTargetsAgainstAModel(t *testing.T) {
	if f := flag.Lookup("rapid.checks"); f.Value.String() == f.DefValue { // more of them are asked for by the flag
		if err := flag.Set("rapid.checks", "20"); err != nil {
			t.Fatal(err)
		}
	}
	rapid.Check(t, func(r *rapid.T) {
		dir, err := os.MkdirTemp("", "delivery")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(dir)
		w := newTrade(r, dir)
		defer func() { w.server.Close(); w.e.Close() }()
		acts := map[string]func(*rapid.T){"edit": w.edit, "rules": w.rules, "pass": w.pass, "republish": w.republish, "decide": w.decide, "push": w.push, "settle": w.settle}
		names := slices.Sorted(maps.Keys(acts))
		for range rapid.IntRange(3, 30).Draw(r, "acts") {
			acts[rapid.SampledFrom(names).Draw(r, "act")](r)
		}
		w.settle(r)
		w.lawful()
	})
}
