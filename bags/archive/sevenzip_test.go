package archive

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"bagpipe/bags/files"
)

// tool finds one of other people's programs, or skips the test: testdata/tools.sh
// installs them.
func tool(t testing.TB, names ...string) string {
	t.Helper()
	for _, n := range names {
		if p, err := exec.LookPath(n); err == nil {
			return p
		}
	}
	t.Skipf("%s is not installed; testdata/tools.sh installs it where it can", strings.Join(names, " or "))
	return ""
}

func runIn(t testing.TB, dir, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %v: %v\n%s", name, args, err, out)
	}
	return string(out)
}

// aTree is a folder with what archives hold: sizes around the blocks', folders
// within folders, an empty one, and names in several scripts.
func aTree(t testing.TB) string {
	t.Helper()
	dir, size := t.TempDir(), 500_000
	if testing.Short() {
		size = 160_000 // more than a block of zstd's, and of xz's where that is 100 KiB
	}
	for p, data := range map[string][]byte{
		"letters/1.txt": []byte("one\n"), "letters/größe.txt": []byte("two\n"), "letters/日本語/写真.txt": []byte("three\n"),
		"empty": nil, "noise.bin": noise(size*3/5, 7), "text.txt": text(size, 9), "deep/er/and/deeper/x": []byte("x"),
		"program": append([]byte("\x7fELF"), noise(50_000, 3)...),
	} {
		to := filepath.Join(dir, p)
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(to, data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "an empty folder"), 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// sameTree compares two folders to the last byte.
func sameTree(t testing.TB, want, got string) {
	t.Helper()
	list := func(dir string) map[string]string {
		tree, err := files.Scan(t.Context(), dir)
		if err != nil {
			t.Fatal(err)
		}
		all := map[string]string{}
		for _, f := range tree.Folders {
			all[f.Path] = "folder"
		}
		for _, f := range tree.Files {
			data, err := os.ReadFile(filepath.Join(dir, f.Path))
			if err != nil {
				t.Fatal(err)
			}
			all[f.Path] = "file " + string(data)
		}
		for _, f := range tree.Others {
			all[f.Path] = f.Mode.String()
		}
		return all
	}
	a, b := list(want), list(got)
	for p := range a {
		if a[p] != b[p] {
			t.Errorf("%q differs, or is missing", p)
		}
	}
	for p := range b {
		if _, ok := a[p]; !ok {
			t.Errorf("%q is there and should not be", p)
		}
	}
}

func extractFile(t testing.TB, archive string, o ExtractOptions) (string, Extracted, error) {
	t.Helper()
	dir := t.TempDir()
	x, err := Extract(t.Context(), archive, dir, o)
	return dir, x, err
}

func TestSevenZipOfOthers(t *testing.T) {
	seven := tool(t, "7zz", "7z", "7za")
	tree := aTree(t)
	for name, args := range map[string][]string{
		"lzma":         {"-m0=lzma"},
		"lzma2":        {"-m0=lzma2"},
		"bzip2":        {"-m0=bzip2"},
		"deflate":      {"-m0=deflate"},
		"ppmd":         {"-m0=ppmd"},
		"copy":         {"-m0=copy"},
		"bcj":          {"-m0=bcj", "-m1=lzma2"},
		"bcj2":         {"-m0=bcj2", "-m1=lzma:d=20", "-m2=lzma:d=17", "-m3=lzma:d=17", "-mb0:1", "-mb0s1:2", "-mb0s2:3"},
		"delta":        {"-m0=delta:2", "-m1=lzma"},
		"arm64":        {"-m0=arm64", "-m1=lzma2"},
		"not solid":    {"-ms=off"},
		"solid":        {"-ms=on"},
		"plain header": {"-mhc=off"},
	} {
		t.Run(name, func(t *testing.T) {
			archive := filepath.Join(t.TempDir(), "x.7z")
			runIn(t, tree, seven, append([]string{"a", "-bd", archive, "."}, args...)...)
			if f, err := Sniff(archive); f != SevenZip || err != nil {
				t.Fatalf("%q, %v", f, err)
			}
			dir, x, err := extractFile(t, archive, ExtractOptions{})
			if err != nil {
				t.Fatal(err)
			}
			sameTree(t, tree, dir)
			if len(x.Warnings) != 0 {
				t.Errorf("warnings %q", x.Warnings)
			}
		})
	}
	t.Run("volumes", func(t *testing.T) {
		archive := filepath.Join(t.TempDir(), "x.7z")
		runIn(t, tree, seven, "a", "-bd", "-v60k", archive, ".")
		dir, _, err := extractFile(t, archive+".001", ExtractOptions{})
		if err != nil {
			t.Fatal(err)
		}
		sameTree(t, tree, dir)
		if err := os.Remove(archive + ".003"); err != nil {
			t.Fatal(err)
		}
		_, _, err = extractFile(t, archive+".001", ExtractOptions{})
		wantRule(t, err, files.RuleTruncated, "")
	})
	for name, c := range map[string]struct {
		args   []string
		rule   files.Rule
		detail string
	}{
		"encrypted":        {[]string{"-psecret"}, files.RuleEncrypted, "AES-256"},
		"encrypted header": {[]string{"-psecret", "-mhe=on"}, files.RuleEncrypted, "AES-256"},
		"deflate64":        {[]string{"-m0=deflate64"}, files.RuleMethod, "deflate64"},
	} {
		t.Run(name, func(t *testing.T) {
			archive := filepath.Join(t.TempDir(), "x.7z")
			runIn(t, tree, seven, append([]string{"a", "-bd", archive, "."}, c.args...)...)
			_, _, err := extractFile(t, archive, ExtractOptions{})
			var e *files.Error
			if !errors.As(err, &e) || e.Rule != c.rule || !strings.Contains(e.Detail, c.detail) {
				t.Fatalf("%v; want %s, %s", err, c.rule, c.detail)
			}
			if name != "encrypted header" && e.Member == "" {
				t.Errorf("%v names no member", err)
			}
		})
	}
}

// A few bytes that ask for gigabytes end the reading process, and nothing else.
func TestSevenZipThatAsksForMemory(t *testing.T) {
	for name, data := range map[string][]byte{
		"lzma, 2 GiB":  sevenZipHungry("\x03\x01\x01", 0x5d, 0xff, 0xff, 0xff, 0x7f),
		"lzma, 4 GiB":  sevenZipHungry("\x03\x01\x01", 0x5d, 0xff, 0xff, 0xff, 0xff),
		"lzma2, 4 GiB": sevenZipHungry("\x21", 40),
		"ppmd, 2 GiB":  sevenZipHungry("\x03\x04\x01", 6, 0xff, 0xff, 0xff, 0x7f),
	} {
		t.Run(name, func(t *testing.T) {
			if len(data) > 80 {
				t.Errorf("%d bytes", len(data))
			}
			_, _, err := extract(t, "x.7z", data, Limits{})
			wantRule(t, err, files.RuleMemory, "")
		})
	}
}

func TestHostileSevenZips(t *testing.T) {
	empty := sevenZipOf(nil, nil)
	for _, c := range []struct {
		about string
		data  []byte
		rule  files.Rule
	}{
		{"cut in the start", empty[:20], files.RuleTruncated},
		{"changed start", flip(empty, 15), files.RuleChecksum},
		{"trailing", append(empty[:len(empty):len(empty)], "more"...), files.RuleTrailing},
		{"no header", sevenZipOf(nil, []byte{9, 9, 9}), files.RuleDamaged},
		{"cut", sevenZipHungry("\x21", 40)[:60], files.RuleTruncated},
	} {
		t.Run(c.about, func(t *testing.T) {
			_, _, err := extract(t, "x.7z", c.data, Limits{})
			wantRule(t, err, c.rule, "")
		})
	}
	if _, x, err := extract(t, "x.7z", empty, Limits{}); err != nil || x.Files != 0 {
		t.Errorf("an archive without members: %+v, %v", x, err)
	}
}

// An archive that says which files are gone is refused with that as a reason.
func TestSevenZipOfChanges(t *testing.T) {
	seven := tool(t, "7zz", "7z", "7za")
	tree := aTree(t)
	dir := t.TempDir()
	base, changes := filepath.Join(dir, "base.7z"), filepath.Join(dir, "changes.7z")
	runIn(t, tree, seven, "a", "-bd", base, ".")
	if err := os.Remove(filepath.Join(tree, "text.txt")); err != nil {
		t.Fatal(err)
	}
	runIn(t, tree, seven, "u", "-bd", base, ".", "-u-", "-up1q3r2x2y2z1w2!"+changes)
	_, _, err := extractFile(t, changes, ExtractOptions{})
	wantRule(t, err, files.RuleDamaged, "")
	if !strings.Contains(err.Error(), "anti-items") {
		t.Error(err)
	}
}
