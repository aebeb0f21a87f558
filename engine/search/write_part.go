package search

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"
)

// putPart writes which items of a part are in force, and where and when those that are added are.
func (w *writer) putPart(ctx context.Context) error {
	all := w.added
	for i := range w.before.len() {
		if place := w.before.place(i); w.live.has(place) {
			all = append(all, entry{w.before.n(i), w.before.digest(i), place})
		}
	}
	if len(all) != w.live.count() {
		return errOther
	}
	if err := w.putPieces(ctx, "item", slices.Collect(slices.Chunk([]byte(packItems(all)), pieceBytes/itemBytes*itemBytes))); err != nil {
		return err
	}
	if err := w.addPieces(ctx, "reach", reachPlaces, reachBytes, w.reach); err != nil {
		return err
	}
	return w.exec(ctx, "INSERT OR REPLACE INTO part VALUES(?,?,?)", w.part, w.next, w.live.pack())
}

// putPieces puts rows in place of those that a table has of the part.
func (w *writer) putPieces(ctx context.Context, table string, all [][]byte) error {
	if len(all) > lastPiece {
		return errFull
	}
	if err := w.exec(ctx, "DELETE FROM "+table+" WHERE id BETWEEN ? AND ?", w.part<<pieceBits, w.part<<pieceBits|lastPiece); err != nil {
		return err
	}
	for i, b := range all {
		if err := w.exec(ctx, "INSERT INTO "+table+" VALUES(?,?)", w.part<<pieceBits|int64(i), b); err != nil {
			return err
		}
	}
	return nil
}

// addPieces adds what there is of the places that were added, so many bytes of each, to rows of so many places.
func (w *writer) addPieces(ctx context.Context, table string, places, size int, b []byte) error {
	for at := w.next - len(b)/size; len(b) > 0; {
		piece := at / places
		n := min(len(b)/size, (piece+1)*places-at)
		if err := w.addPiece(ctx, table, piece, b[:n*size]); err != nil {
			return err
		}
		at, b = at+n, b[n*size:]
	}
	return nil
}

// addPiece writes more behind a row.
func (w *writer) addPiece(ctx context.Context, table string, piece int, b []byte) error {
	return w.exec(ctx, "INSERT INTO "+table+" VALUES(?,?) ON CONFLICT DO UPDATE SET rows=CAST(rows||excluded.rows AS BLOB)", w.part<<pieceBits|int64(piece), b)
}

// itemsOf reads the items of a part.
func (w *writer) itemsOf(ctx context.Context, part int64) (all items, err error) {
	s, err := w.stmt(ctx, "SELECT rows FROM item WHERE id BETWEEN ? AND ?")
	if err != nil {
		return nil, err
	}
	rows, err := s.QueryContext(ctx, part<<pieceBits, part<<pieceBits|lastPiece)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var b sql.RawBytes
		if err := rows.Scan(&b); err != nil {
			return nil, unlike(err)
		}
		all = append(all, b...)
	}
	if err = rows.Err(); err == nil && len(all)%itemBytes != 0 {
		err = errOther
	}
	return all, err
}

// putLists writes the lists of the part, in the order of their keys.
func (w *writer) putLists(ctx context.Context) error {
	packing := func(places []uint16) []byte {
		if !w.fresh {
			return packPlaces(places)
		}
		var s set
		for _, at := range places {
			s.add(int(at))
		}
		return s.pack()
	}
	all := make(map[string][]byte, len(w.lists)+3*len(w.words)+len(w.values))
	for key, places := range w.lists {
		all[key] = packing(places)
	}
	for word, l := range w.words {
		all[keyWord+word] = packing(l.places)
		if len(l.labels) > 0 {
			all[keyLabel+word] = packing(l.labels)
		}
		if len(l.stands) > 0 {
			w.stands(all, keyStand+word, l.stands)
		}
	}
	for first, values := range w.values {
		if len(values) > 0 {
			all[keyValue+string([]byte{byte(first)})] = append(make([]byte, packBytes), values...)
		}
	}
	if w.young == 0 {
		if err := putEdges(ctx, w, all); err != nil {
			return err
		}
	}
	put := "INSERT INTO list VALUES(?,?,?)"
	if !w.fresh { // each list costs one statement
		put += fmt.Sprintf(" ON CONFLICT DO UPDATE SET docs=CAST(docs||substr(excluded.docs,%d) AS BLOB)", packBytes+1)
	}
	for _, key := range slices.Sorted(maps.Keys(all)) {
		if err := w.exec(ctx, put, w.part, []byte(key), all[key]); err != nil {
			return err
		}
	}
	return nil
}

// stands puts in lists where a word stands. What comes to an index that is not new goes behind all pieces.
func (w *writer) stands(to map[string][]byte, key string, all []stand) {
	if !w.fresh {
		to[pieceKey(key, lastPiece)] = packOnes(all)
		return
	}
	for n := 0; len(all) > 0; n++ {
		to[pieceKey(key, n)], all = packStands(all)
	}
}

// putEdges makes the lists of the part's edges: of the documents that are added, and of those that it had and that are in force.
func putEdges(ctx context.Context, w *writer, to map[string][]byte) error {
	for e := range edges {
		all := w.edges[e]
		if !w.fresh {
			had, err := edgedOf(ctx, w, e)
			if err != nil {
				return err
			}
			all = append(all, had...)
		}
		packEdge(to, e, all)
	}
	if w.fresh {
		return nil
	}
	return w.exec(ctx, "DELETE FROM list WHERE part=? AND key BETWEEN ? AND ?", w.part, []byte(edgeKey(0)), []byte(edgeKey(edges)))
}

// edgedOf reads the documents in force that the part's lists of an edge have.
func edgedOf(ctx context.Context, w *writer, e edge) (all []edged, err error) {
	s, err := w.stmt(ctx, "SELECT key, docs FROM list WHERE part=? AND key BETWEEN ? AND ? ORDER BY key")
	if err != nil {
		return nil, err
	}
	from := edgeKey(e)
	rows, err := s.QueryContext(ctx, w.part, []byte(from), []byte(edgeKey(e+1)))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	var known set
	for rows.Next() {
		var key, b sql.RawBytes
		if err := rows.Scan(&key, &b); err != nil {
			return nil, unlike(err)
		}
		if len(key) != len(from)+e.size() {
			return nil, errOther
		}
		err := e.unpack(e.read(key[len(from):]), b, &known, func(d edged) {
			if w.live.has(int(d.place)) {
				all = append(all, d)
			}
		})
		if err != nil {
			return nil, err
		}
	}
	return all, rows.Err()
}
