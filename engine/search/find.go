package search

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"bagpipe/engine/query"
	"bagpipe/layout"
)

// few is how many items an R*Tree may name for its list to be gone through in place of all
// items in their order.
const few = 50_000

// asked is a query put to the index.
type asked struct {
	query.Query
	*sql.Conn
	boxes, spans bool      // few items fit the box, the span
	terms        [][]int64 // of the collection and each tag: one of them an item must have
	rarest       int64     // a term that an item must have; 0: there is none
}

// ask prepares a query: how many fit decides which list is gone through.
func ask(ctx context.Context, conn *sql.Conn, q query.Query) (a asked, err error) {
	a = asked{Query: q, Conn: conn}
	if q.BBox != nil {
		where, args := boxCandidates(*q.BBox)
		if a.boxes, err = a.atMost(ctx, "box", where, args); err != nil {
			return a, err
		}
	}
	if q.Timed() {
		where, args := spanCandidates(q.Span)
		if a.spans, err = a.atMost(ctx, "span", where, args); err != nil {
			return a, err
		}
	}
	return a, a.findTerms(ctx)
}

// findTerms looks up the collection and the tags.
func (a *asked) findTerms(ctx context.Context) error {
	if a.Collection != "" {
		if err := a.findTerm(ctx, "facet=? AND value=?", facetCollection, a.Collection); err != nil {
			return err
		}
	}
	for _, tag := range a.Tags {
		key := query.TagKey(tag)
		if err := a.findTerm(ctx, "facet=? AND (key=? OR instr(key, ':')>0 AND substr(key, instr(key, ':')+1)=?)", facetTag, key, key); err != nil {
			return err
		}
	}
	least := few + 1
	for _, t := range a.terms {
		if len(t) != 1 {
			continue
		}
		var n int
		if err := a.QueryRowContext(ctx, fmt.Sprintf("SELECT count(*) FROM (SELECT 1 FROM has WHERE t=? LIMIT %d)", few+1), t[0]).Scan(&n); err != nil {
			return err
		}
		if n <= least {
			least, a.rarest = n, t[0]
		}
	}
	return nil
}

func (a *asked) findTerm(ctx context.Context, where string, args ...any) error {
	found, err := a.numbers(ctx, "SELECT t FROM term WHERE "+where, args)
	a.terms = append(a.terms, found)
	return err
}

func (a asked) atMost(ctx context.Context, table, where string, args []any) (bool, error) {
	var n int
	err := a.QueryRowContext(ctx, fmt.Sprintf("SELECT count(*) FROM (SELECT 1 FROM %s WHERE %s LIMIT %d)", table, where, few+1), args...).Scan(&n)
	return n <= few, err
}

func boxCandidates(b query.Box) (where string, args []any) {
	var parts []string
	for _, p := range b.Parts() {
		parts = append(parts, "(w<=? AND e>=? AND s<=? AND n>=?)")
		args = append(args, p[2], p[0], p[3], p[1])
	}
	return strings.Join(parts, " OR "), args
}

func spanCandidates(s query.Span) (where string, args []any) {
	first, last := days(s)
	return "start<=? AND until>=?", []any{last, first}
}

// clauses are the parts of a question in SQL.
type clauses struct {
	from  []string
	where []string
	args  []any
	key   string // the column that has an item's number
}

// sql is the question: the numbers above after of items that fit, in order. pass 1 asks for
// those whose labels have all words, pass 2 for the others; 0 for all.
func (a asked) sql(pass int, after int64, most int) (string, []any) {
	c := clauses{}
	switch {
	case len(a.Words) > 0:
		c.from, c.key = []string{"words"}, "words.rowid"
		c.and("words MATCH ?", match(a.Words, pass))
		c.from = append(c.from, "item")
		c.and("item.n=words.rowid")
	case a.boxes:
		where, args := boxCandidates(*a.BBox)
		c.listed("SELECT DISTINCT id/2 AS n FROM box WHERE "+where, args)
	case a.spans:
		where, args := spanCandidates(a.Span)
		c.listed("SELECT id AS n FROM span WHERE "+where, args)
	case a.rarest > 0:
		c.from, c.key = []string{"has", "item"}, "has.n"
		c.and("has.t=? AND item.n=has.n", a.rarest)
	default:
		c.from, c.key = []string{"item"}, "item.n"
	}
	a.exactly(&c)
	if after >= 0 {
		c.and(c.key+">?", after)
	}
	text := "SELECT " + c.key + " AS n FROM " + strings.Join(c.from, " CROSS JOIN ")
	if len(c.where) > 0 {
		text += " WHERE " + strings.Join(c.where, " AND ")
	}
	text += " ORDER BY " + c.key
	if most > 0 {
		text += fmt.Sprintf(" LIMIT %d", most)
	}
	return text, c.args
}

func (c *clauses) and(where string, args ...any) {
	c.where, c.args = append(c.where, where), append(c.args, args...)
}

// listed goes through a list of items that has been made.
func (c *clauses) listed(list string, args []any) {
	c.from, c.key = []string{"(" + list + " ORDER BY 1) AS some", "item"}, "some.n"
	c.args = append(c.args, args...)
	c.and("item.n=some.n")
}

// exactly asks item for what the R*Trees know roughly, and has for what items have in common.
func (a asked) exactly(c *clauses) {
	if a.BBox != nil {
		var parts []string
		var args []any
		for _, p := range a.BBox.Parts() {
			parts = append(parts, "(item.s<=? AND item.n2>=? AND CASE WHEN item.w<=item.e THEN item.w<=? AND item.e>=? ELSE item.w<=? OR item.e>=? END)")
			args = append(args, p[3], p[1], p[2], p[0], p[2], p[0])
		}
		c.and("("+strings.Join(parts, " OR ")+")", args...)
	}
	if a.Timed() {
		c.and("item.start<=? AND item.until>=?", a.Span.End.UnixMilli(), a.Span.Start.UnixMilli())
	}
	for _, any := range a.terms {
		c.and("EXISTS(SELECT 1 FROM has AS h WHERE h.n=" + c.key + " AND h.t IN (" + listOf(any) + "))")
	}
}

func listOf(numbers []int64) string {
	var texts []string
	for _, n := range numbers {
		texts = append(texts, strconv.FormatInt(n, 10))
	}
	return strings.Join(texts, ",")
}

// match is the words as FTS5 has them.
func match(words []query.Phrase, pass int) string {
	var all []string
	for _, p := range words {
		one := `"` + strings.Join(p, " ") + `"`
		if p.Open() {
			one += " *"
		}
		all = append(all, one)
	}
	text := "(" + strings.Join(all, " AND ") + ")"
	switch pass {
	case 1:
		return "label : " + text
	case 2:
		return text + " NOT (label : " + text + ")"
	}
	return text
}

// passes are the questions whose answers come one after the other.
func (a asked) passes() []int {
	if len(a.Words) == 0 {
		return []int{0}
	}
	return []int{1, 2}
}

// page is how many items are asked for at once where it is open how many are needed.
const page = 1000

// each gives the items that fit, in order, until visit answers false.
func (a asked) each(ctx context.Context, limit int, visit func(layout.ItemID) (bool, error)) error {
	size := page
	if a.Which == nil && limit > 0 {
		size = limit
	}
	for _, pass := range a.passes() {
		for after := int64(-1); ; {
			some, err := a.some(ctx, pass, after, size)
			if err != nil {
				return err
			}
			for _, n := range some {
				if more, err := visit(layout.ItemIDOf(uint64(n))); err != nil || !more {
					return err
				}
			}
			if len(some) < size {
				break
			}
			after = some[len(some)-1]
			size = max(size, page)
		}
	}
	return nil
}

func (a asked) some(ctx context.Context, pass int, after int64, most int) (all []int64, err error) {
	text, args := a.sql(pass, after, most)
	return a.numbers(ctx, text, args)
}

func (a asked) numbers(ctx context.Context, text string, args []any) (all []int64, err error) {
	rows, err := a.QueryContext(ctx, text, args...)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var n int64
		if err := rows.Scan(&n); err != nil {
			return nil, err
		}
		all = append(all, n)
	}
	return all, rows.Err()
}

// facets counts what the items that fit have in common. Where these are many, has is gone through in its own
// order: nothing is sorted then.
func (a asked) facets(ctx context.Context) (all []Facet, err error) {
	text, args := a.sql(0, -1, 0)
	if _, err := a.ExecContext(ctx, "CREATE TEMP TABLE fits(n INTEGER PRIMARY KEY)"); err != nil {
		return nil, err
	}
	if _, err := a.ExecContext(ctx, "INSERT INTO temp.fits "+text, args...); err != nil {
		return nil, err
	}
	from := "temp.fits AS f CROSS JOIN has"
	var many bool
	if err := a.QueryRowContext(ctx, "SELECT 3*(SELECT count(*) FROM temp.fits) > (SELECT count(*) FROM item)").Scan(&many); err != nil {
		return nil, err
	}
	if many {
		from = "has CROSS JOIN temp.fits AS f"
	}
	return a.count(ctx, "SELECT term.facet, term.value, of.items FROM (SELECT has.t AS t, count(*) AS items FROM "+from+" WHERE f.n=has.n GROUP BY has.t) AS of CROSS JOIN term WHERE term.t=of.t")
}

func (a asked) count(ctx context.Context, text string, args ...any) (all []Facet, err error) {
	rows, err := a.QueryContext(ctx, text, args...)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	all = []Facet{}
	for rows.Next() {
		var f Facet
		if err := rows.Scan(&f.Facet, &f.Value, &f.Items); err != nil {
			return nil, err
		}
		all = append(all, f)
	}
	return ordered(all), rows.Err()
}
