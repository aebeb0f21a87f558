package search

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"time"

	"bagpipe/engine/query"
	"bagpipe/layout"
)

// writer puts documents into an index, in the order of their identifiers: FTS5 begins a new
// part of its index at each one that comes before the last, and at each statement that may write
// several rows of whatever table. So the words of an index that is not new are written last.
type writer struct {
	tx    *sql.Tx
	fresh bool // the index is new: nothing has to be removed
	stmts map[string]*sql.Stmt
	terms map[term]int64

	old []int64   // of these the words are to be removed
	new []wordRow // these are to be written then
}

// wordRow is what an item has in words.
type wordRow struct {
	n           int64
	label, more string
}

// wordsAtOnce is how many items' words wait in memory.
const wordsAtOnce = 20_000

func newWriter(tx *sql.Tx, fresh bool) *writer {
	return &writer{tx: tx, fresh: fresh, stmts: map[string]*sql.Stmt{}, terms: map[term]int64{}}
}

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

// put brings an item's rows to what its records say; d nil: it is gone.
func (w *writer) put(ctx context.Context, id layout.ItemID, d *document) error {
	n := int64(id.Bits())
	if !w.fresh {
		same, err := w.clear(ctx, n, d)
		if err != nil || same {
			return err
		}
	}
	if d == nil {
		return nil
	}
	label, more := d.words()
	if w.new = append(w.new, wordRow{n, label, more}); w.fresh || len(w.new) >= wordsAtOnce {
		if err := w.putWords(ctx); err != nil {
			return err
		}
	}
	if err := w.putItem(ctx, n, d); err != nil {
		return err
	}
	for _, t := range d.terms {
		k, err := w.term(ctx, t)
		if err != nil {
			return err
		}
		if err := w.exec(ctx, "INSERT INTO has VALUES(?,?)", k, n); err != nil {
			return err
		}
	}
	return nil
}

// putWords writes the words that wait.
func (w *writer) putWords(ctx context.Context) error {
	for _, n := range w.old {
		if err := w.exec(ctx, "DELETE FROM words WHERE rowid=?", n); err != nil {
			return err
		}
	}
	for _, r := range w.new {
		if err := w.exec(ctx, "INSERT INTO words(rowid, label, more) VALUES(?,?,?)", r.n, r.label, r.more); err != nil {
			return err
		}
	}
	w.old, w.new = w.old[:0], w.new[:0]
	return nil
}

// clear removes an item's rows, its words later; same: they are what d says.
func (w *writer) clear(ctx context.Context, n int64, d *document) (same bool, err error) {
	s, err := w.stmt(ctx, "SELECT digest FROM item WHERE n=?")
	if err != nil {
		return false, err
	}
	var digest int64
	switch err := s.QueryRowContext(ctx, n).Scan(&digest); {
	case errors.Is(err, sql.ErrNoRows):
		return false, nil
	case err != nil:
		return false, err
	case d != nil && d.digest == digest:
		return true, nil
	}
	w.old = append(w.old, n)
	for _, text := range []string{"DELETE FROM box WHERE id IN (2*?1, 2*?1+1)", "DELETE FROM span WHERE id=?",
		"DELETE FROM has WHERE n=?", "DELETE FROM item WHERE n=?"} {
		if err := w.exec(ctx, text, n); err != nil {
			return false, err
		}
	}
	return false, nil
}

func (w *writer) putItem(ctx context.Context, n int64, d *document) error {
	var west, south, east, north, start, until any
	if d.located {
		west, south, east, north = d.bounds[0], d.bounds[1], d.bounds[2], d.bounds[3]
		for i, b := range d.bounds.Parts() {
			if err := w.exec(ctx, "INSERT INTO box VALUES(?,?,?,?,?)", 2*n+int64(i), b[0], b[2], b[1], b[3]); err != nil {
				return err
			}
		}
	}
	if d.timed {
		start, until = d.span.Start.UnixMilli(), d.span.End.UnixMilli()
		first, last := days(d.span)
		if err := w.exec(ctx, "INSERT INTO span VALUES(?,?,?)", n, first, last); err != nil {
			return err
		}
	}
	return w.exec(ctx, "INSERT INTO item VALUES(?,?,?,?,?,?,?,?)", n, d.digest, west, south, east, north, start, until)
}

// days are the ends of a span in days.
func days(s query.Span) (start, end float64) {
	const day = float64(24 * time.Hour / time.Second)
	return float64(s.Start.Unix()) / day, float64(s.End.Unix()+1) / day
}

func (w *writer) term(ctx context.Context, t term) (k int64, err error) {
	if k, ok := w.terms[t]; ok {
		return k, nil
	}
	s, err := w.stmt(ctx, "SELECT t FROM term WHERE facet=? AND value=?")
	if err != nil {
		return 0, err
	}
	err = s.QueryRowContext(ctx, t.facet, t.value).Scan(&k)
	if errors.Is(err, sql.ErrNoRows) {
		key := t.value
		if t.facet == facetTag {
			key = query.TagKey(t.value)
		}
		if s, err = w.stmt(ctx, "INSERT INTO term(facet, value, key) VALUES(?,?,?) RETURNING t"); err != nil {
			return 0, err
		}
		err = s.QueryRowContext(ctx, t.facet, t.value, key).Scan(&k)
	}
	if err == nil {
		w.terms[t] = k
	}
	return k, err
}

// between parts values: no word that is looked for holds it.
const between = " \ue000 "

// words are the texts of a document as FTS5 takes them.
func (d *document) words() (label, more string) {
	var b strings.Builder
	for _, f := range d.fields[1:] {
		writeWords(&b, f.text)
	}
	for _, name := range d.files {
		writeWords(&b, shownName(name))
	}
	return strings.Join(query.Words(d.fields[0].text), " "), b.String()
}

func writeWords(b *strings.Builder, text string) {
	for _, word := range query.Words(text) {
		b.WriteString(word)
		b.WriteByte(' ')
	}
	b.WriteString(between)
}
