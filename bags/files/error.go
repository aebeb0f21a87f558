package files

import (
	"strings"

	"bagpipe/layout"
)

// A Rule names what an archive, a member or a payload file broke. The words are
// stable: reports and tests refer to them.
type Rule string

// The rules.
const (
	RuleParent     Rule = "parent-path"
	RuleAbsolute   Rule = "absolute-path"
	RuleDrive      Rule = "drive-letter"
	RuleBackslash  Rule = "backslash"
	RuleControl    Rule = "control-character"
	RuleEmptyName  Rule = "empty-name"
	RuleLongName   Rule = "long-name"
	RuleDepth      Rule = "limit-depth"
	RulePathLength Rule = "limit-path-length"
	RuleFiles      Rule = "limit-files"
	RuleBytes      Rule = "limit-bytes"
	RuleFileBytes  Rule = "limit-file-bytes"
	RuleRatio      Rule = "limit-ratio"
	RuleMemory     Rule = "limit-memory"
	RuleDuplicate  Rule = "duplicate-member"
	RuleConflict   Rule = "file-and-folder"
	RuleSymlink    Rule = "symbolic-link"
	RuleHardLink   Rule = "hard-link"
	RuleSpecial    Rule = "special-file"
	RuleEncrypted  Rule = "encrypted"
	RuleMethod     Rule = "unsupported-method"
	RuleMultiDisk  Rule = "multi-disk"
	RuleTruncated  Rule = "truncated"
	RuleChecksum   Rule = "checksum"
	RuleTrailing   Rule = "trailing-data"
	RuleSize       Rule = "wrong-size"
	RuleOverlap    Rule = "overlap"
	RuleHeaders    Rule = "headers-disagree"
	RuleDamaged    Rule = "damaged"
	RuleNotArchive Rule = "not-an-archive"
	RuleNotUTF8    Rule = "name-not-utf-8"
	RuleFixity     Rule = "fixity"
	RuleReserved   Rule = "reserved-name"
	RuleTime       Rule = "limit-time"
	RuleBag        Rule = "is-a-bag"
	RuleProfile    Rule = "profile"
)

// Error says that content broke a rule: it is the producer's to mend, and trying
// again does not help.
type Error struct {
	Archive string // the archive's or folder's base name
	Member  string // as stored, raw bytes; empty when the whole is meant
	Rule    Rule
	Detail  string // for people
	Err     error  // the cause, where there is one
}

// Error names archive, member and rule, fit for one line.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(layout.EncodePath(e.Archive))
	if e.Member != "" {
		b.WriteString(": ")
		b.WriteString(shortened(layout.EncodePath(e.Member)))
	}
	b.WriteString(": ")
	b.WriteString(string(e.Rule))
	if e.Detail != "" {
		b.WriteString(": ")
		b.WriteString(e.Detail)
	}
	return b.String()
}

// shortened keeps a path of thousands of characters from hiding what is said of it.
func shortened(p string) string {
	const head, tail = 160, 80
	if len(p) <= head+tail {
		return p
	}
	return strings.ToValidUTF8(p[:head], "") + "…" + strings.ToValidUTF8(p[len(p)-tail:], "")
}

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }
