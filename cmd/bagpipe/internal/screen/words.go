package screen

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"

	"bagpipe/layout"
)

// When words a time, in the zone of whoever reads.
func When(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Local().Format("2006-01-02 15:04:05")
}

// stamp is a time as records and reasons have it.
var stamp = regexp.MustCompile(`\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z\b`)

// wordEnds matches what may follow a word.
var wordEnds = regexp.MustCompile(`^[,;:.)]*(\s|$)`)

// Local words the times in a sentence as When does. A time that is part of a name, or
// quoted, is what somebody wrote, and so is a text that is nothing else.
func Local(sentence string) string {
	if !strings.Contains(sentence, "Z") { // most
		return sentence
	}
	var out strings.Builder
	end := 0
	for _, at := range stamp.FindAllStringIndex(sentence, -1) {
		t, err := time.Parse(time.RFC3339, sentence[at[0]:at[1]])
		before, after := sentence[:at[0]], sentence[at[1]:]
		if err != nil || before == "" && after == "" || before != "" && !strings.HasSuffix(before, " ") && !strings.HasSuffix(before, "(") ||
			!wordEnds.MatchString(after) {
			continue
		}
		out.WriteString(sentence[end:at[0]] + When(t))
		end = at[1]
	}
	return out.String() + sentence[end:]
}

// Short clips a message to one line of a table.
func Short(s string, most int) string {
	r := []rune(s)
	if len(r) <= most {
		return s
	}
	return strings.TrimRight(string(r[:most-1]), "…") + "…"
}

// Count words a number of things: 1 file, 2 files.
func Count[N int | int64](n N, what string) string { return layout.Count(n, what) }

// CountVerb words a number with what follows it, for one and for many.
func CountVerb[N int | int64](n N, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// Took words a length of time, in seconds: 3d 4h, 2h 5m, 12.3s.
func Took(seconds float64) string {
	n := int64(seconds)
	for _, unit := range []struct {
		big, small int64
		words      string
	}{{86400, 3600, "%dd %dh"}, {3600, 60, "%dh %dm"}, {60, 1, "%dm %ds"}} {
		if n >= unit.big {
			return fmt.Sprintf(unit.words, n/unit.big, n%unit.big/unit.small)
		}
	}
	return (time.Duration(seconds*1000) * time.Millisecond).String()
}

// Age words how long ago something was, in the largest unit that fits.
func Age(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", max(0, int(d.Seconds())))
	case d < time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	}
	return fmt.Sprintf("%dd", int(d.Hours()/24))
}

// OfFile words why a file could not be used, in place of the system's call.
func OfFile(err error) string {
	var at *fs.PathError
	if !errors.As(err, &at) {
		return err.Error()
	}
	path := layout.EncodePath(at.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if dir := filepath.Dir(at.Path); missing(dir) {
			return fmt.Sprintf("there is no folder %s", layout.EncodePath(dir))
		}
		return fmt.Sprintf("there is no file %s", path)
	case errors.Is(err, fs.ErrPermission):
		return path + ": this account has no right to it"
	case errors.Is(err, syscall.EISDIR):
		return path + " is a folder"
	case errors.Is(err, syscall.ENOTDIR):
		return path + " lies in what is no folder"
	}
	return path + ": " + at.Err.Error()
}

func missing(path string) bool {
	_, err := os.Lstat(path)
	return errors.Is(err, fs.ErrNotExist)
}
