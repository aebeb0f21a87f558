package bags

import (
	"errors"
	"io"
	"path/filepath"
	"strings"

	"bagpipe/layout"
	"bagpipe/layout/deflate"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zip"
	"github.com/klauspost/compress/zstd"
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
	RuleNesting    Rule = "limit-nesting"
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

func baseName(path string) string { return filepath.Base(path) }

// damage turns a decoder's error into a rule. The caller has made sure that the
// file itself could be read.
func damage(err error) (Rule, string) {
	if rule, detail, known := damageOfStream(err); known {
		return rule, detail
	}
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return RuleTruncated, "the data ends early"
	case errors.Is(err, errSum), errors.Is(err, zip.ErrChecksum), errors.Is(err, gzip.ErrChecksum), errors.Is(err, zstd.ErrCRCMismatch):
		return RuleChecksum, "the data does not match its check sum"
	case errors.Is(err, zip.ErrFormat):
		return RuleSize, "the data is not as long as the archive says"
	case errors.Is(err, zip.ErrAlgorithm):
		return RuleMethod, err.Error()
	case errors.Is(err, zstd.ErrWindowSizeExceeded), errors.Is(err, zstd.ErrDecoderSizeExceeded):
		return RuleMemory, "decompressing needs more memory than is allowed"
	}
	if errors.Is(err, deflate.ErrDamaged) {
		return RuleDamaged, "the compressed data is damaged"
	}
	return RuleDamaged, err.Error()
}
