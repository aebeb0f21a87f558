package steps

import "errors"

// ExitError is a program's own exit code where it means a system failure.
type ExitError struct {
	Code int
	Text string
}

func (e *ExitError) Error() string { return e.Text }

// ExitCode is what a robot's answer would be as a program's exit code; 1 for a
// system failure that came from no program.
func ExitCode(res Result, err error) int {
	var later *Later
	var unavailable *Unavailable
	var exit *ExitError
	switch {
	case err == nil && res.Status == Skipped:
		return ExitSkipped
	case err == nil:
		return 0
	case errors.As(err, &later):
		return ExitLater
	case errors.As(err, &unavailable):
		return ExitUnavailable
	case errors.As(err, &exit):
		return exit.Code
	case KindOf(err) == Content:
		return ExitContent
	}
	return 1
}
