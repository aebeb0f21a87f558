package recognise

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"bagpipe/layout"
)

func parsed(t testing.TB, text string) *File {
	t.Helper()
	f, err := Parse("rules/x.yaml", []byte("schema: 1\n"+text))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// asked lists the rules that are asked of a candidate, in order.
func asked(t *testing.T, b *Book, c Candidate) string {
	t.Helper()
	rules, _, err := b.order(c, isFolder(c), nil)
	if err != nil {
		return err.Error()
	}
	var ids []string
	for _, r := range rules {
		ids = append(ids, r.ID())
	}
	return strings.Join(ids, " ")
}

func isFolder(c Candidate) bool {
	info, err := os.Lstat(c.Path)
	return c.Files != nil || err == nil && info.IsDir()
}

func TestOrderOfFiles(t *testing.T) {
	b := NewBook([]*File{
		parsed(t, "name: default\norder: -5\nrules: [{name: any}]\n"), parsed(t, "name: zoo\nrules: [{name: z}, {name: y}]\n"),
		parsed(t, "name: shipped\norder: 100\nrules: [{name: s}]\n"), parsed(t, "name: ape\nrules: [{name: a}, {name: l, listed: true}]\n"),
		parsed(t, "name: first\norder: -1\nrules: [{name: f}]\n"),
	})
	var ids []string
	for _, r := range b.Rules() {
		ids = append(ids, r.ID())
	}
	if got := strings.Join(ids, " "); got != "first/f ape/a zoo/z zoo/y shipped/s default/any ape/l" {
		t.Error(got)
	}
}

// imetadata's model: the rules of the keyword, in their order, then all others; a type
// stands for the folder's name; metadata.rule goes before the keywords.
func TestKeywords(t *testing.T) {
	b := NewBook([]*File{parsed(t, `name: local
keywords:
  - {keyword: dom, files: [f1, f2], folders: [d1]}
  - {keyword: DEM , files: [f2], folders: [d2, d1]}
  - {keyword: '', files: [every], folders: [every]}
rules:
  - {name: f1, listed: true}
  - {name: f2, listed: true}
  - {name: d1, listed: true}
  - {name: d2, listed: true}
  - {name: every, listed: true}
  - {name: common}
`)})
	if len(b.Broken) > 0 {
		t.Fatal(b.Broken)
	}
	root := t.TempDir()
	write := func(p, text string) string {
		at := filepath.Join(root, p)
		if err := os.MkdirAll(filepath.Dir(at), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		return at
	}
	typed := func(kind, rest string) string {
		return "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<root>\n <type>" + kind + "</type>" + rest + "</root>\n"
	}
	plugins := "<plugins><file><plugin>f2</plugin></file><dir><plugin>local/d2</plugin></dir></plugins>"
	write("plain/a.tif", "x")
	write("plain/sheet/a.tif", "x")
	write("plain/DOM/a.tif", "x")
	write("plain/typed/metadata.rule", typed("dem", ""))
	write("plain/own/metadata.rule", typed("dom", plugins))
	write("dom/a.tif", "x")
	write("dom/sheet/a.tif", "x")
	write("dom/dem/a.tif", "x")
	write("typed/metadata.rule", typed(" Dem ", ""))
	write("typed/a.tif", "x")
	write("ruled/metadata.rule", typed("dom", plugins))
	write("ruled/a.tif", "x")
	write("ruled/dom/a.tif", "x")
	for drop, want := range map[string]string{
		"plain/a.tif":  "local/every local/common",
		"plain/sheet":  "local/every local/common",
		"plain/DOM":    "local/d1 local/every local/common",
		"plain/typed":  "local/d2 local/d1 local/every local/common",
		"plain/own":    "local/d2 local/f2 local/common",
		"dom/a.tif":    "local/f1 local/f2 local/every local/common",
		"dom/sheet":    "local/d1 local/every local/common",
		"dom/dem":      "local/d2 local/d1 local/every local/common",
		"typed/a.tif":  "local/f2 local/every local/common",
		"ruled/a.tif":  "local/f2 local/common",
		"ruled/dom":    "local/d2 local/common",
		"absent/a.tif": "local/every local/common",
	} {
		inbox, name := filepath.Split(drop)
		c := Candidate{Path: filepath.Join(root, drop), Name: name, Collection: layout.Name(filepath.Clean(inbox)), Inbox: filepath.Join(root, inbox)}
		if got := asked(t, b, c); got != want {
			t.Errorf("%s: %s, want %s", drop, got, want)
		}
	}
	o, err := b.Recognise(t.Context(), Candidate{Path: filepath.Join(root, "plain/own"), Name: "own", Collection: "plain"}, Options{})
	if err != nil || o.Type != "dom" || o.Rule != "local/d2" {
		t.Errorf("%+v, %v", o, err)
	}
}

func TestKeywordsThatNameNoRule(t *testing.T) {
	one := parsed(t, "name: one\nrules: [{name: a}, {name: b}]\n")
	two := parsed(t, "name: two\nkeywords:\n  - {keyword: dom, files: [b, a, two/b]}\n  - {folders: [one/a, one/c]}\nrules: [{name: b}]\n")
	three := parsed(t, "name: three\nrules: [{name: a}]\n")
	for _, c := range []struct {
		files []*File
		want  string
	}{
		{[]*File{one, two}, `rules/x.yaml:5:23: no rule "one/c" in rules/`},
		{[]*File{two, three}, `rules/x.yaml:5:16: no rule "one/a"`},
		{[]*File{one, two, three}, `rules/x.yaml:4:31: rule "a" stands in several files; write one/a or three/a`},
	} {
		b := NewBook(c.files)
		if len(b.Broken) == 0 || !strings.HasPrefix(b.Broken[0].Error(), c.want) {
			t.Errorf("%v, want %s", b.Broken, c.want)
		}
		drop := Candidate{Path: file(t, "a", "x"), Name: "a", Collection: "maps"}
		if why := b.Waits(drop); !strings.HasPrefix(why, "is held: rules/x.yaml:") {
			t.Errorf("waits: %q", why)
		}
		_, err := b.Recognise(t.Context(), drop, Options{})
		var fe *layout.FileError
		if !errors.As(err, &fe) {
			t.Errorf("recognised by broken rules: %v", err)
		}
	}
}

func TestLists(t *testing.T) {
	b := NewBook([]*File{
		parsed(t, "name: a\nlists: {drops: {deny: ['*.bak', 'draft*']}, inside: {deny: [Thumbs.db, __MACOSX, 'd/*.tmp']}}\nrules: [{name: r, match: {sets: {main: 'tif$', alone: true}}}]\n"),
		parsed(t, "name: b\nlists: {drops: {allow: ['*.zip', 'Maps*']}}\n"),
	})
	for name, want := range map[string]string{"maps": "", "x.ZIP": "", "x.zip.bak": "names *.bak", "Draft.zip": "names draft*", "x.tif": "allow: in rules/ does not name it"} {
		if got := b.Waits(Candidate{Path: "/nothing/" + name, Name: name, Collection: "c"}); !strings.Contains(got, want) || (got == "") != (want == "") {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	o, err := b.Recognise(t.Context(), Candidate{Path: tree(t, "maps", map[string]string{"a.tif": "", "thumbs.db": "", "d/x.tmp": "", "__MACOSX/a.tif/b": ""}), Name: "maps"}, Options{})
	if err != nil || o.Rule != "a/r" {
		t.Errorf("%+v, %v", o, err)
	}
	white := parsed(t, "name: w\nlists: {inside: {allow: ['*.tif', 'docs/*']}}\nrules: [{name: r, match: {count: [{name: '**/*', min: 2, max: 2}]}}]\n")
	if got := ask(t, tree(t, "maps", map[string]string{"a.tif": "", "b.jpg": "", "docs/x": ""}), white).said("w/r"); got != "yes: holds 2 of **/*" {
		t.Error(got)
	}
}

// A Book may be asked by many at once.
func TestManyAtOnce(t *testing.T) {
	b := NewBook(shipped(t))
	drops := []string{tree(t, gf1, scene("", gf1)), zipped(t, "x.zip", scene("", gf1)), tarred(t, "y.tar.gz", map[string]string{"a": "1"}), file(t, "a.pdf", "%PDF-1.4\n")}
	var wg sync.WaitGroup
	for i := range 40 {
		wg.Go(func() {
			path := drops[i%len(drops)]
			o, err := b.Recognise(t.Context(), Candidate{Path: path, Name: filepath.Base(path), Collection: "c"}, Options{})
			want := []string{"satellites/gf1-pms", "satellites/one-inside", "default/any", "documents/pdf"}[i%len(drops)]
			if err != nil || o.Rule != want {
				t.Errorf("%s: %+v, %v", path, o, err)
			}
		})
	}
	wg.Wait()
	if !slices.IsSortedFunc(b.rules, func(x, y *Rule) int { return 0 }) {
		t.Error("the book changed")
	}
}
