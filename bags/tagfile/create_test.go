package tagfile

import (
	"strings"
	"testing"
)

func TestFieldsRoundTrip(t *testing.T) {
	for _, value := range []string{"", "x", strings.Repeat("w ", 200) + "w", "a  b" + strings.Repeat("  c", 60), strings.Repeat("n", 300),
		strings.Repeat("ü", 60) + " " + strings.Repeat("ß", 60)} {
		var b strings.Builder
		if err := WriteInfo(&b, []Field{{"Label", value}}); err != nil {
			t.Fatal(err)
		}
		got, err := ReadInfo(strings.NewReader(b.String()))
		if err != nil || len(got) != 1 || got[0].Value != value {
			t.Errorf("%q became %q, %v", value, got, err)
		}
	}
}
