package layout_test

import (
	"testing"

	"bagpipe/layout"
)

func TestCount(t *testing.T) {
	for n, want := range []string{"0 items", "1 item", "2 items"} {
		if got := layout.Count(n, "item"); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
}
