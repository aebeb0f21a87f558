package recognise

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"bagpipe/layout"
	"bagpipe/templates"
)

// shippedBook are the rules a new workspace has, and one of the test's.
func shippedBook(t *testing.T, more string) *Book {
	t.Helper()
	entries, err := templates.Workspace.ReadDir("rules")
	if err != nil {
		t.Fatal(err)
	}
	var files []*File
	add := func(name string, data []byte) {
		f, err := Parse(name, data)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".yaml") {
			continue
		}
		data, err := templates.Workspace.ReadFile("rules/" + e.Name())
		if err != nil {
			t.Fatal(err)
		}
		add("rules/"+e.Name(), data)
	}
	if more != "" {
		add("rules/mine.yaml", []byte("schema: 1\nname: mine\n"+more))
	}
	return NewBook(files)
}

func togetherOf(b *Book, names string) string {
	var out []string
	for _, s := range b.Together(context.Background(), "default", ".", "", strings.Fields(names)) {
		text := s.Name + "=" + strings.Join(s.Files, "+")
		if s.Lacks != "" {
			text = "(" + text + ")"
		}
		out = append(out, text)
	}
	return strings.Join(out, " ")
}

// Loose files are joined by the rules that ship: a map with its side-cars, a shapefile, a
// scene; and nothing that only has a similar name.
func TestTogether(t *testing.T) {
	b := shippedBook(t, "")
	gf1 := "GF1_PMS1_E116.5_N39.4_20131127_L1A0000117600"
	for _, c := range []struct{ name, files, want string }{
		{"five files of one map", "map.tif map.tfw map.tif.aux.xml map.tif.ovr map_iso19139.xml", "map=map.tif+map.tfw+map.tif.aux.xml+map.tif.ovr+map_iso19139.xml"},
		{"another case", "MAP.TIF map.tfw", "MAP=MAP.TIF+map.tfw"},
		{"two maps, the name of one begins like the other's", "map.tif map.tfw map_2.tif map_2.tfw map_2.prj map.prj", "map=map.tif+map.prj+map.tfw map_2=map_2.tif+map_2.prj+map_2.tfw"},
		{"one world file for two images", "map.png map.tif map.tfw", "map=map.png+map.tfw+map.tif"},
		{"no world file", "map.tif notes.txt", ""},
		{"no world file, but more", "map.tif map.prj", "(map=map.tif+map.prj)"},
		{"a shapefile", "roads.shp roads.shx roads.dbf roads.prj roads.shp.xml", "roads=roads.shp+roads.dbf+roads.prj+roads.shp.xml+roads.shx"},
		{"a part of it", "roads.shp roads.dbf", "(roads=roads.shp+roads.dbf)"},
		{"its companions alone", "roads.shx roads.dbf", ""},
		{"what is of all is of none", "roads.shp roads.shx roads.dbf readme.txt preview.png metadata.json", "roads=roads.shp+roads.dbf+roads.shx"},
		{"a scene", gf1 + "-MSS1.xml " + gf1 + "-PAN1.xml " + gf1 + "-MSS1.tiff " + gf1 + "-PAN1.tiff",
			gf1 + "=" + gf1 + "-MSS1.tiff+" + gf1 + "-MSS1.xml+" + gf1 + "-PAN1.tiff+" + gf1 + "-PAN1.xml"},
		{"letters", "a.pdf a.xml b.pdf", ""},
		{"a name that would be none of a folder", "...tif ...tfw", "...tif=...tif+...tfw"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := togetherOf(b, c.files); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

// A rule of one's own joins what it names; those that want another folder, collection,
// kind or several sets join nothing; what must not be taken in is not joined.
func TestTogetherByARuleOfOnesOwn(t *testing.T) {
	const sets = "sets: {main: '^(?<n>.+)\\.pdf$', optional: ['${n}.xml']}"
	for match, want := range map[string]string{
		"{" + sets + "}": "a=a.pdf+a.xml",
		"{kind: folder, name: 'a*', " + sets + "}":                              "a=a.pdf+a.xml",
		"{kind: folder, name: 'b*', " + sets + "}":                              "",
		"{collection: other, " + sets + "}":                                     "",
		"{kind: archive, " + sets + "}":                                         "",
		"{" + strings.TrimSuffix(sets, "}") + ", min: 2}}":                      "",
		"{lacks: '*.xml', " + sets + "}":                                        "",
		"{xml: [{file: a.xml, path: /never}], size: {min: 1GiB}, " + sets + "}": "a=a.pdf+a.xml",
	} {
		b := shippedBook(t, fmt.Sprintf("rules:\n  - name: r\n    match: %s\n", match))
		if got := togetherOf(b, "a.pdf a.xml b.pdf"); got != want {
			t.Errorf("%s: %q, want %q", match, got, want)
		}
	}
	b := shippedBook(t, "lists: {drops: {deny: ['*.xml']}}\nrules:\n  - name: r\n    match: {"+sets+"}\n")
	if got := togetherOf(b, "a.pdf a.xml"); got != "" {
		t.Errorf("what is on the black list was joined: %s", got)
	}
}

// Of the rules that ship, a lone file may have companions by its ending, and whatever could
// be anything's companion has none.
func TestHasCompanions(t *testing.T) {
	b := shippedBook(t, "")
	for name, want := range map[string]bool{
		"map.tif": true, "MAP.TFW": true, "map.tif.aux.xml": true, "roads.shp": true, "roads.dbf": true, "roads.prj": true,
		"GF1_PMS1_E116.5_N39.4_20131127_L1A0000117600-PAN1.xml": true,
		"thesis.pdf": false, "letters.zip": false, "film.mkv": false, "notes.txt": false, "README": false,
	} {
		if got := b.HasCompanions("default", name); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
	for collection, want := range map[layout.Name]bool{"maps": true, "default": false} {
		b := NewBook([]*File{mustParse(t, "schema: 1\nname: mine\nrules:\n  - name: a\n    match:\n      collection: maps\n      sets: {main: '^(?<base>.+)\\.svg$'}\n")})
		if got := b.HasCompanions(collection, "x.svg"); got != want {
			t.Errorf("%s: %v", collection, got)
		}
	}
}

func mustParse(t *testing.T, text string) *File {
	t.Helper()
	f, err := Parse("rules/mine.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return f
}
