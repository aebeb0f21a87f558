package archive

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"bagpipe/bags/archive/internal/rars"
	"bagpipe/bags/files"
)

var someRar = []rarFile{
	{name: "d", folder: true}, {name: "d/one.txt", data: "one"}, {name: "d/größe/two.txt", data: strings.Repeat("two ", 50_000)}, {name: "none"},
}

// Other people's programs read what is crafted here: it is rar.
func TestCraftedRarsAreRars(t *testing.T) {
	bsdtar := tool(t, "bsdtar")
	for name, data := range map[string][]byte{"4.rar": rar4Of(someRar...), "5.rar": rar5Of(someRar...)} {
		dir := t.TempDir()
		runIn(t, dir, bsdtar, "-xf", put(t, name, data))
		if got, err := os.ReadFile(filepath.Join(dir, "d/größe/two.txt")); err != nil || string(got) != someRar[2].data {
			t.Errorf("%s: %d bytes, %v", name, len(got), err)
		}
	}
}

func TestRar(t *testing.T) {
	for name, data := range map[string][]byte{"4.rar": rar4Of(someRar...), "5.rar": rar5Of(someRar...)} {
		t.Run(name, func(t *testing.T) {
			archive := put(t, name, data)
			if f, err := Sniff(archive); f != Rar || err != nil {
				t.Fatalf("%q, %v", f, err)
			}
			dir, x, err := extractFile(t, archive, ExtractOptions{})
			if err != nil || x.Files != 3 || len(x.Warnings) != 0 {
				t.Fatalf("%+v, %v", x, err)
			}
			for _, f := range someRar {
				if f.folder {
					continue
				}
				if got, err := os.ReadFile(filepath.Join(dir, f.name)); err != nil || string(got) != f.data {
					t.Errorf("%s: %d bytes, %v", f.name, len(got), err)
				}
			}
		})
	}
}

func TestRarParts(t *testing.T) {
	a, b, c := strings.Repeat("a", 70_000), strings.Repeat("b", 70_000), "c"
	for _, form := range []struct {
		name  string
		parts [][]byte
		file  func(i int) string
	}{
		{"rar 5", rar5Parts("x", a, b, c), func(i int) string { return fmt.Sprintf("v.part%d.rar", i+1) }},
		{"rar 4", rar4Parts("x", true, a, b, c), func(i int) string { return fmt.Sprintf("v.part%02d.rar", i+1) }},
		{"rar 4, old names", rar4Parts("x", false, a, b, c), func(i int) string { return []string{"v.rar", "v.r00", "v.r01"}[i] }},
	} {
		t.Run(form.name, func(t *testing.T) {
			dir := t.TempDir()
			write := func(i int) {
				if err := os.WriteFile(filepath.Join(dir, form.file(i)), form.parts[i], 0o644); err != nil {
					t.Fatal(err)
				}
			}
			first := filepath.Join(dir, form.file(0))
			write(0)
			_, _, err := extractFile(t, first, ExtractOptions{})
			var e *files.Error
			if !errors.As(err, &e) || e.Rule != files.RuleMultiDisk || !strings.Contains(e.Detail, form.file(1)) {
				t.Errorf("%v; want %s that names %s", err, files.RuleMultiDisk, form.file(1))
			}
			write(1)
			write(2)
			to, _, err := extractFile(t, first, ExtractOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if got, _ := os.ReadFile(filepath.Join(to, "x")); string(got) != a+b+c {
				t.Errorf("%d bytes", len(got))
			}
			_, _, err = extractFile(t, filepath.Join(dir, form.file(1)), ExtractOptions{})
			wantRule(t, err, files.RuleMultiDisk, "")
		})
	}
}

func TestHostileRars(t *testing.T) {
	whole4, whole5 := rar4Of(someRar...), rar5Of(someRar...)
	locked := append([]byte(rars.Magic5), rar5Block(4, 0, nil, append([]byte{0, 0, 15}, make([]byte, 16)...))...)
	for _, c := range []struct {
		about  string
		data   []byte
		rule   files.Rule
		member string
	}{
		{"parent", rar5Of(rarFile{name: "../x"}), files.RuleParent, "../x"},
		{"parent, 4", rar4Of(rarFile{name: "../x"}), files.RuleParent, "../x"},
		{"absolute", rar5Of(rarFile{name: "/etc/x"}), files.RuleAbsolute, "/etc/x"},
		{"twice", rar5Of(rarFile{name: "x"}, rarFile{name: "x"}), files.RuleDuplicate, "x"},
		{"link", rar5Of(rarFile{name: "x", link: "/etc/passwd"}), files.RuleSymlink, "x"},
		{"encrypted member, 4", rar4Of(rarFile{name: "x", data: "x", flags: 4}), files.RuleEncrypted, "x"},
		{"encrypted headers", locked, files.RuleEncrypted, ""},
		{"encrypted headers, 4", append([]byte(rars.Magic4), rar4Block(0x73, 0x80, make([]byte, 6))...), files.RuleEncrypted, ""},
		{"trailing", append(append([]byte{}, whole5...), "more"...), files.RuleTrailing, ""},
		{"trailing, 4", append(append([]byte{}, whole4...), "more"...), files.RuleTrailing, ""},
		{"no end", whole5[:len(whole5)-8], files.RuleTruncated, "none"},
		{"no end, 4", whole4[:len(whole4)-7], files.RuleTruncated, "none"},
		{"cut in the data", whole5[:1000], files.RuleTruncated, "d/größe/two.txt"},
		{"changed", flip(whole5, 5000), files.RuleChecksum, "d/größe/two.txt"},
		{"changed, 4", flip(whole4, 5000), files.RuleChecksum, "d/größe/two.txt"},
		{"changed header", flip(whole5, 12), files.RuleChecksum, ""},
	} {
		t.Run(c.about, func(t *testing.T) {
			_, _, err := extract(t, "x.rar", c.data, Limits{})
			wantRule(t, err, c.rule, c.member)
		})
	}
}

func TestRarNamesInACodePage(t *testing.T) {
	dir, x, err := extract(t, "x.rar", rar4Of(rarFile{name: "Gr\x94\xe1e.txt", data: "x"}), Limits{})
	if err != nil || len(x.Warnings) != 1 {
		t.Fatalf("%+v, %v", x, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "Größe.txt")); err != nil {
		t.Error(err)
	}
}

// RAR 4 packs a name's Unicode behind its bytes: a byte for its high half, then two
// bits for each letter that say how it is written.
func TestRar4UnicodeNames(t *testing.T) {
	data := rar4Of(rarFile{name: "??.txt\x00\x00\xa0\xe5\x65\x2c\x67.t\x00xt", data: "x", flags: 0x200})
	dir, x, err := extract(t, "x.rar", data, Limits{})
	if err != nil || len(x.Warnings) != 0 {
		t.Fatalf("%+v, %v", x, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "日本.txt")); err != nil {
		t.Error(err)
	}
}
