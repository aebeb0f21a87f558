package bags

import (
	"slices"
	"unicode/utf8"
)

// Patterns in profiles' lists of allowed files. The rules are a shell's, but for the
// slash, which is a character as any other, so that metadata/* covers all below it:
//
//   - an asterisk stands for any characters, or none;
//   - a question mark for any one;
//   - [abc], [a-z], [!a-z] for one of those, or of all others; what has no closing
//     bracket stands for itself.

// matchesAny tells whether a pattern covers s. One that is s itself does, whatever is
// in it: profiles list names with brackets as they are.
func matchesAny(patterns []string, s string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return p == s || matches(p, s) })
}

// matches goes back to the last asterisk alone, which is enough: what an earlier one
// could take, the last can too. So time does not grow with their number.
func matches(pattern, s string) bool {
	p, i := 0, 0
	star, from := -1, 0
	for i < len(s) {
		if p < len(pattern) && pattern[p] == '*' {
			star, from = p, i
			p++
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		if n, ok := one(pattern[p:], r); ok {
			p, i = p+n, i+size
			continue
		}
		if star < 0 {
			return false
		}
		_, size = utf8.DecodeRuneInString(s[from:])
		from += size
		p, i = star+1, from
	}
	for p < len(pattern) && pattern[p] == '*' {
		p++
	}
	return p == len(pattern)
}

// one matches one character with the pattern's beginning, of which it takes n bytes.
func one(pattern string, r rune) (n int, ok bool) {
	if pattern == "" {
		return 0, false
	}
	switch pattern[0] {
	case '?':
		return 1, true
	case '[':
		if n, ok, closed := class(pattern, r); closed {
			return n, ok
		}
	}
	c, n := utf8.DecodeRuneInString(pattern)
	return n, c == r
}

func class(pattern string, r rune) (n int, ok, closed bool) {
	set := []rune(pattern[1:])
	i, not := 0, false
	if len(set) > 0 && set[0] == '!' {
		i, not = 1, true
	}
	for first := i; i < len(set); i++ {
		if set[i] == ']' && i > first {
			return 1 + len(string(set[:i+1])), ok != not, true
		}
		low, high := set[i], set[i]
		if i+2 < len(set) && set[i+1] == '-' && set[i+2] != ']' {
			high = set[i+2]
			i += 2
		}
		ok = ok || low <= r && r <= high
	}
	return 0, false, false
}
