package search_test

import (
	"context"
	crand "crypto/rand"
	"database/sql"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"bagpipe/engine"
	"bagpipe/engine/query"
	"bagpipe/layout"
)

// TestIndexIsBuiltAnewWhereValuesAreOthers: an index that SQLite takes for whole, but that has other values than were
// written, is built anew by the search that reads them.
func TestIndexIsBuiltAnewWhereValuesAreOthers(t *testing.T) {
	l := &library{TB: t, Rand: rand.New(rand.NewPCG(1, 0)), root: filepath.Join(t.TempDir(), "ws")}
	l.must(engine.Init(context.Background(), l.root, l.options(false)))
	for range 3 {
		id, err := layout.NewItemID(crand.Reader)
		l.must(err)
		l.items = append(l.items, id)
	}
	l.do(false, func(e *engine.Engine) {
		l.commit(e, l.items, false)
		hits, _ := l.find(e, query.Query{}, 0)
		want := len(hits)
		for _, damage := range []string{
			"UPDATE state SET value='38a0ff\xb4' WHERE key='tree'",
			"UPDATE state SET value='many' WHERE key='bits'",
			"UPDATE item SET doc=x'ff'||doc",
			"UPDATE part SET live=x'0303'",
		} {
			db, err := sql.Open("sqlite", filepath.Join(l.root, layout.SearchDir, "index.db"))
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
