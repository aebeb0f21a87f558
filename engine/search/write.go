package search

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"bagpipe/engine/query"
	"bagpipe/layout"
)

// writer puts items into an index, in the order of their identifiers: FTS5 begins a new
// part of its index at each one that comes before the last, and at each statement that may write
// several rows of whatever table. So the texts of an index that is not new are written last.
type writer struct {
	tx    *sql.Tx
	fresh bool  // the index is new: nothing has to be removed, and its R*Trees are packed at the end
	young int64 // the part that all is written to; 0: each item to its own
	most  int   // places of the young part
	bits  int   // of an identifier, which name its part
	stmts map[string]*sql.Stmt
	tags  map[string]bool // that are to be written

	filling
	replaced
	long        []longText // these are to be written
	boxes, span []cell
}

// filling is the part that is written at present.
type filling struct {
	is     bool // there is one
	part   int64
	next   int // the place of the next document
	live   set
	before items // its items as they were; those out of force are not in live
	added  []entry
	bounds []byte // of those that are added
	times  []byte
	exact  []byte
	lists  map[string][]uint16 // places that are to be added, by key
	words  map[string]*wordLists
	values [256][]byte // by the first byte of the sum
}

// wordLists is what is to be added of a word.
type wordLists struct {
	places, labels []uint16
	stand          []byte
}

// replaced is the part whose documents are replaced at present by those of the young part.
type replaced struct {
	of    int64
	docs  set
	items items
	more  bool // than were written
}

// longText is the text of a document that FTS5 has.
type longText struct {
	doc         int64
	label, more string
}

func newWriter(tx *sql.Tx, bits int) *writer {
	return &writer{tx: tx, bits: bits, stmts: map[string]*sql.Stmt{}, tags: map[string]bool{}, replaced: replaced{of: -1}}
}

// longAtOnce is how many texts wait in memory.
const longAtOnce = 1000

func (w *writer) close() (err error) {
	for _, s := range w.stmts {
		err = errors.Join(err, s.Close())
	}
	return err
}

func (w *writer) stmt(ctx context.Context, text string) (*sql.Stmt, error) {
	if s := w.stmts[text]; s != nil {
		return s, nil
	}
	s, err := w.tx.PrepareContext(ctx, text)
	if err == nil {
		w.stmts[text] = s
	}
	return s, err
}

func (w *writer) exec(ctx context.Context, text string, args ...any) error {
	s, err := w.stmt(ctx, text)
	if err == nil {
		_, err = s.ExecContext(ctx, args...)
	}
	return err
}

// scan reads one row; is: there is one.
func (w *writer) scan(ctx context.Context, text string, args []any, into ...any) (is bool, err error) {
	s, err := w.stmt(ctx, text)
	if err != nil {
		return false, err
	}
	err = s.QueryRowContext(ctx, args...).Scan(into...)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return err == nil, unlike(err)
}

// put brings an item's rows to what its records say; r nil: it is gone.
func (w *writer) put(ctx context.Context, id layout.ItemID, r *row) error {
	n := int64(id.Bits())
	part := n >> (idBits - w.bits)
	if w.young != 0 {
		part = w.young
	}
	if err := w.enter(ctx, part); err != nil {
		return err
	}
	if !w.fresh {
		same := w.clear(n, r)
		if !same && w.young != 0 {
			var err error
			if same, err = w.replace(ctx, n, r); err != nil {
				return err
			}
		}
		if same {
			return nil
		}
	}
	if r == nil {
		return nil
	}
	switch {
	case w.young != 0 && w.next >= w.most:
		return errYoung
	case w.next == maxPlaces:
		return errFull
	}
	at := w.next
	w.next++
	w.live.add(at)
	w.added = append(w.added, entry{n, r.digest, at})
	w.reaches(at, &r.reach)
	w.mark(at, r)
	doc := w.part<<16 | int64(at)
	if r.label != "" || r.more != "" {
		if w.long = append(w.long, longText{doc, r.label, r.more}); w.fresh || len(w.long) >= longAtOnce {
			if err := w.putLong(ctx); err != nil {
				return err
			}
		}
	}
	for _, tag := range r.tags {
		w.tags[tag] = true
	}
	return w.putReach(ctx, doc, r)
}

// reaches adds where and when a document is.
func (w *writer) reaches(at int, r *reach) {
	var oddly, oddWhen bool
	w.bounds, oddly = r.appendBounds(w.bounds)
	if w.times, oddWhen = r.appendTimes(w.times); oddly || oddWhen {
		w.exact = r.appendExact(w.exact, at)
	}
}

// mark adds a document to the lists of what it has.
func (w *writer) mark(at int, r *row) {
	add := func(places []uint16) []uint16 {
		if len(places) == 0 || places[len(places)-1] != uint16(at) {
			places = append(places, uint16(at))
		}
		return places
	}
	for _, key := range r.keys {
		w.lists[key] = add(w.lists[key])
	}
	for _, f := range r.words {
		l := w.words[f.word]
		if l == nil {
			l = &wordLists{}
			w.words[f.word] = l
		}
		l.places = add(l.places)
		if f.inLabel {
			l.labels = add(l.labels)
		}
		if f.stands {
			l.stand = append(l.stand, f.at, byte(at), byte(at>>8))
		}
	}
	for _, sum := range r.sums {
		w.values[byte(sum)] = append(w.values[byte(sum)], byte(sum>>8), byte(sum>>16), byte(sum>>24), byte(at), byte(at>>8))
	}
}

// enter goes on with a part; the one before is written.
func (w *writer) enter(ctx context.Context, part int64) error {
	if w.is && w.part == part {
		return nil
	}
	if err := w.leave(ctx); err != nil {
		return err
	}
	w.filling = filling{is: true, part: part, lists: map[string][]uint16{}, words: map[string]*wordLists{}}
	if w.fresh {
		return nil
	}
	var live []byte
	is, err := w.scan(ctx, "SELECT next, live FROM part WHERE part=?", []any{part}, &w.next, &live)
	if err != nil || !is {
		return err
	}
	if w.next < 0 || w.next > maxPlaces {
		return errOther
	}
	if w.before, err = w.itemsOf(ctx, part); err != nil {
		return err
	}
	return w.live.unpack(live)
}

// leave writes the part that is written at present.
func (w *writer) leave(ctx context.Context) error {
	if !w.is {
		return nil
	}
	w.is = false
	// Documents out of force are many more than those in force: all is built anew.
	if !w.fresh && w.young == 0 && w.next > 2*itemsOfPart+4*w.live.count() {
		return errFull
	}
	if err := w.putLists(ctx); err != nil {
		return err
	}
	var common [][]byte
	rows, err := w.tx.QueryContext(ctx, "SELECT key, docs FROM list WHERE part=? AND key BETWEEN ? AND ?", w.part, []byte(keyTerm), []byte(keyAfter))
	if err != nil {
		return err
	}
	for rows.Next() {
		var key, docs sql.RawBytes
		if err := rows.Scan(&key, &docs); err != nil {
			return errors.Join(unlike(err), rows.Close())
		}
		t := appendTerm(nil, key, docs)
		if last := len(common) - 1; last >= 0 && len(common[last])+len(t) <= pieceBytes {
			common[last] = append(common[last], t...)
		} else {
			common = append(common, t)
		}
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		return err
	}
	if err := w.putPieces(ctx, "common", common); err != nil {
		return err
	}
	return w.putPart(ctx)
}

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
	if err := w.addPieces(ctx, "bounds", boundsPlaces, boundsBytes, w.bounds); err != nil {
		return err
	}
	if err := w.addPieces(ctx, "times", timesPlaces, timesBytes, w.times); err != nil {
		return err
	}
	if len(w.exact) > 0 {
		if err := w.addPiece(ctx, "exact", 0, w.exact); err != nil {
			return err
		}
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
		if len(l.stand) > 0 {
			w.stands(all, keyStand+word, l.stand)
		}
	}
	for first, values := range w.values {
		if len(values) > 0 {
			all[keyValue+string([]byte{byte(first)})] = append(make([]byte, packBytes), values...)
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

// stands puts in lists where a word stands: in as many as it takes for each to fit into a page, in the order of the documents.
// What comes to an index that is not new goes behind all of them.
func (w *writer) stands(all map[string][]byte, key string, b []byte) {
	if !w.fresh {
		all[pieceKey(key, lastPiece)] = append(make([]byte, packBytes), b...)
		return
	}
	for n := 0; len(b) > 0; n++ {
		size := min(len(b), pieceBytes/standBytes*standBytes)
		all[pieceKey(key, n)] = append(make([]byte, packBytes), b[:size]...)
		b = b[size:]
	}
}

// end writes what waits.
func (w *writer) end(ctx context.Context) error {
	if err := w.leave(ctx); err != nil {
		return err
	}
	if err := w.putReplaced(ctx); err != nil {
		return err
	}
	if err := w.putLong(ctx); err != nil {
		return err
	}
	if err := w.putTags(ctx); err != nil || !w.fresh {
		return err
	}
	if err := w.packTree(ctx, "box", 2, w.boxes); err != nil {
		return err
	}
	if err := w.packTree(ctx, "span", 1, w.span); err != nil {
		return err
	}
	if err := beginYoung(ctx, w.tx, 1<<w.bits, 1<<w.bits); err != nil {
		return err
	}
	return setState(ctx, w.tx, "bits", w.bits)
}

func (w *writer) putLong(ctx context.Context) error {
	for _, r := range w.long {
		if err := w.exec(ctx, "INSERT INTO words(rowid, label, more) VALUES(?,?,?)", r.doc, r.label, r.more); err != nil {
			return err
		}
	}
	w.long = w.long[:0]
	return nil
}

// clear takes an item's document in this part out of force; same: it is what r says.
func (w *writer) clear(n int64, r *row) (same bool) {
	i, is := w.before.find(n)
	if !is || !w.live.has(w.before.place(i)) {
		return false
	}
	if r != nil && r.digest == w.before.digest(i) {
		return true
	}
	w.live.remove(w.before.place(i))
	return false
}

// replace notes that an item's document in its part, if there is one in force, has another in the young part; same: it
// is what r says.
func (w *writer) replace(ctx context.Context, n int64, r *row) (same bool, err error) {
	if part := n >> (idBits - w.bits); part != w.of {
		if err := w.putReplaced(ctx); err != nil {
			return false, err
		}
		if w.replaced, err = w.replacedOf(ctx, part); err != nil {
			return false, err
		}
	}
	i, is := w.items.find(n)
	if !is || w.docs.has(w.items.place(i)) {
		return false, nil
	}
	if r != nil && r.digest == w.items.digest(i) {
		return true, nil
	}
	w.docs.add(w.items.place(i))
	w.more = true
	return false, nil
}

// replacedOf reads the items of a part and which of them are replaced.
func (w *writer) replacedOf(ctx context.Context, part int64) (r replaced, err error) {
	r.of = part
	if r.items, err = w.itemsOf(ctx, part); err != nil {
		return r, err
	}
	var docs []byte
	is, err := w.scan(ctx, "SELECT docs FROM replaced WHERE part=?", []any{part}, &docs)
	if is {
		err = r.docs.unpack(docs)
	}
	return r, err
}

func (w *writer) putReplaced(ctx context.Context) error {
	if !w.more {
		return nil
	}
	w.more = false
	return w.exec(ctx, "INSERT OR REPLACE INTO replaced VALUES(?,?)", w.of, w.docs.pack())
}

// beginYoung empties the young part. What FTS5 has of its documents stays, so the next has another number.
func beginYoung(ctx context.Context, q querier, before, part int64) error {
	if _, err := q.ExecContext(ctx, "DELETE FROM replaced; DELETE FROM list WHERE part=?1; DELETE FROM part WHERE part=?1", before); err != nil {
		return err
	}
	for _, table := range []string{"common", "item", "bounds", "times", "exact"} {
		if _, err := q.ExecContext(ctx, "DELETE FROM "+table+" WHERE id BETWEEN ? AND ?", before<<pieceBits, before<<pieceBits|lastPiece); err != nil {
			return err
		}
	}
	_, err := q.ExecContext(ctx, "INSERT INTO part VALUES(?,0,?)", part, (&set{}).pack())
	return err
}

// putReach adds a document to the R*Trees, but one of the young part, whose items are few enough to be compared each.
func (w *writer) putReach(ctx context.Context, doc int64, r *row) error {
	if w.young != 0 {
		return nil
	}
	if r.located {
		for i, b := range r.bounds.Parts() {
			id := 2*doc + int64(i)
			if w.fresh {
				w.boxes = append(w.boxes, outward(id, b[0], b[2], b[1], b[3]))
			} else if err := w.exec(ctx, "INSERT INTO box VALUES(?,?,?,?,?)", id, b[0], b[2], b[1], b[3]); err != nil {
				return err
			}
		}
	}
	if !r.timed {
		return nil
	}
	first, last := days(r.span)
	if w.fresh {
		w.span = append(w.span, outward(doc, first, last))
		return nil
	}
	return w.exec(ctx, "INSERT INTO span VALUES(?,?,?)", doc, first, last)
}

// days are the ends of a span in days.
func days(s query.Span) (start, end float64) {
	const day = float64(24 * time.Hour / time.Second)
	return float64(s.Start.Unix()) / day, float64(s.End.Unix()+1) / day
}

func (w *writer) putTags(ctx context.Context) error {
	for _, tag := range slices.Sorted(maps.Keys(w.tags)) {
		key := query.TagKey(tag)
		var bare any
		if _, without, kinds := strings.Cut(key, ":"); kinds {
			bare = without
		}
		if err := w.exec(ctx, "INSERT OR IGNORE INTO tag VALUES(?,?,?)", tag, key, bare); err != nil {
			return err
		}
	}
	return nil
}
