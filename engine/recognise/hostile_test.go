package recognise

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Documents that would cost memory or time are refused in words.
func TestHostileXML(t *testing.T) {
	bomb := `<!DOCTYPE a [<!ENTITY b "bbbbbbbbbb"><!ENTITY c "&b;&b;&b;&b;&b;&b;&b;&b;&b;&b;">]><a>&c;</a>`
	for about, c := range map[string]struct{ text, want string }{
		"entities":           {bomb, "unknown: x.xml line 1, column 84: declares entities or a document type of its own; entities are never expanded"},
		"an external entity": {`<!DOCTYPE a [<!ENTITY b SYSTEM "file:///etc/hostname">]><a>&b;</a>`, "entities are never expanded"},
		"an unknown entity":  {"<a>\n&b;</a>", "unknown: x.xml line 2, column 4: is no XML: invalid character entity &b;; entities are never expanded"},
		"a plain doctype":    {`<!DOCTYPE a SYSTEM "http://example.org/a.dtd"><a>7</a>`, "yes: //a in x.xml is 7"},
		"deep":               {strings.Repeat("<a>", 300) + strings.Repeat("</a>", 300), "more than 200 deep"},
		"many nodes":         {"<a>" + strings.Repeat("<b/>", maxNodes+1) + "</a>", "has more than 500000 elements and texts"},
		"large":              {"<a>" + strings.Repeat("x", maxDocument) + "</a>", "is larger than 8388608 bytes, and not looked into"},
		"not UTF-8":          {"<?xml version=\"1.0\" encoding=\"GB2312\"?><a>\xb8\xdf\xb7\xd6</a>", "yes: //a in x.xml is 高分"},
		"not XML":            {"PK\x03\x04", "unknown: x.xml "},
		"empty":              {"", "unknown: x.xml is no XML"},
	} {
		if got := said(t, tree(t, "f", map[string]string{"x.xml": c.text, "y": ""}), "xml: [{file: x.xml, path: //a}]"); !strings.Contains(got, c.want) {
			t.Errorf("%s: %.200s; want %s", about, got, c.want)
		}
	}
}

// processor is the time that this process has spent on all cores: what is slow because of others
// costs none of it.
func processor(t *testing.T) time.Duration {
	t.Helper()
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// An XPath that goes through a large document again and again ends.
func TestSlowXPath(t *testing.T) {
	var b strings.Builder
	b.WriteString("<r>")
	for i := range 60 {
		b.WriteString(strings.Repeat("<a>", 100) + fmt.Sprint(i) + strings.Repeat("</a>", 100))
	}
	b.WriteString("</r>")
	begun := processor(t)
	got := said(t, tree(t, "f", map[string]string{"x.xml": b.String(), "y": ""}), "xml: [{file: x.xml, path: '//a[count(//a//a//a) = 7]'}]")
	if !strings.Contains(got, "the XPath goes through the document too often") {
		t.Errorf("%s", got)
	}
	if took := processor(t) - begun; took > time.Minute {
		t.Errorf("it took %s", took)
	}
}

// An archive of very many names is listed up to a limit; what is beyond is unknown.
func TestManyNames(t *testing.T) {
	if testing.Short() {
		t.Skip("lists 50,000 names nine times")
	}
	content := map[string]string{}
	for i := range maxNames + 10 {
		content[fmt.Sprintf("d/%06d", i)] = ""
	}
	at, packed := tarred(t, "many.tar.gz", content), zipped(t, "many.zip", content)
	if got := said(t, packed, "holds: d/nothing"); !strings.HasPrefix(got, "unknown: ") {
		t.Error(got)
	}
	for match, want := range map[string]string{
		"holds: 'd/*7'":                       "yes: holds d/",
		"holds: d/nothing":                    "unknown: not among the first 50000 names inside",
		"lacks: d/nothing":                    "unknown: not among the first 50000 names inside",
		"count: [{name: 'd/*', min: 10}]":     "yes: holds 50000 of d/*",
		"count: [{name: 'd/*', max: 100000}]": "unknown: more than 50000 names inside",
		"sets: {main: '^d/0', by: d}":         "unknown: more than 50000 names inside",
		"size: {max: 10}":                     "no: ",
		"top: d":                              "unknown: more than 50000 names",
	} {
		if got := said(t, at, match); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %q, want %q", match, got, want)
		}
	}
}

// A compressed tar has no directory: a large one is not read for its names.
func TestLargeStreams(t *testing.T) {
	at := tarred(t, "x.tar.gz", map[string]string{"a": "x"})
	if err := os.Truncate(at, listStream+1); err != nil {
		t.Fatal(err)
	}
	if got := said(t, at, "holds: a"); !strings.Contains(got, "unknown: cannot be listed: a tar.gz of 67108865 bytes would have to be read whole") {
		t.Error(got)
	}
}

// Archives that break a rule of unpacking say which, and say nothing of names.
func TestHostileArchives(t *testing.T) {
	for name, path := range map[string]string{
		"..": zipped(t, "a.zip", map[string]string{"../../escaped.txt": "x", "a": "x"}),
		"is truncated|ends early|end is missing|damaged": truncated(t, zipped(t, "b.zip", map[string]string{"a": "x", "b": "y"})),
	} {
		got := said(t, path, "holds: a")
		fits := false
		for _, word := range strings.Split(name, "|") {
			fits = fits || strings.Contains(got, word)
		}
		if !strings.HasPrefix(got, "unknown: cannot be listed: ") || !fits {
			t.Errorf("%s: %s", filepath.Base(path), got)
		}
	}
}

func truncated(t *testing.T, path string) string {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, info.Size()-30); err != nil {
		t.Fatal(err)
	}
	return path
}

// Linear in the text, whatever the expression: names as long as a path may be.
func TestSlowExpressionsAreNot(t *testing.T) {
	f := rules(t, "rules: [{name: r, match: {find: '^(([a-z])+.)+[A-Z]([a-z])+$'}}]\n")
	drop := zipped(t, "x.zip", map[string]string{strings.Repeat(strings.Repeat("a", 200)+"/", 9) + "b": "x", "y": "z"})
	begun := processor(t)
	if got := ask(t, drop, f).said("test/r"); !strings.HasPrefix(got, "no: ") {
		t.Error(got)
	}
	if took := processor(t) - begun; took > 5*time.Second {
		t.Errorf("it took %s", took)
	}
}

// Rule files are foreign where they are pushed.
func FuzzParse(f *testing.F) {
	for _, s := range shipped(f) {
		data, err := os.ReadFile(filepath.Join("..", "..", "templates", s.Path()))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		begun := processor(t)
		file, err := Parse("rules/x.yaml", data)
		if took := processor(t) - begun; took > 5*time.Second {
			t.Errorf("it took %s", took)
		}
		if (err == nil) == (file == nil) {
			t.Errorf("%v, %v", file, err)
		}
		if file != nil {
			NewBook([]*File{file})
		}
	})
}

// Thousands of sets, each of whose patterns could fit everything, are told in time;
// what would take too long is unknown.
func TestManySets(t *testing.T) {
	sets := func(n int, endings ...string) *listing {
		l := &listing{}
		for i := range n {
			for _, e := range endings {
				l.files = append(l.files, fmt.Sprintf("d/s%d%s", i, e))
			}
		}
		return l
	}
	for about, c := range map[string]struct {
		l    *listing
		sets string
		want string
	}{
		"patterns of all sets": {sets(16_000, ".shp", ".shx", ".dbf"),
			`main: '^(?<base>.+)\.shp$', required: ['${base}.shx'], optional: ['${base}.*', '**/preview.*', '**/thumb*.*', '**/readme*'], alone: true`, "yes: 16000 sets"},
		"names at any depth": {sets(12_000, "-PAN.xml", "-PAN.tif", "-MSS.xml"),
			`main: '(^|/)(?<scene>s\d+)-PAN\.xml$', required: ['**/${scene}-P*.tif', '**/${scene}-M*.xml']`, "yes: 12000 sets"},
		"names with signs": {sets(12_000, "[1].shp", "[1].shx", "[1].dbf"),
			`main: '^(?<base>.+)\.shp$', required: ['${base}.shx'], optional: ['${base}.*'], alone: true`, "yes: 12000 sets"},
		"no beginning": {sets(16_000, ".shp", ".shx", ".dbf"),
			`main: '^d/(?<base>.+)\.shp$', required: ['*/${base}.shx']`, "unknown: its 48000 files would have to be compared"},
	} {
		f := questions{&facts{kind: KindFolder, names: c.l}}
		b := rules(t, "rules:\n  - name: r\n    match: {sets: {"+c.sets+"}}\n")
		begun := processor(t)
		a := f.inSets(t.Context(), b.Rules[0].Match.Sets, vars{})
		if got := a.verdict.String() + ": " + a.why; !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: %.200s; want %s", about, got, c.want)
		}
		if took := processor(t) - begun; took > 30*time.Second {
			t.Errorf("%s: it took %s", about, took)
		}
	}
}

// Names are found whatever stands in them.
func TestNamesThatMustBeEncoded(t *testing.T) {
	for _, name := range []string{"100%", "\xff\xfe", "a|b", "[x]", "{x,y}", `a\b*?`} {
		folder := tree(t, "f", map[string]string{name + ".shp": "", name + ".SHX": "", name + "-1.txt": ""})
		if got := said(t, folder, `sets: {main: '^(?<base>.+)\.shp$', required: ['${base}.shx', '${base}-?.txt'], alone: true}`); !strings.HasPrefix(got, "yes: ") {
			t.Errorf("%q: %s", name, got)
		}
	}
}

// A folder is listed whatever the names of folders in it are.
func TestFoldersWithNamesOfAnyBytes(t *testing.T) {
	folder := tree(t, "f", map[string]string{"\xff\\/a.b": "", "c": ""})
	if got := said(t, folder, `holds: '**/*.b'`); got != `yes: holds %FF\/a.b` {
		t.Error(got)
	}
}
