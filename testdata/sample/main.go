package sample

import (
	"fmt"
	"io"
)

// Main is the command sample: DIR [NAME | NAME=FILE]…, or -list. It answers with
// the exit code.
func Main(args []string, out, errOut io.Writer) int {
	switch {
	case len(args) == 1 && args[0] == "-list":
		for _, s := range All() {
			fmt.Fprintf(out, "%-18s %-24s %s\n", s.Name, s.File, s.Text)
		}
		return 0
	case len(args) == 0 || args[0] == "" || args[0][0] == '-':
		fmt.Fprintln(errOut, "usage: sample DIR [NAME | NAME=FILE]… or sample -list")
		return 2
	}
	if err := MakeIn(args[0], args[1:]); err != nil {
		fmt.Fprintln(errOut, "sample:", err)
		return 1
	}
	return 0
}
