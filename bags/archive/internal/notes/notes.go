package notes

import (
	"bagpipe/bags/files"
	"bagpipe/layout"
)

// maxWarnings bounds the warnings that are kept by their words; the rest are counted.
const maxWarnings = 1000

// Notes collect the warnings about one archive, and put the archive's name into errors.
// Used by one goroutine; Broken by any.
type Notes struct {
	Archive  string
	Warnings []string
	Unsaid   int64 // warnings beyond maxWarnings
}

// Broken gives the error of a member, or of the whole, that broke a rule.
func (n *Notes) Broken(member string, rule files.Rule, detail string, err error) error {
	return &files.Error{Archive: n.Archive, Member: member, Rule: rule, Detail: detail, Err: err}
}

// Warn adds a warning about a member, or about the whole.
func (n *Notes) Warn(member, text string) {
	if len(n.Warnings) >= maxWarnings {
		n.Unsaid++
		return
	}
	if member != "" {
		text = layout.EncodePath(member) + ": " + text
	}
	n.Warnings = append(n.Warnings, text)
}
