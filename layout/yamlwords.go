package layout

import (
	"fmt"
	"regexp"
	"strings"
)

// What the YAML library says, in the words of who writes settings: what is wrong there,
// and what to write instead. What it says besides is passed on.
var yamlWords = []struct{ said, means string }{
	{"']' not found", "this [ is not closed; expected , or ]"},
	{"',' or ']' must be specified", "the [ before is not closed; expected , or ]"},
	{"end token '}' not found", "this { is not closed; expected , or }"},
	{"flow mapping end token '}'", "this { is not closed; expected , or }"},
	{"',' or '}' must be specified", "the { before is not closed; expected , or }"},
	{"could not find '[' character", "a ] without a [ before it; text with it stands in quotes"},
	{"could not find '{' character", "a } without a { before it; text with it stands in quotes"},
	{"end character of single-quoted", "this quote ' is not closed"},
	{"end character of double-quoted", `this quote " is not closed`},
	{"unknown escape character", `in double quotes \ begins a sign such as \n, and this is none; write the text in single quotes`},
	{"tab character", "a tab; lines are indented with spaces"},
	{"found character '\t'", "a tab; lines are indented with spaces"},
	{"is a reserved character", "text that begins with this sign stands in quotes"},
	{"unexpected directive", "text that begins with % stands in quotes"},
	{"map key-value is pre-defined", "something follows the text in quotes; expected the end of the line"},
	{"mapping value is not allowed", "a second value; text with a colon and a space in it stands in quotes, and keys below another are indented more than it, with nothing behind it"},
	{"value is not allowed in this context", "expected KEY: VALUE, indented as the lines that it belongs to"},
	{"non-map value is specified", "expected KEY: VALUE"},
	{"unexpected key name", "expected KEY: VALUE"},
	{"( overflow )", "a number that is too large"},
	{"sequence was used where mapping is expected", "expected keys with values, not a list"},
	{"was used where mapping is expected", "expected keys with values, as KEY: VALUE"},
	{"was used where sequence is expected", "expected a list: [ONE, ANOTHER], or lines that begin with -"},
}

var doubledKey = regexp.MustCompile(`^mapping key (".*") already defined at \[(\d+):\d+\]`)

// plainYAML rewords a message of the library.
func plainYAML(text string) string {
	if m := doubledKey.FindStringSubmatch(text); m != nil {
		return fmt.Sprintf("key %s is there twice, first in line %s", m[1], m[2])
	}
	for _, w := range yamlWords {
		if strings.Contains(text, w.said) {
			return w.means
		}
	}
	return text
}
