package profile

import (
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// Patterns in profiles' lists of allowed files are doublestar's, but for two rules: the
// slash is a character as any other, so that metadata/* covers all below it, and braces
// and backslashes stand for themselves, and so does a bracket that is not closed.

// matchesAny reports whether a pattern covers s. A pattern equal to s covers it,
// whatever its characters: profiles list names with brackets as they are.
func matchesAny(patterns []string, s string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return p == s || matches(p, s) })
}

// plainSlash turns slashes into a character that no path holds.
var plainSlash = strings.NewReplacer("/", "\x00")

// literal quotes what doublestar has beyond a profile's pattern.
var literal = strings.NewReplacer("/", "\x00", `\`, `\\`, "{", `\{`, "}", `\}`, "[^", `[\^`, "[]", `[\]`, "[!]", `[!\]`)

func matches(pattern, s string) bool {
	if i := strings.LastIndexByte(pattern, '['); i >= 0 && !strings.Contains(pattern[i:], "]") {
		pattern = pattern[:i] + "\x01" + pattern[i+1:]
	}
	pattern = strings.ReplaceAll(literal.Replace(pattern), "\x01", `\[`)
	ok, err := doublestar.Match(pattern, plainSlash.Replace(s))
	return ok && err == nil
}
