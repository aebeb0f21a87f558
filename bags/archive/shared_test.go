package archive

import (
	"errors"
	"testing"

	"bagpipe/bags/files"
)

// noise is bytes that do not compress and differ from file to file.
func noise(n int, seed uint64) []byte {
	b := make([]byte, n)
	x := seed*2654435761 + 1
	for i := range b {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		b[i] = byte(x)
	}
	return b
}

func wantRuleOnly(t *testing.T, about string, err error, rule files.Rule) {
	t.Helper()
	var e *files.Error
	if !errors.As(err, &e) || e.Rule != rule {
		t.Errorf("%s: error %v, want %s", about, err, rule)
	}
}
