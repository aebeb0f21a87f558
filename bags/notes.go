package bags

import "bagpipe/layout"

// maxWarnings is how many warnings are kept by their words; the rest are counted.
const maxWarnings = 1000

// notes collect the warnings about one archive, and give the archive's name to what
// breaks a rule. Used by one goroutine, broken by any.
type notes struct {
	archive  string
	warnings []string
	unsaid   int64 // warnings beyond maxWarnings
}

func (n *notes) broken(member string, rule Rule, detail string, err error) error {
	return &Error{Archive: n.archive, Member: member, Rule: rule, Detail: detail, Err: err}
}

func (n *notes) warn(member, text string) {
	if len(n.warnings) >= maxWarnings {
		n.unsaid++
		return
	}
	if member != "" {
		text = layout.EncodePath(member) + ": " + text
	}
	n.warnings = append(n.warnings, text)
}
