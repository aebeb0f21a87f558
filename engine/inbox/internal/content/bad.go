package content

import (
	"errors"
	"fmt"
	"io/fs"

	"bagpipe/layout"
)

// The rules a drop can break.
const (
	RuleEmpty      = "empty"
	RuleLink       = "no-links"
	RuleSpecial    = "no-special-files"
	RuleUnreadable = "readable"
	RulePath       = "path-length"
)

// BadError says which rule something in a drop breaks. Path is relative to the
// drop, "." for the drop itself.
type BadError struct {
	Rule string
	Path string
	Why  string
}

// Bad gives the error of a rule that something in a drop breaks.
func Bad(rule, path, why string) *BadError { return &BadError{rule, path, why} }

func (e *BadError) Error() string {
	if e.Path == "." {
		return e.Why
	}
	return fmt.Sprintf("%s: %s", layout.EncodePath(e.Path), e.Why)
}

// refuse names the rule that an entry of this type breaks, if any.
func refuse(rel string, mode fs.FileMode) *BadError {
	var rule, why string
	switch {
	case mode.IsRegular() || mode.IsDir():
		return nil
	case mode&fs.ModeSymlink != 0:
		rule, why = RuleLink, "is a symbolic link; drop what it points to instead"
	case mode&fs.ModeNamedPipe != 0:
		rule, why = RuleSpecial, "is a named pipe (FIFO)"
	case mode&fs.ModeSocket != 0:
		rule, why = RuleSpecial, "is a socket"
	case mode&fs.ModeDevice != 0:
		rule, why = RuleSpecial, "is a device"
	default:
		rule, why = RuleSpecial, "is neither a file nor a folder"
	}
	return &BadError{Rule: rule, Path: rel, Why: why}
}

var (
	// ErrGone says that the drop is not there any more: another taker was first,
	// or its owner took it away.
	ErrGone = errors.New("the drop is gone")
	// ErrChanged says that the drop is not what Scan saw; it was left, or put
	// back, and settles anew.
	ErrChanged = errors.New("the drop changed while being taken")
)

// Kind is what a drop is.
type Kind string

// The kinds of drops.
const (
	Folder Kind = "folder"
	File   Kind = "file"
)
