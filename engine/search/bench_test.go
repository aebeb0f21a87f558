package search_test

import (
	"cmp"
	"context"
	crand "crypto/rand"
	"flag"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"syscall"
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
// record, which needs no index. Times are on the clock; those of a processor, which other work on the machine changes less,
// stand beside them.
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
			_ = os.RemoveAll(filepath.Join(l.root, layout.ItemsDir)) // no search reads what is shown there, four files an item; some may be shown just now
		}
	})
	page := func(e *engine.Engine, q query.Query) spent {
		const most = 20
		n := 0
		return l.spends(func() error {
			return e.Search.Find(context.Background(), q, most, func(search.Hit) bool { n++; return n < most })
		})
	}
	l.do(false, func(e *engine.Engine) {
		build := page(e, query.Query{})
		l.commit(e, l.items[:min(1000, len(l.items))], false)
		taken := page(e, query.Query{})
		var pages, wheres, facets []spent
		for b.Loop() {
			q := l.query()
			if q.Where != "" { // which no index answers: the records of what else fits are read
				wheres = append(wheres, page(e, q))
				continue
			}
			pages = append(pages, page(e, q))
			facets = append(facets, l.spends(func() error { _, err := e.Search.Facets(context.Background(), q); return err }))
		}
		for name, s := range map[string]spent{"build": build, "1000-changes": taken} {
			b.ReportMetric(s.clock.Seconds(), "s/"+name)
			b.ReportMetric(s.processor.Seconds(), "processor-s/"+name)
		}
		for name, all := range map[string][]spent{"page": pages, "where": wheres, "facets": facets} {
			b.ReportMetric(p95(all, func(s spent) time.Duration { return s.clock }), "ms/"+name+"-p95")
			b.ReportMetric(p95(all, func(s spent) time.Duration { return s.processor }), "processor-ms/"+name+"-p95")
		}
	})
	l.must(os.Rename(filepath.Join(l.root, layout.SearchDir), filepath.Join(b.TempDir(), "aside")))
	l.do(true, func(e *engine.Engine) { b.ReportMetric(page(e, l.query()).clock.Seconds(), "s/scan") }) // it may not write, and has no index
}

// spent is how long something took, on the clock and of the processors.
type spent struct{ clock, processor time.Duration }

func (l *library) spends(do func() error) spent {
	l.Helper()
	processor := func() time.Duration {
		var u syscall.Rusage
		l.must(syscall.Getrusage(syscall.RUSAGE_SELF, &u))
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	begin, before := time.Now(), processor()
	l.must(do())
	return spent{time.Since(begin), processor() - before}
}

// p95 gives milliseconds.
func p95(all []spent, of func(spent) time.Duration) float64 {
	if len(all) == 0 {
		return 0
	}
	slices.SortFunc(all, func(a, b spent) int { return cmp.Compare(of(a), of(b)) })
	return float64(of(all[len(all)*95/100]).Microseconds()) / 1000
}
