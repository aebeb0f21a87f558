package layout

import (
	"path"

	"github.com/bmatcuk/doublestar/v4"
)

// Patterns are one dialect everywhere: docs/reference.md, Patterns.

// ValidPattern reports whether a pattern can be read.
func ValidPattern(pattern string) bool {
	_, err := path.Match(pattern, "")
	return err == nil || doublestar.ValidatePattern(pattern)
}

// MatchPattern reports whether the whole of a name, or of a path with slashes, fits a
// pattern. A pattern with a brace that is not closed means the brace itself: it was
// written before braces meant alternatives, and may stand in a pinned definition.
func MatchPattern(pattern, name string) bool {
	is, err := doublestar.Match(pattern, name)
	if err != nil {
		is, _ = path.Match(pattern, name)
	}
	return is
}
