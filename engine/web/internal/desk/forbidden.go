package desk

import (
	"errors"
	"fmt"
	"strings"

	"bagpipe/engine/fault"
	"bagpipe/engine/web/access"
)

// ErrForbidden is what every refusal is that an account gets for what it may not do; its text says
// what it lacks.
var ErrForbidden = errors.New("this account may not do that")

// ErrReadOnly is the answer to an act where nothing can be changed.
var ErrReadOnly = fault.New(fault.Refused, "the pages are read-only here; nothing can be changed", fault.Remedy{Verb: fault.ServeToChange})

// ErrProgram is the answer to a program where a person decides.
var ErrProgram error = forbidden{fault.New(fault.Refused, "a program has no word in what is removed for good; a person decides, who signs in and has the role "+string(access.Operator))}

// forbidden says what an account lacks, and how it is given that.
type forbidden struct{ fault.Fault }

// Is reports whether target is ErrForbidden.
func (forbidden) Is(target error) bool { return target == ErrForbidden }

// NeedsRole refuses an account whose role does not do.
func NeedsRole(who access.Who, needs access.Role) error {
	return forbidden{fault.New(fault.Refused, fmt.Sprintf("this needs the role %s, and this account has the role %s", needs, who.Role), given(who, fault.GiveRole, needs))}
}

// NeedsAll refuses an account that is confined to collections.
func NeedsAll(who access.Who) error {
	return forbidden{fault.New(fault.Refused, "this needs an account for all collections, and this one is confined to "+strings.Join(who.Collections, ", "), given(who, fault.GiveAll, who.Role))}
}

// given is how a person's account is given what it lacks; a program gets another token.
func given(who access.Who, verb fault.Verb, role access.Role) fault.Remedy {
	if who.Program {
		verb = fault.GiveToken
	}
	return fault.Remedy{Verb: verb, Access: string(role)}
}

// Said is the text of an error, with what would help.
func (d *Desk) Said(err error) string {
	for _, f := range fault.All(err) {
		return d.Words.With(err.Error(), f.FaultRemedies()...)
	}
	return err.Error()
}
