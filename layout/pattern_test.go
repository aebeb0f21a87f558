package layout

import "testing"

func TestPatterns(t *testing.T) {
	for _, c := range []struct {
		pattern, name string
		want          bool
	}{
		{"*.tif", "scan.tif", true}, {"*.tif", "a/scan.tif", false}, {"a?[0-9]", "ab7", true}, {"a[!0-9]", "a7", false}, {"a[^0-9]", "a7", false},
		{"**/*.tif", "scan.tif", true}, {"**/*.tif", "a/b/scan.tif", true}, {"a/**", "a/b/c", true}, {"a/**/c", "a/c", true},
		{"*.{tif,tiff}", "scan.tiff", true}, {"*.{tif,tiff}", "scan.jpg", false}, {`\*.tif`, "*.tif", true}, {`\*.tif`, "a.tif", false},
		{"map {7", "map {7", true}, {"map {7", "map 7", false}, {"*", ".hidden", true}, {"", "", true},
	} {
		if !ValidPattern(c.pattern) {
			t.Errorf("%q is refused", c.pattern)
		}
		if got := MatchPattern(c.pattern, c.name); got != c.want {
			t.Errorf("%q fits %q: %v", c.name, c.pattern, got)
		}
	}
	for _, bad := range []string{"[a-", "[]", `a\`} {
		if ValidPattern(bad) {
			t.Errorf("%q is taken", bad)
		}
	}
}
