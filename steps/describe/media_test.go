package describe

import (
	"strings"
	"testing"
	"time"
)

// Tags keep who did what, and the day where they have one; a date that is none is told of, its year kept.
func TestWhatTagsSay(t *testing.T) {
	for _, c := range []struct {
		name            string
		data            []byte
		start, end      string
		precision, says string
	}{
		{"a.flac", flac("ARTIST=A singer", "DATE=2013-06-14"), "2013-06-14T00:00:00Z", "2013-06-14T23:59:59Z", "day", ""},
		{"a.flac", flac("ARTIST=A singer", "DATE=2013-06"), "2013-06-01T00:00:00Z", "2013-06-30T23:59:59Z", "month", ""},
		{"a.flac", flac("ARTIST=A singer", "DATE=2013 or so"), "2013-01-01T00:00:00Z", "2013-12-31T23:59:59Z", "year", ""},
		{"a.flac", flac("ARTIST=A singer", "DATE=unknown"), "", "", "", `"unknown" is no time`},
		{"a.mp3", id3("TPE1", "A singer", "TYER", "2013", "TDAT", "1406"), "2013-06-14T00:00:00Z", "2013-06-14T23:59:59Z", "day", ""},
		{"a.mp3", id3("TPE1", "A singer", "TYER", "2013"), "2013-01-01T00:00:00Z", "2013-12-31T23:59:59Z", "year", ""},
		{"a.mp3", id3("TPE1", "A singer", "TDRC", "2013-06-14T10:11"), "2013-06-14T10:11:00Z", "2013-06-14T10:11:59Z", "second", "no time zone"},
		{"a.mp3", id3("TPE1", "A singer", "TDRC", "2013-06-14T10"), "2013-06-14T10:00:00Z", "2013-06-14T10:59:59Z", "second", "no time zone"},
	} {
		f, err := write(t, c.name, string(c.data))
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		says(t, f, map[string]any{"creator": "A singer", "composer": nil})
		isTime(t, f, c.start, c.end, c.precision, c.says)
	}
	f, err := write(t, "a.flac", string(flac("ARTIST=A singer", "COMPOSER=A composer")))
	if err != nil {
		t.Fatal(err)
	}
	says(t, f, map[string]any{"creator": "A singer", "composer": "A composer"})
}

// isTime checks when a file is from, and that a part of its warnings says so.
func isTime(t *testing.T, f *Facts, start, end, precision, says string) {
	t.Helper()
	if said := strings.Join(f.Warnings, "; "); (says == "") != (said == "") || !strings.Contains(said, says) {
		t.Errorf("%v: says %q, want %q", f.Business, said, says)
	}
	if (f.Time == nil) != (start == "") {
		t.Errorf("%v: %+v, want %s", f.Business, f.Time, start)
	} else if f.Time != nil && (f.Time.Start.Format(time.RFC3339) != start || f.Time.End.Format(time.RFC3339) != end || f.Time.Precision != precision) {
		t.Errorf("%v: %+v, want %s to %s, to the %s", f.Business, f.Time, start, end, precision)
	}
}
