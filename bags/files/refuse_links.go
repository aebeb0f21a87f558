package files

import "bagpipe/layout"

// The kinds of links, in the words for people.
const (
	SymbolicLinks = "symbolic links"
	HardLinks     = "hard links"
	Junctions     = "junctions"
)

// RefusedLink gives the reason why a link is not taken. No link is, those that stay
// within the archive included: each step, store and system after this one would have to
// hold to the same idea of where it leads. target is "" where the archive's directory
// does not tell it.
func RefusedLink(kind, target string) string {
	text := kind + " are not taken, wherever they lead"
	if target != "" {
		text += "; this one leads to " + shortened(layout.EncodePath(target))
	}
	return text
}
