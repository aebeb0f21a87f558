package layout

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"strings"
	"time"
)

// Scanner reads JSON from front to back in one pass, for records that are read by
// the million. It knows what Bagpipe writes and refuses the rest, as objects whose
// keys are not in order, texts with \\u and numbers with exponents: then Bad is
// true for good, what it gives means nothing, and the general reader has to be
// asked. What it gives is shared with the bytes that are read.
type Scanner struct {
	b     []byte
	at    int
	begun int // where the key stands that Key gave last
	bad   bool
}

// maxSkipDepth bounds how deep a value may be that is passed over.
const maxSkipDepth = 60

// Reset begins anew.
func (s *Scanner) Reset(data []byte) { *s = Scanner{b: data} }

// Bad reports whether the general reader has to be asked.
func (s *Scanner) Bad() bool { return s.bad }

// Refuse makes it Bad, for a value the caller does not expect.
func (s *Scanner) Refuse() { s.bad = true }

// Done reports whether all was read, and all was well.
func (s *Scanner) Done() bool {
	s.space()
	return !s.bad && s.at == len(s.b)
}

// Open begins an object.
func (s *Scanner) Open() { s.want('{') }

// Key gives the next key of an object, after the one before; nil before the first,
// and at the object's end.
func (s *Scanner) Key(before []byte) []byte {
	s.space()
	if s.peek() == '}' {
		s.at++
		return nil
	}
	if before != nil {
		s.want(',')
		s.space()
	}
	s.begun = s.at
	key := s.Text()
	s.space()
	s.want(':')
	s.space()
	if len(key) == 0 || bytes.Compare(before, key) >= 0 {
		s.bad = true
	}
	if s.bad {
		return nil
	}
	return key
}

// At is how many bytes were read.
func (s *Scanner) At() int { return s.at }

// Begun is where in the bytes the member begins whose key Key gave last.
func (s *Scanner) Begun() int { return s.begun }

// Pass passes over the member whose key Key gave last, where it is byte for byte one that was read
// before, key and value; else it reports false, and the value is still to be read.
func (s *Scanner) Pass(member []byte) bool {
	if s.bad || len(member) == 0 || !bytes.HasPrefix(s.b[s.begun:], member) {
		return false
	}
	s.at = s.begun + len(member)
	return true
}

// Text reads a string.
func (s *Scanner) Text() []byte {
	s.want('"')
	from := s.at
	for s.at+8 <= len(s.b) {
		n := plainBytes(binary.LittleEndian.Uint64(s.b[s.at:]))
		if s.at += n; n < 8 {
			break
		}
	}
	for ; s.at < len(s.b); s.at++ {
		switch c := s.b[s.at]; {
		case c == '"':
			s.at++
			return s.b[from : s.at-1]
		case c == '\\':
			return s.escaped(from)
		case c < ' ':
			s.bad = true
			return nil
		}
	}
	s.bad = true
	return nil
}

// escaped reads a string with escapes of one letter, which are the same to every
// reader; s.at is at the first.
func (s *Scanner) escaped(from int) []byte {
	text := append(make([]byte, 0, 2*(s.at-from)+64), s.b[from:s.at]...)
	for s.at < len(s.b) {
		c := s.b[s.at]
		s.at++
		switch {
		case c == '"':
			return text
		case c < ' ':
			s.bad = true
			return nil
		case c == '\\':
			i := strings.IndexByte(escapes, s.peek())
			if i < 0 {
				s.bad = true
				return nil
			}
			s.at++
			c = escapesMean[i]
		}
		text = append(text, c)
	}
	s.bad = true
	return nil
}

const escapes, escapesMean = `"\/bfnrt`, "\"\\/\b\f\n\r\t"

// plainBytes tells how many of eight bytes, the first lowest, stand before one that
// ends a string, is escaped or may not stand in one. It may stop earlier, at a byte
// that is not ASCII.
func plainBytes(w uint64) int {
	const ones, high = 0x0101010101010101, 0x8080808080808080
	quote, slash := w^(ones*'"'), w^(ones*'\\')
	return bits.TrailingZeros64(((quote-ones)|(slash-ones)|(w-ones*' ')|w)&high) / 8
}

// Int reads a whole number from 0 up.
func (s *Scanner) Int() int {
	n, digits := s.digits()
	if digits == 0 || s.unfinished() {
		s.bad = true
	}
	return n
}

// Float reads a number without sign and exponent.
func (s *Scanner) Float() float64 {
	n, digits := s.digits()
	part, scale := 0, 1.0
	if digits > 0 && s.peek() == '.' {
		s.at++
		from := s.at
		for c := s.peek(); '0' <= c && c <= '9' && s.at-from < 16; c = s.peek() {
			part = part*10 + int(c-'0')
			scale *= 10
			s.at++
		}
		digits += s.at - from
		n = n*int(scale) + part
		if s.at == from {
			s.bad = true
		}
	}
	if digits == 0 || digits > 15 || s.unfinished() { // up to 15 digits the quotient is the nearest number
		s.bad = true
		return 0
	}
	return float64(n) / scale
}

func (s *Scanner) digits() (n, digits int) {
	from := s.at
	for c := s.peek(); '0' <= c && c <= '9' && s.at-from < 16; c = s.peek() {
		n = n*10 + int(c-'0')
		s.at++
	}
	digits = s.at - from
	if digits > 15 || digits > 1 && s.b[from] == '0' {
		s.bad = true
	}
	return n, digits
}

// unfinished reports whether a number goes on.
func (s *Scanner) unfinished() bool {
	c := s.peek()
	return '0' <= c && c <= '9' || c == '.' || c == 'e' || c == 'E'
}

// Time reads a time as FormatTime writes it.
func (s *Scanner) Time() time.Time {
	t, ok := plainTime(s.Text())
	if !ok {
		s.bad = true
	}
	return t
}

// plainTime reads 2026-11-20T10:00:00[.123456789]Z.
func plainTime(b []byte) (t time.Time, ok bool) {
	const whole = len("2006-01-02T15:04:05")
	if len(b) < whole+1 || len(b) > whole+11 || b[4] != '-' || b[7] != '-' || b[10] != 'T' || b[13] != ':' || b[16] != ':' || b[len(b)-1] != 'Z' {
		return t, false
	}
	ok = true
	number := func(from, to int) (n int) {
		for _, c := range b[from:to] {
			ok = ok && '0' <= c && c <= '9'
			n = n*10 + int(c-'0')
		}
		return n
	}
	year, month, day := number(0, 4), number(5, 7), number(8, 10)
	hour, minute, second := number(11, 13), number(14, 16), number(17, 19)
	nano := 0
	if part := len(b) - 1 - whole; part > 0 {
		if ok = ok && part > 1 && b[whole] == '.'; ok {
			nano = number(whole+1, len(b)-1)
		}
		for ; part < 10; part++ {
			nano *= 10
		}
	}
	if !ok || month < 1 || month > 12 || day < 1 || hour > 23 || minute > 59 || second > 59 {
		return t, false
	}
	t = time.Date(year, time.Month(month), day, hour, minute, second, nano, time.UTC)
	return t, day <= 28 || t.Day() == day
}

// Skip passes over a value of any kind.
func (s *Scanner) Skip() { s.skip(0) }

func (s *Scanner) skip(depth int) {
	switch c := s.peek(); {
	case depth > maxSkipDepth:
		s.bad = true
	case c == '"':
		s.Text()
	case c == '{':
		s.at++
		for key := s.Key(nil); key != nil; key = s.Key(key) {
			s.skip(depth + 1)
		}
	case c == '[':
		s.at++
		s.skipList(depth)
	case c == 't':
		s.word("true")
	case c == 'f':
		s.word("false")
	case c == 'n':
		s.word("null")
	default:
		if c == '-' {
			s.at++
		}
		s.Float()
	}
}

func (s *Scanner) skipList(depth int) {
	for first := true; !s.bad; first = false {
		s.space()
		if s.peek() == ']' {
			s.at++
			return
		}
		if !first {
			s.want(',')
			s.space()
		}
		s.skip(depth + 1)
	}
}

// IsObject reports whether the next value is one.
func (s *Scanner) IsObject() bool { return s.peek() == '{' }

func (s *Scanner) word(w string) {
	if s.bad = s.bad || !bytes.HasPrefix(s.b[s.at:], []byte(w)); !s.bad {
		s.at += len(w)
	}
}

func (s *Scanner) peek() byte {
	if s.bad || s.at >= len(s.b) {
		return 0
	}
	return s.b[s.at]
}

func (s *Scanner) want(c byte) {
	if s.peek() != c {
		s.bad = true
		return
	}
	s.at++
}

// space passes over white space: most often none, or a line's end and its indent.
func (s *Scanner) space() {
	if s.at >= len(s.b) || s.b[s.at] > ' ' {
		return
	}
	s.spaces()
}

func (s *Scanner) spaces() {
	const all = 0x2020202020202020
	if s.b[s.at] == '\n' {
		s.at++
	}
	for s.at+8 <= len(s.b) {
		n := bits.TrailingZeros64(binary.LittleEndian.Uint64(s.b[s.at:])^all) / 8
		if s.at += n; n < 8 {
			break
		}
	}
	for s.at < len(s.b) {
		switch s.b[s.at] {
		case ' ', '\n', '\t', '\r':
			s.at++
		default:
			return
		}
	}
}
