package search_test

import (
	"context"
	crand "crypto/rand"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"bagpipe/engine"
	"bagpipe/engine/claim"
	"bagpipe/engine/gitstore"
	"bagpipe/engine/query"
	"bagpipe/engine/search"
	"bagpipe/layout"

	"github.com/google/go-cmp/cmp"
)

// library is a workspace whose items are records alone.
type library struct {
	testing.TB
	*rand.Rand
	root  string
	items []layout.ItemID

	built int  // how often the index was, in same
	large bool // some items have long texts, and some queries phrases
}

// newLibrary makes a workspace, and draws identifiers of so many items.
func newLibrary(t testing.TB, seed uint64, items int) *library {
	t.Helper()
	l := &library{TB: t, Rand: rand.New(rand.NewPCG(seed, 0)), root: filepath.Join(t.TempDir(), "ws")}
	l.must(engine.Init(context.Background(), l.root, l.options(false)))
	for range items {
		l.items = append(l.items, l.newID())
	}
	return l
}

func (l *library) newID() layout.ItemID {
	l.Helper()
	id, err := layout.NewItemID(crand.Reader)
	l.must(err)
	return id
}

func (l *library) options(readOnly bool) engine.Options {
	return engine.Options{Now: time.Now, Random: crand.Reader, ReadOnly: readOnly, Host: claim.Host{Name: "test", PID: 1},
		Person: gitstore.Signature{Name: "A", Email: "a@b"}}
}

func (l *library) must(err error) {
	l.Helper()
	if err != nil {
		l.Fatal(err)
	}
}

func (l *library) do(readOnly bool, f func(*engine.Engine)) {
	l.Helper()
	e, err := engine.Open(context.Background(), l.root, l.options(readOnly))
	l.must(err)
	defer func() { l.must(e.Close()) }()
	f(e)
}

var (
	words  = []string{"flood", "Floodplain", "plain", "Änne", "anne", "R&D", "北京洪水影像", "洪水", "上海", "ミュンヘン", "Straße", "STRASSE", "gf1_pms-2", "1945", "Żółw", "Москва", "a", "naïve café", "ไทย", "a a a", "aa a", "洪水洪"}
	wheres = []string{"type = map", "collection = letters and metadata.time exists", `metadata.title = "北京洪水影像 Straße"`, "not type = map and label ~ *洪水*", "type in (map, none) or metadata.sheets = 1",
		"metadata.tags = flood and type in (map, orthophoto)", "metadata.sheets.1.of ~ *flood* and metadata.tags in (Karte, x)", "metadata.sheets.1.of = a",
		"metadata.sheets = 2", "metadata.sheets.0 in (1, x) and metadata.time exists"}
	tags = []string{"flood", "place:Beijing", "place:Berlin", "time:1945", "Karte", "karté"}
)

func (l *library) text() string { return words[l.IntN(len(words))] + " " + words[l.IntN(len(words))] }

// manifest is one of any kind.
func (l *library) manifest(id layout.ItemID) []byte {
	metadata := map[string]any{"title": l.text(), "sheets": []any{l.IntN(3), map[string]any{"of": l.text()}}}
	label := l.text()
	if l.large && l.IntN(12) == 0 {
		metadata["description"] = strings.Repeat(l.text()+" ", 1+l.IntN(90))
		label += strings.Repeat(" "+l.text(), l.IntN(30))
	}
	if l.IntN(3) > 0 {
		box := l.box()
		metadata["space"] = map[string]any{"wgs84": map[string]any{"bounds": box[:]}, "native": map[string]any{"code": "EPSG:32650", "bounds": []any{1e6, 2, 3, 4}}}
	}
	if l.IntN(4) == 0 {
		metadata["space"] = map[string]any{"wgs84": map[string]any{"bounds": []any{116, 39, 190, "x"}}}
	}
	if l.IntN(3) > 0 {
		metadata["time"] = map[string]any{"start": l.time(), "end": l.time()}
	}
	if l.IntN(2) > 0 {
		metadata["tags"] = []any{tags[l.IntN(len(tags))], tags[l.IntN(len(tags))]}
	}
	m := layout.Manifest{Item: id, Version: 1, Collection: layout.Name([]string{"maps", "letters"}[l.IntN(2)]), Label: label, Lane: "normal",
		Created: time.Now().UTC(), Source: layout.Source{Name: layout.EncodePath(words[l.IntN(len(words))])}, Metadata: metadata}
	m.Type = []string{"", "map", "orthophoto"}[l.IntN(3)]
	if l.large && l.IntN(3) == 0 {
		m.Source.Place = &layout.Place{Catalog: "scans", Path: layout.EncodePath(strings.ReplaceAll(l.text(), " ", "/") + "/" + m.Source.Name)}
	}
	data, err := m.Encode(nil)
	l.must(err)
	return data
}

func (l *library) box() query.Box {
	at := func(most int) float64 { return float64(l.IntN(2*most*10+1)-most*10) / 10 }
	fine := l.IntN(2) == 0 // beside others by less than the index keeps, or touching them
	if fine {
		at = func(most int) float64 {
			v := float64(l.IntN(5)-2)*float64(most)/2 + float64(l.IntN(9)-4)*[]float64{0, 1e-9, 5e-8, 1e-7}[l.IntN(4)]
			return min(max(v, -float64(most)), float64(most))
		}
	}
	s, n := at(90), at(90)
	b := query.Box{at(180), min(s, n), at(180), max(s, n)}
	if fine && l.IntN(3) == 0 { // a point
		b[2], b[3] = b[0], b[1]
	}
	return b
}

func (l *library) time() string {
	if l.IntN(2) == 0 { // beside others by less than the index keeps
		t := time.Date(1999, 12, 31, 23, 58+l.IntN(4), []int{0, 0, 59, 30}[l.IntN(4)], []int{0, 0, 1, 999_000_000, 999_999_999, 500_000}[l.IntN(6)], time.UTC)
		t = t.In(time.FixedZone("", (l.IntN(27)-13)*3600+l.IntN(2)*1800))
		return t.Format([]string{time.RFC3339Nano, time.RFC3339Nano, "2006-01-02T15:04:05", "2006-01-02T15:04"}[l.IntN(4)])
	}
	t := time.Date(1900+l.IntN(120), time.Month(1+l.IntN(12)), 1+l.IntN(28), 0, 0, 0, 0, time.UTC)
	return t.Format([]string{"2006", "2006-01", "2006-01-02", time.RFC3339}[l.IntN(4)])
}

func (l *library) inventory(id layout.ItemID) []byte {
	files := map[string]layout.InventoryFile{}
	for range l.IntN(9) {
		files[layout.EncodePath(l.text()+".tif")] = layout.InventoryFile{Size: 1, PUID: "fmt/353"}
	}
	data, err := layout.Inventory{Item: id, Files: files}.Encode()
	l.must(err)
	return data
}

// commit writes some items' records at once.
func (l *library) commit(e *engine.Engine, ids []layout.ItemID, gone bool) {
	files := map[string][]byte{}
	for _, id := range ids {
		dir := layout.ItemDir(id) + "/"
		files[dir+layout.ManifestJSON], files[dir+layout.InventoryJSON], files[dir+layout.ExecutionJSON] = l.manifest(id), l.inventory(id), fmt.Appendf(nil, "{\"n\": %d}", l.Int())
		if gone {
			files[dir+layout.ManifestJSON], files[dir+layout.InventoryJSON], files[dir+layout.ExecutionJSON] = nil, nil, nil
		}
		if l.IntN(50) == 0 && !gone {
			files[dir+layout.ManifestJSON] = []byte("{broken")
		}
	}
	_, err := e.Ledger.Store.Commit(context.Background(), func(gitstore.Reader) (*gitstore.Change, error) {
		return &gitstore.Change{Files: files, Message: "x\n", Author: gitstore.Signature{Name: "A", Email: "a@b"}}, nil
	})
	l.must(err)
}

func (l *library) query() (q query.Query) {
	for range 1 + l.IntN(2) {
		switch l.IntN(6) {
		case 0:
			if q.Text = l.text(); l.large && l.IntN(2) == 0 {
				q.Text = `"` + q.Text + `"`
			}
		case 1:
			w := []rune(words[l.IntN(len(words))])
			q.Text = string(w[l.IntN(len(w)):])
		case 2:
			box := l.box()
			q.BBox = &box
		case 3:
			if q.From = l.time(); l.IntN(2) == 0 {
				q.Until = "2025"
			}
		case 4:
			q.Tags = append(q.Tags, []string{"FLOOD", "beijing", "place:Beijing", "karte", "none"}[l.IntN(5)])
		case 5:
			q.Where = wheres[l.IntN(len(wheres))]
		}
	}
	if l.IntN(8) == 0 {
		q.Collection = "maps"
	}
	if l.IntN(12) == 0 {
		q.Alike = layout.EncodePath(words[l.IntN(len(words))]) + "\x00" + strconv.Itoa(l.IntN(9))
	}
	if _, err := q.Check(); err != nil {
		return l.query()
	}
	if l.IntN(6) == 0 { // of a saved question
		narrowed, err := q.Narrowed(l.query())
		l.must(err)
		return narrowed
	}
	return q
}

func (l *library) find(e *engine.Engine, q query.Query, limit int) (hits []search.Hit, facets []search.Facet) {
	l.must(e.Search.Find(context.Background(), q, limit, func(h search.Hit) bool {
		hits = append(hits, h)
		return len(hits) != limit
	}))
	facets, err := e.Search.Facets(context.Background(), q)
	l.must(err)
	return hits, facets
}

// withoutIndex is how many questions of a round are put to an engine without an index, too, which reads every record for
// each: 10,000 of them took over an hour.
const withoutIndex = 60

// same holds the answers of the index against those of a look at every record. The first questions are also put to an
// engine that may not write and has no index.
func (l *library) same(queries int) {
	l.Helper()
	var asked []query.Query
	type answer struct {
		hits   []search.Hit
		facets []search.Facet
	}
	var answers []answer
	l.do(false, func(e *engine.Engine) {
		e.Search.Building = func() { l.built++ }
		for range queries {
			q := l.query()
			hits, facets := l.find(e, q, 0)
			asked, answers = append(asked, q), append(answers, answer{hits, facets})
			if some, _ := l.find(e, q, 3); !slices.EqualFunc(some, hits[:min(3, len(hits))], func(a, b search.Hit) bool { return a.Item == b.Item }) {
				l.Fatalf("%s: the first three are not the first of all", q)
			}
		}
	})
	aside := filepath.Join(l.TempDir(), "search")
	l.must(os.Rename(filepath.Join(l.root, layout.SearchDir), aside))
	found := 0
	l.do(true, func(e *engine.Engine) {
		every, err := e.Search.ReadAll(context.Background())
		l.must(err)
		for i, q := range asked {
			hits, facets := every.Answer(q)
			if diff := cmp.Diff(answer{hits, facets}, answers[i], cmp.AllowUnexported(answer{})); diff != "" {
				l.Fatalf("%s: -scan +index\n%s", q, diff)
			}
			found += min(len(hits), 1)
			if i >= withoutIndex {
				continue
			}
			hits, facets = l.find(e, q, 0)
			if diff := cmp.Diff(answer{hits, facets}, answers[i], cmp.AllowUnexported(answer{})); diff != "" {
				l.Fatalf("%s: -without index +index\n%s", q, diff)
			}
		}
	})
	l.must(os.Rename(aside, filepath.Join(l.root, layout.SearchDir)))
	if found < queries/4 {
		l.Fatalf("of %d queries %d found something", queries, found)
	}
}

// TestIndexIsTheScan: random questions are answered by the index, built at once and kept
// current, as by a look at every record. BAGPIPE_SOAK=1 asks 10,000.
func TestIndexIsTheScan(t *testing.T) {
	items, queries := 250, 40
	if testing.Short() {
		items, queries = 60, 8
	}
	if os.Getenv("BAGPIPE_SOAK") != "" {
		items, queries = 400, 10_000/7+1 // asked seven times
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	l := newLibrary(t, seed, items)
	l.large = true
	l.do(false, func(e *engine.Engine) { l.commit(e, l.items, false) })
	l.same(queries)
	for range 4 { // some stay in the young part, some fill it
		l.do(false, func(e *engine.Engine) {
			l.commit(e, l.items[:items/10], false)
			l.commit(e, l.items[items/10:items/8], true)
		})
		l.Shuffle(items, func(i, j int) { l.items[i], l.items[j] = l.items[j], l.items[i] })
		l.same(queries)
	}
	if l.built != 1 {
		t.Errorf("the index was built %d times before it was damaged", l.built)
	}
	index := filepath.Join(l.root, layout.SearchDir, "index.db")
	info, err := os.Stat(index)
	l.must(err)
	l.must(os.Truncate(index, l.Int64N(info.Size())))
	l.same(queries)
	if info, err = os.Stat(index); err == nil {
		err = os.Truncate(index, info.Size()-1-l.Int64N(4000)) // SQLite itself does not see it
	}
	l.must(err)
	l.same(queries)
}

// TestSomethingElseInPlaceOfTheIndex: a folder or a link where the index is to be, or its new file, does not keep it from
// being built.
func TestSomethingElseInPlaceOfTheIndex(t *testing.T) {
	l := newLibrary(t, 1, 0)
	id := l.newID()
	dir := filepath.Join(l.root, layout.SearchDir)
	index := filepath.Join(dir, "index.db")
	for name, put := range map[string]func(*engine.Engine){
		"a folder":       func(*engine.Engine) { l.must(os.MkdirAll(filepath.Join(index, "x"), 0o777)) },
		"an empty one":   func(*engine.Engine) { l.must(os.Mkdir(index, 0o777)) },
		"a link":         func(*engine.Engine) { l.must(os.Symlink("nowhere", index)) },
		"a new folder":   func(e *engine.Engine) { l.must(os.MkdirAll(filepath.Join(index+"."+string(e.Ledger.ID), "x"), 0o777)) },
		"a journal, too": func(*engine.Engine) { l.must(os.MkdirAll(filepath.Join(index+"-journal", "x"), 0o777)) },
	} {
		t.Run(name, func(t *testing.T) {
			l.must(os.RemoveAll(dir))
			l.must(os.Mkdir(dir, 0o777))
			l.do(false, func(e *engine.Engine) {
				put(e)
				l.commit(e, []layout.ItemID{id}, true)
				l.find(e, query.Query{}, 0)
				info, err := os.Lstat(index)
				if l.must(err); !info.Mode().IsRegular() {
					t.Errorf("the index is %s", info.Mode())
				}
			})
		})
	}
}

// TestIndexIsBuiltWithoutWhoAsked: who asked first has gone before the index is there; who asks
// next finds it built.
func TestIndexIsBuiltWithoutWhoAsked(t *testing.T) {
	l := newLibrary(t, 1, 0)
	id := l.newID()
	l.do(false, func(e *engine.Engine) { l.commit(e, []layout.ItemID{id}, false) })
	l.do(false, func(e *engine.Engine) {
		ctx, leave := context.WithCancel(t.Context())
		gone := make(chan struct{})
		builds := 0
		e.Search.Building = func() { builds++; leave(); <-gone }
		find := func(ctx context.Context) error {
			return e.Search.Find(ctx, query.Query{}, 0, func(search.Hit) bool { return true })
		}
		if err := find(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("who left got %v", err)
		}
		close(gone)
		l.must(find(t.Context()))
		if builds != 1 {
			t.Errorf("the index was built %d times", builds)
		}
	})
}
