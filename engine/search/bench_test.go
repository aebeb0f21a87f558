package search_test

import (
	"context"
	crand "crypto/rand"
	"flag"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"bagpipe/engine"
	"bagpipe/engine/query"
	"bagpipe/engine/search"
	"bagpipe/layout"
)

var benchItems = flag.Int("items", 20_000, "how many items BenchmarkSearch searches")

// BenchmarkSearch tells what the index takes to be built and to take in a thousand changes, and
// how long mixed queries take for their first page and for their facets, beside a look at every
// record, which needs no index.
func BenchmarkSearch(b *testing.B) {
	l := &library{TB: b, Rand: rand.New(rand.NewPCG(1, 2)), root: filepath.Join(b.TempDir(), "ws")}
	l.must(engine.Init(context.Background(), l.root, l.options(false)))
	for range *benchItems {
		id, err := layout.NewItemID(crand.Reader)
		l.must(err)
		l.items = append(l.items, id)
	}
	l.do(false, func(e *engine.Engine) {
		for part := range slices.Chunk(l.items, 10_000) {
			l.commit(e, part, false)
		}
	})
	page := func(e *engine.Engine, q query.Query) time.Duration {
		const most = 20
		begin, n := time.Now(), 0
		l.must(e.Search.Find(context.Background(), q, most, func(search.Hit) bool { n++; return n < most }))
		return time.Since(begin)
	}
	l.do(false, func(e *engine.Engine) {
		build := page(e, query.Query{})
		l.commit(e, l.items[:min(1000, len(l.items))], false)
		taken := page(e, query.Query{})
		var pages, wheres, facets []time.Duration
		for b.Loop() {
			q := l.query()
			if q.Where != "" { // which no index answers: the records of what else fits are read
				wheres = append(wheres, page(e, q))
				continue
			}
			pages = append(pages, page(e, q))
			begin := time.Now()
			_, err := e.Search.Facets(context.Background(), q)
			l.must(err)
			facets = append(facets, time.Since(begin))
		}
		b.ReportMetric(build.Seconds(), "s/build")
		b.ReportMetric(taken.Seconds(), "s/1000-changes")
		b.ReportMetric(p95(pages), "ms/page-p95")
		b.ReportMetric(p95(wheres), "ms/where-p95")
		b.ReportMetric(p95(facets), "ms/facets-p95")
	})
	l.must(os.Rename(filepath.Join(l.root, layout.SearchDir), filepath.Join(b.TempDir(), "aside")))
	l.do(true, func(e *engine.Engine) { b.ReportMetric(page(e, l.query()).Seconds(), "s/scan") }) // it may not write, and has no index
}

// p95 gives milliseconds.
func p95(all []time.Duration) float64 {
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	return float64(all[len(all)*95/100].Microseconds()) / 1000
}
