package screen

import (
	"io"
	"os"
	"regexp"

	"golang.org/x/term"
)

// statusCell is a status that stands alone: at the beginning of a line, or in a column.
var statusCell = regexp.MustCompile(`(?m)(^| {2,})(failed|rejected|damaged|wrong|waiting|scheduled|in-progress|poor|completed|sound|registered|skipped)( |$)`)

// The colours of statuses: what failed, what is under way or waits, what is done.
var colours = map[string]string{
	"failed": "\x1b[31m", "rejected": "\x1b[31m", "damaged": "\x1b[31m", "wrong": "\x1b[31m",
	"waiting": "\x1b[33m", "scheduled": "\x1b[33m", "in-progress": "\x1b[33m", "poor": "\x1b[33m",
	"completed": "\x1b[32m", "sound": "\x1b[32m", "registered": "\x1b[32m", "skipped": "\x1b[2m",
}

// paint colours the statuses of a text.
func paint(text string) string {
	return statusCell.ReplaceAllStringFunc(text, func(found string) string {
		m := statusCell.FindStringSubmatch(found)
		return m[1] + colours[m[2]] + m[2] + "\x1b[0m" + m[3]
	})
}

// Colours tells whether what is written to w is seen in colour: on a terminal that can, where
// NO_COLOR (no-color.org) is not set.
func Colours(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" && os.Getenv("TERM") != "" && term.IsTerminal(int(f.Fd()))
}
