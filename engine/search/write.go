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
// several rows of whatever table. So the words of an index that is not new are written last.
type writer struct {
	tx    *sql.Tx
	fresh bool  // the index is new: nothing has to be removed, and its R*Trees are packed at the end
	young int64 // the part that all is written to; 0: each item to its own
	most  int   // documents of the young part
	bits  int   // of an identifier, which name its part
	stmts map[string]*sql.Stmt
	tags  map[string]bool // that are to be written

	filling
	replaced
	words       []wordRow // these are to be written
	boxes, span []cell
}

// filling is the part that is written at present.
type filling struct {
	is    bool // there is one
	part  int64
	next  int // the place of the next document
	live  set
	lists map[string][]uint16 // places that are to be added, by key
}

// replaced is the part whose documents are replaced at present by those of the young part.
type replaced struct {
	of   int64
	docs set
	more bool // than were written
}

// wordRow is what a document has in words that stand in order.
type wordRow struct {
	doc         int64
	label, more string
}

func newWriter(tx *sql.Tx, bits int) *writer {
	return &writer{tx: tx, bits: bits, stmts: map[string]*sql.Stmt{}, tags: map[string]bool{}, replaced: replaced{of: -1}}
}

// wordsAtOnce is how many items' words wait in memory.
const wordsAtOnce = 20_000

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
		same, err := w.clear(ctx, n, r)
		if err == nil && !same && w.young != 0 {
			same, err = w.replace(ctx, n, r)
		}
		if err != nil || same {
			return err
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
	for _, key := range r.keys {
		if places := w.lists[key]; len(places) == 0 || places[len(places)-1] != uint16(at) {
			w.lists[key] = append(places, uint16(at))
		}
	}
	doc := w.part<<16 | int64(at)
	if r.label != "" || r.more != "" {
		if w.words = append(w.words, wordRow{doc, r.label, r.more}); w.fresh || len(w.words) >= wordsAtOnce {
			if err := w.putWords(ctx); err != nil {
				return err
			}
		}
	}
	for _, tag := range r.tags {
		w.tags[tag] = true
	}
	return w.putItem(ctx, n, doc, r)
}

// enter goes on with a part; the one before is written.
func (w *writer) enter(ctx context.Context, part int64) error {
	if w.is && w.part == part {
		return nil
	}
	if err := w.leave(ctx); err != nil {
		return err
	}
	w.filling = filling{is: true, part: part, lists: map[string][]uint16{}}
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
	put := "INSERT INTO list VALUES(?,?,?)"
	if !w.fresh { // each list costs one statement
		put += fmt.Sprintf(" ON CONFLICT DO UPDATE SET docs=CAST(docs||substr(excluded.docs,%d) AS BLOB)", packBytes+1)
	}
	for _, key := range slices.Sorted(maps.Keys(w.lists)) {
		docs := packPlaces(w.lists[key])
		if w.fresh {
			var s set
			for _, at := range w.lists[key] {
				s.add(int(at))
			}
			docs = s.pack()
		}
		if err := w.exec(ctx, put, w.part, []byte(key), docs); err != nil {
			return err
		}
	}
	put = "INSERT INTO part VALUES(?,?,?)"
	if !w.fresh {
		put = "INSERT OR REPLACE INTO part VALUES(?,?,?)"
	}
	return w.exec(ctx, put, w.part, w.next, w.live.pack())
}

// end writes what waits.
func (w *writer) end(ctx context.Context) error {
	if err := w.leave(ctx); err != nil {
		return err
	}
	if err := w.putReplaced(ctx); err != nil {
		return err
	}
	if err := w.putWords(ctx); err != nil {
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

func (w *writer) putWords(ctx context.Context) error {
	for _, r := range w.words {
		if err := w.exec(ctx, "INSERT INTO words(rowid, label, more) VALUES(?,?,?)", r.doc, r.label, r.more); err != nil {
			return err
		}
	}
	w.words = w.words[:0]
	return nil
}

// clear takes an item's document out of force; same: it is what r says.
func (w *writer) clear(ctx context.Context, n int64, r *row) (same bool, err error) {
	var doc, digest int64
	is, err := w.scan(ctx, "SELECT doc, digest FROM "+w.table()+" WHERE n=?", []any{n}, &doc, &digest)
	if err != nil || !is {
		return false, err
	}
	if r != nil && r.digest == digest {
		return true, nil
	}
	if doc>>16 != w.part {
		return false, errOther
	}
	w.live.remove(int(doc & (maxPlaces - 1)))
	return false, w.exec(ctx, "DELETE FROM "+w.table()+" WHERE n=?", n)
}

// table has the rows of items of the part that is written at present.
func (w *writer) table() string {
	if w.young != 0 {
		return "young"
	}
	return "item"
}

// replace notes that an item's document in its part, if there is one in force, has another in the young part; same: it
// is what r says.
func (w *writer) replace(ctx context.Context, n int64, r *row) (same bool, err error) {
	var doc, digest int64
	is, err := w.scan(ctx, "SELECT doc, digest FROM item WHERE n=?", []any{n}, &doc, &digest)
	if err != nil || !is {
		return false, err
	}
	part, at := doc>>16, int(doc&(maxPlaces-1))
	if part != n>>(idBits-w.bits) {
		return false, errOther
	}
	if part != w.of {
		if err := w.putReplaced(ctx); err != nil {
			return false, err
		}
		w.replaced = replaced{of: part}
		var docs []byte
		if is, err := w.scan(ctx, "SELECT docs FROM replaced WHERE part=?", []any{part}, &docs); err != nil {
			return false, err
		} else if is {
			if err := w.docs.unpack(docs); err != nil {
				return false, err
			}
		}
	}
	if w.docs.has(at) {
		return false, nil
	}
	if r != nil && r.digest == digest {
		return true, nil
	}
	w.docs.add(at)
	w.more = true
	return false, nil
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
	for _, table := range []string{"young", "replaced", "list WHERE part=?1", "part WHERE part=?1"} {
		if _, err := q.ExecContext(ctx, "DELETE FROM "+table, before); err != nil {
			return err
		}
	}
	_, err := q.ExecContext(ctx, "INSERT INTO part VALUES(?,?,?)", part, 0, (&set{}).pack())
	return err
}

func (w *writer) putItem(ctx context.Context, n, doc int64, r *row) error {
	var west, south, east, north, start, until any
	if r.located {
		west, south, east, north = r.bounds[0], r.bounds[1], r.bounds[2], r.bounds[3]
		for i, b := range r.bounds.Parts() {
			id := 2*doc + int64(i)
			if w.fresh {
				w.boxes = append(w.boxes, outward(id, b[0], b[2], b[1], b[3]))
			} else if w.young != 0 {
				break // its items are few enough to be compared each
			} else if err := w.exec(ctx, "INSERT INTO box VALUES(?,?,?,?,?)", id, b[0], b[2], b[1], b[3]); err != nil {
				return err
			}
		}
	}
	if r.timed {
		start, until = r.span.Start.UnixMilli(), r.span.End.UnixMilli()
		first, last := days(r.span)
		if w.fresh {
			w.span = append(w.span, outward(doc, first, last))
		} else if w.young == 0 {
			if err := w.exec(ctx, "INSERT INTO span VALUES(?,?,?)", doc, first, last); err != nil {
				return err
			}
		}
	}
	return w.exec(ctx, "INSERT INTO "+w.table()+" VALUES(?,?,?,?,?,?,?,?,?)", n, doc, r.digest, west, south, east, north, start, until)
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

// row is what of a document is written.
type row struct {
	keys, tags  []string
	label, more string // what has several words, for phrases
	bounds      query.Box
	located     bool
	span        query.Span
	timed       bool
	digest      int64
}

// between parts values: no word that is looked for holds it.
const between = " \ue000 "

func (d *document) row() *row {
	r := &row{bounds: d.bounds, located: d.located, span: d.span, timed: d.timed, digest: d.digest}
	for _, t := range d.terms {
		r.keys = append(r.keys, t.key())
		if t.facet == facetTag {
			r.tags = append(r.tags, t.value)
		}
	}
	if d.alike != "" {
		r.keys = append(r.keys, keyAlike+d.alike)
	}
	var more strings.Builder
	add := func(i int, text string) {
		words := query.Words(text)
		for _, word := range words {
			if r.keys = append(r.keys, keyWord+word); i == 0 {
				r.keys = append(r.keys, keyLabel+word)
			}
		}
		switch {
		case len(words) < 2: // no phrase
		case i == 0:
			r.label = strings.Join(words, " ")
		default:
			more.WriteString(strings.Join(words, " ") + between)
		}
	}
	for i, f := range d.fields {
		if hasWords(f.name) {
			r.keys = append(r.keys, valueKey(f.text))
		}
		add(i, f.text)
	}
	for _, name := range d.files {
		add(1, shownName(name))
	}
	r.more = more.String()
	return r
}
