package search

import (
	"context"
	"math/rand/v2"
	"path/filepath"
	"testing"
)

// Packed R*Trees, from no row to three levels, are sound to SQLite, find what is there, and take more rows.
func TestPackedTrees(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{0, 1, cellsOfNode, cellsOfNode + 1, 5000} {
		ctx := t.Context()
		db, conn, err := openDB(ctx, filepath.Join(t.TempDir(), "index.db"))
		if err != nil {
			t.Fatal(err)
		}
		if err := makeTables(ctx, conn); err != nil {
			t.Fatal(err)
		}
		tx, err := conn.BeginTx(context.Background(), nil)
		if err != nil {
			t.Fatal(err)
		}
		w := newWriter(tx, 0)
		var boxes, spans []cell
		all := map[int64][4]float64{}
		draw := func(id int64) [4]float64 {
			x, y := r.Float64()*360-180, r.Float64()*180-90
			all[id] = [4]float64{x, min(180, x+r.Float64()*9), y, min(90, y+r.Float64()*9)}
			return all[id]
		}
		for id := range int64(n) {
			at := draw(3 * id)
			boxes, spans = append(boxes, outward(3*id, at[:]...)), append(spans, outward(3*id, at[:2]...))
		}
		if err := w.packTree(ctx, "box", 2, boxes); err != nil {
			t.Fatal(err)
		}
		if err := w.packTree(ctx, "span", 1, spans); err != nil {
			t.Fatal(err)
		}
		check := func() {
			t.Helper()
			for _, tree := range []string{"box", "span"} {
				said := ""
				if err := tx.QueryRowContext(ctx, "SELECT rtreecheck(?)", tree).Scan(&said); err != nil || said != "ok" {
					t.Errorf("%s of %d rows: %s %v", tree, n, said, err)
				}
			}
			for range 20 {
				x, y := r.Float64()*300-180, r.Float64()*150-90
				want, near := 0, 0
				for _, at := range all {
					if at[0] <= x+9 && at[1] >= x && at[2] <= y+9 && at[3] >= y {
						want++
					}
					if at[0] <= x+9.001 && at[1] >= x-.001 && at[2] <= y+9.001 && at[3] >= y-.001 {
						near++
					}
				}
				got := 0
				if err := tx.QueryRowContext(ctx, "SELECT count(*) FROM box WHERE w<=? AND e>=? AND s<=? AND n>=?", x+9, x, y+9, y).Scan(&got); err != nil || got < want || got > near {
					t.Errorf("%d rows found, expected %d to %d (%v)", got, want, near, err)
				}
			}
		}
		check()
		for id := range int64(300) {
			at := draw(3*id + 1)
			if err := w.exec(ctx, "INSERT INTO box VALUES(?,?,?,?,?)", 3*id+1, at[0], at[1], at[2], at[3]); err != nil {
				t.Fatal(err)
			}
			if err := w.exec(ctx, "INSERT INTO span VALUES(?,?,?)", 3*id+1, at[0], at[1]); err != nil {
				t.Fatal(err)
			}
		}
		check()
		if err := w.close(); err != nil {
			t.Error(err)
		}
		if err := tx.Rollback(); err != nil {
			t.Error(err)
		}
		if conn.Close() != nil || db.Close() != nil {
			t.Error("the index is not closed")
		}
	}
}
