package search_test

import (
	"cmp"
	"context"
	crand "crypto/rand"
	"errors"
	"flag"
	"io/fs"
	"math/rand/v2"
	"os"
	"path"
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

var (
	benchItems = flag.Int("items", 20_000, "how many items BenchmarkSearch searches")
	benchKeep  = flag.String("keep", "", "a folder in which BenchmarkSearch leaves its workspace, and finds it the next time (default: a temporary one)")
)

// BenchmarkSearch tells what the index takes to be built and to take in a thousand changes, and
// how long mixed queries take for their first page and for their facets, beside a look at every
// record, which needs no index. Times are on the clock; those of a processor, which other work on the machine changes less,
// stand beside them.
func BenchmarkSearch(b *testing.B) {
	l := &library{TB: b, Rand: rand.New(rand.NewPCG(1, 2)), root: filepath.Join(cmp.Or(*benchKeep, b.TempDir()), "ws")}
	if _, err := os.Stat(l.root); err != nil {
		l.benched()
	}
	page := func(e *engine.Engine, q query.Query) spent {
		const most = 20
		n := 0
		return l.spends(func() error {
			return e.Search.Find(context.Background(), q, most, func(search.Hit) bool { n++; return n < most })
		})
	}
	l.do(false, func(e *engine.Engine) {
		built := false
		e.Search.Building = func() { built = true }
		build := page(e, query.Query{})
		l.commit(e, l.some(e, 1000), false)
		taken := page(e, query.Query{})
		var pages, wheres, facets []spent
		for b.Loop() {
			q := l.query()
			if q.Where != "" { // the records of what else fits are read
				wheres = append(wheres, page(e, q))
				continue
			}
			pages = append(pages, page(e, q))
			facets = append(facets, l.spends(func() error { _, err := e.Search.Facets(context.Background(), q); return err }))
		}
		if built { // and not found
			b.ReportMetric(build.clock.Seconds(), "s/build")
			b.ReportMetric(build.processor.Seconds(), "processor-s/build")
		}
		b.ReportMetric(taken.clock.Seconds(), "s/1000-changes")
		b.ReportMetric(taken.processor.Seconds(), "processor-s/1000-changes")
		for name, all := range map[string][]spent{"page": pages, "where": wheres, "facets": facets, "all": slices.Concat(pages, wheres, facets)} {
			b.ReportMetric(p95(all, func(s spent) time.Duration { return s.clock }), "ms/"+name+"-p95")
			b.ReportMetric(p95(all, func(s spent) time.Duration { return s.processor }), "processor-ms/"+name+"-p95")
		}
	})
	dir, aside := filepath.Join(l.root, layout.SearchDir), filepath.Join(l.root, "aside")
	l.must(os.Rename(dir, aside))
	l.do(true, func(e *engine.Engine) { b.ReportMetric(page(e, l.query()).clock.Seconds(), "s/scan") }) // it may not write, and has no index
	l.must(os.Rename(aside, dir))
}

// benched makes the workspace that is searched.
func (l *library) benched() {
	l.must(engine.Init(context.Background(), l.root, l.options(false)))
	l.do(false, func(e *engine.Engine) {
		for left := *benchItems; left > 0; {
			some := make([]layout.ItemID, min(left, 10_000))
			for i := range some {
				var err error
				some[i], err = layout.NewItemID(crand.Reader)
				l.must(err)
			}
			left -= len(some)
			l.commit(e, some, false)
			_ = os.RemoveAll(filepath.Join(l.root, layout.ItemsDir)) // no search reads what is shown there, four files an item; some may be shown just now
		}
	})
}

// some gives items all over the workspace.
func (l *library) some(e *engine.Engine, most int) (ids []layout.ItemID) {
	v, err := e.Ledger.Store.Tip()
	l.must(err)
	for tries := 0; len(ids) < min(most, *benchItems/2) && tries < 100*most; tries++ {
		some, err := v.List(path.Dir(layout.ItemDir(layout.ItemIDOf(l.Uint64() >> 8))))
		if errors.Is(err, fs.ErrNotExist) || len(some) == 0 {
			continue
		}
		l.must(err)
		ids = append(ids, layout.ItemID(some[l.IntN(len(some))].Name))
	}
	return ids
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
