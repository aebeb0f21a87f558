package recognise

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"bagpipe/layout"

	"pgregory.net/rapid"
)

// onDisk is what is known of a folder, by a look at the disk each time.
type onDisk struct {
	b    *Book
	root string
	at   string
}

func (d onDisk) Has(name string) bool {
	_, err := os.Lstat(filepath.Join(d.root, d.at, name))
	return err == nil
}

func (d onDisk) Endings() (all Endings) {
	_ = filepath.WalkDir(filepath.Join(d.root, d.at), func(p string, e fs.DirEntry, err error) error {
		d.b.EndsOf(filepath.Base(p), &all)
		return err
	})
	return all
}

func (d onDisk) Files(visit func(string, int64) bool) bool {
	top := filepath.Join(d.root, d.at)
	return filepath.WalkDir(top, func(p string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		info, err := e.Info()
		if err != nil || !visit(strings.TrimPrefix(p, top+"/"), info.Size()) {
			return fs.ErrInvalid
		}
		return nil
	}) == nil
}

// drawRules writes a rule file of conditions that are met now and then.
func drawRules(t *rapid.T) string {
	names := rapid.SampledFrom([]string{"a*", "*.tif", "**/*.tif", "b|*.shp", "**/a.*", "*/*", "${stem}.*", "x*.T?F", "**/[ab].*", "é*", "*%*", "bagit.txt", "**/*b*"})
	expressions := rapid.SampledFrom([]string{`^(?<base>.+)\\.tif$`, `(?i)^(?<base>.+)\\.(shp|tiff?)$`, `(^|/)(?<base>[ab])[^/]*$`, `(?<base>b|x)`, `^(?<base>a)$`, `(?<base>%|é)`})
	mimes := rapid.SampledFrom([]string{"image/*", "application/pdf", "text/plain", "application/octet-stream"})
	var condition func(depth int) string
	condition = func(depth int) string {
		switch rapid.IntRange(0, 14+b2i(depth < 2)*3).Draw(t, "condition") {
		case 0:
			return "kind: [" + strings.Join(rapid.SliceOfNDistinct(rapid.SampledFrom([]string{KindFile, KindFolder, KindArchive, KindBag}), 1, 3, rapid.ID).Draw(t, "kinds"), ", ") + "]"
		case 1:
			return "name: '" + names.Draw(t, "name") + "'"
		case 2:
			return `regexp: "` + expressions.Draw(t, "regexp") + `"`
		case 3:
			return "extension: [" + rapid.SampledFrom([]string{"tif", "SHP", "b"}).Draw(t, "extension") + "]"
		case 4:
			return fmt.Sprintf("size: {min: %d}", rapid.IntRange(0, 20).Draw(t, "min"))
		case 5:
			return "mime: " + mimes.Draw(t, "mime")
		case 6:
			return fmt.Sprintf("magic: [{at: %d, text: P}]", rapid.IntRange(0, 2).Draw(t, "at"))
		case 7:
			return "top: '" + names.Draw(t, "top") + "'"
		case 8:
			return `find: "` + expressions.Draw(t, "find") + `"`
		case 9:
			s := `sets: {main: "` + expressions.Draw(t, "main") + `"`
			if rapid.Bool().Draw(t, "required") {
				s += ", required: ['${base}." + rapid.SampledFrom([]string{"b", "tfw|${base}.b", "x*"}).Draw(t, "wanted") + "']"
			}
			if rapid.Bool().Draw(t, "alone") {
				s += ", optional: ['${base}.*'], alone: true"
			}
			return s + fmt.Sprintf(", min: %d}", rapid.IntRange(0, 2).Draw(t, "sets"))
		case 10:
			return "holds: ['" + names.Draw(t, "holds") + "']"
		case 11:
			return "lacks: ['" + names.Draw(t, "lacks") + "']"
		case 12:
			return fmt.Sprintf("count: [{name: '%s', min: %d}]", names.Draw(t, "count"), rapid.IntRange(0, 2).Draw(t, "n"))
		case 13:
			return fmt.Sprintf(`count: [{regexp: "%s", mime: %s, min: 1}]`, expressions.Draw(t, "count"), mimes.Draw(t, "of"))
		case 14:
			return "xml: [{file: '" + names.Draw(t, "file") + "', path: /a}]"
		case 15:
			return "all: [{" + condition(depth+1) + "}, {" + condition(depth+1) + "}]"
		case 16:
			return "any: [{" + condition(depth+1) + "}, {" + condition(depth+1) + "}]"
		}
		return "not: {" + condition(depth+1) + "}"
	}
	var b strings.Builder
	b.WriteString("schema: 1\nname: test\n")
	if rapid.Bool().Draw(t, "lists") {
		fmt.Fprintf(&b, "lists: {inside: {deny: ['%s'], allow: ['*', '**/*']}}\n", rapid.SampledFrom([]string{"b", "a/*", "*.b", "**/x"}).Draw(t, "deny"))
	}
	b.WriteString("keywords:\n  - {keyword: a, files: [r1, r0], folders: [r1]}\n  - {keyword: '', files: [r0]}\nrules:\n")
	for i := range rapid.IntRange(2, 5).Draw(t, "rules") {
		fmt.Fprintf(&b, "  - name: r%d\n    workflow: w%d\n", i, i)
		if i == 1 {
			b.WriteString("    listed: true\n")
		}
		seen := map[string]bool{}
		for _, key := range []string{"match", "expect"} {
			fmt.Fprintf(&b, "    %s:\n", key)
			given := 0
			for range rapid.IntRange(0, 3).Draw(t, "conditions") {
				text := condition(0)
				if name, _, _ := strings.Cut(text, ":"); !seen[key+name] {
					seen[key+name], given = true, given+1
					b.WriteString("      " + text + "\n")
				}
			}
			if given == 0 {
				b.WriteString("      {}\n")
			}
		}
		if v := rapid.SampledFrom([]string{"", "maybe", "no"}).Draw(t, "verdict"); v != "" {
			b.WriteString("    verdict: " + v + "\n")
		}
	}
	return b.String()
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

func drawTree(t *rapid.T, root string) {
	names := rapid.SampledFrom([]string{"a", "b", "x", "a.tif", "a.b", "b.SHP", "x1.TIF", "é.tif", "%.b", "bagit.txt", "a.zip", "\xff.tif", "z.T\u212aF"})
	content := rapid.SampledFrom([]string{"", "text", "<a>1</a>", "%PDF-1.4", "\x89PNG\r\n\x1a\n", "II*\x00" + strings.Repeat("\x00", 20), "PK\x03\x04", "\x1f\x8b\x08", strings.Repeat("P", 3100)})
	for range rapid.IntRange(0, 10).Draw(t, "files") {
		dir := root
		for range rapid.IntRange(0, 3).Draw(t, "depth") {
			dir = filepath.Join(dir, names.Draw(t, "folder"))
		}
		if os.MkdirAll(dir, 0o777) != nil {
			continue // a file is there
		}
		name, text := names.Draw(t, "file"), content.Draw(t, "content")
		if rapid.IntRange(0, 9).Draw(t, "rule file") == 0 {
			name, text = MarkerName, "<root><type>a</type></root>"
		}
		_ = os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666)
	}
}

// summary is what a catalog keeps of an outcome.
func summary(o *Outcome, err error, folder bool) string {
	if err != nil {
		return "error: " + err.Error()
	}
	if o.Rule == "" {
		return fmt.Sprint("none ", !folder && o.Verdict == No)
	}
	return fmt.Sprintf("%s %s %s %t", o.Verdict, o.Rule, o.Workflow, o.Refused != "")
}

func sizeOf(t *rapid.T, path string) int64 {
	info, err := os.Lstat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}

// A file whose name decides is not looked at; one of whose content a rule asks is.
func TestNamesThatDecide(t *testing.T) {
	root := t.TempDir()
	for _, c := range []struct {
		rules, name string
		ok          bool
		rule        string
	}{
		{"[{name: a, match: {name: '*.tif'}}]", "x.dat", true, ""},
		{"[{name: a, match: {name: '*.tif'}}, {name: b, match: {mime: image/png}}]", "x.tif", true, "test/a"},
		{"[{name: a, match: {name: '*.tif'}}, {name: b, match: {mime: image/png}}]", "x.dat", false, ""},
		{"[{name: a, match: {name: '*.tif'}, verdict: maybe}, {name: b, match: {mime: image/png}}]", "x.tif", false, ""},
		{"[{name: a, match: {name: '*.zip', kind: archive}}]", "x.dat", true, ""},
		{"[{name: a, match: {name: '*.zip', kind: archive}}]", "x.zip", false, ""},
		{"[{name: a, match: {name: '*.zip', kind: [archive, file]}}]", "x.zip", true, "test/a"},
		{"[{name: a, match: {kind: folder, holds: x}}, {name: b, match: {size: {min: 10}}}]", "x", true, ""},
		{"[{name: a, match: {size: {max: 9}}, expect: {magic: [{text: II}]}}]", "x", false, ""},
		{"[{name: a, match: {any: [{name: y}, {xml: [{path: /a}]}]}}]", "x", false, ""},
		{"[{name: a, match: {not: {lacks: y}}}]", "x", false, ""},
	} {
		f, err := Parse("rules/test.yaml", []byte("schema: 1\nname: test\nrules: "+c.rules+"\n"))
		if err != nil {
			t.Fatal(err)
		}
		h := NewBook([]*File{f}).Survey(root, "maps", Options{Particular: true}, func(string) Listed { return nil }).Shelf("")
		o, ok, err := h.ByName(t.Context(), c.name, 5)
		if ok != c.ok || err != nil || ok && o.Rule != c.rule {
			t.Errorf("%s of %s: %v %+v %v, expected %v and rule %q", c.name, c.rules, ok, o, err, c.ok, c.rule)
		}
	}
}

// What is recognised by what is known is recognised as what is looked at.
func TestShelfIsRecognise(t *testing.T) {
	all, base := shipped(t), t.TempDir()
	n, whole := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		text := drawRules(t)
		f, err := Parse("rules/test.yaml", []byte(text))
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		files := []*File{f}
		if rapid.Bool().Draw(t, "shipped") {
			files = append(files, all...)
		}
		b := NewBook(files)
		n++
		root := filepath.Join(base, fmt.Sprint(n))
		defer os.RemoveAll(root)
		if err := os.Mkdir(root, 0o777); err != nil {
			t.Fatal(err)
		}
		drawTree(t, root)
		s := b.Survey(root, "maps", Options{Particular: true}, func(path string) Listed { return onDisk{b, root, path} })
		err = filepath.WalkDir(root, func(p string, e fs.DirEntry, err error) error {
			if err != nil || !e.IsDir() {
				return err
			}
			rel := strings.TrimPrefix(strings.TrimPrefix(p, root), "/")
			entries, err := os.ReadDir(p)
			if err != nil {
				return err
			}
			h := s.Shelf(rel)
			for _, e := range entries {
				c := Candidate{Path: filepath.Join(p, e.Name()), Name: e.Name(), Collection: "maps", File: !e.IsDir(), Inbox: root, InPlace: true, Above: FoldersTo(root, rel)}
				want, err := b.Recognise(t.Context(), c, Options{Particular: true})
				wanted := summary(want, err, e.IsDir())
				ask := h.File
				if e.IsDir() {
					ask = h.Folder
				}
				if !e.IsDir() {
					if got, ok, err := h.ByName(t.Context(), e.Name(), sizeOf(t, c.Path)); (ok || err != nil) && summary(got, err, false) != wanted {
						t.Errorf("%s by its name: %s, expected %s\n%s", layout.EncodePath(filepath.Join(rel, e.Name())), summary(got, err, false), wanted, text)
					}
				}
				got, err := ask(t.Context(), e.Name())
				if summary(got, err, e.IsDir()) != wanted {
					t.Errorf("%s: %s, expected %s\n%s", layout.EncodePath(filepath.Join(rel, e.Name())), summary(got, err, e.IsDir()), wanted, text)
				}
				if got != nil && got.Whole {
					got.Whole = false
					if whole++; !reflect.DeepEqual(got, want) {
						t.Errorf("%s: %+v, expected %+v\n%s", layout.EncodePath(filepath.Join(rel, e.Name())), got, want, text)
					}
				}
			}
			return h.Close()
		})
		if err != nil {
			t.Fatal(err)
		}
	})
	if whole == 0 {
		t.Error("no outcome was whole")
	}
}

// In a folder of a catalog those files are together that would be as a drop that is split; an object is what the rules take.
func TestFilesTogetherOnAShelf(t *testing.T) {
	b := NewBook(append(shipped(t), rules(t, `rules:
  - {name: pages, match: {sets: {main: '^(?<base>.+)\.page$', optional: ['${base}.note'], max: 1}, not: {xml: [{file: '${base}.note', path: /note/secret, is: 'yes'}]}}, type: page}
`)))
	names := []string{"map.tif", "map.tfw", "map_2.tif", "map_2.tfw", "map_2.prj", "map.prj", "lonely.tfw", "bare.tif", "roads.shp", "roads.shx", "roads.dbf", "roads.cpg", "half.shp", "half.shx",
		"notes.txt", "1.page", "1.note", "2.page", "2.note"}
	files := map[string]string{}
	for _, name := range names {
		files[name] = "x"
	}
	files["1.note"], files["2.note"] = "<note/>", "<note><secret>yes</secret></note>"
	root := tree(t, "root", map[string]string{})
	for name, text := range files {
		if err := os.MkdirAll(filepath.Join(root, "in"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, "in", name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	s := b.Survey(root, "maps", Options{Particular: true}, func(path string) Listed { return onDisk{b, root, path} })
	h := s.Shelf("in")
	defer h.Close()
	slices.Sort(names)
	all, err := h.Sets(t.Context(), names)
	if err != nil || !h.MayHaveSets() {
		t.Fatal(h.MayHaveSets(), err)
	}
	got := map[string]string{}
	for _, one := range all {
		o, err := h.Set(t.Context(), one)
		if err != nil {
			t.Fatal(err)
		}
		got[one.Name+": "+strings.Join(one.Files, " ")] = o.Rule
	}
	want := map[string]string{"map: map.tif map.prj map.tfw": "images/one", "map_2: map_2.tif map_2.prj map_2.tfw": "images/one", "roads: roads.shp roads.cpg roads.dbf roads.shx": "shapefiles/one",
		"1: 1.page 1.note": "test/pages", "2: 2.page 2.note": ""}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%v, expected %v", got, want)
	}
	if s.Shelf("").MayHaveSets() != true { // what lies below may be meant: the names decide
		t.Error("the endings of the root hide those below")
	}
	many := make([]string, maxNames+1)
	for i := range many {
		many[i] = fmt.Sprintf("%06d.shp", i)
	}
	many = append(many, "x.dbf", "x.shx")
	if _, err := h.Sets(t.Context(), many); !errors.As(err, new(*TooManyError)) {
		t.Errorf("%v of more names than are looked at", err)
	}
	if none, err := s.Shelf("").Sets(t.Context(), []string{"a.txt"}); err != nil || none != nil {
		t.Errorf("%v, %v of a folder without maps", none, err)
	}
}
