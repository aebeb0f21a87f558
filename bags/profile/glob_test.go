package profile

import (
	"strings"
	"testing"
	"time"
)

func TestProfilePatterns(t *testing.T) {
	for _, c := range []struct {
		pattern string
		covers  []string
		not     []string
	}{
		{"a.txt", []string{"a.txt"}, []string{"a_txt", "xa.txt", "a.txtx", ""}},
		{"*", []string{"", "a", "a/b/c"}, nil},
		{"**/*", []string{"any/file", "a/b/c"}, []string{"any"}},
		{"ab*ba", []string{"abba", "abxba"}, []string{"aba"}},
		{"meta/*", []string{"meta/a", "meta/a/b.xml"}, []string{"meta", "metax/a", "x/meta/a"}},
		{"*.xml", []string{"a.xml", "d/a.xml", ".xml"}, []string{"a.xmlx", "xml"}},
		{"a*b*c", []string{"abc", "axbxbxc", "abbcc"}, []string{"acb", "ab", "abcd"}},
		{"page-??.tif", []string{"page-01.tif", "page-ü1.tif"}, []string{"page-1.tif", "page-001.tif"}},
		{"[a-c]x", []string{"ax", "cx"}, []string{"dx", "x", "[a-c]", "aax"}},
		{"[!a-c]x", []string{"dx", "üx"}, []string{"ax", "x"}},
		{"[]]x", []string{"]x"}, []string{"[x"}},
		{"[x", []string{"[x"}, []string{"x"}},
		{"box [1].txt", []string{"box [1].txt", "box 1.txt"}, []string{"box 2.txt"}},
		{"größe*", []string{"größe.txt"}, []string{"groesse"}},
	} {
		for _, s := range c.covers {
			if !matchesAny([]string{c.pattern}, s) {
				t.Errorf("%q does not cover %q", c.pattern, s)
			}
		}
		for _, s := range c.not {
			if matchesAny([]string{c.pattern}, s) {
				t.Errorf("%q covers %q", c.pattern, s)
			}
		}
	}
}

// Many asterisks take no longer than their number allows.
func TestProfilePatternsAreQuick(t *testing.T) {
	done := make(chan bool)
	go func() { done <- matches(strings.Repeat("*a", 500)+"b", strings.Repeat("a", 20_000)) }()
	select {
	case found := <-done:
		if found {
			t.Error("found what is not there")
		}
	case <-time.After(20 * time.Second):
		t.Fatal("no end")
	}
}
