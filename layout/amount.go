package layout

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// longest is more than any archive plans for, and far from what a time.Duration can hold.
const longest = 100 * 365 * 24 * time.Hour

// ParseDuration reads a length of time, none below zero: as Go writes it (90m, 36h), or a
// number of days, weeks or years of 365 days (3d, 2w, 1y).
func ParseDuration(text string) (time.Duration, error) {
	wrong := fmt.Errorf("expected a time such as 90m, 36h, 3d or 1y, not %q", text)
	for unit, length := range map[string]time.Duration{"d": 24 * time.Hour, "w": 7 * 24 * time.Hour, "y": 365 * 24 * time.Hour} {
		number, is := strings.CutSuffix(text, unit)
		if !is {
			continue
		}
		n, err := strconv.ParseFloat(number, 64)
		if err != nil || !(n >= 0 && n <= float64(longest/length)) {
			return 0, wrong
		}
		return time.Duration(n * float64(length)), nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 || d > longest {
		return 0, wrong
	}
	return d, nil
}

// ParsePart reads a part such as 5%, more than none, as a number up to 1.
func ParsePart(text string) (float64, error) {
	number, is := strings.CutSuffix(text, "%")
	part, err := strconv.ParseFloat(number, 64)
	if err != nil || !is || !(part > 0 && part <= 100) {
		return 0, fmt.Errorf("expected a part such as 5%%, not %q", text)
	}
	return part / 100, nil
}

// FormatSize writes a number of bytes for people: 512 B, 1.5 MiB, powers of 1024.
func FormatSize(n uint64) string {
	const unit = 1024
	if n < unit {
		return fmt.Sprintf("%d B", n)
	}
	v, i := float64(n)/unit, 0
	for v >= unit && i < 4 {
		v, i = v/unit, i+1
	}
	return fmt.Sprintf("%.1f %ciB", v, "KMGTP"[i])
}
