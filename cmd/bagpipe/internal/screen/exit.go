package screen

import "fmt"

// Exit is an error that is only an exit code; everything has been said.
type Exit int

// Exit codes. CodesHelp explains them.
const (
	ExitDone        Exit = 0
	ExitError       Exit = 1
	ExitUsage       Exit = 2
	ExitSomeFailed  Exit = 4
	ExitThreshold   Exit = 5
	ExitInterrupted Exit = 130
)

// CodesHelp is the part of the help about exit codes.
const CodesHelp = `Exit codes:
  0    done
  1    an error, or the thing checked is not valid
  2    usage
  4    done, but some item failed
  5    stopped by an error threshold
  130  interrupted`

func (e Exit) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// WrongUse is a mistake of usage that the command line alone does not show.
type WrongUse string

func (e WrongUse) Error() string { return string(e) }
