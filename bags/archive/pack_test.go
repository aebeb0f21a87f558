package archive

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"bagpipe/bags/files"
)

func TestPackAndUnpack(t *testing.T) {
	tree := aTree(t)
	if err := os.Chmod(filepath.Join(tree, "program"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, f := range PackFormats() {
		t.Run(string(f), func(t *testing.T) {
			archive := filepath.Join(t.TempDir(), "x."+string(f))
			p, err := Pack(t.Context(), tree, archive, PackOptions{})
			if err != nil || p.Format != f || p.Files != 8 || p.Folders != 8 {
				t.Fatalf("%+v, %v", p, err)
			}
			dir, x, err := extractFile(t, archive, ExtractOptions{})
			if err != nil || x.Files != p.Files || x.Folders != p.Folders || x.Bytes != p.Bytes || len(x.Warnings) > 0 {
				t.Fatalf("%+v, %v; packed %+v", x, err, p)
			}
			back := filepath.Join(dir, filepath.Base(tree))
			sameTree(t, tree, back)
			a, _ := os.Stat(filepath.Join(tree, "program"))
			b, err := os.Stat(filepath.Join(back, "program"))
			if err != nil || a.Mode() != b.Mode() || a.ModTime().Unix() != b.ModTime().Unix() {
				t.Errorf("%v %v became %v %v", a.Mode(), a.ModTime(), b.Mode(), b.ModTime())
			}
			if names, _ := os.ReadDir(filepath.Dir(archive)); len(names) != 1 {
				t.Errorf("left beside the archive: %v", names)
			}
		})
	}
}

func TestOthersReadWhatIsPacked(t *testing.T) {
	tree := aTree(t)
	for _, c := range []struct {
		format Format
		tools  []string
		args   []string
	}{
		{Zip, []string{"unzip"}, []string{"-q"}}, {Zip, []string{"bsdtar"}, []string{"-xf"}}, {Zip, []string{"7zz", "7z"}, []string{"x", "-bd"}},
		{Tar, []string{"tar"}, []string{"-xf"}}, {Tar, []string{"bsdtar"}, []string{"-xf"}}, {Tar, []string{"7zz", "7z"}, []string{"x", "-bd"}},
		{TarGzip, []string{"tar"}, []string{"-xzf"}}, {TarGzip, []string{"bsdtar"}, []string{"-xf"}},
		{TarZstd, []string{"tar"}, []string{"--zstd", "-xf"}}, {TarZstd, []string{"bsdtar"}, []string{"-xf"}},
	} {
		t.Run(string(c.format)+" by "+c.tools[0], func(t *testing.T) {
			program := tool(t, c.tools...)
			archive, to := filepath.Join(t.TempDir(), "x."+string(c.format)), t.TempDir()
			if _, err := Pack(t.Context(), tree, archive, PackOptions{}); err != nil {
				t.Fatal(err)
			}
			t.Setenv("LC_ALL", "C.UTF-8")
			runIn(t, to, program, append(c.args, archive)...)
			sameTree(t, tree, filepath.Join(to, filepath.Base(tree)))
		})
	}
}

func TestWhatOthersPack(t *testing.T) {
	tree := aTree(t)
	for _, c := range []struct {
		name string
		tool string
		args []string
	}{
		{"x.tar", "tar", []string{"--format=gnu", "-cf"}}, {"x.tar", "tar", []string{"--format=posix", "-cf"}}, {"x.tar", "tar", []string{"--format=ustar", "-cf"}},
		{"x.tar", "tar", []string{"--format=v7", "-cf"}}, {"x.tar", "bsdtar", []string{"--format=pax", "-cf"}},
		{"x.tar.gz", "tar", []string{"-czf"}}, {"x.tar.bz2", "tar", []string{"-cjf"}}, {"x.tar.xz", "tar", []string{"-cJf"}}, {"x.tar.zst", "tar", []string{"--zstd", "-cf"}},
		{"x.tar.lz4", "tar", []string{"-I", "lz4", "-cf"}}, {"x.tar.lz4", "tar", []string{"-I", "lz4 -l", "-cf"}},
		{"x.tar.xz", "tar", []string{"-I", "xz -9 --check=sha256", "-cf"}}, {"x.tar.xz", "tar", []string{"-I", "xz -T2 --block-size=100KiB", "-cf"}},
		{"x.tar.zst", "tar", []string{"-I", "zstd -19 --long=27", "-cf"}},
		{"x.zip", "zip", []string{"-qr"}}, {"x.zip", "zip", []string{"-qr", "-Z", "bzip2"}}, {"x.zip", "zip", []string{"-qr0"}}, {"x.zip", "zip", []string{"-qr", "-fz"}},
		{"x.zip", "bsdtar", []string{"--format=zip", "-cf"}}, {"x.zip", "7z", []string{"a", "-bd"}}, {"x.zip", "7z", []string{"a", "-bd", "-mm=BZip2"}},
		{"x.zip", "7z", []string{"a", "-bd", "-mm=Copy"}}, {"x.tar", "7z", []string{"a", "-bd"}},
	} {
		t.Run(c.tool+" "+strings.Join(c.args, " "), func(t *testing.T) {
			program := tool(t, toolNames(c.tool)...)
			archive := filepath.Join(t.TempDir(), c.name)
			runIn(t, tree, program, append(c.args, archive, ".")...)
			dir, x, err := extractFile(t, archive, ExtractOptions{})
			if err != nil || len(x.Warnings) != 0 {
				t.Fatalf("%+v, %v", x, err)
			}
			sameTree(t, tree, dir)
		})
	}
}

// toolNames are the names that a program goes by: 7z comes from 7zip or from p7zip.
func toolNames(name string) []string {
	if name == "7z" {
		return []string{"7zz", "7z", "7za"}
	}
	return []string{name}
}

// What is not read is refused by the member's name and the method's.
func TestZipMethodsThatAreRefusedByName(t *testing.T) {
	program := tool(t, toolNames("7z")...)
	tree := aTree(t)
	for _, c := range []struct {
		arg, detail string
		rule        files.Rule
	}{
		{"-mm=Deflate64", "method 9 (deflate64)", files.RuleMethod}, {"-mm=LZMA", "method 14 (LZMA)", files.RuleMethod}, {"-mm=PPMd", "method 98 (PPMd)", files.RuleMethod},
		{"-psecret", "PKWARE", files.RuleEncrypted}, {"-mem=AES256", "AES", files.RuleEncrypted},
	} {
		t.Run(c.arg, func(t *testing.T) {
			archive, args := filepath.Join(t.TempDir(), "x.zip"), []string{"a", "-bd", "-tzip", c.arg}
			if c.arg == "-mem=AES256" {
				args = append(args, "-psecret")
			}
			runIn(t, tree, program, append(args, archive, "text.txt")...)
			_, _, err := extractFile(t, archive, ExtractOptions{})
			wantRule(t, err, c.rule, "text.txt")
			if !strings.Contains(err.Error(), c.detail) {
				t.Errorf("%v does not name %s", err, c.detail)
			}
		})
	}
}

func TestSparseTars(t *testing.T) {
	program := tool(t, "tar")
	dir := t.TempDir()
	f, err := os.Create(filepath.Join(dir, "disk"))
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range []int64{0, 3 << 20, 7<<20 + 17} {
		if _, err := f.WriteAt([]byte("data"), at); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(f.Truncate(9<<20), f.Close()); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"--format=gnu"}, {"--format=posix", "--sparse-version=0.0"}, {"--format=posix", "--sparse-version=0.1"}, {"--format=posix", "--sparse-version=1.0"},
	} {
		archive := filepath.Join(t.TempDir(), "x.tar")
		runIn(t, dir, program, append(args, "-S", "-cf", archive, ".")...)
		to, _, err := extractFile(t, archive, ExtractOptions{})
		if err != nil {
			t.Fatalf("%v: %v", args, err)
		}
		sameTree(t, dir, to)
		var s syscall.Stat_t
		if err := syscall.Stat(filepath.Join(to, "disk"), &s); err != nil || s.Blocks*512 > 2<<20 {
			t.Errorf("%v: %d bytes on the disk, %v: the holes are filled", args, s.Blocks*512, err)
		}
	}
}

func TestReproduciblePacking(t *testing.T) {
	one, two := filepath.Join(t.TempDir(), "x"), filepath.Join(t.TempDir(), "x")
	for i, dir := range []string{one, two} {
		for _, p := range []string{"b/2", "a", "b/1", "a-b"} {
			to := filepath.Join(dir, p)
			if err := os.MkdirAll(filepath.Dir(to), 0o755-os.FileMode(i)*0o55); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(to, text(70_000, uint64(len(p))), 0o644-os.FileMode(i)*0o44); err != nil {
				t.Fatal(err)
			}
			at := someDay.Add(time.Duration(i) * time.Hour)
			if err := os.Chtimes(to, at, at); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, f := range PackFormats() {
		var made [2][]byte
		for i, dir := range []string{one, two} {
			archive := filepath.Join(t.TempDir(), "x")
			if _, err := Pack(t.Context(), dir, archive, PackOptions{Format: f, Reproducible: true}); err != nil {
				t.Fatal(err)
			}
			data, err := os.ReadFile(archive)
			if err != nil {
				t.Fatal(err)
			}
			made[i] = data
		}
		if !bytes.Equal(made[0], made[1]) {
			t.Errorf("%s: the same content became two archives", f)
		}
	}
}

func TestPackRefuses(t *testing.T) {
	folder := func(name string) string {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o644); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	linked := folder("a")
	if err := os.Symlink("a", filepath.Join(linked, "l")); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		dir  string
		to   string
		rule files.Rule
	}{
		{linked, "x.tar", files.RuleSymlink}, {folder("a\nb"), "x.tar", files.RuleControl}, {folder(`a\b`), "x.zip", files.RuleBackslash}, {folder("\xff"), "x.zip", files.RuleNotUTF8},
	} {
		dest := filepath.Join(t.TempDir(), c.to)
		_, err := Pack(t.Context(), c.dir, dest, PackOptions{})
		var e *files.Error
		if !errors.As(err, &e) || e.Rule != c.rule {
			t.Errorf("%v, want %s", err, c.rule)
		}
		if names, _ := os.ReadDir(filepath.Dir(dest)); len(names) != 0 {
			t.Errorf("left behind: %v", names)
		}
	}
	if _, err := Pack(t.Context(), folder("\xff"), filepath.Join(t.TempDir(), "x.tar"), PackOptions{}); err != nil {
		t.Errorf("a tar takes a name that is not UTF-8: %v", err)
	}
	dest := put(t, "x.tar", []byte("mine"))
	if _, err := Pack(t.Context(), folder("a"), dest, PackOptions{}); err == nil {
		t.Error("wrote over a file")
	}
	if data, _ := os.ReadFile(dest); string(data) != "mine" {
		t.Error("the file changed")
	}
}
