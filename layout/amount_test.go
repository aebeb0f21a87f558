package layout_test

import (
	"testing"
	"time"

	"bagpipe/layout"
)

func TestParseDuration(t *testing.T) {
	for text, want := range map[string]time.Duration{"90m": 90 * time.Minute, "0": 0, "1.5d": 36 * time.Hour, "2w": 14 * 24 * time.Hour, "1y": 365 * 24 * time.Hour} {
		if got, err := layout.ParseDuration(text); err != nil || got != want {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "d", "-1d", "-3h", "NaNd", "Infy", "101y", "900000h", "5", "1d2h"} {
		if got, err := layout.ParseDuration(text); err == nil {
			t.Errorf("%q: %v", text, got)
		}
	}
}

func TestParsePart(t *testing.T) {
	if got, err := layout.ParsePart("2.5%"); err != nil || got != 0.025 {
		t.Errorf("%v, %v", got, err)
	}
	for _, text := range []string{"", "%", "5", "0%", "101%", "NaN%", "-5%"} {
		if got, err := layout.ParsePart(text); err == nil {
			t.Errorf("%q: %v", text, got)
		}
	}
}
