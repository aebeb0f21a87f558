package target_test

import (
	"testing"
	"time"

	"bagpipe/steps/target"
)

func TestHours(t *testing.T) {
	at := func(text string) time.Time {
		when, err := time.Parse("15:04", text)
		must(t, err)
		return when
	}
	for hours, inOut := range map[target.Hours][2][]string{
		"22:00-05:00": {{"22:00", "23:59", "00:00", "04:59"}, {"05:00", "12:00", "21:59"}},
		"08:30-17:00": {{"08:30", "16:59"}, {"17:00", "08:29", "00:00"}},
		"":            {{"00:00", "12:00"}, nil},
	} {
		for _, text := range inOut[0] {
			if !hours.Hold(at(text)) {
				t.Errorf("%s is not in %q", text, hours)
			}
		}
		for _, text := range inOut[1] {
			if hours.Hold(at(text)) {
				t.Errorf("%s is in %q", text, hours)
			}
		}
	}
	for _, bad := range []target.Hours{"22-05", "22:00", "25:00-05:00", "05:00-05:00", "a-b"} {
		c := target.Config{Kind: target.KindFolder, Path: "/x", Fixity: target.Fixity{Every: 1, Hours: bad}}
		if key, err := c.Check(); err == nil || key != "fixity.hours" {
			t.Errorf("%q is taken for hours: %s %v", bad, key, err)
		}
	}
}
