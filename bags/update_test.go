package bags

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"bagpipe/bags/files"
	"bagpipe/bags/finding"
	"bagpipe/bags/tagfile"
)

func writeFile(t testing.TB, p, data string) {
	t.Helper()
	if err := os.WriteFile(p, []byte(data), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestUpdateTakesWhatWasAdded(t *testing.T) {
	dir := goodBag().write(t)
	writeFile(t, filepath.Join(dir, "data/new%.txt"), "three")
	writeFile(t, filepath.Join(dir, "notes/more.txt"), "x")
	u, err := Update(t.Context(), dir, UpdateOptions{Date: bagDate, Agent: "test"})
	if err != nil || !u.Written || !slices.Equal(u.Added, []string{"data/new%25.txt", "notes/more.txt"}) {
		t.Fatalf("%+v, %v", u, err)
	}
	r := expectBag(t, dir, true, true, "")
	want := []tagfile.Field{{Label: "Source-Organization", Value: "Archive"}, {Label: "Payload-Oxum", Value: "11.3"}, {Label: "Bagging-Date", Value: "2026-11-20"},
		{Label: "Bag-Size", Value: "11 bytes"}, {Label: "Bag-Software-Agent", Value: "test"}}
	if !slices.Equal(r.Info, want) || len(r.Findings) > 0 {
		t.Errorf("info %q, findings %+v", r.Info, r.Findings)
	}
	expectGone(t, filepath.Join(dir, WorkDir))
}

// Before 1.0 a manifest's name could spell its algorithm in any way.
func TestUpdateSpellsAlgorithmsInTheRightWay(t *testing.T) {
	b := bare("0.97", bag{"data/a.txt": "one"})
	b["manifest-SHA512.txt"] = b["manifest-sha512.txt"]
	delete(b, "manifest-sha512.txt")
	b["tagmanifest-SHA-256.txt"] = hex256(b["manifest-SHA512.txt"]) + "  manifest-SHA512.txt\n"
	dir := b.write(t)
	if r := expectBag(t, dir, true, true, ""); !slices.Equal(r.Algorithms, []files.Algorithm{files.SHA512}) {
		t.Errorf("algorithms %q", r.Algorithms)
	}
	if _, err := Update(t.Context(), dir, UpdateOptions{Date: bagDate}); err != nil {
		t.Fatal(err)
	}
	r := expectBag(t, dir, true, true, "")
	if len(r.Findings) > 0 || r.Version != "1.0" {
		t.Errorf("%+v", r)
	}
	for _, gone := range []string{"manifest-SHA512.txt", "tagmanifest-SHA-256.txt"} {
		expectGone(t, filepath.Join(dir, gone))
	}
}

func TestUpdateRefusesDamageAndLoss(t *testing.T) {
	for about, c := range map[string]struct {
		change func(dir string) error
		accept UpdateOptions
	}{
		"changed":     {func(dir string) error { return os.WriteFile(filepath.Join(dir, "data/a.txt"), []byte("ONE"), 0o644) }, UpdateOptions{AcceptChanged: true}},
		"tag changed": {func(dir string) error { return os.WriteFile(filepath.Join(dir, "notes/tag.txt"), []byte("X"), 0o644) }, UpdateOptions{AcceptChanged: true}},
		"removed":     {func(dir string) error { return os.Remove(filepath.Join(dir, "data/a.txt")) }, UpdateOptions{AcceptRemoved: true}},
		"tag removed": {func(dir string) error { return os.Remove(filepath.Join(dir, "notes/tag.txt")) }, UpdateOptions{AcceptRemoved: true}},
	} {
		dir := goodBag().write(t)
		if err := c.change(dir); err != nil {
			t.Fatal(err)
		}
		before := filesOf(t, dir)
		u, err := Update(t.Context(), dir, UpdateOptions{Date: bagDate})
		if !errors.Is(err, ErrNotAccepted) || u.Written || len(u.Changed)+len(u.Removed) != 1 {
			t.Errorf("%s: %+v, %v", about, u, err)
		}
		if got := filesOf(t, dir); !maps.Equal(got, before) {
			t.Errorf("%s: the bag was written", about)
		}
		if _, err := Update(t.Context(), dir, c.accept); err != nil {
			t.Errorf("%s: %v", about, err)
		}
		expectBag(t, dir, true, true, "")
	}
}

// Whatever version and encoding a bag had, it is 1.0 in UTF-8 afterwards.
func TestUpdateMakesOldBagsNew(t *testing.T) {
	b := goodBag()
	b["bagit.txt"] = "BagIt-Version: 0.95\nTag-File-Character-Encoding: ISO-8859-1\n"
	b["package-info.txt"] = "Name : M\xfcller\n"
	delete(b, "bag-info.txt")
	b["data/gr\u00f6\u00dfe"], b["data/100%.txt"], b["data/a%25b"] = "x", "y", "z"
	b["manifest-sha512.txt"] = hex512("one") + " *./data/a.txt\n" + hex512("two") + "  data/d/b.txt\n" + hex512("x") + "  data/gr\xf6\xdfe\n" +
		hex512("y") + "  data/100%.txt\n" + hex512("z") + "  data/a%25b\n"
	delete(b, "tagmanifest-sha512.txt")
	dir := b.write(t)
	expectBag(t, dir, true, true, "")
	u, err := Update(t.Context(), dir, UpdateOptions{Date: bagDate})
	if err != nil || u.From != "0.95" || len(u.Changed)+len(u.Removed) > 0 {
		t.Fatalf("%+v, %v", u, err)
	}
	r := expectBag(t, dir, true, true, "")
	if r.Version != "1.0" || r.Encoding != "UTF-8" || r.Info[0] != (tagfile.Field{Label: "Name", Value: "Müller"}) || len(r.Findings) > 0 {
		t.Errorf("%+v", r)
	}
	expectGone(t, filepath.Join(dir, "package-info.txt"))
}

func TestUpdateKeepsWhatIsToBeFetched(t *testing.T) {
	b := goodBag()
	b["fetch.txt"] = "https://example.org/a 3 data/a.txt\n"
	delete(b, "data/a.txt")
	b.sealTags()
	dir := b.write(t)
	writeFile(t, filepath.Join(dir, "data/new"), "x")
	if _, err := Update(t.Context(), dir, UpdateOptions{Date: bagDate}); err != nil {
		t.Fatal(err)
	}
	expectBag(t, dir, false, false, finding.Unfetched)
	writeFile(t, filepath.Join(dir, "data/a.txt"), "one")
	r, err := Validate(t.Context(), dir, ValidateOptions{})
	if err != nil || hasFinding(r, finding.Mismatch, finding.Error) || hasFinding(r, finding.Missing, finding.Error) {
		t.Errorf("%+v, %v", r.Findings, err)
	}
}

func TestUpdateRefusesWhatCannotBeMended(t *testing.T) {
	for about, change := range map[string]func(b bag){
		"no declaration":    func(b bag) { delete(b, "bagit.txt") },
		"unknown version":   func(b bag) { b["bagit.txt"] = strings.Replace(b["bagit.txt"], "1.0", "3.0", 1) },
		"unknown algorithm": func(b bag) { b["manifest-rot13.txt"] = "aa data/a.txt\n" },
		"not text":          func(b bag) { b["bag-info.txt"] += "Name: M\xfcller\n" },
	} {
		b := goodBag()
		change(b)
		dir := b.write(t)
		if _, err := Update(t.Context(), dir, UpdateOptions{AcceptChanged: true, AcceptRemoved: true}); !errors.Is(err, ErrNotValid) {
			t.Errorf("%s: %v", about, err)
		}
		if got := filesOf(t, dir); !maps.Equal(got, map[string]string(b)) {
			t.Errorf("%s: the bag was written", about)
		}
	}
}

func TestAddManifest(t *testing.T) {
	for _, tags := range []bool{true, false} {
		b := goodBag()
		if !tags {
			delete(b, "tagmanifest-sha512.txt")
		}
		dir := b.write(t)
		for _, a := range []files.Algorithm{files.MD5, files.SHA1, files.SHA224, files.SHA256, files.SHA384} {
			if _, err := AddManifest(t.Context(), dir, a, AmendOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		r := expectBag(t, dir, true, true, "")
		if len(r.Algorithms) != 6 {
			t.Errorf("algorithms %v", r.Algorithms)
		}
		for _, f := range r.Findings {
			if f.Code != finding.WeakAlgorithm {
				t.Errorf("%+v", f)
			}
		}
		if _, err := AddManifest(t.Context(), dir, files.MD5, AmendOptions{}); err == nil {
			t.Error("a manifest was added twice")
		}
	}
}

// A digest is never made of a file that has changed.
func TestAddManifestRefusesWhatIsNotValid(t *testing.T) {
	b := goodBag()
	b["data/a.txt"] = "ONE"
	dir := b.write(t)
	did, err := AddManifest(t.Context(), dir, files.SHA256, AmendOptions{})
	if !errors.Is(err, ErrNotValid) || !hasFinding(did.Report, finding.Mismatch, finding.Error) {
		t.Errorf("%+v, %v", did, err)
	}
	if got := filesOf(t, dir); !maps.Equal(got, map[string]string(b)) {
		t.Error("the bag was written")
	}
}

func TestSetInfo(t *testing.T) {
	b := goodBag()
	b["bag-info.txt"] += "Contact-Name: A\nContact-Name: B\n"
	b.sealTags()
	dir := b.write(t)
	set := func(label, value string) InfoChange {
		return InfoChange{Field: tagfile.Field{Label: label, Value: value}}
	}
	add := set("Contact-Name", "D")
	add.Add = true
	gone := set("source-organization", "")
	gone.Remove = true
	if _, err := SetInfo(t.Context(), dir, []InfoChange{set("contact-name", "C"), add, gone, set("New", strings.Repeat("long value ", 20)+"end")}, AmendOptions{}); err != nil {
		t.Fatal(err)
	}
	r := expectBag(t, dir, true, true, "")
	want := []tagfile.Field{{Label: "Payload-Oxum", Value: "6.2"}, {Label: "contact-name", Value: "C"}, {Label: "Contact-Name", Value: "D"}, {Label: "New", Value: strings.Repeat("long value ", 20) + "end"}}
	if !slices.Equal(r.Info, want) || len(r.Findings) > 0 {
		t.Errorf("info %q, findings %+v", r.Info, r.Findings)
	}
	if _, err := SetInfo(t.Context(), dir, []InfoChange{set("Payload-Oxum", "1.1")}, AmendOptions{}); err == nil {
		t.Error("Payload-Oxum was set by hand")
	}
	writeFile(t, filepath.Join(dir, "bag-info.txt"), "Payload-Oxum: 6.2\nForged: yes\n")
	if _, err := SetInfo(t.Context(), dir, []InfoChange{set("A", "b")}, AmendOptions{}); !errors.Is(err, ErrNotValid) {
		t.Errorf("a changed bag-info.txt was vouched for: %v", err)
	}
}
