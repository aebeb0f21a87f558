package search

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"strings"

	"bagpipe/engine/query"
)

// few is how many items an R*Tree may name for them to be listed. Where it names more, a look at
// the parts in their order finds enough soon.
const few = 500

// asked is a query put to the index.
type asked struct {
	query.Query
	connection
	bits  int
	whole bool // all is found before the first is shown

	young      int64          // the young part
	crowded    bool           // it is to be taken into the others
	replaced   map[int64]*set // documents by part in place of which it has others, or none
	parts      []int64        // that may have items that fit
	near, then map[int64]*set // documents by part whose box, whose span may fit; nil: all
	terms      [][]string     // keys, of the collection, of each tag and so on: one of them an item must have
	sums       [][]uint32     // of values: one of them an item must have
	inOrder    bool           // a phrase has several words
	all        bool           // all parts are gone through
	phrases    map[int64]*set // documents by part whose long texts have the phrases, where all parts are gone through; nil: each is asked
}

// connection is one to the index.
type connection struct {
	path   string // of the index
	conn   *sql.Conn
	stmts  map[string]*sql.Stmt
	stands int64      // SQLite's data_version, which differs once another has written; -1: not known yet
	inside bool       // a transaction is open
	room   [2][]stand // memory that is used again
}

func connected(path string, conn *sql.Conn) connection {
	return connection{path: path, conn: conn, stmts: map[string]*sql.Stmt{}, stands: -1}
}

func newAsked(path string, conn *sql.Conn, q query.Query) *asked {
	return &asked{Query: q, connection: connected(path, conn)}
}

// together lets f read in one transaction, in which the index stands as all that was read before found it; else it
// fails with errMoved: what others write gives items other documents. None may be open while somebody looks at what
// was found, as writers wait for its end.
func (a *asked) together(ctx context.Context, f func() error) (err error) {
	if a.inside {
		return f()
	}
	if _, err := a.conn.ExecContext(ctx, "BEGIN"); err != nil {
		return err
	}
	a.inside = true
	defer func() {
		a.inside = false
		if _, endErr := a.conn.ExecContext(context.WithoutCancel(ctx), "ROLLBACK"); err == nil {
			err = endErr
		}
	}()
	var stands int64
	if err := a.numbers(ctx, "PRAGMA data_version", nil, func(n int64) bool { stands = n; return true }); err != nil {
		return err
	}
	if a.stands >= 0 && stands != a.stands {
		return errMoved
	}
	a.stands = stands
	return f()
}

// prepare reads what is the same for all parts.
func (a *asked) prepare(ctx context.Context) (err error) {
	if a.bits, err = bitsOf(ctx, a.conn); err != nil {
		return err
	}
	if a.young, err = youngOf(ctx, a.conn, a.bits); err != nil {
		return err
	}
	if a.crowded, err = isCrowded(ctx, a.conn, a.young); err != nil {
		return err
	}
	if err := a.findReplaced(ctx); err != nil {
		return err
	}
	if a.BBox != nil {
		where, args := boxCandidates(*a.BBox)
		if a.near, err = a.listed(ctx, "SELECT id/2 FROM box WHERE "+where, args); err != nil {
			return err
		}
	}
	if a.Timed() {
		first, last := days(a.Span)
		if a.then, err = a.listed(ctx, "SELECT id FROM span WHERE start<=? AND until>=?", []any{last, first}); err != nil {
			return err
		}
	}
	a.inOrder = slices.ContainsFunc(a.Words, func(p query.Phrase) bool { return len(p) > 1 })
	if err := a.findTerms(ctx); err != nil {
		return err
	}
	return a.findParts(ctx)
}

func (a *asked) findReplaced(ctx context.Context) error {
	a.replaced = map[int64]*set{}
	return a.rows(ctx, "SELECT part, docs FROM replaced", nil, func(r *sql.Rows) (bool, error) {
		var part int64
		var docs sql.RawBytes
		if err := r.Scan(&part, &docs); err != nil {
			return false, err
		}
		a.replaced[part] = &set{}
		return true, a.replaced[part].unpack(docs)
	})
}

func (a *asked) close() (err error) {
	for _, s := range a.stmts {
		err = errors.Join(err, s.Close())
	}
	return err
}

// rows asks the index; scan is called for each row until it answers false. SQLite itself is not told when
// ctx ends, which would cost each question a goroutine: between parts it is asked for.
func (a *asked) rows(ctx context.Context, text string, args []any, scan func(*sql.Rows) (bool, error)) (err error) {
	ctx = context.WithoutCancel(ctx)
	s := a.stmts[text]
	if s == nil {
		if s, err = a.conn.PrepareContext(ctx, text); err != nil {
			return err
		}
		a.stmts[text] = s
	}
	rows, err := s.QueryContext(ctx, args...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		if more, err := scan(rows); err != nil || !more {
			return unlike(err)
		}
	}
	return rows.Err()
}

// numbers is rows of one number each.
func (a *asked) numbers(ctx context.Context, text string, args []any, visit func(int64) bool) error {
	return a.rows(ctx, text, args, func(r *sql.Rows) (bool, error) {
		var n int64
		err := r.Scan(&n)
		return err == nil && visit(n), err
	})
}

// listed gives documents by part; nil where they are many.
func (a *asked) listed(ctx context.Context, text string, args []any) (map[int64]*set, error) {
	all, n := map[int64]*set{}, 0
	err := a.numbers(ctx, text, args, func(doc int64) bool {
		part := all[doc>>16]
		if part == nil {
			part = &set{}
			all[doc>>16] = part
		}
		part.add(int(doc & (maxPlaces - 1)))
		n++
		return n <= few
	})
	if n > few {
		return nil, err
	}
	return all, err
}

func boxCandidates(b query.Box) (where string, args []any) {
	var parts []string
	for _, p := range b.Parts() {
		parts = append(parts, "(w<=? AND e>=? AND s<=? AND n>=?)")
		args = append(args, p[2], p[0], p[3], p[1])
	}
	return strings.Join(parts, " OR "), args
}

// wanted gives the keys, and the sums of values, of which an item must have one each, but for the tags.
func wanted(q query.Query) (terms [][]string, sums [][]uint32) {
	q.Which.Must(func(path string, texts []string, numbers []float64) {
		switch {
		case (path == facetCollection || path == facetType) && len(numbers) == 0:
			var keys []string
			for _, text := range texts {
				keys = append(keys, term{path, text}.key())
			}
			terms = append(terms, keys)
		case hasWords(path) && !slices.Contains(texts, ""): // empty texts have no key
			var any []uint32
			for _, text := range texts {
				any = append(any, textSum(path, text))
			}
			for _, n := range numbers {
				any = append(any, numberSum(path, n))
			}
			sums = append(sums, any)
		}
	})
	if q.Alike != "" {
		terms = append(terms, []string{keyAlike + q.Alike})
	}
	if q.Collection != "" {
		terms = append(terms, []string{term{facetCollection, q.Collection}.key()})
	}
	return terms, sums
}

// findTerms looks up what an item must have.
func (a *asked) findTerms(ctx context.Context) error {
	a.terms, a.sums = wanted(a.Query)
	for _, tag := range a.Tags {
		key, keys := query.TagKey(tag), []string{}
		err := a.rows(ctx, "SELECT value FROM tag WHERE key=?1 OR bare=?1", []any{key}, func(r *sql.Rows) (bool, error) {
			var value string
			err := r.Scan(&value)
			keys = append(keys, term{facetTag, value}.key())
			return err == nil, err
		})
		if err != nil {
			return err
		}
		a.terms = append(a.terms, keys)
	}
	return nil
}
