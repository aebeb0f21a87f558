package search_test

import (
	"database/sql"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"bagpipe/engine"
	"bagpipe/engine/query"
	"bagpipe/engine/search"
	"bagpipe/layout"

	"github.com/google/go-cmp/cmp"
)

// TestIndexIsBuiltAnewWhereValuesAreOthers: an index that SQLite takes for whole, but that has other values than were
// written, is built anew by the search that reads them.
func TestIndexIsBuiltAnewWhereValuesAreOthers(t *testing.T) {
	l := newLibrary(t, 1, 3)
	l.do(false, func(e *engine.Engine) {
		l.commit(e, l.items, false)
		hits, _ := l.find(e, query.Query{}, 0)
		want := len(hits)
		for _, damage := range []string{
			"UPDATE state SET value='38a0ff\xb4' WHERE key='tree'",
			"UPDATE state SET value='many' WHERE key='bits'",
			"UPDATE item SET rows=x'ff'||rows",
			"UPDATE part SET live=x'0303'",
		} {
			db, err := sql.Open("sqlite", "file:"+filepath.Join(l.root, layout.SearchDir, "index.db")+"?vfs=bagpipe") // whose pages have sums
			l.must(err)
			_, err = db.Exec(damage)
			l.must(err)
			l.must(db.Close())
			if hits, _ := l.find(e, query.Query{}, 0); len(hits) != want {
				t.Errorf("%s: found %d of %d", damage, len(hits), want)
			}
		}
	})
}

// TestIndexOfWhichABitFlipped: whichever byte of the index is another one than was written, and whichever page lies in
// place of another, searches answer as from the records; where it was read, the index is built anew.
func TestIndexOfWhichABitFlipped(t *testing.T) {
	places := 40
	if testing.Short() {
		places = 12
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	l := newLibrary(t, seed, 100)
	index := filepath.Join(l.root, layout.SearchDir, "index.db")
	var queries []query.Query
	for range 8 {
		queries = append(queries, l.query())
	}
	type answer struct {
		hits   []search.Hit
		facets []search.Facet
	}
	ask := func(e *engine.Engine) (all []answer) {
		for _, q := range queries {
			hits, facets := l.find(e, q, 0)
			all = append(all, answer{hits, facets})
		}
		return all
	}
	l.do(false, func(e *engine.Engine) { l.commit(e, l.items, false) })
	var want []answer
	l.do(true, func(e *engine.Engine) { want = ask(e) }) // it may not write, and has no index
	l.do(false, func(e *engine.Engine) {
		ask(e)
		whole, err := os.ReadFile(index)
		l.must(err)
		built := 0
		e.Search.Building = func() { built++ }
		for i := range places {
			const page = 8192
			at, bit := l.IntN(len(whole)), byte(1)<<l.IntN(8)
			if i%4 == 1 { // of the first page, which every search reads
				at %= page
			}
			data := slices.Clone(whole)
			if data[at] ^= bit; i%4 == 0 {
				copy(data[at/page*page:], whole[l.IntN(len(whole)/page)*page:][:page])
			}
			l.must(os.WriteFile(index, data, 0o666))
			if diff := cmp.Diff(want, ask(e), cmp.AllowUnexported(answer{})); diff != "" {
				t.Fatalf("byte %d of %d, bit %#x: -records +index\n%s", at, len(whole), bit, diff)
			}
		}
		if built < places/4 {
			t.Errorf("of %d damaged indexes %d were built anew", places, built)
		}
	})
}
