package recognise

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// imetadata's own example.
const example = `<?xml version="1.0" encoding="UTF-8"?>
<root>
    <type>DOM</type>
    <plugins>
        <file>
            <plugin>plugins_1000_dom_10</plugin>
            <plugin>plugins_1000_dom_12</plugin>
        </file>
        <dir>
            <plugin>plugins_1000_dom_10</plugin>
            <plugin>plugins_1000_dom_12</plugin>
        </dir>
    </plugins>
</root>
`

func TestMarker(t *testing.T) {
	m, err := parseMarker("f/metadata.rule", []byte(example))
	if err != nil || m.kind != "DOM" || len(m.files) != 2 || len(m.folders) != 2 || m.files[1] != (named{"plugins_1000_dom_12", 7, 13}) {
		t.Errorf("%+v, %v", m, err)
	}
	m, err = parseMarker("f/metadata.rule", []byte("<root><!-- a comment --><type> <![CDATA[a & b]]> </type><plugins/></root>"))
	if err != nil || m.kind != "a & b" || m.plugins() {
		t.Errorf("%+v, %v", m, err)
	}
}

// The folder is held, with the place of the mistake.
func TestBrokenMarkers(t *testing.T) {
	for text, want := range map[string]string{
		"":                           "1:1: expected <root> with <type>",
		"<root/>":                    "1:1: expected <root> with <type>",
		"<root><type>DOM</type>":     "1:23: is no XML: unexpected EOF",
		"<root>\n  <typ>DOM</typ>\n": "2:3: unknown element <typ>; expected <type> or <plugins>",
		"<rules/>":                   "1:1: unknown element <rules>; expected <root>",
		"<root><type/></root>":       "1:7: <type> is empty",
		"<root><type>a</type><type>b</type></root>":                                            "1:21: a second <type>",
		"<root><type>a<b/></type></root>":                                                      "1:14: unknown element <b>; root/type holds text alone",
		"<root>dom<type>a</type></root>":                                                       `1:7: "dom" stands outside`,
		"<root><type>a</type><plugins><plugin>p</plugin></plugins></root>":                     "1:30: unknown element <plugin>; expected <file> or <dir>",
		"<root><type>a</type>\n<plugins><file><plugin>nobody</plugin></file></plugins></root>": `2:16: no rule "nobody"`,
		"<!DOCTYPE root [<!ENTITY a 'b'>]>\n<root><type>&a;</type></root>":                     "1:1: a document type is not read here; entities are never expanded",
		"<root><type>&a;</type></root>":                                                        "entities are never expanded",
		"<root><type>a</type></root>" + strings.Repeat(" ", maxRuleFile):                       "is larger than 65536 bytes",
		"<?xml version=\"1.0\" encoding=\"x-nothing\"?><root><type>a</type></root>":            "x-nothing",
		"<root><type>a</type></root><root><type>b</type></root>":                               "a second <type>",
	} {
		drop := tree(t, "sheet", map[string]string{MarkerName: text, "a.txt": "x"})
		b := NewBook([]*File{rules(t, "rules: [{name: r}]\n")})
		c := Candidate{Path: drop, Name: "sheet", Collection: "maps"}
		why := b.Waits(c)
		if !strings.HasPrefix(why, "is held: sheet/metadata.rule:") || !strings.Contains(why, want) {
			t.Errorf("%.80q: %s; want %s", text, why, want)
		}
		if _, err := b.Recognise(t.Context(), c, Options{}); err == nil {
			t.Errorf("%.80q: recognised", text)
		}
	}
	for about, spoil := range map[string]func(at string) error{
		"is a link":          func(at string) error { return os.Symlink("a.txt", at) },
		"is no regular file": func(at string) error { return os.Mkdir(at, 0o777) },
	} {
		drop := tree(t, "sheet", map[string]string{"a.txt": "x"})
		if err := spoil(filepath.Join(drop, MarkerName)); err != nil {
			t.Fatal(err)
		}
		if why := NewBook(nil).Waits(Candidate{Path: drop, Name: "sheet"}); !strings.Contains(why, about) {
			t.Errorf("%s: %q", about, why)
		}
	}
}

// What is foreign is read without a panic, and refused with a place or accepted.
func FuzzMarker(f *testing.F) {
	f.Add([]byte(example))
	f.Add([]byte("<root><type>&a;</type></root>"))
	f.Add([]byte("<root><type>a</type><plugins><dir/></plugins></root>"))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := parseMarker("f/metadata.rule", data)
		if (err == nil) == (m == nil) || m != nil && m.kind == "" {
			t.Errorf("%+v, %v", m, err)
		}
	})
}
