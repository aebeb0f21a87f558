package bags

import (
	"crypto/sha256"
	"crypto/sha512"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"bagpipe/bags/finding"
	"bagpipe/bags/tagfile"
)

// bag is a folder's files by path.
type bag map[string]string

// goodBag is a valid 1.0 bag with two payload files and one tag manifest.
func goodBag() bag {
	b := bag{
		"bagit.txt":     "BagIt-Version: 1.0\nTag-File-Character-Encoding: UTF-8\n",
		"bag-info.txt":  "Source-Organization: Archive\nPayload-Oxum: 6.2\n",
		"data/a.txt":    "one",
		"data/d/b.txt":  "two",
		"notes/tag.txt": "a tag file",
	}
	b.seal()
	return b
}

// seal writes the sha512 manifest and the tag manifest anew.
func (b bag) seal() {
	b["manifest-sha512.txt"] = b.manifest("data/")
	b.sealTags()
}

func (b bag) manifest(prefix string) string {
	var s strings.Builder
	for _, p := range slices.Sorted(maps.Keys(b)) {
		if strings.HasPrefix(p, "data/") == (prefix == "data/") && !strings.HasPrefix(p, "tagmanifest-") {
			fmt.Fprintf(&s, "%x  %s\n", sha512.Sum512([]byte(b[p])), tagfile.EncodeManifestPath(p))
		}
	}
	return s.String()
}

func (b bag) sealTags() { b["tagmanifest-sha512.txt"] = b.manifest("") }

// write puts the bag on disk. A path that ends in a slash is a folder.
func (b bag) write(t testing.TB) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "bag")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for p, data := range b {
		to := filepath.Join(dir, p)
		if strings.HasSuffix(p, "/") {
			if err := os.MkdirAll(to, 0o755); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(to, []byte(data), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func hex512(s string) string { return fmt.Sprintf("%x", sha512.Sum512([]byte(s))) }
func hex256(s string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(s))) }

// Every requirement of RFC 8493 that a reader can check, broken one at a time.
// code is the finding wanted; the bag stays valid where it is a warning.
func TestRules(t *testing.T) {
	declare := func(v string) string { return "BagIt-Version: " + v + "\nTag-File-Character-Encoding: UTF-8\n" }
	old := func(b bag) { b["bagit.txt"] = declare("0.97") }
	for _, c := range []struct {
		about   string
		change  func(b bag)
		resealT bool // write the tag manifest anew, so that nothing but the change is wrong
		code    finding.Code
		sev     finding.Severity
	}{
		{"2: no bagit.txt", func(b bag) { delete(b, "bagit.txt") }, true, finding.NoDeclaration, finding.Error},
		{"2.1.1: lines swapped", func(b bag) {
			b["bagit.txt"] = "Tag-File-Character-Encoding: UTF-8\nBagIt-Version: 1.0\n"
		}, true, finding.Declaration, finding.Error},
		{"2.1.1: lines swapped in 0.97", func(b bag) {
			b["bagit.txt"] = "Tag-File-Character-Encoding: UTF-8\nBagIt-Version: 0.97\n"
		}, true, finding.Declaration, finding.Warning},
		{"2.1.1: a third line", func(b bag) { b["bagit.txt"] += "Bag: yes\n" }, true, finding.Declaration, finding.Error},
		{"2.1.1: an empty line", func(b bag) { b["bagit.txt"] += "\n" }, true, finding.Declaration, finding.Error},
		{"2.1.1: no encoding", func(b bag) { b["bagit.txt"] = "BagIt-Version: 1.0\n" }, true, finding.Declaration, finding.Error},
		{"2.1.1: no version", func(b bag) { b["bagit.txt"] = "Tag-File-Character-Encoding: UTF-8\n" }, true, finding.Declaration, finding.Error},
		{"2.1.1: not a version", func(b bag) { b["bagit.txt"] = declare("1") }, true, finding.Declaration, finding.Error},
		{"2.1.1: unknown version", func(b bag) { b["bagit.txt"] = declare("2.0") }, true, finding.Version, finding.Error},
		{"2.1.1: no such version", func(b bag) { b["bagit.txt"] = declare("0.98") }, true, finding.Version, finding.Error},
		{"2.1.1: byte-order mark", func(b bag) { b["bagit.txt"] = "\ufeff" + b["bagit.txt"] }, true, finding.DeclarationBOM, finding.Error},
		{"2.1.1: not UTF-8", func(b bag) { b["bagit.txt"] = "\xff" + b["bagit.txt"] }, true, finding.Declaration, finding.Error},
		{"2.1.1: two spaces", func(b bag) { b["bagit.txt"] = strings.Replace(b["bagit.txt"], ": ", ":  ", 1) }, true, finding.DeclarationSpaces, finding.Error},
		{"2.1.1: unknown encoding", func(b bag) { b["bagit.txt"] = strings.Replace(b["bagit.txt"], "UTF-8", "UTF-9", 1) }, true, finding.Encoding, finding.Error},
		{"2.1.2: no data/", func(b bag) {
			delete(b, "data/a.txt")
			delete(b, "data/d/b.txt")
			b["manifest-sha512.txt"], b["bag-info.txt"] = "", ""
		}, true, finding.NoPayload, finding.Error},
		{"2.1.2: empty payload", func(b bag) {
			delete(b, "data/a.txt")
			delete(b, "data/d/b.txt")
			b["data/"], b["manifest-sha512.txt"], b["bag-info.txt"] = "", "", "Payload-Oxum: 0.0\n"
		}, true, finding.EmptyPayload, finding.Warning},
		{"2.1.2: a bag in a bag", func(b bag) {
			b["data/bagit.txt"], b["data/data/x"], b["bag-info.txt"] = "x", "y", ""
			b.seal()
		}, true, finding.BagInBag, finding.Warning},
		{"2.1.3: no manifest", func(b bag) { delete(b, "manifest-sha512.txt") }, true, finding.NoManifest, finding.Error},
		{"2.1.3: file in no manifest", func(b bag) { b["data/c.txt"], b["bag-info.txt"] = "c", "" }, true, finding.Unlisted, finding.Error},
		{"2.1.3: file in one manifest of two", func(b bag) {
			b["manifest-sha256.txt"] = hex256("one") + "  data/a.txt\n"
		}, true, finding.Unlisted, finding.Error},
		{"2.1.3: file in one manifest of two, 0.97", func(b bag) {
			old(b)
			b["manifest-sha256.txt"] = hex256("one") + "  data/a.txt\n"
		}, true, finding.ManifestsDiffer, finding.Warning},
		{"2.1.3: listed twice", func(b bag) { b["manifest-sha512.txt"] += hex512("one") + "  data/a.txt\n" }, true, finding.Duplicate, finding.Error},
		{"2.1.3: listed twice alike, 0.97", func(b bag) {
			old(b)
			b["manifest-sha512.txt"] += hex512("one") + "  data/a.txt\n"
		}, true, finding.Duplicate, finding.Warning},
		{"2.1.3: listed twice differently, 0.97", func(b bag) {
			old(b)
			b["manifest-sha512.txt"] += hex512("x") + "  data/a.txt\n"
		}, true, finding.Duplicate, finding.Error},
		{"2.1.3: no path", func(b bag) { b["manifest-sha512.txt"] += hex512("one") + "\n" }, true, finding.ManifestSyntax, finding.Error},
		{"2.1.3: not hexadecimal", func(b bag) {
			b["manifest-sha512.txt"] = strings.Replace(b["manifest-sha512.txt"], hex512("one"), strings.Repeat("x", 128), 1)
		}, true, finding.DigestSyntax, finding.Error},
		{"2.1.3: wrong length", func(b bag) {
			b["manifest-sha512.txt"] = strings.Replace(b["manifest-sha512.txt"], hex512("one"), hex256("one"), 1)
		}, true, finding.DigestSyntax, finding.Error},
		{"2.1.3: outside data/", func(b bag) { b["manifest-sha512.txt"] += hex512("a tag file") + "  notes/tag.txt\n" }, true, finding.OutsidePayload, finding.Error},
		{"2.1.3: beside data/", func(b bag) { b["manifest-sha512.txt"] += hex512("x") + "  datax/y\n" }, true, finding.OutsidePayload, finding.Error},
		{"2.1.3: a folder", func(b bag) { b["manifest-sha512.txt"] += hex512("") + "  data/d\n" }, true, finding.ListsFolder, finding.Error},
		{"2.1.3: bare percent", func(b bag) {
			b["data/100%.txt"], b["bag-info.txt"] = "x", ""
			b["manifest-sha512.txt"] += hex512("x") + "  data/100%.txt\n"
		}, true, finding.Percent, finding.Error},
		{"2.1.3: bare percent, 0.97", func(b bag) {
			old(b)
			b["data/100%.txt"], b["bag-info.txt"] = "x", ""
			b["manifest-sha512.txt"] += hex512("x") + "  data/100%.txt\n"
		}, true, finding.Percent, finding.Warning},
		{"2.1.3: a literal %25 in 0.97", func(b bag) {
			old(b)
			b["data/100%25.txt"], b["bag-info.txt"] = "x", ""
			b["manifest-sha512.txt"] += hex512("x") + "  data/100%25.txt\n"
		}, true, finding.Percent, finding.Warning},
		{"2.2.1: payload manifest not in the tag manifest", func(b bag) {
			b["tagmanifest-sha512.txt"] = strings.Replace(b["tagmanifest-sha512.txt"], hex512(b["manifest-sha512.txt"])+"  manifest-sha512.txt\n", "", 1)
		}, false, finding.ManifestUntagged, finding.Error},
		{"2.2.1: tag file not in the tag manifest", func(b bag) { b["new.txt"] = "x" }, false, finding.TagUnlisted, finding.Warning},
		{"2.2.1: a payload file in the tag manifest", func(b bag) { b["tagmanifest-sha512.txt"] += hex512("one") + "  data/a.txt\n" }, false, finding.ListsPayload, finding.Error},
		{"2.2.1: a tag manifest in a tag manifest", func(b bag) { b["tagmanifest-sha512.txt"] += hex512("x") + "  tagmanifest-md5.txt\n" }, false, finding.ListsTagManifest, finding.Error},
		{"2.2.2: no colon", func(b bag) { b["bag-info.txt"] += "nothing\n" }, true, finding.InfoSyntax, finding.Error},
		{"2.2.2: no space after the colon", func(b bag) { b["bag-info.txt"] += "Label:value\n" }, true, finding.InfoSyntax, finding.Error},
		{"2.2.2: space before the colon", func(b bag) { b["bag-info.txt"] += "Label : value\n" }, true, finding.InfoSyntax, finding.Error},
		{"2.2.2: space before the colon, 0.97", func(b bag) { old(b); b["bag-info.txt"] += "Label : value\n" }, true, finding.InfoSyntax, finding.Warning},
		{"2.2.2: begins with a continued line", func(b bag) { b["bag-info.txt"] = "  folded\n" }, true, finding.InfoSyntax, finding.Error},
		{"2.2.2: Bagging-Date twice", func(b bag) { b["bag-info.txt"] += "Bagging-Date: 2020-01-01\nbagging-date: 2020-01-02\n" }, true, finding.InfoRepeated, finding.Warning},
		{"2.2.2: Payload-Oxum wrong", func(b bag) { b["bag-info.txt"] = "Payload-Oxum: 6.3\n" }, true, finding.Oxum, finding.Error},
		{"2.2.2: Payload-Oxum syntax", func(b bag) { b["bag-info.txt"] = "Payload-Oxum: six\n" }, true, finding.OxumSyntax, finding.Error},
		{"2.2.2: Payload-Oxum twice", func(b bag) { b["bag-info.txt"] += "payload-oxum: 6.2\n" }, true, finding.OxumRepeated, finding.Error},
		{"2.2.3: not fetched", func(b bag) {
			b["fetch.txt"] = "https://example.org/a 3 data/a.txt\n"
			delete(b, "data/a.txt")
		}, true, finding.Unfetched, finding.Error},
		{"2.2.3: in no manifest", func(b bag) { b["fetch.txt"] = "https://example.org/a - data/new.txt\n" }, true, finding.FetchUnlisted, finding.Error},
		{"2.2.3: a tag file", func(b bag) { b["fetch.txt"] = "https://example.org/a - notes/tag.txt\n" }, true, finding.FetchPath, finding.Error},
		{"2.2.3: out of the bag", func(b bag) { b["fetch.txt"] = "https://example.org/a - data/../../x\n" }, true, finding.UnsafePath, finding.Error},
		{"2.2.3: no length", func(b bag) { b["fetch.txt"] = "https://example.org/a data/a.txt\n" }, true, finding.FetchSyntax, finding.Error},
		{"2.2.3: a relative URL", func(b bag) { b["fetch.txt"] = "a.txt 3 data/a.txt\n" }, true, finding.FetchSyntax, finding.Error},
		{"2.1.1: byte-order mark, 0.97", func(b bag) { b["bagit.txt"] = "\ufeff" + declare("0.97") }, true, finding.DeclarationBOM, finding.Error},
		{"2.1.1: space before the colon, 0.97", func(b bag) { b["bagit.txt"] = strings.Replace(declare("0.97"), ":", " :", 1) }, true, finding.DeclarationSpaces, finding.Error},
		{"2.1.1: no space after the colon, 0.97", func(b bag) { b["bagit.txt"] = strings.Replace(declare("0.97"), ": ", ":", 1) }, true, finding.DeclarationSpaces, finding.Warning},
		{"2.2.2: package-info.txt until 0.95", func(b bag) {
			delete(b, "bag-info.txt")
			b["bagit.txt"], b["package-info.txt"] = declare("0.95"), "Payload-Oxum: 6.3\n"
		}, true, finding.Oxum, finding.Error},
		{"2.3: byte-order mark", func(b bag) { b["bag-info.txt"] = "\ufeff" + b["bag-info.txt"] }, true, finding.BOM, finding.Warning},
		{"5: parent, and back", func(b bag) {
			b["manifest-sha512.txt"] = strings.ReplaceAll(b["manifest-sha512.txt"], "  data/a", "  data/d/../a")
		}, true, finding.PathForm, finding.Warning},
		{"5: parent, and back to what is listed", func(b bag) { b["manifest-sha512.txt"] += hex512("one") + "  data/d/../a.txt\n" }, true, finding.Duplicate, finding.Error},
		{"5: parent, and out of the payload", func(b bag) { b["manifest-sha512.txt"] += hex512("x") + "  data/../notes/tag.txt\n" }, true, finding.OutsidePayload, finding.Error},
		{"6: what macOS leaves", func(b bag) { b["data/d/.DS_Store"], b["bag-info.txt"] = "x", ""; b.seal() }, true, finding.SystemFile, finding.Warning},
		{"6: what Windows leaves, unlisted", func(b bag) { b["data/Thumbs.db"], b["bag-info.txt"] = "x", "" }, true, finding.Unlisted, finding.Error},
		{"2.3: byte-order mark, 0.97", func(b bag) { old(b); b["manifest-sha512.txt"] = "\ufeff" + b["manifest-sha512.txt"] }, true, finding.BOM, finding.Warning},
		{"2.3: not UTF-8", func(b bag) { b["bag-info.txt"] += "Name: M\xfcller\n" }, true, finding.Encoding, finding.Error},
		{"2.3: no last line end", func(b bag) { b["bag-info.txt"] = strings.TrimSuffix(b["bag-info.txt"], "\n") }, true, finding.LineEnd, finding.Warning},
		{"2.4: unknown algorithm", func(b bag) { b["manifest-rot13.txt"] = "aa data/a.txt\nbb data/d/b.txt\n" }, true, finding.Algorithm, finding.Error},
		{"2.4: a name not normalised", func(b bag) { b["manifest-SHA-512.txt"] = b["manifest-sha512.txt"] }, true, finding.Algorithm, finding.Error},
		{"2.2.1: tag manifests that differ", func(b bag) {
			b["tagmanifest-sha256.txt"] = hex256(b["manifest-sha512.txt"]) + "  manifest-sha512.txt\n"
		}, false, finding.ManifestsDiffer, finding.Warning},
		{"2.2.3: begins with a slash, 0.97", func(b bag) {
			old(b)
			b["fetch.txt"] = "https://example.org/a 3 /data/a.txt\n"
		}, true, finding.PathForm, finding.Warning},
		{"2.4: weak algorithm", func(b bag) {
			b["manifest-md5.txt"] = "f97c5d29941bfb1b2fdab0874906ab82  data/a.txt\nb8a9f715dbb64fd5c56e7783c6820a61  data/d/b.txt\n"
		}, true, finding.WeakAlgorithm, finding.Warning},
		{"3: a payload file is missing", func(b bag) { delete(b, "data/a.txt"); b["bag-info.txt"] = "" }, true, finding.Missing, finding.Error},
		{"3: a tag file is missing", func(b bag) { delete(b, "notes/tag.txt") }, false, finding.Missing, finding.Error},
		{"5: absolute", func(b bag) { b["manifest-sha512.txt"] += hex512("x") + "  /etc/passwd\n" }, true, finding.UnsafePath, finding.Error},
		{"5: parent", func(b bag) { b["tagmanifest-sha512.txt"] += hex512("x") + "  ../x\n" }, false, finding.UnsafePath, finding.Error},
		{"6: leading ./", func(b bag) {
			b["manifest-sha512.txt"] = strings.ReplaceAll(b["manifest-sha512.txt"], "  data/", "  ./data/")
		}, true, finding.PathForm, finding.Warning},
		{"6: md5sum's asterisk", func(b bag) {
			b["manifest-sha512.txt"] = strings.ReplaceAll(b["manifest-sha512.txt"], "  data/", " *data/")
		}, true, finding.Asterisk, finding.Warning},
		{"6: normalisation", func(b bag) {
			b["data/cafe\u0301"], b["bag-info.txt"] = "x", ""
			b["manifest-sha512.txt"] += hex512("x") + "  data/caf\u00e9\n"
		}, true, finding.Normalisation, finding.Warning},
		{"6: case", func(b bag) { b["data/A.TXT"], b["bag-info.txt"] = "x", ""; b.seal() }, true, finding.Collision, finding.Warning},
		{"6: a device's name", func(b bag) { b["data/aux.txt"], b["bag-info.txt"] = "x", ""; b.seal() }, true, finding.WindowsName, finding.Warning},
		{"6: longer than Windows allows", func(b bag) {
			b["data/"+strings.Repeat("folder/", 40)+"x"], b["bag-info.txt"] = "x", ""
			b.seal()
		}, true, finding.WindowsName, finding.Warning},
		{"empty folder", func(b bag) { b["data/empty/"] = "" }, true, finding.EmptyFolder, finding.Warning},
	} {
		t.Run(c.about, func(t *testing.T) {
			b := goodBag()
			c.change(b)
			if c.resealT {
				b.sealTags()
			}
			r, err := Validate(t.Context(), b.write(t), ValidateOptions{})
			if err != nil {
				t.Fatal(err)
			}
			wantValid := c.sev == finding.Warning
			if r.Valid != wantValid {
				t.Errorf("valid %v, want %v", r.Valid, wantValid)
			}
			if !hasFinding(r, c.code, c.sev) {
				t.Errorf("no %s %s", c.sev, c.code)
			}
			if wantValid && r.Errors > 0 || t.Failed() {
				t.Errorf("findings %+v", r.Findings)
			}
		})
	}
}

func hasFinding(r Report, code finding.Code, s finding.Severity) bool {
	return slices.ContainsFunc(r.Findings, func(f finding.Finding) bool { return f.Code == code && f.Severity == s })
}

// What RFC 8493 allows and readers elsewhere have refused.
func TestAllowed(t *testing.T) {
	for _, c := range []struct {
		about  string
		change func(b bag)
	}{
		{"as it is", func(bag) {}},
		{"upper-case digests", func(b bag) {
			b["manifest-sha512.txt"] = strings.ReplaceAll(b["manifest-sha512.txt"], hex512("one"), strings.ToUpper(hex512("one")))
		}},
		{"tabs between", func(b bag) {
			b["manifest-sha512.txt"] = strings.ReplaceAll(b["manifest-sha512.txt"], "  data", " \t data")
		}},
		{"CR LF", func(b bag) {
			for _, p := range []string{"manifest-sha512.txt", "bag-info.txt", "bagit.txt"} {
				b[p] = strings.ReplaceAll(b[p], "\n", "\r\n")
			}
		}},
		{"CR", func(b bag) {
			for _, p := range []string{"manifest-sha512.txt", "bag-info.txt", "bagit.txt"} {
				b[p] = strings.ReplaceAll(b[p], "\n", "\r")
			}
		}},
		{"encoded names", func(b bag) {
			b["data/file\n1.txt"], b["data/file\r2.txt"], b["data/100%.txt"], b["data/file%0A1.txt"] = "1", "2", "3", "4"
			delete(b, "bag-info.txt")
			b.seal()
		}},
		{"encoded in lower case", func(b bag) {
			b["data/x\ny"] = "1"
			delete(b, "bag-info.txt")
			b.seal()
			b["manifest-sha512.txt"] = strings.ReplaceAll(b["manifest-sha512.txt"], "%0A", "%0a")
		}},
		{"spaces in names", func(b bag) {
			b["data/ a  b "] = "1"
			delete(b, "bag-info.txt")
			b.seal()
		}},
		{"labels in other letters", func(b bag) { b["bag-info.txt"] = "payload-OXUM: 6.2\n" }},
		{"a repeated label, a folded value", func(b bag) { b["bag-info.txt"] += "Contact-Name: A\nContact-Name: B\n  and C\n" }},
		{"no bag-info.txt and no tag manifest", func(b bag) { delete(b, "bag-info.txt"); delete(b, "tagmanifest-sha512.txt") }},
		{"a tag folder named like a manifest", func(b bag) { b["manifest-old/md5.txt"] = "x" }},
		{"fetched already", func(b bag) { b["fetch.txt"] = "https://example.org/a 3 data/a.txt\n" }},
		{"ISO-8859-1", func(b bag) {
			b["bagit.txt"] = "BagIt-Version: 1.0\nTag-File-Character-Encoding: ISO-8859-1\n"
			b["data/größe"], b["bag-info.txt"] = "x", "Name: M\xfcller\n"
			b.seal()
			b["manifest-sha512.txt"] = strings.ReplaceAll(b["manifest-sha512.txt"], "größe", "gr\xf6\xdfe")
		}},
		{"UTF-16", func(b bag) {
			b["bagit.txt"] = "BagIt-Version: 1.0\nTag-File-Character-Encoding: UTF-16\n"
			delete(b, "tagmanifest-sha512.txt")
			delete(b, "bag-info.txt")
			b["manifest-sha512.txt"] = utf16be(b["manifest-sha512.txt"])
		}},
		{"UTF-32", func(b bag) {
			b["bagit.txt"] = "BagIt-Version: 1.0\nTag-File-Character-Encoding: UTF-32BE\n"
			delete(b, "tagmanifest-sha512.txt")
			delete(b, "bag-info.txt")
			var s strings.Builder
			for i := range len(b["manifest-sha512.txt"]) {
				s.WriteString("\x00\x00\x00" + b["manifest-sha512.txt"][i:i+1])
			}
			b["manifest-sha512.txt"] = s.String()
		}},
	} {
		t.Run(c.about, func(t *testing.T) {
			b := goodBag()
			c.change(b)
			if _, ok := b["tagmanifest-sha512.txt"]; ok && b["bagit.txt"][:18] == "BagIt-Version: 1.0" {
				b.sealTags()
			}
			expectBag(t, b.write(t), true, true, "")
		})
	}
}

func utf16be(s string) string {
	var b strings.Builder
	b.WriteString("\xfe\xff")
	for i := range len(s) {
		b.WriteByte(0)
		b.WriteByte(s[i])
	}
	return b.String()
}

func TestVersionsAreRead(t *testing.T) {
	for _, v := range []string{"0.93", "0.94", "0.95", "0.96", "0.97", "1.0"} {
		b := goodBag()
		b["bagit.txt"] = "BagIt-Version: " + v + "\nTag-File-Character-Encoding: UTF-8\n"
		b.sealTags()
		if r := expectBag(t, b.write(t), true, true, ""); r.Version != v {
			t.Errorf("version %q, want %q", r.Version, v)
		}
	}
}

func TestLinksAndSpecialFilesAreNotOpened(t *testing.T) {
	b := goodBag()
	dir := b.write(t)
	if err := os.Symlink("a.txt", filepath.Join(dir, "data", "link")); err != nil {
		t.Fatal(err)
	}
	expectBag(t, dir, false, false, finding.Link)

	dir = b.write(t)
	if err := os.Remove(filepath.Join(dir, "data/a.txt")); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(dir, "data/a.txt"), 0o644); err != nil {
		t.Fatal(err)
	}
	if r := expectBag(t, dir, false, false, finding.Missing); !hasFinding(r, finding.Special, finding.Error) {
		t.Errorf("%+v", r.Findings)
	}

	// A linked folder whose content is in no manifest.
	dir = b.write(t)
	if err := os.Symlink(t.TempDir(), filepath.Join(dir, "data", "linked")); err != nil {
		t.Fatal(err)
	}
	expectBag(t, dir, false, false, finding.Link)
}

func TestLevels(t *testing.T) {
	b := goodBag()
	b["data/a.txt"] = "ONE" // same size, other content
	dir := b.write(t)
	for _, c := range []struct {
		level           Level
		complete, valid bool
		errors          int
	}{{Full, true, false, 1}, {Complete, true, false, 0}, {Quick, false, false, 0}} {
		r, err := Validate(t.Context(), dir, ValidateOptions{Level: c.level})
		if err != nil || r.Complete != c.complete || r.Valid != c.valid || r.Errors != c.errors {
			t.Errorf("%q: %+v, %v", c.level, r, err)
		}
	}
}

func TestFailFastStopsAtTheFirst(t *testing.T) {
	b := goodBag()
	b["data/a.txt"], b["data/d/b.txt"] = "ONE", "TWO"
	r, err := Validate(t.Context(), b.write(t), ValidateOptions{FailFast: true, Workers: 1})
	if err != nil || r.Errors != 1 || r.Valid {
		t.Errorf("%+v, %v", r, err)
	}
}

// Any change to any file is found.
func TestEveryChangeIsFound(t *testing.T) {
	for p := range goodBag() {
		if strings.HasPrefix(p, "tagmanifest") {
			continue // nothing vouches for it
		}
		for about, change := range map[string]func(b bag){
			"changed": func(b bag) { b[p] = strings.Replace(b[p], b[p][:1], "~", 1) },
			"longer":  func(b bag) { b[p] += "x" },
			"removed": func(b bag) { delete(b, p) },
			"renamed": func(b bag) { b[p+"x"] = b[p]; delete(b, p) },
		} {
			b := goodBag()
			change(b)
			r, err := Validate(t.Context(), b.write(t), ValidateOptions{})
			if err != nil || r.Valid {
				t.Errorf("%s %s: valid %v, %v", p, about, r.Valid, err)
			}
		}
	}
}

func TestFindBag(t *testing.T) {
	dir := goodBag().write(t)
	outer := filepath.Dir(dir)
	for _, c := range []struct{ in, want string }{{dir, dir}, {outer, dir}, {filepath.Join(dir, "data"), ""}} {
		got, ok, err := FindBag(c.in)
		if err != nil || got != c.want || ok != (c.want != "") {
			t.Errorf("%s: %q %v %v, want %q", c.in, got, ok, err, c.want)
		}
	}
	for _, noise := range []string{".DS_Store", "__MACOSX/"} {
		p := filepath.Join(outer, noise)
		var err error
		if strings.HasSuffix(noise, "/") {
			err = os.Mkdir(p, 0o755)
		} else {
			err = os.WriteFile(p, nil, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if _, ok, _ := FindBag(outer); !ok {
		t.Error("what macOS leaves hides the bag")
	}
	if err := os.WriteFile(filepath.Join(outer, "other.txt"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, ok, _ := FindBag(outer); ok {
		t.Error("a folder with a bag and a file is taken for the bag")
	}
}
