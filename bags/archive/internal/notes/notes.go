package notes

import (
	"bagpipe/bags/files"
	"bagpipe/layout"
)

// maxWarnings is how many warnings are kept by their words; the rest are counted.
const maxWarnings = 1000

// notes collect the warnings about one archive, and give the archive's name to what
// breaks a rule. Used by one goroutine, broken by any.
type Notes struct {
	Archive  string
	Warnings []string
	Unsaid   int64 // warnings beyond maxWarnings
}

func (n *Notes) Broken(member string, rule files.Rule, detail string, err error) error {
	return &files.Error{Archive: n.Archive, Member: member, Rule: rule, Detail: detail, Err: err}
}

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
