package tagfile

import "testing"

func TestFormatSize(t *testing.T) {
	for n, want := range map[int64]string{0: "0 bytes", 1: "1 byte", 2: "2 bytes", 999: "999 bytes", 1000: "1.0 KB", 42_600_000_000: "42.6 GB"} {
		if got := FormatSize(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
}
