package ask

import (
	"testing"

	"bagpipe/engine/act"
)

// A label is blanked where it stands alone, not inside another word.
func TestLikenessOfAShortLabel(t *testing.T) {
	for _, c := range []struct{ label, message, want string }{
		{"map", "map: the mapping of map.tif, a bitmap, is torn", "LABEL: the mapping of LABEL.tif, a bitmap, is torn"},
		{"a", "a: a file is torn", "a: a file is torn"},
		{"Öl", "Öl: Ölfarbe", "LABEL: Ölfarbe"},
		{"(1)", "scan(1) is torn", "scanLABEL is torn"},
		{"scan-7.tif", "cannot read scan-7.tif", "cannot read LABEL"},
		{"bag", "bag is not valid: data/a: missing: listed and not there", "bag is not valid: FILE: missing: listed and not there"},
		{"valid", "bag is not valid: data/a: missing: listed and not there", "bag is not valid: FILE: missing: listed and not there"},
		{"exit", "exit code 3: exit is down", "exit code #: LABEL is down"},
		{"missing", "bag is not valid: data/a: missing: listed and not there", "bag is not valid: FILE: missing: listed and not there"},
		{"box", "bag is not valid: data/a: missing: listed and not there (and 1 further error in the step's log)", "bag is not valid: FILE: missing: listed and not there"},
		{"box", "bag is not valid: data/b: missing: listed and not there (and 12 further errors, which stand in the step's log)", "bag is not valid: FILE: missing: listed and not there"},
	} {
		if got := likeness(act.Failing{Label: c.label, Message: c.message}); got != c.want {
			t.Errorf("%q of %q: %q, want %q", c.message, c.label, got, c.want)
		}
	}
}
