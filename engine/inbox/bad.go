package inbox

import (
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
