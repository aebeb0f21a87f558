package layout

import "testing"

// What is wrong in a settings file is said in plain words, where it stands.
func TestYAMLMistakesInPlainWords(t *testing.T) {
	type doc struct {
		Name   string            `yaml:"name"`
		Number int               `yaml:"number"`
		List   []string          `yaml:"list"`
		Map    map[string]string `yaml:"map"`
	}
	for text, want := range map[string]string{
		"name: [a\n":                  "f:1:7: this [ is not closed; expected , or ]",
		"list: [a, b\nnumber: 1\n":    "f:2:1: the [ before is not closed; expected , or ]",
		"map: {a: b\n":                "f:1:6: this { is not closed; expected , or }",
		"name: ]\n":                   "f:1:7: a ] without a [ before it; text with it stands in quotes",
		"name: 'a\n":                  "f:1:7: this quote ' is not closed",
		"name: \"a\n":                 "f:1:7: this quote \" is not closed",
		"name: \"\\q\"\n":             `f:1:9: in double quotes \ begins a sign such as \n, and this is none; write the text in single quotes`,
		"number: 1\n\tname: a\n":      "f:2:1: a tab; lines are indented with spaces",
		"\tname: a\n":                 "f:1:5: a tab; lines are indented with spaces",
		"name: @a\n":                  "f:1:7: text that begins with this sign stands in quotes",
		"name: %a\n":                  "f:1:7: text that begins with % stands in quotes",
		"name: 'a' b\n":               "f:1:11: something follows the text in quotes; expected the end of the line",
		"name: a: b\n":                "f:1:7: a second value; text with a colon and a space in it stands in quotes, and keys below another are indented more than it, with nothing behind it",
		"map:\n  a: 1\n b: 2\n":       "f:3:2: expected KEY: VALUE, indented as the lines that it belongs to",
		"name: a\nfoo\n":              "f:2:1: expected KEY: VALUE",
		"name: a\nname: b\n":          "f:2:1: key \"name\" is there twice, first in line 1",
		"number: 9999999999999999999": "f:1:9: a number that is too large",
		"- a\n- b\n":                  "f:1:1: expected keys with values, not a list",
		"just text\n":                 "f:1:1: expected keys with values, as KEY: VALUE",
		"map: a\n":                    "f:1:6: expected keys with values, as KEY: VALUE",
	} {
		y, err := ParseYAML("f", []byte(text))
		if err == nil {
			var d doc
			err = y.Decode(&d)
		}
		if err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}
