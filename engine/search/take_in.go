package search

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"slices"

	"bagpipe/engine/gitstore"
	"bagpipe/engine/ledger"
	"bagpipe/layout"
)

// The rules are: the young part is taken into the others some parts at a time, each time in one transaction, behind a search that
// was answered. Items of a part that was taken in are out of force in the young part, and no more replaced in theirs;
// so after each transaction, and at a crash, the index says the same. Once nothing in the young part is in force, another begins.

// takenAtOnce is how many items are taken in at once: it takes some tenths of a second.
const takenAtOnce = 2048

// takeIn takes the young part of an index of the tree of v into the others, besides other searches. One that is closed
// ends after some parts; the next search goes on.
func (s *Searches) takeIn(ctx context.Context, v gitstore.View) {
	ctx = context.WithoutCancel(ctx)
	s.work.Go(func() {
		if !s.taking.TryLock() {
			return
		}
		defer s.taking.Unlock()
		for {
			more, err := s.takeSome(ctx, v)
			if errors.Is(err, errFull) {
				err = s.buildBehind(ctx, v)
			}
			if err != nil { // a search that meets what is wrong mends it
				s.ledger.Log.Warn("changes stay in the young part of the search index", "err", err)
			}
			if err != nil || !more {
				return
			}
			select {
			case <-s.closed:
				return
			default:
			}
		}
	})
}

// buildBehind builds the index anew while the one that is there answers.
func (s *Searches) buildBehind(ctx context.Context, v gitstore.View) (err error) {
	unlock, err := s.lock()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	ctx, end := s.untilClosed(ctx)
	defer end()
	return s.build(ctx, v)
}

// takeSome takes items of the young part into theirs; more: there are others.
func (s *Searches) takeSome(ctx context.Context, v gitstore.View) (more bool, err error) {
	unlock, err := s.lock()
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	db, conn, err := openDB(ctx, s.path(), "synchronous(1)", largeCache)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, conn.Close(), db.Close()) }()
	tree, err := treeOf(ctx, conn)
	if err != nil || tree != v.Tree() { // the search that brought it there goes on
		return false, err
	}
	bits, err := bitsOf(ctx, conn)
	if err != nil {
		return false, err
	}
	young, err := youngOf(ctx, conn, bits)
	if err != nil {
		return false, err
	}
	if crowded, err := isCrowded(ctx, conn, young); err != nil || !crowded {
		return false, err
	}
	err = inTransaction(ctx, conn, v, func(tx *sql.Tx) (err error) {
		w := newWriter(tx, bits)
		defer func() { err = errors.Join(err, w.close()) }()
		more, err = w.takeSome(ctx, young, func(id layout.ItemID) (*row, error) {
			r, err := ledger.ReadRecords(v, id)
			if err != nil {
				return nil, err
			}
			if d := read(id, r); d != nil {
				return d.row(), nil
			}
			return nil, nil
		})
		if err != nil || more {
			return err
		}
		return setState(ctx, tx, stateParts, v.Tree())
	})
	return more, err
}

// takeSome takes the items of those parts that have most in the young part.
func (w *writer) takeSome(ctx context.Context, young int64, read func(layout.ItemID) (*row, error)) (more bool, err error) {
	if err := w.enter(ctx, young); err != nil {
		return false, err
	}
	from := w.filling
	w.is = false // nothing is added to its lists
	of := map[int64][]int64{}
	for i := range from.before.len() {
		n := from.before.n(i)
		part := n >> (idBits - w.bits)
		of[part] = append(of[part], n)
	}
	if err := w.alsoReplaced(ctx, of); err != nil {
		return false, err
	}
	parts := make([]int64, 0, len(of))
	for part := range of {
		parts = append(parts, part)
	}
	slices.SortFunc(parts, func(a, b int64) int { return cmp.Or(cmp.Compare(len(of[b]), len(of[a])), cmp.Compare(a, b)) })
	taken := 0
	for i, part := range parts {
		if more = taken >= takenAtOnce; more {
			parts = parts[:i]
			break
		}
		taken += len(of[part])
	}
	slices.Sort(parts)
	for _, part := range parts {
		if err := w.takePart(ctx, part, of[part], read); err != nil {
			return false, err
		}
		for _, n := range of[part] {
			at, _ := from.before.find(n)
			from.live.remove(from.before.place(at))
		}
	}
	if err := w.end(ctx); err != nil {
		return false, err
	}
	if !more {
		return false, beginYoung(ctx, w.tx, young, young+1)
	}
	w.filling = from // to which nothing is added
	return true, w.putPart(ctx)
}

// alsoReplaced adds the parts of which items are gone.
func (w *writer) alsoReplaced(ctx context.Context, of map[int64][]int64) (err error) {
	rows, err := w.tx.QueryContext(ctx, "SELECT part FROM replaced")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var part int64
		if err := rows.Scan(&part); err != nil {
			return unlike(err)
		}
		if _, is := of[part]; !is {
			of[part] = nil
		}
	}
	return rows.Err()
}

// takePart takes items into their part.
func (w *writer) takePart(ctx context.Context, part int64, ids []int64, read func(layout.ItemID) (*row, error)) error {
	if err := w.enter(ctx, part); err != nil {
		return err
	}
	was, err := w.replacedOf(ctx, part)
	if err != nil {
		return err
	}
	w.live.without(&was.docs)
	if err := w.exec(ctx, "DELETE FROM replaced WHERE part=?", part); err != nil {
		return err
	}
	for _, n := range ids {
		id := layout.ItemIDOf(uint64(n))
		r, err := read(id)
		if err != nil {
			return err
		}
		if err := w.put(ctx, id, r); err != nil {
			return err
		}
	}
	return nil
}
