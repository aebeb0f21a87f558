package archive

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"bagpipe/bags/files"
)

func TestNested(t *testing.T) {
	inner := gz(t, tarOf(t, file("deep.txt", "deep")))
	middle := tarOf(t, file("inner.tgz", string(inner)), file("mid.txt", "mid"))
	parts := rar4Parts("joined", false, "one ", "two ", "three")
	outer := tarOf(t, file("a/middle.tar", string(middle)), file("a/plain.txt", "plain"), file("letter.docx", string(zipOf(t, "word/document.xml"))),
		file("r/v.r00", string(parts[1])), file("r/v.r01", string(parts[2])), file("r/v.rar", string(parts[0])))
	for _, c := range []struct {
		depth int
		files map[string]string
		rest  int // warnings
	}{
		{1, map[string]string{"a/middle.tar/mid.txt": "mid", "a/middle.tar/inner.tgz": string(inner), "a/plain.txt": "plain", "r/v.rar/joined": "one two three"}, 1},
		{2, map[string]string{"a/middle.tar/mid.txt": "mid", "a/middle.tar/inner.tgz/deep.txt": "deep", "a/plain.txt": "plain"}, 0},
		{9, map[string]string{"a/middle.tar/inner.tgz/deep.txt": "deep"}, 0},
	} {
		dir, x, err := extractFile(t, put(t, "outer.tar", outer), ExtractOptions{Nested: c.depth})
		if err != nil || len(x.Warnings) != c.rest {
			t.Fatalf("%+v, %v", x, err)
		}
		tree, err := files.Scan(t.Context(), dir)
		if err != nil || int64(len(tree.Files)) != x.Files || int64(len(tree.Folders)) != x.Folders || tree.Bytes() != x.Bytes {
			t.Errorf("depth %d: %d files, %d folders, %d bytes, reported %+v; %v", c.depth, len(tree.Files), len(tree.Folders), tree.Bytes(), x, err)
		}
		for p, want := range c.files {
			if got, err := os.ReadFile(filepath.Join(dir, p)); err != nil || string(got) != want {
				t.Errorf("depth %d: %s: %q, %v", c.depth, p, got, err)
			}
		}
		if info, err := os.Stat(filepath.Join(dir, "letter.docx")); err != nil || info.IsDir() {
			t.Errorf("a document was unpacked: %v", err)
		}
	}
}

func TestNestedFailsAsAWhole(t *testing.T) {
	bad := tarOf(t, file("../x", "x"))
	_, _, err := extractFile(t, put(t, "outer.tar", tarOf(t, file("a/b.tar", string(bad)))), ExtractOptions{Nested: 1})
	var e *files.Error
	if !errors.As(err, &e) || e.Rule != files.RuleParent || e.Archive != "outer.tar/a/b.tar" || e.Member != "../x" {
		t.Errorf("%v", err)
	}
}

// The limits are the outermost archive's.
func TestNestedBombs(t *testing.T) {
	{
		inner := zst(t, tarOf(t, file("zeros", strings.Repeat("\x00", 4<<20))))
		data := tarOf(t, file("1.tzst", string(inner)), file("2.tzst", string(inner)), file("3.tzst", string(inner)))
		o := ExtractOptions{Nested: 3, Limits: Limits{ratioFloor: 1 << 20, Ratio: 400}}
		_, _, err := extractFile(t, put(t, "outer.tar", data), o)
		var e *files.Error
		if !errors.As(err, &e) || e.Rule != files.RuleRatio {
			t.Fatalf("ratio: %v", err)
		}
		o.Limits = Limits{Files: 4}
		if _, _, err = extractFile(t, put(t, "outer.tar", data), o); !errors.As(err, &e) || e.Rule != files.RuleFiles {
			t.Fatalf("files: %v", err)
		}
		o.Limits = Limits{Bytes: 9 << 20}
		if _, _, err = extractFile(t, put(t, "outer.tar", data), o); !errors.As(err, &e) || e.Rule != files.RuleBytes {
			t.Fatalf("bytes: %v", err)
		}
	}
}

func TestExtractNestedInAFolder(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "x.zip"), zipOf(t, "a", "b/c"), 0o644); err != nil {
		t.Fatal(err)
	}
	x, err := ExtractNested(t.Context(), dir, ExtractOptions{Nested: 1})
	if err != nil || x.Files != 2 || x.Folders != 2 || x.Nested != 1 {
		t.Errorf("%+v, %v", x, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "x.zip/b/c")); err != nil {
		t.Error(err)
	}
}

// An archive that holds itself has no innermost one; down to where a person looks it is
// a long chain, and what ends that chain is the depth alone.
func TestNestedWithoutAnEnd(t *testing.T) {
	const deep, asked = 40, 7
	data := []byte("the core")
	name := "core.txt"
	for range deep {
		data, name = gz(t, tarOf(t, file(name, string(data)))), "r.tgz"
	}
	dir, x, err := extractFile(t, put(t, "r.tgz", data), ExtractOptions{Nested: asked})
	if err != nil || x.Nested != asked || x.Files != 1 || len(x.Warnings) != 1 || !strings.Contains(x.Warnings[0], "deeper than 7 levels") {
		t.Fatalf("%+v, %v", x, err)
	}
	if info, err := os.Stat(filepath.Join(dir, strings.Repeat("r.tgz/", asked)+"r.tgz")); err != nil || !info.Mode().IsRegular() {
		t.Errorf("%v, %v", info, err)
	}
	_, _, err = extractFile(t, put(t, "r.tgz", data), ExtractOptions{Nested: deep, Limits: Limits{Depth: 9}})
	wantRuleOnly(t, "folders", err, files.RuleDepth)
}
