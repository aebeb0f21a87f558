package search

import (
	"context"
	"database/sql"
	"strings"

	"bagpipe/engine/query"
)

// worded leaves in s the documents that have the words, in their labels or anywhere.
func (a *asked) worded(ctx context.Context, s *set, part int64, in string) error {
	if err := allWords(ctx, a, s, part, in, func(p query.Phrase) bool { return len(p) == 1 || in == keyLabel }); err != nil {
		return err
	}
	if !a.inOrder || s.isEmpty() {
		return nil
	}
	return a.phrased(ctx, s, part, in)
}

// allWords leaves in s the documents that have the words of some phrases.
func allWords(ctx context.Context, a *asked, s *set, part int64, in string, of func(query.Phrase) bool) error {
	for _, phrase := range a.Words {
		if !of(phrase) {
			continue
		}
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
	return nil
}

// endOf is the last key of the words that a phrase's last one finds.
func endOf(p query.Phrase, key string) string {
	if p.Open() {
		return key + "\xff" // which no word holds
	}
	return key
}

// phrased leaves in s the documents that have the phrases of several words: by where their words stand, or by FTS5, which
// has long texts.
func (a *asked) phrased(ctx context.Context, s *set, part int64, in string) error {
	var long set
	if err := a.having(ctx, &long, part, keyLong, keyLong); err != nil {
		return err
	}
	long.and(s)
	s.without(&long)
	for _, p := range a.Words {
		if len(p) > 1 && !s.isEmpty() {
			if err := a.standing(ctx, s, part, p, in); err != nil {
				return err
			}
		}
	}
	if in == keyWord {
		if err := allWords(ctx, a, &long, part, in, func(p query.Phrase) bool { return len(p) > 1 }); err != nil {
			return err
		}
	}
	if long.isEmpty() {
		return nil
	}
	err := a.longPhrased(ctx, &long, part, in)
	s.or(&long)
	return err
}

// standing leaves in s the documents in which the words of a phrase stand one after the other.
func (a *asked) standing(ctx context.Context, s *set, part int64, p query.Phrase, in string) error {
	begins, goesOn := a.room[0], a.room[1]
	defer func() { a.room = [...][]stand{begins, goesOn} }()
	for i, word := range p {
		from, to := keyStand+word, ""
		if i == len(p)-1 {
			to = endOf(p, from)
		}
		to = max(to, pieceKey(from, lastPiece))
		goesOn = goesOn[:0]
		k := 0 // of begins
		visit := func(place int, numbers []byte) {
			if k > 0 && begins[k-1].place() >= place {
				k = 0 // the pieces of the next word
			}
			for k < len(begins) && begins[k].place() < place {
				k++
			}
			for ; k < len(begins) && begins[k].place() == place; k++ {
				next := begins[k].number() + i
				for len(numbers) > 0 && int(numbers[0]) < next {
					numbers = numbers[1:]
				}
				if len(numbers) > 0 && int(numbers[0]) == next {
					goesOn = append(goesOn, begins[k])
				}
			}
		}
		if i == 0 {
			visit = func(place int, numbers []byte) {
				for _, n := range numbers {
					if in != keyLabel || n < afterLabel {
						goesOn = append(goesOn, standOf(place, n))
					}
				}
			}
		}
		var piece sql.RawBytes
		if err := a.rows(ctx, "SELECT docs FROM list WHERE part=? AND key BETWEEN ? AND ?", []any{part, []byte(from), []byte(to)}, func(r *sql.Rows) (bool, error) {
			if err := r.Scan(&piece); err != nil {
				return false, err
			}
			return true, eachStanding(piece, s, visit)
		}); err != nil {
			return err
		}
		begins, goesOn = goesOn, begins
		var has set
		for _, b := range begins {
			has.add(b.place())
		}
		if s.and(&has); len(begins) == 0 {
			break
		}
	}
	return nil
}

// oneByOne is how many documents FTS5 is asked of each by itself: a question costs it as much as some
// dozens of documents.
const oneByOne = 64

// longPhrased leaves in s the documents with long texts that have the phrases.
func (a *asked) longPhrased(ctx context.Context, s *set, part int64, in string) error {
	if a.all {
		if err := a.phrasedAll(ctx); err != nil {
			return err
		}
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
	if a.phrases != nil {
		return nil
	}
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
