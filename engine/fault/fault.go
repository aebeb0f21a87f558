package fault

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
)

// Kind tells callers how to go on after an error.
type Kind int

const (
	NotFound Kind = iota + 1 // the workspace has no such thing
	Refused                  // the present state does not allow the act
	Busy                     // the act may succeed later, unchanged
	Invalid                  // the request or a file is wrong in itself
	Damaged                  // records or bytes are missing or not what they were
)

func (k Kind) String() string {
	return [...]string{"", "not found", "refused", "busy", "invalid", "damaged"}[k]
}

// Fault is an error with a kind. Error gives its text without the remedies.
type Fault interface {
	error
	FaultKind() Kind
	FaultRemedies() []Remedy
}

// Error is the common Fault.
type Error struct {
	Kind     Kind
	Text     string
	Remedies []Remedy
	Err      error // the cause, which Text does not repeat; nil: none
}

// New gives an error of a kind.
func New(k Kind, text string, remedies ...Remedy) *Error {
	return &Error{Kind: k, Text: text, Remedies: remedies}
}

// namesTold is how many names Unknown lists.
const namesTold = 10

// Unknown is the NotFound of a name that is none of those that are there: "no schedule
// "nigthly" in schedules/; there are nightly, weekly". What says of what kind the name is,
// where (" in schedules/") may be empty, all need no order.
func Unknown[N ~string](what string, name N, where string, all iter.Seq[N]) *Error {
	text := fmt.Sprintf("no %s %q%s", what, name, where)
	var there []string
	for n := range all {
		there = append(there, string(n))
	}
	slices.Sort(there)
	switch n := len(there); {
	case n == 0:
		text += "; there is none"
	case n == 1:
		text += "; there is " + there[0]
	case n > namesTold:
		text += fmt.Sprintf("; there are %s and %d more", strings.Join(there[:namesTold], ", "), n-namesTold)
	default:
		text += "; there are " + strings.Join(there, ", ")
	}
	return New(NotFound, text)
}

func (e *Error) Error() string {
	if e.Err == nil {
		return e.Text
	}
	return e.Text + ": " + e.Err.Error()
}

func (e *Error) Unwrap() error { return e.Err }

// FaultKind is the error's kind.
func (e *Error) FaultKind() Kind { return e.Kind }

// FaultRemedies are the error's remedies.
func (e *Error) FaultRemedies() []Remedy { return e.Remedies }

// Is reports whether an error in err's chain is of a kind. The first fault in the chain
// decides.
func Is(err error, k Kind) bool {
	var f Fault
	return errors.As(err, &f) && f.FaultKind() == k
}

// All gives the faults in err's tree that carry remedies, the outermost first.
func All(err error) (all []Fault) {
	if f, ok := err.(Fault); ok && len(f.FaultRemedies()) > 0 {
		all = append(all, f)
	}
	switch x := err.(type) {
	case interface{ Unwrap() error }:
		if cause := x.Unwrap(); cause != nil {
			all = append(all, All(cause)...)
		}
	case interface{ Unwrap() []error }:
		for _, cause := range x.Unwrap() {
			all = append(all, All(cause)...)
		}
	}
	return all
}
