package bags

import (
	"crypto/md5"
	"fmt"
	"maps"
	"strings"
	"testing"

	"bagpipe/bags/finding"
)

// verdict is what a bag must be found to be.
type verdict struct {
	complete, valid bool
}

var (
	isValid      = verdict{true, true}
	isComplete   = verdict{true, false} // and wrong by a digest
	isIncomplete = verdict{false, false}
)

func hexMD5(s string) string { return fmt.Sprintf("%x", md5.Sum([]byte(s))) }

// declaredAs gives a whole bagit.txt.
func declaredAs(version, encoding string) string {
	return "BagIt-Version: " + version + "\nTag-File-Character-Encoding: " + encoding + "\n"
}

// bare is the least that is a bag: no tag manifest, no bag-info.txt.
func bare(version string, payload bag) bag {
	b := bag{"bagit.txt": declaredAs(version, "UTF-8")}
	maps.Copy(b, payload)
	b["manifest-sha512.txt"] = b.manifest("data/")
	return b
}

// with gives b with more files; an empty value at "-" + path takes one away.
func (b bag) with(more bag) bag {
	all := maps.Clone(b)
	for p, data := range more {
		if gone, ok := strings.CutPrefix(p, "-"); ok {
			delete(all, gone)
			continue
		}
		all[p] = data
	}
	return all
}

// Bags as strangers make them, whole and broken: each with the answer that RFC 8493,
// or the version the bag declares, has for it. code is one finding that must be there,
// "" for none at all.
func TestOddBags(t *testing.T) {
	one := bag{"data/a.txt": "one"}
	sum := hex512("one")
	line := sum + "  data/a.txt\n"
	old := bare("0.97", one)
	now := bare("1.0", one)
	long := strings.Repeat("v", 2<<20)
	for _, c := range []struct {
		about string
		bag   bag
		want  verdict
		code  finding.Code
	}{
		// bagit.txt
		{"the least there is", now, isValid, ""},
		{"declaration in CR LF", now.with(bag{"bagit.txt": strings.ReplaceAll(now["bagit.txt"], "\n", "\r\n")}), isValid, ""},
		{"declaration in CR", now.with(bag{"bagit.txt": strings.ReplaceAll(now["bagit.txt"], "\n", "\r")}), isValid, ""},
		{"declaration without its last line end", now.with(bag{"bagit.txt": strings.TrimSuffix(now["bagit.txt"], "\n")}), isValid, finding.LineEnd},
		{"declaration with a mark", now.with(bag{"bagit.txt": "\ufeff" + now["bagit.txt"]}), isIncomplete, finding.DeclarationBOM},
		{"declaration in UTF-16", now.with(bag{"bagit.txt": utf16be(now["bagit.txt"])}), isIncomplete, finding.Declaration},
		{"an empty declaration", now.with(bag{"bagit.txt": ""}), isIncomplete, finding.Declaration},
		{"labels in small letters", now.with(bag{"bagit.txt": strings.ToLower(declaredAs("1.0", "UTF-8"))}), isIncomplete, finding.Declaration},
		{"encoding in small letters", now.with(bag{"bagit.txt": declaredAs("1.0", "utf-8")}), isValid, ""},
		{"tab behind the colon", now.with(bag{"bagit.txt": strings.ReplaceAll(now["bagit.txt"], ": ", ":\t")}), isIncomplete, finding.DeclarationSpaces},
		{"space at the end of a line", now.with(bag{"bagit.txt": strings.ReplaceAll(now["bagit.txt"], "\n", " \n")}), isIncomplete, finding.DeclarationSpaces},
		{"the version twice", now.with(bag{"bagit.txt": "BagIt-Version: 1.0\n" + now["bagit.txt"]}), isIncomplete, finding.Declaration},
		{"a version with three parts", now.with(bag{"bagit.txt": declaredAs("1.0.0", "UTF-8")}), isIncomplete, finding.Declaration},
		{"bagit.txt is a folder", now.with(bag{"-bagit.txt": "", "bagit.txt/": ""}), isIncomplete, finding.NoDeclaration},
		{"BAGIT.TXT", now.with(bag{"-bagit.txt": "", "BAGIT.TXT": now["bagit.txt"]}), isIncomplete, finding.NoDeclaration},

		// The payload
		{"no data/", bag{"bagit.txt": now["bagit.txt"], "manifest-sha512.txt": ""}, isIncomplete, finding.NoPayload},
		{"an empty data/", bag{"bagit.txt": now["bagit.txt"], "manifest-sha512.txt": "", "data/": ""}, isValid, finding.EmptyPayload},
		{"data is a file", bag{"bagit.txt": now["bagit.txt"], "manifest-sha512.txt": "", "data": "x"}, isIncomplete, finding.NoPayload},
		{"an empty file", bare("1.0", bag{"data/empty": ""}), isValid, ""},
		{"hidden files", bare("1.0", bag{"data/.hidden/.x": "1"}), isValid, ""},
		{"a name of white space", bare("1.0", bag{"data/ ": "1"}), isValid, finding.WindowsName},
		{"a name that begins with white space", bare("1.0", bag{"data/ x": "1"}), isValid, ""},
		{"a name with an asterisk", bare("1.0", bag{"data/*x": "1"}), isValid, finding.WindowsName},
		{"a name with a backslash", bare("1.0", bag{`data/x\y`: "1"}), isValid, finding.WindowsName},
		{"a tilde", bare("1.0", bag{"data/~/~root": "1"}), isValid, ""},
		{"a dollar and brackets", bare("1.0", bag{"data/${HOME}/$(x)": "1"}), isValid, ""},
		{"four-byte letters", bare("1.0", bag{"data/\U0001F4D6.txt": "1"}), isValid, ""},
		{"a tab in a name", bare("1.0", bag{"data/a\tb": "1"}), isValid, ""},
		{"a payload file that looks like a manifest", bare("1.0", bag{"data/manifest-md5.txt": "x", "data/tagmanifest-md5.txt": "x"}), isValid, ""},
		{"a bag in the bag", bare("1.0", bag{"data/in/bagit.txt": "x", "data/in/data/x": "1", "data/in/manifest-md5.txt": ""}), isValid, ""},

		// Payload manifests
		{"no manifest", now.with(bag{"-manifest-sha512.txt": ""}), isIncomplete, finding.NoManifest},
		{"a tag manifest only", now.with(bag{"-manifest-sha512.txt": "", "tagmanifest-sha512.txt": hex512(now["bagit.txt"]) + "  bagit.txt\n"}), isIncomplete, finding.NoManifest},
		{"an empty manifest beside payload", now.with(bag{"manifest-sha512.txt": ""}), isIncomplete, finding.Unlisted},
		{"one space", now.with(bag{"manifest-sha512.txt": sum + " data/a.txt\n"}), isValid, ""},
		{"many spaces", now.with(bag{"manifest-sha512.txt": sum + "        data/a.txt\n"}), isValid, ""},
		{"a tab", now.with(bag{"manifest-sha512.txt": sum + "\tdata/a.txt\n"}), isValid, ""},
		{"white space before the digest", now.with(bag{"manifest-sha512.txt": "  " + line}), isIncomplete, finding.ManifestSyntax},
		{"white space behind the path", now.with(bag{"manifest-sha512.txt": sum + "  data/a.txt \n"}), isIncomplete, finding.Missing},
		{"path before the digest", now.with(bag{"manifest-sha512.txt": "data/a.txt  " + sum + "\n"}), isIncomplete, finding.OutsidePayload},
		{"a comma between", now.with(bag{"manifest-sha512.txt": sum + ",data/a.txt\n"}), isIncomplete, finding.ManifestSyntax},
		{"a comment", now.with(bag{"manifest-sha512.txt": "# made by hand\n" + line}), isIncomplete, finding.OutsidePayload},
		{"manifest without its last line end", now.with(bag{"manifest-sha512.txt": strings.TrimSuffix(line, "\n")}), isValid, finding.LineEnd},
		{"manifest in CR", now.with(bag{"manifest-sha512.txt": strings.ReplaceAll(line, "\n", "\r")}), isValid, ""},
		{"an empty line, 0.97", old.with(bag{"manifest-sha512.txt": line + "\n"}), isValid, finding.ManifestSyntax},
		{"digest of another algorithm", now.with(bag{"manifest-sha256.txt": line}), isIncomplete, finding.DigestSyntax},
		{"digest a digit short", now.with(bag{"manifest-sha512.txt": line[1:]}), isIncomplete, finding.DigestSyntax},
		{"digest wrong", now.with(bag{"manifest-sha512.txt": hex512("two") + "  data/a.txt\n"}), isComplete, finding.Mismatch},
		{"digest of mixed case", now.with(bag{"manifest-sha512.txt": strings.ToUpper(sum[:20]) + line[20:]}), isValid, ""},
		{"md5 right, sha512 wrong", now.with(bag{"manifest-md5.txt": hexMD5("one") + "  data/a.txt\n", "manifest-sha512.txt": hex512("two") + "  data/a.txt\n"}), isComplete, finding.Mismatch},
		{"listed twice alike", now.with(bag{"manifest-sha512.txt": line + line}), isIncomplete, finding.Duplicate},
		{"listed twice, once wrong, 0.97", old.with(bag{"manifest-sha512.txt": line + hex512("two") + "  data/a.txt\n"}), isIncomplete, finding.Duplicate},
		{"listed twice under two spellings", now.with(bag{"manifest-sha512.txt": line + sum + "  ./data/a.txt\n"}), isIncomplete, finding.Duplicate},
		{"another case of letters", now.with(bag{"manifest-sha512.txt": sum + "  data/A.txt\n"}), isIncomplete, finding.Missing},
		{"Data/", now.with(bag{"manifest-sha512.txt": sum + "  Data/a.txt\n"}), isIncomplete, finding.OutsidePayload},
		{"composed in the manifest, decomposed on disk", now.with(bag{"-data/a.txt": "", "data/u\u0308": "one", "manifest-sha512.txt": sum + "  data/\u00fc\n"}), isValid, finding.Normalisation},
		{"both normalisations on disk, both listed", bare("1.0", bag{"data/u\u0308": "1", "data/\u00fc": "2"}), isValid, finding.Collision},
		{"both normalisations listed, one there", now.with(bag{"-data/a.txt": "", "data/u\u0308": "one", "manifest-sha512.txt": sum + "  data/\u00fc\n" + sum + "  data/u\u0308\n"}), isIncomplete, finding.Duplicate},
		{"absolute", now.with(bag{"manifest-sha512.txt": line + sum + "  /data/a.txt\n"}), isIncomplete, finding.UnsafePath},
		{"out and in again", now.with(bag{"manifest-sha512.txt": line + sum + "  ../bag/data/a.txt\n"}), isIncomplete, finding.UnsafePath},
		{"to a tag file by ..", now.with(bag{"manifest-sha512.txt": line + hex512(now["bagit.txt"]) + "  data/../bagit.txt\n"}), isIncomplete, finding.OutsidePayload},
		{"a home folder", now.with(bag{"manifest-sha512.txt": line + sum + "  ~/a.txt\n"}), isIncomplete, finding.OutsidePayload},
		{"a drive", now.with(bag{"manifest-sha512.txt": line + sum + "  C:/a.txt\n"}), isIncomplete, finding.OutsidePayload},
		{"backslashes", now.with(bag{"manifest-sha512.txt": sum + `  data\a.txt` + "\n"}), isIncomplete, finding.OutsidePayload},
		{"data itself", now.with(bag{"manifest-sha512.txt": line + sum + "  data\n"}), isIncomplete, finding.ListsFolder},
		{"data/ itself", now.with(bag{"manifest-sha512.txt": line + sum + "  data/\n"}), isIncomplete, finding.ListsFolder},
		{"a file with a slash behind", now.with(bag{"manifest-sha512.txt": sum + "  data/a.txt/\n"}), isIncomplete, finding.ListsFolder},
		{"two slashes", now.with(bag{"manifest-sha512.txt": sum + "  data//a.txt\n"}), isValid, finding.PathForm},
		{"md5sum's asterisk", now.with(bag{"manifest-sha512.txt": sum + " *data/a.txt\n"}), isValid, finding.Asterisk},
		{"a NUL", now.with(bag{"manifest-sha512.txt": line + sum + "  data/a\x00b\n"}), isIncomplete, finding.ManifestSyntax},
		{"a line of 2 MiB", now.with(bag{"manifest-sha512.txt": line + sum + "  data/" + long + "\n"}), isIncomplete, finding.Encoding},
		{"percent encoded, as it must be", bare("1.0", bag{"data/50%": "1", "data/a\nb": "2", "data/a\rb": "3"}), isValid, ""},
		{"percent not encoded", now.with(bag{"data/50%": "one", "manifest-sha512.txt": line + sum + "  data/50%\n"}), isIncomplete, finding.Percent},
		{"percent not encoded, 0.97", old.with(bag{"data/50%": "one", "manifest-sha512.txt": line + sum + "  data/50%\n"}), isValid, finding.Percent},
		{"a space encoded", now.with(bag{"data/a b": "one", "manifest-sha512.txt": line + sum + "  data/a%20b\n"}), isIncomplete, finding.Missing},
		{"encoded twice", now.with(bag{"data/a\nb": "one", "manifest-sha512.txt": line + sum + "  data/a%250Ab\n"}), isIncomplete, finding.Missing},
		{"no digests of a payload file, 1.0", now.with(bag{"data/b": "x"}), isIncomplete, finding.Unlisted},
		{"no digests of a payload file, 0.97", old.with(bag{"data/b": "x"}), isIncomplete, finding.Unlisted},
		{"each file in one of two manifests, 0.97", bag{
			"bagit.txt": declaredAs("0.97", "UTF-8"), "data/a.txt": "one", "data/b.txt": "two",
			"manifest-sha512.txt": line, "manifest-md5.txt": hexMD5("two") + "  data/b.txt\n",
		}, isValid, finding.ManifestsDiffer},
		{"each file in one of two manifests", bag{
			"bagit.txt": declaredAs("1.0", "UTF-8"), "data/a.txt": "one", "data/b.txt": "two",
			"manifest-sha512.txt": line, "manifest-md5.txt": hexMD5("two") + "  data/b.txt\n",
		}, isIncomplete, finding.Unlisted},
		{"a second manifest that is empty", now.with(bag{"manifest-sha256.txt": ""}), isIncomplete, finding.Unlisted},

		// Algorithms
		{"an algorithm nobody knows", now.with(bag{"manifest-x9.txt": "00  data/a.txt\n"}), isIncomplete, finding.Algorithm},
		{"a name in capitals", now.with(bag{"-manifest-sha512.txt": "", "manifest-SHA512.txt": line}), isIncomplete, finding.Algorithm},
		{"a name in capitals, 0.97", old.with(bag{"-manifest-sha512.txt": "", "manifest-SHA512.txt": line}), isValid, finding.Algorithm},
		{"a name with a hyphen, 0.97", old.with(bag{"-manifest-sha512.txt": "", "manifest-sha-512.txt": line}), isValid, finding.Algorithm},
		{"a name in capitals, wrong, 0.97", old.with(bag{"-manifest-sha512.txt": "", "manifest-SHA512.txt": hex512("two") + "  data/a.txt\n"}), isComplete, finding.Mismatch},
		{"one algorithm under two names, 0.97", old.with(bag{"manifest-SHA512.txt": line}), isIncomplete, finding.Duplicate},
		{"no algorithm in the name", now.with(bag{"-manifest-sha512.txt": "", "manifest.txt": line}), isIncomplete, finding.NoManifest},
		{"an empty algorithm in the name", now.with(bag{"-manifest-sha512.txt": "", "manifest-.txt": line}), isIncomplete, finding.NoManifest},

		// Tag manifests
		{"a tag manifest that lists itself", now.with(bag{"tagmanifest-sha512.txt": hex512(line) + "  manifest-sha512.txt\n" + sum + "  tagmanifest-sha512.txt\n"}), isIncomplete, finding.ListsTagManifest},
		{"an empty tag manifest", now.with(bag{"tagmanifest-sha512.txt": ""}), isIncomplete, finding.ManifestUntagged},
		{"an empty tag manifest, 0.97", old.with(bag{"tagmanifest-sha512.txt": ""}), isValid, finding.ManifestUntagged},
		{"a tag manifest of another algorithm", now.with(bag{"tagmanifest-md5.txt": hexMD5(line) + "  manifest-sha512.txt\n" + hexMD5(now["bagit.txt"]) + "  bagit.txt\n"}), isValid, finding.WeakAlgorithm},
		{"a tag manifest that is wrong", now.with(bag{"tagmanifest-sha512.txt": sum + "  manifest-sha512.txt\n"}), isComplete, finding.Mismatch},
		{"a tag file that is gone", now.with(bag{"tagmanifest-sha512.txt": hex512(line) + "  manifest-sha512.txt\n" + sum + "  gone.txt\n"}), isIncomplete, finding.Missing},
		{"a tag folder", now.with(bag{"meta/more/x.xml": "x"}), isValid, ""},
		{"a tag file beside the bag", now.with(bag{"tagmanifest-sha512.txt": hex512(line) + "  manifest-sha512.txt\n" + sum + "  ../gone.txt\n"}), isIncomplete, finding.UnsafePath},

		// bag-info.txt
		{"an empty bag-info.txt", now.with(bag{"bag-info.txt": ""}), isValid, ""},
		{"a label without a value", now.with(bag{"bag-info.txt": "Contact-Name:\nContact-Phone: \n"}), isValid, ""},
		{"a value with colons", now.with(bag{"bag-info.txt": "A: b: c:d\n"}), isValid, ""},
		{"a label with spaces within", now.with(bag{"bag-info.txt": "Contact Name: x\n"}), isValid, ""},
		{"a value folded by a tab", now.with(bag{"bag-info.txt": "A: b\n\tc\n"}), isValid, ""},
		{"an empty line between", now.with(bag{"bag-info.txt": "A: b\n\nC: d\n"}), isValid, finding.InfoSyntax},
		{"a label that begins with white space, first", now.with(bag{"bag-info.txt": " A: b\n"}), isIncomplete, finding.InfoSyntax},
		{"no label", now.with(bag{"bag-info.txt": ": b\n"}), isIncomplete, finding.InfoSyntax},
		{"an oxum of a larger payload", now.with(bag{"bag-info.txt": "Payload-Oxum: 4.1\n"}), isIncomplete, finding.Oxum},
		{"an oxum of more files", now.with(bag{"bag-info.txt": "Payload-Oxum: 3.2\n"}), isIncomplete, finding.Oxum},
		{"an oxum with spaces", now.with(bag{"bag-info.txt": "Payload-Oxum: 3 . 1\n"}), isIncomplete, finding.OxumSyntax},
		{"an oxum below zero", now.with(bag{"bag-info.txt": "Payload-Oxum: -3.1\n"}), isIncomplete, finding.OxumSyntax},
		{"an oxum beyond all numbers", now.with(bag{"bag-info.txt": "Payload-Oxum: 99999999999999999999.1\n"}), isIncomplete, finding.OxumSyntax},
		{"the same oxum twice", now.with(bag{"bag-info.txt": "Payload-Oxum: 3.1\nPayload-Oxum: 3.1\n"}), isIncomplete, finding.OxumRepeated},
		{"the same oxum twice, 0.97", old.with(bag{"bag-info.txt": "Payload-Oxum: 3.1\nPayload-Oxum: 3.1\n"}), isValid, finding.OxumRepeated},
		{"two oxums, the first wrong, 0.97", old.with(bag{"bag-info.txt": "Payload-Oxum: 4.1\nPayload-Oxum: 3.1\n"}), isIncomplete, finding.Oxum},
		{"an oxum, folded", now.with(bag{"bag-info.txt": "Payload-Oxum:\n  3.1\n"}), isValid, ""},
		{"package-info.txt in 1.0 is any tag file", now.with(bag{"package-info.txt": "Payload-Oxum: 9.9\n"}), isValid, ""},

		// fetch.txt
		{"an empty fetch.txt", now.with(bag{"fetch.txt": ""}), isValid, ""},
		{"a hole of unknown length", now.with(bag{"-data/a.txt": "", "data/": "", "fetch.txt": "https://example.org/a - data/a.txt\n"}), isIncomplete, finding.Unfetched},
		{"a hole, encoded", bare("1.0", bag{"data/a\nb": "x", "data/c": "y"}).with(bag{"-data/a\nb": "", "fetch.txt": "https://example.org/a 1 data/a%0Ab\n"}), isIncomplete, finding.Unfetched},
		{"a hole whose name has a space", bare("1.0", bag{"data/a b": "x", "data/c": "y"}).with(bag{"-data/a b": "", "fetch.txt": "https://example.org/a 1 data/a b\n"}), isIncomplete, finding.Unfetched},
		{"a hole in no manifest", now.with(bag{"fetch.txt": "https://example.org/b 1 data/b\n"}), isIncomplete, finding.FetchUnlisted},
		{"a hole outside data/", now.with(bag{"fetch.txt": "https://example.org/b 1 b\n"}), isIncomplete, finding.FetchPath},
		{"a hole outside of the bag", now.with(bag{"fetch.txt": "https://example.org/b 1 ../b\n"}), isIncomplete, finding.UnsafePath},
		{"a URL with a space", now.with(bag{"fetch.txt": "https://example.org/a b 3 data/a.txt\n"}), isIncomplete, finding.FetchSyntax},
		{"a length that is no number", now.with(bag{"fetch.txt": "https://example.org/a 3KB data/a.txt\n"}), isIncomplete, finding.FetchSyntax},
		{"only a URL", now.with(bag{"fetch.txt": "https://example.org/a\n"}), isIncomplete, finding.FetchSyntax},
		{"a file URL", now.with(bag{"fetch.txt": "file:///a 3 data/a.txt\n"}), isValid, ""},
		{"a URN", now.with(bag{"fetch.txt": "urn:isbn:0451450523 3 data/a.txt\n"}), isValid, ""},

		// Encodings
		{"UTF-16 all over", now.with(bag{"bagit.txt": declaredAs("1.0", "UTF-16"), "manifest-sha512.txt": utf16be(line), "bag-info.txt": utf16be("Payload-Oxum: 3.1\n")}), isValid, finding.Encoding},
		{"UTF-16 declared, UTF-8 written", now.with(bag{"bagit.txt": declaredAs("1.0", "UTF-16")}), isIncomplete, finding.Unlisted},
		{"ISO-8859-1", now.with(bag{"bagit.txt": declaredAs("1.0", "ISO-8859-1"), "bag-info.txt": "Name: M\xfcller\n"}), isValid, finding.Encoding},
		{"UTF-8 declared, ISO-8859-1 written", now.with(bag{"bag-info.txt": "Name: M\xfcller\n"}), isIncomplete, finding.Encoding},
		{"ASCII", now.with(bag{"bagit.txt": declaredAs("1.0", "ASCII")}), isValid, ""},
		{"US-ASCII, as declared", now.with(bag{"bagit.txt": declaredAs("1.0", "US-ASCII"), "bag-info.txt": "Name: Mueller\n"}), isValid, ""},
		{"US-ASCII declared, UTF-8 written", now.with(bag{"bagit.txt": declaredAs("1.0", "US-ASCII"), "bag-info.txt": "Name: M\u00fcller\n"}), isIncomplete, finding.Encoding},
		{"Shift_JIS", bag{"bagit.txt": declaredAs("1.0", "Shift_JIS"), "data/日本": "one", "manifest-sha512.txt": sum + "  data/\x93\xfa\x96\x7b\n"}, isValid, finding.Encoding},
		{"Shift_JIS with bytes that mean nothing", now.with(bag{"bagit.txt": declaredAs("1.0", "Shift_JIS"), "bag-info.txt": "Name: \x93\x01\xfd\n"}), isIncomplete, finding.Encoding},
		{"UTF-16 with a mark, little end first", now.with(bag{"bagit.txt": declaredAs("1.0", "UTF-16"), "manifest-sha512.txt": "\xff\xfe" + utf16le(line)}), isValid, finding.Encoding},
		{"UTF-16LE", now.with(bag{"bagit.txt": declaredAs("1.0", "UTF-16LE"), "manifest-sha512.txt": utf16le(line)}), isValid, finding.Encoding},
		{"UTF-16 with a byte too few", now.with(bag{"bagit.txt": declaredAs("1.0", "UTF-16"), "manifest-sha512.txt": utf16be(line), "bag-info.txt": utf16be("A: b") + "\x00"}), isIncomplete, finding.Encoding},
		{"UTF-7", now.with(bag{"bagit.txt": declaredAs("1.0", "UTF-7")}), isIncomplete, finding.Encoding},
		{"ISO-10646-UCS-2", now.with(bag{"bagit.txt": declaredAs("1.0", "ISO-10646-UCS-2")}), isIncomplete, finding.Encoding},
		{"an encoding nobody knows", now.with(bag{"bagit.txt": declaredAs("1.0", "KLINGON-1")}), isIncomplete, finding.Encoding},
		{"a manifest with a mark", now.with(bag{"manifest-sha512.txt": "\ufeff" + line}), isValid, finding.BOM},
	} {
		t.Run(c.about, func(t *testing.T) {
			r, err := Validate(t.Context(), c.bag.write(t), ValidateOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if got := (verdict{r.Complete, r.Valid}); got != c.want {
				t.Errorf("%+v, want %+v", got, c.want)
			}
			if c.code == "" && len(r.Findings) > 0 || c.code != "" && !hasFinding(r, c.code, finding.Error) && !hasFinding(r, c.code, finding.Warning) {
				t.Errorf("want the finding %q", c.code)
			}
			if t.Failed() {
				t.Errorf("%+v", r.Findings)
			}
		})
	}
}

// utf16le has no mark.
func utf16le(s string) string {
	var b strings.Builder
	for i := range len(s) {
		b.WriteByte(s[i])
		b.WriteByte(0)
	}
	return b.String()
}
