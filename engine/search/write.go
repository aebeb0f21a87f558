package search

import (
	"context"
	"database/sql"
	"errors"
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
	edges  [edges][]edged      // of those that are added to a part
	reach  []byte              // of those that are added to the young part
	lists  map[string][]uint16 // places that are to be added, by key
	words  map[string]*wordLists
	values [256][]byte // by the first byte of the sum
}

// wordLists is what is to be added of a word.
type wordLists struct {
	places, labels []uint16
	stands         []stand
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
	if w.young != 0 {
		w.reach = r.appendReach(w.reach)
		return
	}
	for e, v := range valuesOf(r.bounds, r.span) {
		if r.has(edge(e)) {
			w.edges[e] = append(w.edges[e], edged{v, uint16(at)})
		}
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
			l.stands = append(l.stands, standOf(at, f.at))
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
	for _, table := range []string{"replaced", "list WHERE part=?1", "part WHERE part=?1"} {
		if _, err := q.ExecContext(ctx, "DELETE FROM "+table, before); err != nil {
			return err
		}
	}
	for _, table := range []string{"common", "item", "reach"} {
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
