package layout

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Duration is a length of time in YAML: 500ms, 30s, 10m, 2h, 90d, 1y.
type Duration time.Duration

// UnmarshalYAML reads a duration.
func (d *Duration) UnmarshalYAML(b []byte) error {
	s := unquote(b)
	v, err := ParseDuration(s)
	if err != nil {
		return fmt.Errorf("expected a duration such as 30s, 10m or 2h, not %s", s)
	}
	*d = Duration(v)
	return nil
}

// Size is a number of bytes in YAML: 4096, 64KiB, 10GiB, 2TB.
type Size int64

var units = []struct {
	suffix string
	factor int64
}{
	{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"TiB", 1 << 40},
	{"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12}, {"", 1},
}

// Rate is a number of bytes a second in YAML: a Size, with or without /s behind it.
type Rate int64

// UnmarshalYAML reads a rate.
func (r *Rate) UnmarshalYAML(b []byte) error {
	n, err := ParseSize(strings.TrimSuffix(unquote(b), "/s"))
	*r = Rate(n)
	return err
}

// UnmarshalYAML reads a size.
func (n *Size) UnmarshalYAML(b []byte) (err error) {
	*n, err = ParseSize(unquote(b))
	return err
}

// ParseSize reads a size as people write it.
func ParseSize(s string) (Size, error) {
	for _, u := range units {
		digits, ok := strings.CutSuffix(s, u.suffix)
		if !ok {
			continue
		}
		v, err := strconv.ParseInt(strings.TrimSpace(digits), 10, 64)
		if err != nil || v < 0 || v > (1<<62)/u.factor {
			break
		}
		return Size(v * u.factor), nil
	}
	return 0, fmt.Errorf("expected a size such as 4096, 64MiB or 10GiB, not %s", s)
}

func unquote(b []byte) string { return strings.Trim(strings.TrimSpace(string(b)), `"'`) }
