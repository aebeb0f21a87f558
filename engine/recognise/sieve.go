package recognise

import (
	"bytes"
	"slices"
	"strings"

	"bagpipe/engine/recognise/internal/endings"
)

// Endings are those of the names of files and folders in a folder, at any depth, as far as a book's
// rules ask for them.
type Endings [4]uint64

const mostEndings = 64 * len(Endings{})

// AllEndings are those of names that are not known.
func AllEndings() Endings { return Endings{^uint64(0), ^uint64(0), ^uint64(0), ^uint64(0)} }

// Join adds those of another folder.
func (e *Endings) Join(of Endings) {
	for i := range e {
		e[i] |= of[i]
	}
}

// Listed is what is known of a folder without a look at it.
type Listed interface {
	Has(name string) bool // directly in it
	Endings() Endings     // of what lies in it, Book.EndsOf each name, at any depth
	// Files visits all in it that are no folders, in the order of fs.WalkDir. It answers false where
	// not all is known.
	Files(visit func(path string, size int64) bool) bool
}

func (e *Endings) set(n int) { e[n/64] |= 1 << (n % 64) }

func (e *Endings) has(n int) bool { return e[n/64]&(1<<(n%64)) != 0 }

func (e Endings) meets(wanted Endings) bool {
	for i := range e {
		if e[i]&wanted[i] != 0 {
			return true
		}
	}
	return false
}

type piece struct {
	text   []byte
	number int
}

// sieve knows the endings that rules ask for in folders: what has none of them is no candidate,
// whatever else is asked.
type sieve struct {
	numbers map[string]int
	lengths []int               // of endings
	pieces  []piece             // that may stand anywhere in a name
	needs   map[*Rule][]Endings // one of each must be met
}

func newSieve(files []*File) *sieve {
	s := &sieve{numbers: map[string]int{}, needs: map[*Rule][]Endings{}}
	for _, f := range files {
		for i := range f.Rules {
			if needs := s.needsOf(&f.Rules[i].Match); needs != nil {
				s.needs[&f.Rules[i]] = needs
			}
		}
	}
	for text, number := range s.numbers {
		if part, anywhere := strings.CutSuffix(text, "*"); anywhere {
			s.pieces = append(s.pieces, piece{[]byte(part), number})
		} else if !slices.Contains(s.lengths, len(text)) {
			s.lengths = append(s.lengths, len(text))
		}
	}
	slices.Sort(s.lengths)
	return s
}

// needsOf gives the endings that a folder must hold for conditions to hold.
func (s *sieve) needsOf(m *Match) (needs []Endings) {
	want := func(texts []string) {
		if e, ok := s.number(texts); ok {
			needs = append(needs, e)
		}
	}
	if m.find != nil {
		want(endings.OfExpression(m.Find))
	}
	for _, glob := range m.Holds {
		want(endings.OfPattern(glob))
	}
	for _, c := range m.Count {
		if c.Min == nil || *c.Min < 1 {
			continue
		}
		if c.Name != "" {
			want(endings.OfPattern(c.Name))
		}
		if c.regexp != nil {
			want(endings.OfExpression(c.Regexp))
		}
	}
	if sets := m.Sets; sets != nil && (sets.Min == nil || *sets.Min > 0) {
		want(endings.OfExpression(sets.Main))
		for _, glob := range sets.Required {
			want(endings.OfPattern(glob))
		}
	}
	for _, d := range slices.Concat(m.XML, m.JSON) {
		want(endings.OfPattern(d.File))
	}
	for i := range m.All {
		needs = append(needs, s.needsOf(&m.All[i])...)
	}
	return needs
}

// number gives endings their numbers; ok is false where they say nothing, or there are too many.
func (s *sieve) number(texts []string) (e Endings, ok bool) {
	for _, text := range texts {
		n, known := s.numbers[text]
		if !known {
			if n = len(s.numbers); n == mostEndings {
				return e, false
			}
			s.numbers[text] = n
		}
		e.set(n)
	}
	return e, texts != nil
}

// add notes how a name ends. One that is not plain may be compared in another form, and has all.
func (s *sieve) add(name string, to *Endings) {
	var buf [256]byte
	low := buf[:0]
	for i := range len(name) {
		c := name[i]
		if c < 0x20 || c >= 0x7f || c == '%' || len(low) == len(buf) {
			*to = AllEndings()
			return
		}
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		low = append(low, c)
	}
	for _, n := range s.lengths {
		if n > len(low) {
			break
		}
		if number, is := s.numbers[string(low[len(low)-n:])]; is {
			to.set(number)
		}
	}
	for i := range s.pieces {
		if p := &s.pieces[i]; !to.has(p.number) && bytes.Contains(low, p.text) {
			to.set(p.number)
		}
	}
}
