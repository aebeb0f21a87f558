package steps

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"bagpipe/layout"
)

// program runs a shell script as a step's command.
func (it *item) program(script string) (*Call, Result, error) {
	it.t.Helper()
	c := it.call()
	r, err := Command([]string{"sh", "-c", script}).Run(it.t.Context(), c)
	return c, r, err
}

func names(children []Child) string {
	var out []string
	for _, c := range children {
		out = append(out, fmt.Sprintf("%s=%s", layout.EncodePath(c.Name), layout.EncodePath(string(c.From))))
	}
	return strings.Join(out, " ")
}

func TestCommandChildren(t *testing.T) {
	for about, c := range map[string]struct {
		script string
		want   string // children
		wrong  string // or the error
	}{
		"none":                {script: `true`},
		"an empty folder":     {script: `mkdir children`},
		"files and folders":   {script: `mkdir -p children/d/e; echo x >children/d/e/f; echo y >children/a`, want: "a=children/a d=children/d"},
		"names by case":       {script: `mkdir children; echo x >children/A; echo y >children/a`, want: "A=children/A a=children/a"},
		"odd names":           {script: `mkdir children; touch 'children/ ' 'children/-rf' children/..a "children/$(printf 'n\nl')" 'children/%41'`, want: "%20= -rf="},
		"no UTF-8":            {script: `mkdir -p children; d="children/$(printf 'd\377')"; mkdir "$d"; touch "$d/$(printf 'f\376')"`, want: "d%FF=children/d%FF"},
		"said of one":         {script: `mkdir children; touch children/a children/b; echo '{"children": {"b": {"label": "B"}}}' >result.json`, want: "a=children/a b=children/b"},
		"a link":              {script: `mkdir children; ln -s /etc/passwd children/p`, wrong: "children/p is a symbolic link"},
		"a link below":        {script: `mkdir -p children/d; ln -s . children/d/l`, wrong: "children/d/l is a symbolic link"},
		"a FIFO":              {script: `mkdir children; mkfifo children/f`, wrong: "children/f is a special file"},
		"the folder a link":   {script: `ln -s /etc children`, wrong: "children: expected a folder"},
		"the folder a file":   {script: `echo x >children`, wrong: "children: expected a folder"},
		"said of what is not": {script: `mkdir children; echo '{"children": {"a": {}}}' >result.json`, wrong: `"a" is not in the folder children`},
		"said of one above":   {script: `mkdir children; touch a; echo '{"children": {"../a": {}}}' >result.json`, wrong: `"../a" is not in the folder children`},
		"a bad collection":    {script: `mkdir children; touch children/a; echo '{"children": {"a": {"collection": "../x"}}}' >result.json`, wrong: "children: a: collection: name"},
		"a bad label":         {script: `mkdir children; touch children/a; printf %s '{"children": {"a": {"label": "x\ny"}}}' >result.json`, wrong: "want one line"},
		"two results":         {script: `mkdir children; touch children/a; echo '{"message": "ok"} and {' >result.json`, wrong: "something follows the result"},
		"an unknown key":      {script: `mkdir children; touch children/a; echo '{"children": {"a": {"lable": "x"}}}' >result.json`, wrong: "unknown field"},
		"a damaged result":    {script: `mkdir children; touch children/a; echo '{"children": [' >result.json`, wrong: "result.json"},
		"skipped":             {script: `mkdir children; touch children/a; exit 77`},
		"skipped by result":   {script: `mkdir children; touch children/a; echo '{"status": "skipped"}' >result.json`},
	} {
		t.Run(about, func(t *testing.T) {
			it := newItem(t, "f", map[string]string{"": "x"})
			_, r, err := it.program(c.script)
			if c.wrong != "" {
				wantFailure(t, err, System, c.wrong)
				return
			}
			must(t, err)
			if about == "odd names" {
				if len(r.Children) != 5 {
					t.Errorf("%s", names(r.Children))
				}
				return
			}
			if got := names(r.Children); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}

func TestWhatIsSaidOfAChild(t *testing.T) {
	it := newItem(t, "f", map[string]string{"": "x"})
	_, r, err := it.program(`mkdir children; touch "children/$(printf 'a\377')"
		echo '{"children": {"a%FF": {"label": "Ä", "collection": "maps", "workflow": "w", "lane": "urgent", "metadata": {"n": 1}}}}' >result.json`)
	must(t, err)
	got := r.Children[0]
	if got.Name != "a\xff" || got.Label != "Ä" || got.Collection != "maps" || got.Workflow != "w" || got.Lane != "urgent" || fmt.Sprint(got.Metadata["n"]) != "1" {
		t.Errorf("%+v", got)
	}
}

func TestSplit(t *testing.T) {
	zip := zipFile(t, map[string]string{"x": "X"})
	scans := map[string]string{"1.tif": "1", "2.tif": "2", "notes.txt": "n", "d/3.tif": "3", "d/e/4.TIF": "4", "in.zip": zip}
	bag := within("sack/", aBag(t))
	wrapped := within("box/", scans)
	sets := map[string]string{"a.tif": "1", "a.tfw": "2", "a-x/y": "3", "b.zip": zip, "c/d": "4", "7": "n"}
	bySet, bySet2 := map[string]any{"each": "set", "by": "^([a-z])"}, map[string]any{"each": "set", "by": "^(q)"}
	for about, c := range map[string]struct {
		files map[string]string
		with  map[string]any
		want  string // labels
	}{
		"each entry":             {scans, nil, "1.tif 2.tif d in.zip notes.txt"},
		"below the only folder":  {wrapped, nil, "1.tif 2.tif d in.zip notes.txt"},
		"a bag is no wrapper":    {bag, nil, "sack"},
		"each file":              {scans, map[string]any{"each": "file"}, "1.tif 2.tif d/3.tif d/e/4.TIF in.zip notes.txt"},
		"each file by name":      {scans, map[string]any{"each": "file", "match": "*.tif"}, "1.tif 2.tif d/3.tif"},
		"each file by path":      {scans, map[string]any{"each": "file", "match": "d/*.tif"}, "d/3.tif"},
		"several patterns":       {wrapped, map[string]any{"match": []any{"*.tif", "d/*"}}, "1.tif 2.tif d/3.tif d/e"},
		"one within another":     {scans, map[string]any{"match": []any{"d", "d/*"}}, "d"},
		"archives":               {wrapped, map[string]any{"kind": "archive"}, "in.zip"},
		"folders":                {scans, map[string]any{"kind": "folder"}, "d"},
		"bags":                   {map[string]string{"a": "x", "sack/bagit.txt": "b"}, map[string]any{"kind": "bag"}, "sack"},
		"folders that are bags":  {map[string]string{"a": "x", "sack/bagit.txt": "b"}, map[string]any{"kind": "folder"}, ""},
		"files that are archive": {scans, map[string]any{"kind": "file", "match": "*.zip"}, ""},
		"sets":                   {within("top/", sets), bySet, "a b.zip c"},
		"no sets":                {scans, bySet2, ""},
		"nothing":                {scans, map[string]any{"match": "*.pdf"}, ""},
	} {
		t.Run(about, func(t *testing.T) {
			it := newItem(t, "drop", c.files)
			it.with = c.with
			call := it.call()
			r, err := split(t.Context(), call)
			must(t, err)
			var labels []string
			for _, child := range r.Children {
				labels = append(labels, child.Label)
				if _, err := os.Lstat(filepath.Join(call.Scratch, string(child.From))); err != nil {
					t.Error(err)
				}
			}
			slices.Sort(labels)
			if got := strings.Join(labels, " "); got != c.want {
				t.Errorf("%s, want %s (%s)", got, c.want, r.Message)
			}
			if (c.want == "") != (r.Status == Skipped) {
				t.Errorf("%q: %s", r.Status, r.Message)
			}
			// What is no child's is not there.
			files := 0
			must(t, filepath.Walk(call.Scratch, func(_ string, info os.FileInfo, err error) error {
				if err == nil && info.Mode().IsRegular() {
					files++
				}
				return err
			}))
			if c.want == "" && files > 0 {
				t.Errorf("%d files were left in scratch", files)
			}
		})
	}
}

func TestSplitGathersSets(t *testing.T) {
	it := newItem(t, "drop", map[string]string{"a.tif": "1", "a.tfw": "2", "a/in": "3", "b.tif": "4", "notes": "5"})
	it.with = map[string]any{"each": "set", "by": "^([ab])"}
	c := it.call()
	r, err := split(t.Context(), c)
	must(t, err)
	if got := names(r.Children); got != "a=children/a b.tif=children/b.tif" {
		t.Fatalf("%s", got)
	}
	for _, p := range []string{"a/a.tif", "a/a.tfw", "a/a/in", "b.tif"} {
		if _, err := os.Lstat(filepath.Join(c.Scratch, layout.ChildrenDir, p)); err != nil {
			t.Error(err)
		}
	}
	if left, err := filepath.Glob(filepath.Join(c.Scratch, layout.ChildrenDir, "*")); err != nil || len(left) != 2 {
		t.Errorf("%v, %v", left, err)
	}
}

// Each object that the rules tell apart is a child: its files below the folder that held
// them, one file as itself; what belongs to none is told.
func TestSplitObjects(t *testing.T) {
	it := newItem(t, "drop", map[string]string{"n/a.tif": "1", "n/a.tfw": "2", "s/a.tif": "3", "s/x/a.tfw": "4", "n/b.zip": "5", "notes": "6"})
	it.with = map[string]any{"each": "object"}
	c := it.call()
	parted := Parted{Left: []string{"notes"}, Objects: []Object{
		{Name: "n/a", Files: []string{"n/a.tfw", "n/a.tif"}}, {Name: "s/a", Files: []string{"s/a.tif", "s/x/a.tfw"}}, {Name: "b", Files: []string{"n/b.zip"}}}}
	c.Objects = func(_ context.Context, dir string) (Parted, error) {
		if dir != c.Content {
			t.Errorf("asked of %s, not %s", dir, c.Content)
		}
		return parted, nil
	}
	r, err := split(t.Context(), c)
	must(t, err)
	if got := names(r.Children); got != "n/a=children/0/a s/a=children/1/a b=children/2/b.zip" {
		t.Fatalf("%s", got)
	}
	if want := "3 objects: 5 files, 5 bytes; belonging to none of them, and left with the drop: 1 file (notes)"; r.Message != want {
		t.Errorf("%s", r.Message)
	}
	for p, want := range map[string]string{"0/a/a.tif": "1", "0/a/a.tfw": "2", "1/a/a.tif": "3", "1/a/x/a.tfw": "4", "2/b.zip": "5"} {
		got, err := os.ReadFile(filepath.Join(c.Scratch, layout.ChildrenDir, p))
		if err != nil || string(got) != want {
			t.Errorf("%s: %q, %v", p, got, err)
		}
	}
	parted = Parted{Why: "because"}
	if r, err = split(t.Context(), it.call()); err == nil || KindOf(err) != System {
		t.Errorf("without rules: %+v, %v", r, err)
	}
	again := it.call()
	again.Objects = c.Objects
	c.Content = again.Content
	if r, err = split(t.Context(), again); err != nil || r.Status != Skipped || r.Message != "not applicable: because" {
		t.Errorf("%+v, %v", r, err)
	}
	again.With = map[string]any{"each": "object", "match": "*"}
	if _, err = split(t.Context(), again); err == nil {
		t.Error("a match was passed over")
	}
}

func TestSplitLinksAndKeepsTheObject(t *testing.T) {
	it := newItem(t, "drop", map[string]string{"a": "A"})
	c := it.call()
	r, err := split(t.Context(), c)
	must(t, err)
	one, err := os.Stat(filepath.Join(c.Content, "a"))
	must(t, err)
	two, err := os.Stat(filepath.Join(c.Scratch, string(r.Children[0].From)))
	must(t, err)
	if !os.SameFile(one, two) {
		t.Error("the child is a copy")
	}
}

func TestSplitRefuses(t *testing.T) {
	for about, with := range map[string]map[string]any{
		"each: want entry, file, set or object": {"each": "folder"},
		"by: goes with each: set":               {"by": "^(a)"},
		"by: want a regular":                    {"each": "set", "by": "^a"},
		"by: each: set needs by:":               {"each": "set"},
		"is no pattern":                         {"match": "[a"},
		"kind: want folder, bag":                {"kind": "zip"},
		"workflow: name":                        {"workflow": "../x"},
		"parameter lane: want text":             {"lane": 1},
	} {
		it := newItem(t, "drop", map[string]string{"a": "A"})
		it.with = with
		_, err := split(t.Context(), it.call())
		wantFailure(t, err, System, about)
	}
	it := newItem(t, "drop", map[string]string{"a": "A"})
	must(t, syscall.Mkfifo(filepath.Join(it.dir, "source/drop/pipe"), 0o600))
	_, err := split(t.Context(), it.call())
	wantFailure(t, err, Content, "pipe")
}
