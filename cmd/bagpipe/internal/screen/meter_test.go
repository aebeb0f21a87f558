package screen

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"bagpipe/bags/files"
)

// What is not known of the whole is not made up: neither by lines nor by events.
func TestMeter(t *testing.T) {
	known := files.Progress{Files: 1, TotalFiles: 4, Bytes: 10_000_000, TotalBytes: 40_000_000}
	unknown := files.Progress{Files: 1, Bytes: 10_000_000}
	for _, c := range []struct {
		at   files.Progress
		line string
		keys []string
	}{
		{known, "unpack: 1 of 4 files, 10.0 of 40.0 MB, ", []string{"totalFiles", "totalBytes", "secondsLeft"}},
		{unknown, "unpack: 1 files, 10.0 MB, ", nil},
	} {
		var lines, events bytes.Buffer
		a := &Screen{Err: &lines, Out: &Output{W: &events}}
		m := NewMeter(a, "unpack", nil, false)
		m.Report(c.at)
		if lines.Len() > 0 {
			t.Errorf("a line at once: %s", &lines)
		}
		m.next = time.Time{}
		m.Report(c.at)
		m.Close()
		if !strings.HasPrefix(lines.String(), c.line) || strings.Count(lines.String(), "\n") != 1 {
			t.Errorf("%q, want %q…", &lines, c.line)
		}
		m = NewMeter(a, "unpack", a.Out, false)
		m.next = time.Time{}
		m.Report(c.at)
		m.Close()
		var e map[string]any
		if err := json.Unmarshal(events.Bytes(), &e); err != nil {
			t.Fatalf("%v: %s", err, &events)
		}
		if e["event"] != "progress" || e["work"] != "unpack" || e["bytes"] != 1e7 || len(e) != 5+len(c.keys) {
			t.Errorf("%v", e)
		}
		for _, k := range c.keys {
			if e[k] == nil {
				t.Errorf("no %s: %v", k, e)
			}
		}
		lines.Reset()
		m = NewMeter(a, "unpack", nil, true)
		m.next = time.Time{}
		m.Report(c.at)
		if lines.Len() > 0 {
			t.Errorf("quiet: %s", &lines)
		}
	}
}
