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
			Info:     []Field{{"External-Identifier", "x"}, {"Payload-Oxum", "1.1"}, {"Contact-Name", "A"}, {"Contact-Name", "B"}, {"External-Description", long}},
			TagFiles: []TagFile{{Path: "received/bag-info.txt", Data: []byte("old\n")}},
		})
		if err != nil {
			t.Fatal(err)
		}
		if c.Files != 7 || !reflect.DeepEqual(c.EmptyFolders, []string{"empty"}) {
			t.Errorf("%+v", c)
		}
		r := expectBag(t, dest, true, true, "")
		want := []Field{{"External-Identifier", "x"}, {"Contact-Name", "A"}, {"Contact-Name", "B"},
			{"External-Description", strings.TrimSpace(long)}, {"Bagging-Date", "2026-11-20"}, {"Payload-Oxum", "10.7"},
			{"Bag-Size", "10 bytes"}, {"Bag-Software-Agent", "bagpipe test"}}
		if !reflect.DeepEqual(r.Info, want) {
			t.Errorf("info %q", r.Info)
		}
		info, err := os.ReadFile(filepath.Join(dest, "bag-info.txt"))
		if err != nil {
			t.Fatal(err)
		}
		for l := range strings.Lines(string(info)) {
			if len(l) > infoWidth+1 {
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
		rule  Rule
	}{
		{"a name that is not UTF-8", CreateOptions{Payload: payloadFolder(t, bag{"a": "x", "caf\xe9": "y"})}, RuleNotUTF8},
		{"a link", CreateOptions{Payload: link}, RuleSymlink},
		{"a tag file in data/", CreateOptions{Payload: payloadFolder(t, bag{"a": "x"}), TagFiles: []TagFile{{Path: "data/x"}}}, RuleReserved},
		{"a tag file that is a manifest", CreateOptions{Payload: payloadFolder(t, bag{"a": "x"}), TagFiles: []TagFile{{Path: "manifest-md5.txt"}}}, RuleReserved},
		{"a tag file outside", CreateOptions{Payload: payloadFolder(t, bag{"a": "x"}), TagFiles: []TagFile{{Path: "../x"}}}, RuleParent},
	} {
		t.Run(c.about, func(t *testing.T) {
			c.o.Dest = filepath.Join(t.TempDir(), "made")
			_, err := Create(t.Context(), c.o)
			var e *Error
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
	known := func(sum string) func(string) *Sums {
		return func(p string) *Sums {
			if p != "b" {
				return nil
			}
			var s Sums
			s.Set(SHA256, []byte(sum))
			return &s
		}
	}
	dest := filepath.Join(t.TempDir(), "made")
	_, err := Create(t.Context(), CreateOptions{Payload: payload, Dest: dest, Known: known("wrong"), Algorithms: []Algorithm{SHA512}})
	wantRule(t, err, RuleFixity, "b")
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

func TestHashWideEqualsPlain(t *testing.T) {
	big := strings.Repeat("0123456789abcdef", (largeFile+12345)/16)
	dir := payloadFolder(t, bag{"big": big, "small": "x"})
	tree, err := Scan(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, as := range [][]Algorithm{{SHA512}, {SHA256, SHA512}, {MD5, SHA1, SHA224, SHA256, SHA384, SHA512}} {
		err := Hash(t.Context(), tree, as, HashOptions{}, func(h Hashed) error {
			data := map[string]string{"big": big, "small": "x"}[tree.Files[h.Index].Path]
			for _, a := range as {
				w := algorithms[a.index()].new()
				w.Write([]byte(data))
				if !bytes.Equal(w.Sum(nil), h.Sums.Of(a)) {
					t.Errorf("%s of %s is wrong", a, tree.Files[h.Index].Path)
				}
			}
			if string(h.Head) != data[:min(len(data), HeadBytes)] || h.Size != int64(len(data)) {
				t.Errorf("head or size of %s is wrong", tree.Files[h.Index].Path)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestFieldsRoundTrip(t *testing.T) {
	for _, value := range []string{"", "x", strings.Repeat("w ", 200) + "w", "a  b" + strings.Repeat("  c", 60), strings.Repeat("n", 300),
		strings.Repeat("ü", 60) + " " + strings.Repeat("ß", 60)} {
		var b strings.Builder
		if err := writeInfo(&b, []Field{{"Label", value}}); err != nil {
			t.Fatal(err)
		}
		got, err := ReadInfo(strings.NewReader(b.String()))
		if err != nil || len(got) != 1 || got[0].Value != value {
			t.Errorf("%q became %q, %v", value, got, err)
		}
	}
}
