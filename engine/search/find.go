package search

import (
	"context"
	"database/sql"
	"errors"
	"slices"

	"bagpipe/layout"
)

// The passes of a search: items whose label has all words, then the others; or all at once.
const (
	passLabel = iota
	passRest
	passAll
)

// each gives the items that fit but for the condition, in order, until visit answers false. limit is how
// many are most likely asked for; 0: all.
func (a *asked) each(ctx context.Context, limit int, visit func(layout.ItemID) (bool, error)) error {
	if !a.whole {
		return a.pass(ctx, limit, visit)
	}
	var all []int64
	err := a.together(ctx, func() error {
		return a.pass(ctx, 0, func(id layout.ItemID) (bool, error) {
			all = append(all, int64(id.Bits()))
			return true, nil
		})
	})
	for _, n := range all {
		if err != nil {
			break
		}
		var more bool
		if more, err = visit(layout.ItemIDOf(uint64(n))); !more {
			break
		}
	}
	return err
}

func (a *asked) pass(ctx context.Context, limit int, visit func(layout.ItemID) (bool, error)) error {
	passes := []int{passAll}
	if len(a.Words) > 0 {
		passes = []int{passLabel, passRest}
	}
	if a.Which != nil {
		limit = 0
	}
	for _, pass := range passes {
		young, err := a.youngOnes(ctx, pass)
		if err != nil {
			return err
		}
		parts := slices.Clone(a.parts)
		for _, n := range young {
			parts = append(parts, n>>(idBits-a.bits))
		}
		slices.Sort(parts)
		for _, part := range slices.Compact(parts) {
			of := 0
			for of < len(young) && young[of]>>(idBits-a.bits) == part {
				of++
			}
			if more, err := a.eachOf(ctx, part, pass, limit, young[:of], visit); err != nil || !more {
				return err
			}
			young = young[of:]
		}
	}
	return nil
}

// youngOnes gives the items of the young part that fit, in order.
func (a *asked) youngOnes(ctx context.Context, pass int) (ids []int64, err error) {
	err = a.together(ctx, func() error {
		s, err := a.fitting(ctx, a.young, pass)
		if err != nil || s.isEmpty() {
			return err
		}
		return a.named(ctx, a.young, s, func(n int64) bool {
			ids = append(ids, n)
			return true
		})
	})
	return ids, err
}

// eachOf is each of one part, and of the items of the young part that would be there.
func (a *asked) eachOf(ctx context.Context, part int64, pass, limit int, young []int64, visit func(layout.ItemID) (bool, error)) (more bool, err error) {
	var s *set
	for done := 0; ; {
		var ids []int64
		if err := a.together(ctx, func() (err error) {
			if _, is := slices.BinarySearch(a.parts, part); !is {
				return nil
			}
			if s == nil {
				if s, err = a.fitting(ctx, part, pass); err != nil {
					return err
				}
			}
			if s.isEmpty() {
				return nil
			}
			return a.named(ctx, part, s, func(n int64) bool {
				ids = append(ids, n)
				return len(ids) != limit
			})
		}); err != nil {
			return false, err
		}
		if ids = append(ids, young...); len(young) > 0 {
			slices.Sort(ids)
		}
		if limit != 0 && len(ids) > limit {
			ids = ids[:limit] // those of the part beyond are not known
		}
		for _, n := range ids[min(done, len(ids)):] {
			if more, err := visit(layout.ItemIDOf(uint64(n))); err != nil || !more {
				return false, err
			}
		}
		if done = len(ids); limit == 0 || done < limit {
			return true, nil
		}
		limit = 0 // more are asked for than was said
	}
}

func (a *asked) findParts(ctx context.Context) error {
	if slices.ContainsFunc(a.terms, func(keys []string) bool { return len(keys) == 0 }) {
		return nil // nothing ever had such a tag
	}
	return a.numbers(ctx, "SELECT part FROM part WHERE part<? ORDER BY part", []any{a.young}, func(part int64) bool {
		if (a.near == nil || a.near[part] != nil) && (a.then == nil || a.then[part] != nil) {
			a.parts = append(a.parts, part)
		}
		return true
	})
}

// fitting gives the documents of a part that fit.
func (a *asked) fitting(ctx context.Context, part int64, pass int) (*set, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s := &set{}
	if err := a.add(ctx, s, "SELECT live FROM part WHERE part=?", part); err != nil {
		return nil, err
	}
	if replaced := a.replaced[part]; replaced != nil {
		s.without(replaced)
	}
	if near := a.near[part]; near != nil {
		s.and(near)
	}
	if then := a.then[part]; then != nil {
		s.and(then)
	}
	if err := a.narrow(ctx, part, s); err != nil || s.isEmpty() {
		return s, err
	}
	if pass == passRest {
		label := *s
		if err := a.worded(ctx, &label, part, keyLabel); err != nil {
			return nil, err
		}
		s.without(&label)
	}
	in := keyWord
	if pass == passLabel {
		in = keyLabel
	}
	if err := a.worded(ctx, s, part, in); err != nil {
		return nil, err
	}
	return s, a.exactly(ctx, part, s)
}

// narrow leaves in s the documents that have one of each of the terms and values that are asked for.
func (a *asked) narrow(ctx context.Context, part int64, s *set) error {
	for _, keys := range a.terms {
		var any set
		for _, key := range keys {
			if err := a.having(ctx, &any, part, key, key); err != nil {
				return err
			}
		}
		s.and(&any)
	}
	for _, sums := range a.sums {
		if s.isEmpty() {
			return nil
		}
		var any set
		for _, sum := range sums {
			if err := a.valued(ctx, &any, part, sum); err != nil {
				return err
			}
		}
		s.and(&any)
	}
	return nil
}

// add adds packed documents.
func (a *asked) add(ctx context.Context, s *set, text string, args ...any) error {
	var packed sql.RawBytes
	return a.rows(ctx, text, args, func(r *sql.Rows) (bool, error) {
		if err := r.Scan(&packed); err != nil {
			return false, err
		}
		return true, s.unpack(packed)
	})
}

// having adds the documents of a part that have a key from one to another.
func (a *asked) having(ctx context.Context, s *set, part int64, from, to string) error {
	return a.add(ctx, s, "SELECT docs FROM list WHERE part=? AND key BETWEEN ? AND ?", part, []byte(from), []byte(to))
}

// valued adds the documents of a part that have a value with a sum.
func (a *asked) valued(ctx context.Context, s *set, part int64, sum uint32) error {
	var packed sql.RawBytes
	return a.rows(ctx, "SELECT docs FROM list WHERE part=? AND key=?", []any{part, []byte(keyValue + string([]byte{byte(sum)}))}, func(r *sql.Rows) (bool, error) {
		if err := r.Scan(&packed); err != nil {
			return false, err
		}
		if len(packed) < packBytes || (len(packed)-packBytes)%5 != 0 {
			return false, errOther
		}
		for all := packed[packBytes:]; len(all) > 0; all = all[5:] {
			if all[0] == byte(sum>>8) && all[1] == byte(sum>>16) && all[2] == byte(sum>>24) {
				s.add(int(all[3]) | int(all[4])<<8)
			}
		}
		return true, nil
	})
}

// pieces visits the rows that a table has of a part, from one to another, until visit answers false.
func pieces(ctx context.Context, a *asked, table string, part int64, from, to int, visit func(piece int, b []byte) (bool, error)) error {
	return a.rows(ctx, "SELECT id, rows FROM "+table+" WHERE id BETWEEN ? AND ?", []any{part<<pieceBits | int64(from), part<<pieceBits | int64(to)}, func(r *sql.Rows) (bool, error) {
		var id int64
		var b sql.RawBytes
		if err := r.Scan(&id, &b); err != nil {
			return false, err
		}
		return visit(int(id&lastPiece), b)
	})
}

// exactly leaves in s the documents whose bounds and times fit.
func (a *asked) exactly(ctx context.Context, part int64, s *set) error {
	if part == a.young {
		return compared(ctx, a, part, s)
	}
	return s.meet(a.Query, func(e edge, v value) (*set, error) { return upTo(ctx, a, part, e, v) }, func() (*set, error) {
		across := &set{}
		return across, a.having(ctx, across, part, keyAcross, keyAcross)
	})
}

// upTo gives the documents of a part whose edge has at most a value.
func upTo(ctx context.Context, a *asked, part int64, e edge, v value) (*set, error) {
	s := &set{}
	from := []byte(edgeKey(e))
	to := e.append(slices.Clone(from), v)
	var b sql.RawBytes
	return s, a.rows(ctx, "SELECT docs FROM list WHERE part=? AND key BETWEEN ? AND ? ORDER BY key DESC LIMIT 1", []any{part, from, to}, func(r *sql.Rows) (bool, error) {
		if err := r.Scan(&b); err != nil {
			return false, err
		}
		return true, s.addUpTo(b, e, v)
	})
}

// compared leaves in s the documents of the young part whose bounds and times fit.
func compared(ctx context.Context, a *asked, part int64, s *set) error {
	start, end, is := s.ends()
	if !is || a.BBox == nil && !a.Timed() {
		return nil
	}
	next := start / reachPlaces
	err := pieces(ctx, a, "reach", part, next, end/reachPlaces, func(piece int, b []byte) (bool, error) {
		if piece != next {
			return false, errOther
		}
		next++
		return true, s.reached(piece, b, a.Query)
	})
	if err == nil && next <= end/reachPlaces {
		err = errOther
	}
	return err
}

// named gives the items of documents, in order, until visit answers false. Each document in force has one, or the
// index is damaged.
func (a *asked) named(ctx context.Context, part int64, s *set, visit func(n int64) bool) error {
	left := s.count()
	err := pieces(ctx, a, "item", part, 0, lastPiece, func(_ int, all []byte) (bool, error) {
		if len(all)%itemBytes != 0 {
			return false, errOther
		}
		p := items(all)
		for i := 0; i < p.len() && left > 0; i++ {
			if s.has(p.place(i)) {
				if left--; !visit(p.n(i)) {
					left = 0
				}
			}
		}
		return left > 0, nil
	})
	if err == nil && left > 0 {
		err = errOther
	}
	return err
}

// partsAlone is how many parts are counted by one connection.
const partsAlone = 8

// facets counts what the items that fit have in common.
func (a *asked) facets(ctx context.Context) (all []Facet, err error) {
	counts := counts{}
	err = a.together(ctx, func() error {
		parts := append(slices.Clone(a.parts), a.young)
		if a.all = len(parts) > 2; len(parts) <= partsAlone {
			return a.tally(ctx, parts, counts)
		}
		return a.tallyBeside(ctx, parts, counts)
	})
	if err != nil {
		return nil, err
	}
	return counts.facets(), nil
}

// counts are items by the key of what they have in common.
type counts map[string]int

func (c counts) facets() []Facet {
	all := make([]Facet, 0, len(c))
	for key, n := range c {
		t := termOf(key)
		all = append(all, Facet{t.facet, t.value, n})
	}
	return ordered(all)
}

// tallyBeside counts the items of half the parts, while another connection counts the others: as nobody can write while the
// first one reads, both read the same.
func (a *asked) tallyBeside(ctx context.Context, parts []int64, into counts) (err error) {
	db, conn, err := openDB(ctx, a.path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close(), db.Close()) }()
	other := *a
	other.connection = connected(a.path, conn)
	defer func() { err = errors.Join(err, other.close()) }()
	counted, ended := counts{}, make(chan error, 1)
	half := len(parts) / 2
	go func() {
		ended <- other.together(ctx, func() error { return other.tally(ctx, parts[half:], counted) })
	}()
	err = a.tally(ctx, parts[:half], into)
	if otherErr := <-ended; err == nil {
		err = otherErr
	}
	for key, n := range counted {
		into[key] += n
	}
	return err
}

// tally counts the items of parts that fit.
func (a *asked) tally(ctx context.Context, parts []int64, into counts) error {
	for _, part := range parts {
		s, err := a.fitting(ctx, part, passAll)
		if err != nil {
			return err
		}
		if s.isEmpty() {
			continue
		}
		if err := pieces(ctx, a, "common", part, 0, lastPiece, func(_ int, b []byte) (bool, error) {
			return true, eachTerm(b, func(key, docs []byte) error {
				n, err := s.meets(docs)
				if n > 0 {
					into[string(key)] += n
				}
				return err
			})
		}); err != nil {
			return err
		}
	}
	return nil
}
