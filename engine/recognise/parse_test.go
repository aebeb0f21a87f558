package recognise

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"bagpipe/layout"
	"bagpipe/templates"

	"github.com/goccy/go-yaml"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// What is wrong with a rule file is told with its place and what was expected.
func TestMistakesAreTold(t *testing.T) {
	rule := func(text string) string {
		return "schema: 1\nname: test\nrules:\n  - name: r\n    " + strings.ReplaceAll(text, "\n", "\n    ") + "\n"
	}
	for text, want := range map[string]string{
		"schema: 2\nname: test\n":                                                       "1:9: expected schema: 1",
		"schema: 1\nname: ../test\n":                                                    "2:7: ",
		"schema: 1\nname: t\nrulez: []\n":                                               `3:1: unknown key "rulez"`,
		"schema: 1\nname: t\norder: 2000000\n":                                          "3:8: expected a number from",
		"schema: 1\nname: t\nlists: {drops: {deny: ['[a']}}\n":                          "3:24: expected a pattern",
		"schema: 1\nname: t\nrules: [{name: a}, {name: a}]\n":                           `3:27: a second rule "a"`,
		rule("match: {kind: folders}"):                                                  `5:19: expected folder, archive, bag or file, not "folders"`,
		rule("match: {kind: [file, folders]}"):                                          "5:26: expected folder",
		rule("match: {name: '[a'}"):                                                     "5:19: expected a pattern such as *.zip",
		rule("match: {regexp: '(a'}"):                                                   "5:21: expected a regular expression: missing closing ): `(a`",
		rule("match: {regexp: '(?<name>a)'}"):                                           `the group "name" has the name of a variable`,
		rule("match: {regexp: '" + strings.Repeat("a", 2001) + "'}"):                    "is 2001 bytes long; at most 2000",
		rule("match: {regexp: '" + strings.Repeat("a{1000}", 11) + "'}"):                "steps; at most 10000",
		rule("match: {size: {min: 2, max: 1}}"):                                         "the greatest size is less",
		rule("match: {mime: tiff}"):                                                     "expected a type such as image/tiff",
		rule("match: {extension: '*.tif'}"):                                             "expected an extension",
		rule("match: {magic: [{at: 0}]}"):                                               "expected hex or text",
		rule("match: {magic: [{hex: 4}]}"):                                              "expected pairs of hexadecimal digits",
		rule("match: {magic: [{at: -1, text: a}]}"):                                     "expected a number from 0 up",
		rule("match: {holds: '${nobody}.tfw'}"):                                         `5:20: no variable "nobody"; there are collection, extension`,
		rule("match: {holds: '${name'}"):                                                "expected } after ${",
		rule("match: {not: {regexp: '(?<a>b)'}}\nlabel: '${a}'"):                        `6:12: no variable "a"`,
		rule("match: {sets: {required: a}}"):                                            "expected main:",
		rule("match: {sets: {main: '(?<a>b)', max: 2}}\nlabel: '${a}'"):                 `no variable "a"`,
		rule("match: {sets: {main: a, min: 2, max: 1}}"):                                "not less than min",
		rule("match: {count: [{min: 1}]}"):                                              "expected name, regexp or mime",
		rule("match: {count: [{name: a}]}"):                                             "expected min, max or both",
		rule("match: {xml: [{file: a.xml}]}"):                                           "expected path:",
		rule("match: {xml: [{path: '//a['}]}"):                                          "expected an XPath",
		rule("match: {json: [{path: '" + strings.Repeat("a", 1001) + "'}]}"):            "is 1001 bytes long",
		rule("match: {any: [{kind: zip}]}"):                                             "expected folder",
		rule("match: {kind: {a: b}}"):                                                   "expected text, or a list of texts",
		rule("match: {kind: }"):                                                         "nothing stands here",
		rule("verdict: perhaps"):                                                        `5:14: expected yes, maybe or no, not "perhaps"`,
		rule("type: a b"):                                                               "5:11: ",
		rule("label: '${x}'"):                                                           `5:12: no variable "x"`,
		rule("metadata: {a: {xml: //a, json: b}}"):                                      "expected one of text, xml and json",
		rule("metadata: {a: {text: b, file: c}}"):                                       "file goes with xml or json",
		rule("metadata: {a: {text: b, as: year}}"):                                      "as: expected text, number, date or degrees",
		rule("metadata: {a: {txt: b}}"):                                                 `unknown key "txt"; expected one of: text, xml, json, file, as`,
		rule("metadata: {a: {xml: '//a['}}"):                                            "expected an XPath",
		rule("identifiers: {'a b': c}"):                                                 "name",
		rule("match: " + strings.Repeat("{not: ", 10) + "{}" + strings.Repeat("}", 10)): "nested deeper than 8",
	} {
		_, err := Parse("rules/test.yaml", []byte(text))
		var fe *layout.FileError
		if !errors.As(err, &fe) || !strings.Contains(err.Error(), want) || fe.Line == 0 {
			t.Errorf("%s: %v; want %q", text, err, want)
		}
	}
}

// A condition on what no item can have would never hold, unsaid: items went where a person was to be asked.
func TestMisspeltConditionsAreTold(t *testing.T) {
	const head, noSuch = "schema: 1\nname: test\n", "the records of items have no "
	delivery := func(more string) string { return head + "delivery:\n  - to: portal\n    " + more + "\n" }
	quality := func(which string) string {
		return head + "quality:\n  - for: " + which + "\n    checks: [{id: a, level: total.usable, raster: opens}]\n"
	}
	for text, want := range map[string]string{
		delivery("approve: allways"):                             `5:14: expected never, always, or a condition such as metadata.year < 1950, not "allways"`,
		delivery("approve: sometimes"):                           `5:14: expected never, always`,
		delivery("approve: True"):                                `5:14: expected never, always`,
		delivery("approve: 1"):                                   `5:14: expected never, always`,
		delivery("approve: quality"):                             `5:14: expected never, always`,
		delivery("approve: 'not allways'"):                       "5:14: path allways: " + noSuch + "allways",
		delivery("approve: qualty.result = warn"):                "5:14: path qualty.result: " + noSuch + "qualty; they have batch, collection",
		delivery("for: quality.level.total != fail"):             "5:10: column 1: path quality.level.total: expected quality.result, quality.levels. with one of total,",
		delivery("approve: quality.result = warning"):            `5:14: column 18: path quality.result: expected one of not-applicable, pass, warn, not-reached, fail, not "warning"`,
		delivery("for: typo = image"):                            "5:10: path typo: " + noSuch + "typo",
		delivery("for: type = image or not (Metadata.a in (b))"): "5:10: path Metadata.a: " + noSuch + "Metadata",
		quality("typo = box"):                                    "4:10: path typo: " + noSuch + "typo",
		head + "retention:\n  - {keep: 1y, for: typo = loan}\n":  "4:21: path typo: " + noSuch + "typo",
	} {
		_, err := Parse("rules/test.yaml", []byte(text))
		var fe *layout.FileError
		if !errors.As(err, &fe) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want %q", text, err, want)
		}
	}
	for _, text := range []string{delivery(""), delivery("approve: never"), delivery("approve: always"), delivery("approve: ''"), delivery("approve: metadata.whatever"),
		delivery("approve: not source.rule"), delivery("approve: batch=x"), delivery("approve: quality exists"), delivery("for: type"), delivery("for: execution.milestones.archived < now-30d"),
		delivery("for: conflicts exists or identifiers.barcode ~ 1* or parent.item exists"), quality("type = box and metadata.a.b.c exists"), quality("''")} {
		if _, err := Parse("rules/test.yaml", []byte(text)); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// There may be so many rules, and so many expressions, in a file.
func TestTooManyRules(t *testing.T) {
	many := func(n int, match string) []byte {
		var b strings.Builder
		b.WriteString("schema: 1\nname: test\nrules:\n")
		for i := range n {
			fmt.Fprintf(&b, "  - {name: r%d, match: {%s}}\n", i, match)
		}
		return []byte(b.String())
	}
	for _, c := range []struct {
		data []byte
		want string
	}{
		{many(500, "kind: file"), ""},
		{many(501, "kind: file"), "501 rules; at most 500"},
		{many(300, "regexp: a"), ""},
		{many(301, "regexp: a"), "more than 300 regular expressions"},
	} {
		_, err := Parse("rules/test.yaml", c.data)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v; want %q", err, c.want)
		}
	}
}

// Files of before the language was extended are read as they were.
func TestOldRuleFiles(t *testing.T) {
	f, err := Parse("rules/old.yaml", []byte("schema: 1\nname: old\nrules:\n  - name: a\n    match: {collection: maps, kind: archive, name: '*.zip'}\n    workflow: w\n    lane: urgent\n  - name: b\n    match: {collection: '', kind: '', name: ''}\n  - name: c\n"))
	if err != nil {
		t.Fatal(err)
	}
	a := f.Rules[0]
	if a.Match.Collection[0] != "maps" || a.Match.Kind[0] != KindArchive || a.Match.Name[0] != "*.zip" || a.Workflow != "w" || a.Lane != "urgent" {
		t.Errorf("%+v", a)
	}
	for _, r := range f.Rules[1:] {
		if !r.Match.everything {
			t.Errorf("%s does not fit everything", r.Name)
		}
	}
}

// The schema that is shipped for editors takes what the strict reader takes, refuses
// what the reader refuses for its form, and knows every key.
func TestSchemaAgreesWithTheReader(t *testing.T) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(templates.RuleSchema()))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("rule.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("rule.json")
	if err != nil {
		t.Fatal(err)
	}
	texts := map[string]bool{}
	for _, f := range shipped(t) {
		data, err := templates.Workspace.ReadFile(f.Path())
		if err != nil {
			t.Fatal(err)
		}
		texts[string(data)] = true
	}
	for text, right := range map[string]bool{
		"": true,
		"description: d\norder: -3\nnamespaces: {a: b}\nlists: {drops: {allow: [a]}, inside: {deny: [b]}}\n":     true,
		"keywords: [{keyword: '', files: [], folders: []}]\n":                                                    true,
		"rules: [{name: a, listed: true, verdict: no, label: x}]\n":                                              true,
		"rules: [{name: a, match: {kind: [file, bag], extension: 7z, size: {min: 1KiB, max: 5000}}}]\n":          true,
		"rules: [{name: a, match: {magic: [{at: 1, hex: 'ff'}], any: [{not: {holds: a}}]}}]\n":                   true,
		"rules: [{name: a, match: {sets: {main: a, by: b, required: c, optional: [d], min: 0, alone: true}}}]\n": true,
		"rules: [{name: a, match: {count: [{mime: a/b, max: 1}], json: [{path: a, is: 1, matches: b}]}}]\n":      true,
		"rules: [{name: a, metadata: {b: c, d: {xml: //e, file: f, as: number}}}]\n":                             true,
		"rules: [{}]\n":                                     false,
		"rules: [{name: a, kind: file}]\n":                  false,
		"rules: [{name: a, match: {kind: zip}}]\n":          false,
		"rules: [{name: a, match: {kinds: file}}]\n":        false,
		"rules: [{name: a, match: {holds: {a: b}}}]\n":      false,
		"rules: [{name: a, match: {sets: {min: 1}}}]\n":     false,
		"rules: [{name: a, match: {count: [{min: 1}]}}]\n":  false,
		"rules: [{name: a, match: {count: [{name: a}]}}]\n": false,
		"rules: [{name: a, match: {xml: [{file: a}]}}]\n":   false,
		"rules: [{name: a, metadata: {b: {of: c}}}]\n":      false,
		"rules: [{name: a, verdict: perhaps}]\n":            false,
		"rules: [{name: a, type: 'a b'}]\n":                 false,
		"order: x\n":                                        false,
		"lists: {drops: [a]}\n":                             false,
		"keywords: [{files: [a]}]\n":                        true,
		"keywords: [{word: a}]\n":                           false,
	} {
		texts["schema: 1\nname: test\n"+text] = right
	}
	for text, right := range texts {
		if _, err := Parse("rules/test.yaml", []byte(text)); (err == nil) != right {
			t.Errorf("%q: the reader says %v", text, err)
		}
		var v any
		if err := yaml.Unmarshal([]byte(text), &v); err != nil {
			t.Fatal(err)
		}
		data, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		in, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Validate(in); (err == nil) != right {
			t.Errorf("%.200q: the schema says %v", text, err)
		}
	}
	root := doc.(map[string]any)
	defs := root["$defs"].(map[string]any)
	for _, c := range []struct {
		in any
		t  reflect.Type
	}{
		{root, reflect.TypeFor[File]()}, {defs["rule"], reflect.TypeFor[Rule]()}, {defs["match"], reflect.TypeFor[Match]()},
		{defs["document"], reflect.TypeFor[InDocument]()}, {defs["list"], reflect.TypeFor[List]()},
	} {
		known := c.in.(map[string]any)["properties"].(map[string]any)
		for _, f := range reflect.VisibleFields(c.t) {
			key, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
			if f.IsExported() && !f.Anonymous && known[key] == nil {
				t.Errorf("the schema does not know %q of %s", key, c.t)
			}
		}
	}
}
