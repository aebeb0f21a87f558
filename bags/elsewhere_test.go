package bags

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"bagpipe/bags/files"
	"bagpipe/bags/finding"
)

// What is known to go wrong in other tools, one test each.

func TestCorrectPercentEncodingIsAccepted(t *testing.T) {
	b := goodBag()
	b["data/100%.txt"] = "x"
	delete(b, "bag-info.txt")
	b.seal()
	if !strings.Contains(b["manifest-sha512.txt"], "data/100%25.txt") {
		t.Fatal("the manifest does not encode %")
	}
	b.sealTags()
	r := expectBag(t, b.write(t), true, true, "")
	if len(r.Findings) > 0 {
		t.Errorf("findings %+v", r.Findings)
	}
}

func TestBagOfAnEncodedLookingNameIsReadByItsMaker(t *testing.T) {
	files := bag{"file%0A1.txt": "one", "file\n1.txt": "two", "%25": "three", "%": "four", "a\r\nb": "five"}
	for _, inPlace := range []bool{false, true} {
		dir := payloadFolder(t, files)
		if inPlace {
			mustCreateInPlace(t, dir)
		} else {
			dest := filepath.Join(t.TempDir(), "made")
			if _, err := Create(t.Context(), CreateOptions{Payload: dir, Dest: dest}); err != nil {
				t.Fatal(err)
			}
			dir = dest
		}
		expectBag(t, dir, true, true, "")
		if got := filesOf(t, filepath.Join(dir, "data")); !maps.Equal(got, files) {
			t.Errorf("payload %q", got)
		}
	}
}

func mustCreateInPlace(t *testing.T, dir string) Created {
	t.Helper()
	c, err := CreateInPlace(t.Context(), CreateOptions{Payload: dir, Date: bagDate})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestLinkedFolderWithUnlistedContentIsInvalid(t *testing.T) {
	dir := goodBag().write(t)
	outside := payloadFolder(t, bag{"unlisted.txt": "x"})
	if err := os.Symlink(outside, filepath.Join(dir, "data", "linked")); err != nil {
		t.Fatal(err)
	}
	expectBag(t, dir, false, false, finding.Link)
}

func TestPayloadManifestThatListsOutsideDataIsInvalid(t *testing.T) {
	for _, p := range []string{"notes/tag.txt", "../x", "/etc/passwd", "data/../notes/tag.txt", "datax/y", `data\a.txt`, "~root/x"} {
		b := goodBag()
		b["manifest-sha512.txt"] += hex512("a tag file") + "  " + p + "\n"
		b.sealTags()
		r, err := Validate(t.Context(), b.write(t), ValidateOptions{})
		if err != nil || r.Valid || !hasFinding(r, finding.OutsidePayload, finding.Error) && !hasFinding(r, finding.UnsafePath, finding.Error) {
			t.Errorf("%s: %+v, %v", p, r.Findings, err)
		}
	}
}

func TestFetchOfATagFileOrAnUnlistedFileIsInvalid(t *testing.T) {
	for line, code := range map[string]finding.Code{
		"https://example.org/a - notes/tag.txt\n":              finding.FetchPath,
		"https://example.org/a - bag-info.txt\n":               finding.FetchPath,
		"https://example.org/a 3 data/nowhere.txt\n":           finding.FetchUnlisted,
		"https://example.org/a 3 ../data/a.txt\n":              finding.UnsafePath,
		"https://example.org/a 3 data/../../a.txt\n":           finding.UnsafePath,
		"https://example.org/a 3 /data/a.txt\n":                finding.UnsafePath,
		"https://example.org/a 77 data/a.txt\n":                finding.FetchPath,
		"https://example.org/a data/a.txt\n":                   finding.FetchSyntax,
		"https://example.org/a -3 data/a.txt\n":                finding.FetchSyntax,
		"//example.org/a 3 data/a.txt\n":                       finding.FetchSyntax,
		"https://example.org/a b 3 data/a.txt\n":               finding.FetchSyntax,
		"https://example.org/a\t3\tdata/no%where\n":            finding.Percent,
		"https://x/a 3 data/a.txt\nhttps://x/b 3 data/a.txt\n": finding.Duplicate,
	} {
		b := goodBag()
		b["fetch.txt"] = line
		b.sealTags()
		r, err := Validate(t.Context(), b.write(t), ValidateOptions{})
		if err != nil || r.Valid || !hasFinding(r, code, finding.Error) {
			t.Errorf("%q: want %s, got %+v, %v", line, code, r.Findings, err)
		}
	}
}

func TestFileInOnlyOneManifestIsInvalidSince10(t *testing.T) {
	for version, valid := range map[string]bool{"1.0": false, "0.97": true} {
		b := goodBag()
		b["bagit.txt"] = strings.Replace(b["bagit.txt"], "1.0", version, 1)
		b["manifest-sha256.txt"] = hex256("one") + "  data/a.txt\n"
		b.sealTags()
		r, err := Validate(t.Context(), b.write(t), ValidateOptions{})
		if err != nil || r.Valid != valid {
			t.Errorf("%s: %+v, %v", version, r, err)
		}
	}
}

func TestListedFIFODoesNotHang(t *testing.T) {
	for _, p := range []string{"data/a.txt", "notes/tag.txt", "bag-info.txt", "bagit.txt", "manifest-sha512.txt", "fetch.txt"} {
		dir := goodBag().write(t)
		at := filepath.Join(dir, p)
		if err := os.Remove(at); err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
		if err := syscall.Mkfifo(at, 0o644); err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		go func() {
			r, err := Validate(t.Context(), dir, ValidateOptions{})
			if err == nil && (r.Valid || !hasFinding(r, finding.Special, finding.Error)) {
				err = fmt.Errorf("%+v", r.Findings)
			}
			done <- err
		}()
		select {
		case err := <-done:
			if err != nil {
				t.Errorf("%s: %v", p, err)
			}
		case <-time.After(20 * time.Second):
			t.Fatalf("%s: the reader hangs", p)
		}
	}
}

func TestNonUTF8NameIsRefusedBeforeAnythingMoves(t *testing.T) {
	inside := bag{"a.txt": "one", "d/caf\xe9.txt": "two", "z": "three"}
	dir := payloadFolder(t, inside)
	_, err := CreateInPlace(t.Context(), CreateOptions{Payload: dir, Date: bagDate})
	wantRule(t, err, files.RuleNotUTF8, "d/caf\xe9.txt")
	if got := filesOf(t, dir); !maps.Equal(got, inside) {
		t.Errorf("the folder was changed: %q", got)
	}
}

func TestBagIsNotBaggedAgainWithoutAWord(t *testing.T) {
	dir := goodBag().write(t)
	before := filesOf(t, dir)
	dest := filepath.Join(t.TempDir(), "made")
	_, err := Create(t.Context(), CreateOptions{Payload: dir, Dest: dest})
	wantRule(t, err, files.RuleBag, "")
	expectNothing(t, filepath.Dir(dest))
	_, err = CreateInPlace(t.Context(), CreateOptions{Payload: dir})
	wantRule(t, err, files.RuleBag, "")
	_, err = CreateInPlace(t.Context(), CreateOptions{Payload: filepath.Dir(dir)})
	wantRule(t, err, files.RuleBag, "")
	if got := filesOf(t, dir); !maps.Equal(got, before) {
		t.Errorf("the bag was changed: %q", got)
	}
	if _, err := CreateInPlace(t.Context(), CreateOptions{Payload: dir, Nest: true}); err != nil {
		t.Fatal(err)
	}
	r := expectBag(t, dir, true, true, "")
	if !hasFinding(r, finding.BagInBag, finding.Warning) {
		t.Errorf("findings %+v", r.Findings)
	}
	expectBag(t, filepath.Join(dir, "data"), true, true, "")
}

func TestUpperCaseDigestsAreAccepted(t *testing.T) {
	b := goodBag()
	for _, m := range []string{"manifest-sha512.txt", "tagmanifest-sha512.txt"} {
		var s strings.Builder
		for l := range strings.Lines(b[m]) {
			sum, p, _ := strings.Cut(l, "  ")
			s.WriteString(strings.ToUpper(sum) + "  " + p)
		}
		b[m] = s.String()
		if m == "manifest-sha512.txt" {
			b.sealTags()
		}
	}
	r := expectBag(t, b.write(t), true, true, "")
	if len(r.Findings) > 0 {
		t.Errorf("findings %+v", r.Findings)
	}
}

func TestUnknownVersionsAreRefused(t *testing.T) {
	for _, v := range []string{"0.92", "0.98", "0.99", "1.1", "2.0", "10.0", "01.0", "1.00"} {
		b := goodBag()
		b["bagit.txt"] = "BagIt-Version: " + v + "\nTag-File-Character-Encoding: UTF-8\n"
		b.sealTags()
		expectBag(t, b.write(t), false, false, finding.Version)
	}
}
