package bags

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"bagpipe/bags/files"
	"bagpipe/bags/tagfile"
)

var bagDate = time.Date(2026, 11, 20, 23, 0, 0, 0, time.UTC)

func payloadFolder(t testing.TB, files bag) string {
	t.Helper()
	return files.write(t)
}

func TestCreateIsValidAndDeterministic(t *testing.T) {
	payload := payloadFolder(t, bag{
		"a.txt": "one", "d/ü.txt": "two", "100%.txt": "3", "line\nend": "4", "ret\rurn": "5", "file%0A1.txt": "6", "empty/": "",
		"zero": "",
	})
	long := strings.Repeat("a long description  of many words ", 8)
	var before string
	for _, link := range []bool{false, true} {
		dest := filepath.Join(t.TempDir(), "made")
		c, err := Create(t.Context(), CreateOptions{
			Payload: payload, Dest: dest, Link: link, Date: bagDate, Agent: "bagpipe test",
			Info:     []tagfile.Field{{Label: "External-Identifier", Value: "x"}, {Label: "Payload-Oxum", Value: "1.1"}, {Label: "Contact-Name", Value: "A"}, {Label: "Contact-Name", Value: "B"}, {Label: "External-Description", Value: long}},
			TagFiles: []TagFile{{Path: "received/bag-info.txt", Data: []byte("old\n")}},
		})
		if err != nil {
			t.Fatal(err)
		}
		if c.Files != 7 || !reflect.DeepEqual(c.EmptyFolders, []string{"empty"}) {
			t.Errorf("%+v", c)
		}
		r := expectBag(t, dest, true, true, "")
		want := []tagfile.Field{{Label: "External-Identifier", Value: "x"}, {Label: "Contact-Name", Value: "A"}, {Label: "Contact-Name", Value: "B"},
			{Label: "External-Description", Value: strings.TrimSpace(long)}, {Label: "Bagging-Date", Value: "2026-11-20"}, {Label: "Payload-Oxum", Value: "10.7"},
			{Label: "Bag-Size", Value: "10 bytes"}, {Label: "Bag-Software-Agent", Value: "bagpipe test"}}
		if !reflect.DeepEqual(r.Info, want) {
			t.Errorf("info %q", r.Info)
		}
		info, err := os.ReadFile(filepath.Join(dest, "bag-info.txt"))
		if err != nil {
			t.Fatal(err)
		}
		for l := range strings.Lines(string(info)) {
			if len(l) > 79+1 {
				t.Errorf("line of %d: %q", len(l), l)
			}
		}
		var all bytes.Buffer
		for _, f := range []string{"bagit.txt", "bag-info.txt", "manifest-sha256.txt", "manifest-sha512.txt", "tagmanifest-sha256.txt", "tagmanifest-sha512.txt"} {
			b, err := os.ReadFile(filepath.Join(dest, f))
			if err != nil {
				t.Fatal(err)
			}
			all.Write(b)
		}
		if before != "" && before != all.String() {
			t.Error("two bags of one payload differ")
		}
		before = all.String()
		a, err := os.Stat(filepath.Join(dest, "data/a.txt"))
		if err != nil {
			t.Fatal(err)
		}
		b, err := os.Stat(filepath.Join(payload, "a.txt"))
		if err != nil || os.SameFile(a, b) != link || !a.ModTime().Equal(b.ModTime()) {
			t.Errorf("linked %v, want %v (%v)", os.SameFile(a, b), link, err)
		}
	}
}

func TestCreateRefusesBeforeItWrites(t *testing.T) {
	link := payloadFolder(t, bag{"a": "x"})
	if err := os.Symlink("a", filepath.Join(link, "l")); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		about string
		o     CreateOptions
		rule  files.Rule
	}{
		{"a name that is not UTF-8", CreateOptions{Payload: payloadFolder(t, bag{"a": "x", "caf\xe9": "y"})}, files.RuleNotUTF8},
		{"a link", CreateOptions{Payload: link}, files.RuleSymlink},
		{"a tag file in data/", CreateOptions{Payload: payloadFolder(t, bag{"a": "x"}), TagFiles: []TagFile{{Path: "data/x"}}}, files.RuleReserved},
		{"a tag file that is a manifest", CreateOptions{Payload: payloadFolder(t, bag{"a": "x"}), TagFiles: []TagFile{{Path: "manifest-md5.txt"}}}, files.RuleReserved},
		{"a tag file outside", CreateOptions{Payload: payloadFolder(t, bag{"a": "x"}), TagFiles: []TagFile{{Path: "../x"}}}, files.RuleParent},
	} {
		t.Run(c.about, func(t *testing.T) {
			c.o.Dest = filepath.Join(t.TempDir(), "made")
			_, err := Create(t.Context(), c.o)
			var e *files.Error
			if !errors.As(err, &e) || e.Rule != c.rule {
				t.Errorf("error %v, want %s", err, c.rule)
			}
			expectNothing(t, filepath.Dir(c.o.Dest))
		})
	}
}

func expectNothing(t *testing.T, dir string) {
	t.Helper()
	names, err := os.ReadDir(dir)
	if err != nil || len(names) > 0 {
		t.Errorf("left behind: %v, %v", names, err)
	}
}

func TestCreateComparesWithWhatIsKnown(t *testing.T) {
	payload := payloadFolder(t, bag{"a": "one", "b": "two"})
	known := func(sum string) func(string) *files.Sums {
		return func(p string) *files.Sums {
			if p != "b" {
				return nil
			}
			var s files.Sums
			s.Set(files.SHA256, []byte(sum))
			return &s
		}
	}
	dest := filepath.Join(t.TempDir(), "made")
	_, err := Create(t.Context(), CreateOptions{Payload: payload, Dest: dest, Known: known("wrong"), Algorithms: []files.Algorithm{files.SHA512}})
	wantRule(t, err, files.RuleFixity, "b")
	expectNothing(t, filepath.Dir(dest))
}

func TestCreateDoesNotReplace(t *testing.T) {
	payload := payloadFolder(t, bag{"a": "one"})
	dest := t.TempDir()
	if _, err := Create(t.Context(), CreateOptions{Payload: payload, Dest: dest}); err == nil {
		t.Error("an existing folder was replaced")
	}
	expectNothing(t, dest)
}

// The reference tools for check sums agree with the manifests.
func TestSha512sumReadsOurManifests(t *testing.T) {
	tool, err := exec.LookPath("sha512sum")
	if err != nil {
		t.Skip("sha512sum is not here")
	}
	dest := filepath.Join(t.TempDir(), "made")
	if _, err := Create(t.Context(), CreateOptions{Payload: payloadFolder(t, bag{"a": "one", "d/ü b": "two"}), Dest: dest}); err != nil {
		t.Fatal(err)
	}
	for _, m := range []string{"manifest-sha512.txt", "tagmanifest-sha512.txt"} {
		cmd := exec.CommandContext(t.Context(), tool, "--check", "--strict", "--quiet", m)
		cmd.Dir = dest
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", m, err, out)
		}
	}
}
