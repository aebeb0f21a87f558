package endings_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"bagpipe/engine/recognise/internal/endings"
	"bagpipe/layout"
)

func TestEndings(t *testing.T) {
	for text, want := range map[string]string{
		`(?i)^(?<base>.+)\.shp$`:                          ".shp",
		`(?i)^(?<base>.+?)\.(?<f>tiff?|jp2|png|bmp|img)$`: ".bmp .img .jp2 .png .tif .tiff",
		`^a(/b)?/c\.TXT$`:                                 "c.txt",
		`^x[ab]\d$`:                                       "xa0 xa1 xa2 xa3 xa4 xa5 xa6 xa7 xa8 xa9 xb0 xb1 xb2 xb3 xb4 xb5 xb6 xb7 xb8 xb9",
		`^(scene)([-_ .].*)?$`:                            "scene*", `\.shp`: ".shp*", `^a$|\.b$`: ".b* a*", `^.*$`: "", `(?m)\.shp$`: ".shp*",
		`^x+ab+$`: "b", `^(ab)*c$`: "c", `ä\.é\.tif$`: ".tif", `.{3}[a-z]$`: "", `(a|b{2,3})$`: "a* b*",
		`^(x|yy/zzz)_\d{8}_(ab|cd)+`: "ab* cd*",
	} {
		if got := strings.Join(endings.OfExpression(text), " "); got != want {
			t.Errorf("expression %s: %q, expected %q", text, got, want)
		}
	}
	for text, want := range map[string]string{
		"**/*.PDF": ".pdf", "${base}.shx": ".shx", "**/readme.txt": "readme.txt", "a/b|*.c": ".c b", "a|**": "", "**/*.aif*": ".aif*", "a?*.ä*": "a*", "${b}*": "", "${base}": "",
		`x\*y.z`: "y.z", `[ab].c`: ".c", "{a,b}.c": ".c", "a/**": "", `a\`: "",
	} {
		if got := strings.Join(endings.OfPattern(text), " "); got != want {
			t.Errorf("pattern %s: %q, expected %q", text, got, want)
		}
	}
}

func has(all []string, text string) bool {
	return all == nil || slices.ContainsFunc(all, func(one string) bool {
		part, anywhere := strings.CutSuffix(one, "*")
		return strings.HasSuffix(strings.ToLower(text), one) || anywhere && strings.Contains(strings.ToLower(text), part)
	})
}

// What an expression or a pattern fits has one of the endings.
func FuzzEndings(f *testing.F) {
	for _, seed := range [][2]string{{`^(.+)\.tiff?$`, "a.tif"}, {`(?i)(ab|c[de]+)x?$`, "zABX"}, {"**/*.{a,b}|c?d", "x/y.a"}, {`a\*b`, "a*b"}, {`[^a]\[.c`, "d[.c"}, {"a/", "a/"}} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, pattern, text string) {
		for i := range len(text) {
			if text[i] >= 0x80 {
				return
			}
		}
		if re, err := regexp.Compile(pattern); err == nil && re.MatchString(text) && !has(endings.OfExpression(pattern), text) {
			t.Errorf("expression %q fits %q, which ends in none of %q", pattern, text, endings.OfExpression(pattern))
		}
		for one := range strings.SplitSeq(strings.ToLower(pattern), "|") {
			if layout.ValidPattern(one) && layout.MatchPattern(one, strings.ToLower(text)) && !has(endings.OfPattern(pattern), text) {
				t.Errorf("pattern %q fits %q, which ends in none of %q", pattern, text, endings.OfPattern(pattern))
			}
		}
	})
}
