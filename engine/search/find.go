package search

import (
	"context"
	"database/sql"
	"slices"
	"strings"

	"bagpipe/engine/query"
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
		return a.exactly(ctx, a.young, s, func(n, _ int64) bool {
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
			return a.exactly(ctx, part, s, func(n, _ int64) bool {
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

// fitting gives the documents of a part that may fit: their boxes and spans are to be compared.
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
	for _, keys := range a.terms {
		var any set
		for _, key := range keys {
			if err := a.having(ctx, &any, part, key, key); err != nil {
				return nil, err
			}
		}
		s.and(&any)
	}
	switch pass {
	case passLabel:
		return s, a.worded(ctx, s, part, keyLabel)
	case passRest:
		label := *s
		if err := a.worded(ctx, &label, part, keyLabel); err != nil {
			return nil, err
		}
		s.without(&label)
	}
	return s, a.worded(ctx, s, part, keyWord)
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

// worded leaves in s the documents that have the words, in their labels or anywhere.
func (a *asked) worded(ctx context.Context, s *set, part int64, in string) error {
	for _, phrase := range a.Words {
		for i, word := range phrase {
			if s.isEmpty() {
				return nil
			}
			from := in + word
			to := from
			if i == len(phrase)-1 {
				to = endOf(phrase, from)
			}
			var has set
			if err := a.having(ctx, &has, part, from, to); err != nil {
				return err
			}
			s.and(&has)
		}
	}
	if !a.inOrder || s.isEmpty() {
		return nil
	}
	return a.phrased(ctx, s, part, in)
}

// endOf is the last key of the words that a phrase's last one finds.
func endOf(p query.Phrase, key string) string {
	if p.Open() {
		return key + "\xff" // which no word holds
	}
	return key
}

// oneByOne is how many documents FTS5 is asked of each by itself: a question costs it as much as some
// dozens of documents.
const oneByOne = 64

// phrased leaves in s the documents that have the phrases of several words, which FTS5 knows.
func (a *asked) phrased(ctx context.Context, s *set, part int64, in string) error {
	if a.phrases != nil {
		has := a.phrases[part]
		if has == nil {
			has = &set{}
		}
		s.and(has)
		return nil
	}
	match, err := a.match(ctx, part, in)
	if err != nil {
		return err
	}
	var has set
	between := func(first, last int) error {
		return a.numbers(ctx, "SELECT rowid FROM words WHERE words MATCH ? AND rowid BETWEEN ? AND ?", []any{match, part<<16 | int64(first), part<<16 | int64(last)}, func(doc int64) bool {
			has.add(int(doc & (maxPlaces - 1)))
			return true
		})
	}
	if s.count() > oneByOne {
		err = between(0, maxPlaces-1)
	} else {
		s.each(func(at int) bool {
			err = between(at, at)
			return err == nil
		})
	}
	s.and(&has)
	return err
}

// phrasedAll asks FTS5 once for all parts: in each it would look for a phrase from the beginning of a word's
// documents on.
func (a *asked) phrasedAll(ctx context.Context) error {
	var all []string
	for _, p := range a.Words {
		if len(p) == 1 {
			continue
		}
		one := `"` + strings.Join(p, " ") + `"`
		if p.Open() {
			one += " *"
		}
		all = append(all, one)
	}
	a.phrases = map[int64]*set{}
	return a.numbers(ctx, "SELECT rowid FROM words WHERE words MATCH ?", []any{strings.Join(all, " AND ")}, func(doc int64) bool {
		part := a.phrases[doc>>16]
		if part == nil {
			part = &set{}
			a.phrases[doc>>16] = part
		}
		part.add(int(doc & (maxPlaces - 1)))
		return ctx.Err() == nil
	})
}

// mostEndings is how many words are named in place of their beginning: of that FTS5 would put the
// documents of all parts together.
const mostEndings = 32

// match is the phrases of several words as FTS5 has them.
func (a *asked) match(ctx context.Context, part int64, in string) (string, error) {
	var all []string
	for _, p := range a.Words {
		if len(p) == 1 {
			continue
		}
		first := `"` + strings.Join(p[:len(p)-1], " ") + " "
		last := in + p[len(p)-1]
		var ends []string
		err := a.rows(ctx, "SELECT key FROM list WHERE part=? AND key BETWEEN ? AND ?", []any{part, []byte(last), []byte(endOf(p, last))}, func(r *sql.Rows) (bool, error) {
			var key sql.RawBytes
			err := r.Scan(&key)
			if err == nil {
				ends = append(ends, first+string(key[len(in):])+`"`)
			}
			return len(ends) <= mostEndings, err
		})
		if err != nil {
			return "", err
		}
		if len(ends) > mostEndings {
			ends = []string{first + p[len(p)-1] + `" *`}
		}
		all = append(all, "("+strings.Join(ends, " OR ")+")")
	}
	text := strings.Join(all, " AND ")
	if in == keyLabel {
		return "label : (" + text + ")", nil
	}
	return text, nil
}

// exactly gives the items of documents whose bounds and times fit, in order, until visit answers
// false. Each document in force has an item, or the index is damaged.
func (a *asked) exactly(ctx context.Context, part int64, s *set, visit func(n, doc int64) bool) (err error) {
	where, args := a.compared()
	table, first, last := "item", part<<(idBits-a.bits), (part+1)<<(idBits-a.bits)-1
	if part == a.young {
		table, first, last = "young", 0, 1<<idBits-1
	}
	docs := s.count()
	if docs > itemsOfPart/8 {
		found, more := 0, true
		err = a.pairs(ctx, "SELECT n, doc FROM "+table+" WHERE n BETWEEN ? AND ?"+where+" ORDER BY n", append([]any{first, last}, args...), func(n, doc int64) bool {
			if s.has(int(doc & (maxPlaces - 1))) {
				found++
				more = visit(n, doc)
			}
			return more
		})
		if err == nil && more && where == "" && found != docs {
			err = errOther
		}
		return err
	}
	var found [][2]int64
	s.each(func(at int) bool {
		err = a.pairs(ctx, "SELECT n, doc FROM "+table+" WHERE doc=?"+where, append([]any{part<<16 | int64(at)}, args...), func(n, doc int64) bool {
			found = append(found, [2]int64{n, doc})
			return true
		})
		return err == nil
	})
	if err == nil && where == "" && len(found) != docs {
		err = errOther
	}
	slices.SortFunc(found, func(a, b [2]int64) int { return slices.Compare(a[:], b[:]) })
	for _, f := range found {
		if err != nil || !visit(f[0], f[1]) {
			break
		}
	}
	return err
}

func (a *asked) pairs(ctx context.Context, text string, args []any, visit func(x, y int64) bool) error {
	return a.rows(ctx, text, args, func(r *sql.Rows) (bool, error) {
		var x, y int64
		err := r.Scan(&x, &y)
		return err == nil && visit(x, y), err
	})
}

// compared asks item for what the R*Trees know roughly.
func (a *asked) compared() (where string, args []any) {
	if a.BBox != nil {
		var parts []string
		for _, p := range a.BBox.Parts() {
			parts = append(parts, "(s<=? AND n2>=? AND CASE WHEN w<=e THEN w<=? AND e>=? ELSE w<=? OR e>=? END)")
			args = append(args, p[3], p[1], p[2], p[0], p[2], p[0])
		}
		where = " AND (" + strings.Join(parts, " OR ") + ")"
	}
	if a.Timed() {
		where += " AND start<=? AND until>=?"
		args = append(args, a.Span.End.UnixMilli(), a.Span.Start.UnixMilli())
	}
	return where, args
}

// facets counts what the items that fit have in common.
func (a *asked) facets(ctx context.Context) ([]Facet, error) {
	counts := map[string]int{}
	err := a.together(ctx, func() error {
		if a.inOrder && len(a.parts) > 1 {
			if err := a.phrasedAll(ctx); err != nil {
				return err
			}
		}
		for _, part := range append(a.parts, a.young) {
			if err := a.tally(ctx, part, counts); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	all := make([]Facet, 0, len(counts))
	for key, n := range counts {
		t := termOf(key)
		all = append(all, Facet{t.facet, t.value, n})
	}
	return ordered(all), nil
}

// tally counts the items of a part that fit, by the keys of what they have in common.
func (a *asked) tally(ctx context.Context, part int64, counts map[string]int) error {
	s, err := a.fitting(ctx, part, passAll)
	if err == nil && (a.BBox != nil || a.Timed()) && !s.isEmpty() {
		fit := &set{}
		err = a.exactly(ctx, part, s, func(_, doc int64) bool {
			fit.add(int(doc & (maxPlaces - 1)))
			return true
		})
		s = fit
	}
	if err != nil || s.isEmpty() {
		return err
	}
	var key, packed sql.RawBytes
	return a.rows(ctx, "SELECT key, docs FROM list WHERE part=? AND key BETWEEN ? AND ?", []any{part, []byte(keyTerm), []byte(keyAfter)}, func(r *sql.Rows) (bool, error) {
		if err := r.Scan(&key, &packed); err != nil {
			return false, err
		}
		n, err := s.meets(packed)
		if n > 0 {
			counts[string(key)] += n
		}
		return true, err
	})
}
