package files

import (
	"slices"
	"testing"
)

func TestTypes(t *testing.T) {
	for head, want := range map[string][]string{
		"II+\x00\x08\x00\x00\x00\x10\x00\x00\x00\x00\x00\x00\x00": {"image/tiff", "application/octet-stream"},
		"MM\x00+\x00\x08\x00\x00\x00\x00\x00\x00\x00\x00\x00\x10": {"image/tiff", "application/octet-stream"},
		"MM\x00*\x00\x00\x00\x08":                                 {"image/tiff", "application/octet-stream"},
		"II+ and more":                                            {"text/plain; charset=utf-8", "application/octet-stream"},
		"":                                                        {"text/plain", "application/octet-stream"},
	} {
		if got := Types([]byte(head)); !slices.Equal(got, want) {
			t.Errorf("%q: %q, expected %q", head, got, want)
		}
	}
}
