package recognise

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// said asks one rule with this match of a path.
func said(t *testing.T, path, match string) string {
	t.Helper()
	return ask(t, path, rules(t, "rules:\n  - name: r\n    match: {"+match+"}\n")).said("test/r")
}

func TestConditions(t *testing.T) {
	content := map[string]string{"a.tif": "II*\x00", "A.TFW": "1.0", "d/b.tif": "x", "notes.xml": "<n><year>1871</year></n>", "n.json": `{"year": 1871, "who": {"name": "Ada"}}`, "bad.xml": "<n>", "bad.json": "{"}
	folder := tree(t, "Maps 1871", content)
	inZip := map[string]string{}
	for p, text := range content {
		inZip["Maps 1871/"+p] = text
	}
	archive := zipped(t, "Maps.zip", inZip)
	tiff := file(t, "plate-7.TIFF", "II*\x00 and more")
	damaged := file(t, "x.zip", "PK\x03\x04 and then nothing")
	for _, c := range []struct{ path, match, want string }{
		{tiff, "collection: maps", "yes: collection maps"},
		{tiff, "collection: [books, letters]", "no: collection maps, not books or letters"},
		{tiff, "kind: [file, folder]", "yes: file"},
		{folder, "name: 'Maps*'", "yes: name like Maps*"},
		{folder, "name: ['maps*', 'x*']", "no: name not like maps* or x*"},
		{folder, `regexp: '^(?<what>\w+) (?<year>\d{4})$', holds: '${what}*'`, "no: lacks Maps*"},
		{tiff, `regexp: '(?<n>\d)', name: '*'`, "yes: name like *; its name"},
		{tiff, "extension: [jpg, .tiff]", "yes: extension tiff"},
		{tiff, "extension: tif", "no: extension not tif"},
		{folder, "size: {min: 1KiB}", "no: "},
		{folder, "size: {min: 60, max: 200}", "yes: "},
		{tiff, "size: {max: 5}", "no: 13 bytes, more than 5"},
		{tiff, "mime: image/*", "yes: image/tiff"},
		{tiff, "mime: [text/plain, audio/*]", "no: image/tiff, not text/plain or audio/*"},
		{folder, "mime: image/*", "no: a folder has no MIME type"},
		{tiff, "magic: [{text: x}, {at: 5, hex: '61 6e 64'}]", "yes: its bytes at 5"},
		{tiff, "magic: [{at: 100000, text: a}]", "no: its bytes are others"},
		{archive, "top: '${stem} *'", "yes: everything in the folder Maps 1871"},
		{archive, "top: '${stem}'", "no: everything in the folder Maps 1871, not Maps"},
		{folder, "top: '*'", "no: holds no one folder that everything is in"},
		{archive, "holds: [a.tif, '**/b.tif']", "yes: holds a.tif; holds d/b.tif"},
		{folder, "holds: [b.tif]", "no: lacks b.tif"},
		{folder, "holds: '*.jp2|*.tfw'", "yes: holds A.TFW"},
		{folder, "lacks: '*.jp2'", "yes: lacks *.jp2"},
		{folder, "lacks: '**/B.TIF'", "no: holds d/b.tif"},
		{folder, "may: ['*.tfw', '*.jp2']", "yes: also A.TFW"},
		{tiff, "holds: a", "no: a file has nothing inside"},
		{tiff, "lacks: a", "yes: "},
		{folder, `find: '(?<base>.+)\.tif$', holds: '${base}.tfw'`, "yes: holds a.tif; holds A.TFW"},
		{folder, `find: '\.jp2$'`, `no: holds nothing like \.jp2$`},
		{folder, "count: [{name: '**/*.tif', min: 2, max: 2}]", "yes: holds 2 of **/*.tif"},
		{folder, `count: [{regexp: 'tif$', max: 1}]`, "no: holds 2 of tif$, more than 1"},
		{folder, "count: [{mime: image/tiff, min: 2}]", "no: holds 1 of image/tiff, fewer than 2"},
		{archive, "count: [{mime: image/tiff, min: 1}]", "unknown: MIME types within an archive"},
		{folder, "xml: [{file: notes.xml, path: /n/year, is: ['1870', 1871]}]", "yes: /n/year in notes.xml is 1871"},
		{folder, "xml: [{file: notes.xml, path: //year, matches: '^(?<c>18)'}], holds: '*'", "yes: "},
		{folder, "xml: [{file: notes.xml, path: //year, matches: '^19'}]", "no: //year in notes.xml is 1871, not like ^19"},
		{folder, "xml: [{file: notes.xml, path: //month}]", "no: notes.xml has no //month"},
		{folder, "xml: [{file: other.xml, path: //month}]", "no: lacks other.xml"},
		{folder, "xml: [{file: bad.xml, path: //n}]", "unknown: bad.xml "},
		{folder, "xml: [{path: //n}]", "unknown: Maps 1871 a folder is no document"},
		{archive, "xml: [{file: notes.xml, path: //n}]", "unknown: Maps 1871/notes.xml what stands in a file within an archive is not known"},
		{folder, "json: [{file: n.json, path: who.name, is: Ada}]", "yes: who.name in n.json is Ada"},
		{folder, "json: [{file: n.json, path: year, is: 1871}]", "yes: "},
		{folder, "json: [{file: n.json, path: nothing}]", "no: n.json has no nothing"},
		{folder, "json: [{file: bad.json, path: a}]", "unknown: bad.json is no JSON"},
		{folder, "all: [{kind: folder}, {holds: a.tif}]", "yes: folder; holds a.tif"},
		{folder, "any: [{kind: file}, {holds: a.tif}]", "yes: holds a.tif"},
		{folder, "any: [{kind: file}, {holds: q.tif}]", "no: none of: a folder, not file; lacks q.tif"},
		{folder, "any: [{kind: file}, {json: [{file: bad.json, path: a}]}]", "unknown: bad.json is no JSON"},
		{folder, "not: {holds: q.tif}", "yes: not: lacks q.tif"},
		{folder, "not: {holds: a.tif}", "no: what must not be: holds a.tif"},
		{damaged, "holds: a", "unknown: cannot be listed: "},
		{damaged, "lacks: a", "unknown: cannot be listed: "},
		{damaged, "not: {holds: a}", "unknown: cannot be listed: "},
		{damaged, "holds: a, json: [{path: a}], extension: tar", "no: extension not tar"},
	} {
		if got := said(t, c.path, c.match); !strings.HasPrefix(got, c.want) || c.want == "yes: " && strings.HasPrefix(got, "no") {
			t.Errorf("%s: %s: %q, want %q", filepath.Base(c.path), c.match, got, c.want)
		}
	}
}

func TestSets(t *testing.T) {
	folder := tree(t, "maps", map[string]string{"a.tif": "", "a.tfw": "", "a.tif.xml": "", "b.TIF": "", "B.wld": "", "b-notes.txt": "", "preview.jpg": ""})
	one := tree(t, "map", map[string]string{"m[1].tif": "", "m[1].tfw": "", "m1.tfw": ""})
	const main = `main: '(?i)^(?<base>.+)\.tif$', required: '${base}.tfw|${base}.wld'`
	for _, c := range []struct{ path, match, want string }{
		{folder, "sets: {" + main + "}", "yes: 2 sets of files, the first is a.tif"},
		{folder, "sets: {" + main + ", max: 1}", "no: holds 2 sets of files; the rule wants at most 1"},
		{folder, "sets: {" + main + ", min: 3}", "no: holds 2 sets of files; the rule wants at least 3"},
		{folder, "sets: {" + main + ", alone: true}", "no: a.tif.xml belongs to none of the sets"},
		{folder, "sets: {" + main + ", optional: ['${base}.*', '${base}-*'], alone: true}", "no: preview.jpg belongs to none of the sets"},
		{folder, "sets: {" + main + ", optional: ['${base}.*', '${base}-*', '**/preview.*'], alone: true}", "yes: 2 sets"},
		{folder, `sets: {main: '\.tif$', required: x}`, "no: a.tif lacks x"},
		{folder, `sets: {main: '(?i)^(?<l>[ab])[^.]*\.', by: '${l}', min: 2, max: 2}`, "no: holds 3 sets of files; the rule wants at most 2"},
		{folder, `sets: {main: '^(?<l>[aAbB])', by: '${l}', min: 3, max: 3}`, "yes: 3 sets of files, the first is B"},
		{one, "sets: {" + main + ", max: 1}, holds: '${base}.tfw'", "yes: one set of 2 files: m[1].tif; holds m[1].tfw"},
		{file(t, "a.tif", "x"), "sets: {" + main + "}", "no: a file has nothing inside"},
	} {
		if got := said(t, c.path, c.match); !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: %q, want %q", c.match, got, c.want)
		}
	}
}

// The first yes decides, else the first maybe; what fits everything comes after maybe.
func TestVerdicts(t *testing.T) {
	drop := tree(t, "f", map[string]string{"a": "1"})
	for about, c := range map[string]struct {
		rules, rule string
		verdict     Verdict
		asked       int
	}{
		"the first yes":         {"[{name: a, match: {holds: b}}, {name: b, match: {kind: folder}}, {name: c, match: {kind: folder}}]", "test/b", Yes, 2},
		"yes after maybe":       {"[{name: a, match: {kind: folder}, verdict: maybe}, {name: b, match: {holds: a}}]", "test/b", Yes, 2},
		"the first maybe":       {"[{name: a, match: {kind: folder}, expect: {holds: b}}, {name: b, match: {holds: a}, verdict: maybe}]", "test/a", Maybe, 2},
		"maybe before all":      {"[{name: a, match: {kind: folder}, verdict: maybe}, {name: all}, {name: c}]", "test/a", Maybe, 1},
		"what fits everything":  {"[{name: a, match: {holds: b}}, {name: all}, {name: c}]", "test/all", Yes, 2},
		"refused":               {"[{name: a, match: {kind: folder}, verdict: no, description: no folders}]", "test/a", No, 1},
		"nothing fits":          {"[{name: a, match: {holds: b}}]", "", No, 1},
		"nothing is known":      {"[{name: a, match: {xml: [{file: a, path: b}]}}]", "", Unknown, 1},
		"files' are not asked":  {"[{name: a, match: {kind: file}}, {name: b, match: {kind: [archive, folder]}}]", "test/b", Yes, 1},
		"listed is not asked":   {"[{name: a, listed: true}, {name: b}]", "test/b", Yes, 1},
		"expected and is there": {"[{name: a, match: {kind: folder}, expect: {holds: a}}]", "test/a", Yes, 1},
	} {
		o := ask(t, drop, rules(t, "rules: "+c.rules+"\n"))
		if o.Rule != c.rule || o.Verdict != c.verdict || len(o.Tried) != c.asked || (o.Refused == "") != (c.verdict >= Maybe) {
			t.Errorf("%s: %s says %s, %d were asked, refused %q", about, o.Rule, o.Verdict, len(o.Tried), o.Refused)
		}
	}
}

func TestValues(t *testing.T) {
	drop := tree(t, "deed-1871-0042", map[string]string{"deed.xml": "<deed no='7'><notary>  Dr.\n Weber </notary><empty/><date>2013-11-27 03:18:41</date></deed>", "n.json": `{"a": {"b": [1, 2]}, "n": "12.5", "x": "NaN"}`})
	o := ask(t, drop, rules(t, `rules:
  - name: deed
    match: {regexp: '^(?<kind0>\w+)-(?<year>\d+)-(?<n>\d+)(?<none>x)?$'}
    type: deed
    collection: deeds
    lane: urgent
    workflow: w
    label: "Deed ${n}\n of ${year}"
    identifiers:
      deed: '${year}/${n}'
      none: '${none}'
      no: {xml: /deed/@no, file: '*.xml'}
    metadata:
      year: {text: '${year}', as: number}
      text: {text: '${kind0}', as: number}
      nan: {json: x, file: n.json, as: number}
      list: {json: a.b, file: n.json}
      half: {json: n, file: n.json, as: number}
      notary: {xml: //notary, file: deed.xml}
      at: {xml: //date, file: deed.xml, as: date}
      day: {text: 20131127, as: date}
      doy: {text: 2013331, as: date}
      west: {text: W77.25, as: degrees}
      empty: {xml: //empty, file: deed.xml}
      missing: {xml: //x, file: other.xml}
      count: {xml: 'count(//*)', file: deed.xml, as: number}
`))
	want := &Outcome{Kind: KindFolder, Verdict: Yes, Rule: "test/deed", Type: "deed", Collection: "deeds", Lane: "urgent", Workflow: "w",
		Label: "Deed 0042 of 1871", Identifiers: map[string]string{"deed": "1871/0042", "no": "7"},
		Metadata: map[string]any{"year": 1871.0, "text": "deed", "nan": "NaN", "list": "[1, 2]", "half": 12.5, "notary": "Dr. Weber", "at": "2013-11-27T03:18:41Z",
			"day": "2013-11-27", "doy": "2013-11-27", "west": -77.25, "count": 4.0},
		Tried: []Trial{{Rule: "test/deed", Verdict: Yes, Reason: "its name"}}}
	if diff := cmp.Diff(want, o); diff != "" {
		t.Error(diff)
	}
}

// Names that are no text are percent-encoded, wherever they go.
func TestOddNames(t *testing.T) {
	top := tree(t, "a\xff\n%", map[string]string{"b\xfe.tif": "x", "b\xfe.tfw": "x"})
	o := ask(t, top, rules(t, "rules:\n  - name: r\n    match:\n      regexp: '^a'\n      sets: {main: '^(?<base>.+)\\.tif$', max: 1}\n    label: '${name} ${base}'\n    metadata: {n: '${stem}'}\n"))
	if o.Label != "a%FF%0A%25 b%FE" || o.Metadata["n"] != "a%FF%0A%25" {
		t.Errorf("%q, %q", o.Label, o.Metadata)
	}
}

// What is not a file or folder is not opened, and links inside are not followed.
func TestSpecialFiles(t *testing.T) {
	top := tree(t, "f", map[string]string{"a": "x"})
	if err := os.Symlink("/", filepath.Join(top, "root")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/etc/hostname", filepath.Join(top, "n.json")); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(top, "pipe.xml"), 0o600); err != nil {
		t.Fatal(err)
	}
	for match, want := range map[string]string{
		"count: [{name: '**/*', max: 4}]":             "yes: holds 4",
		"json: [{file: n.json, path: a}]":             "unknown: n.json ",
		"xml: [{file: pipe.xml, path: //a}]":          "unknown: pipe.xml ",
		"count: [{name: '*.xml', mime: a/b, min: 1}]": "unknown: pipe.xml cannot be read",
	} {
		if got := said(t, top, match); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %q, want %q", match, got, want)
		}
	}
	_, err := NewBook(nil).Recognise(t.Context(), Candidate{Path: filepath.Join(top, "pipe.xml"), Name: "pipe.xml"}, Options{})
	if err == nil || !strings.Contains(err.Error(), "is no file or folder") {
		t.Errorf("a FIFO: %v", err)
	}
}

// The manifest keeps a hundred reasons, those that say something first.
func TestManifestIsBounded(t *testing.T) {
	var text strings.Builder
	text.WriteString("rules:\n")
	for i := range 300 {
		fmt.Fprintf(&text, "  - {name: r%d, match: {name: '%s'}}\n", i, strings.Repeat("long*", 90))
	}
	text.WriteString("  - {name: last, match: {kind: file}, verdict: maybe}\n")
	m := ask(t, file(t, "a.txt", "x"), rules(t, text.String())).Manifest()
	if m.Rule != "test/last" || m.Verdict != "maybe" || len(m.Tried) != 100 || m.More != 201 || m.Tried["test/last"] != "maybe: file" {
		t.Errorf("%s, %s, %d, %d, %q", m.Rule, m.Verdict, len(m.Tried), m.More, m.Tried["test/last"])
	}
	for rule, reason := range m.Tried {
		if len(reason) > maxReason+len("unknown: ") {
			t.Fatalf("%s: %d bytes", rule, len(reason))
		}
	}
}

// A line of plain words is cut as any other text is, without a look at each word.
func TestPlainLinesAreCut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`[a-c \t\né\x7f\x00]{0,12}`).Draw(t, "text")
		if got, want := cut(text, 100), fold(strings.ToValidUTF8(text, "\uFFFD")); got != want {
			t.Fatalf("%q is cut to %q, want %q", text, got, want)
		}
	})
	for text, want := range map[string]bool{"": true, "a": true, "a b": true, " a": false, "a ": false, "a  b": false, "a\tb": false, "é": false, "\xff": false} {
		if isLine(text) != want {
			t.Errorf("%q: %v", text, !want)
		}
	}
}
