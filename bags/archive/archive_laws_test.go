package archive

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"bagpipe/bags/archive/internal/zips"
	"bagpipe/bags/files"

	"github.com/pierrec/lz4/v4"
)

// everyFormat is one small archive of each that can be made here without other
// people's programs; of those that cannot, the ones found.
func everyFormat(t testing.TB) map[string][]byte {
	plain := tarOf(t, file("a/one.txt", "one"), file("two.txt", string(text(3000, 1))))
	all := map[string][]byte{
		"x.zip": zipOf(t, "one.txt", "d/", "d/two.txt"), "x.tar": plain, "x.tar.gz": gz(t, plain), "x.tar.zst": zst(t, plain), "x.tar.lz4": lz(t, plain),
		"5.rar": rar5Of(someRar[0], someRar[1], rarFile{name: "x", data: "some more"}), "4.rar": rar4Of(someRar[0], someRar[1], rarFile{name: "x", data: "some more"}),
	}
	for name, args := range map[string][]string{"x.tar.bz2": {"bzip2", "-c"}, "x.tar.xz": {"xz", "-c"}} {
		cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
		cmd.Stdin = bytes.NewReader(plain)
		if out, err := cmd.Output(); err == nil {
			all[name] = out
		}
	}
	for _, seven := range []string{"7zz", "7z"} {
		dir := t.TempDir()
		cmd := exec.CommandContext(t.Context(), seven, "a", "-bd", filepath.Join(dir, "x.7z"), put(t, "one.txt", []byte("one")))
		if cmd.Run() == nil {
			all["x.7z"], _ = os.ReadFile(filepath.Join(dir, "x.7z"))
			break
		}
	}
	return all
}

func lz(t testing.TB, data []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := lz4.NewWriter(&b)
	if _, err := w.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// A file that was cut anywhere is refused, or, where a format cannot tell, warned
// about; and so is one that something was added to.
func TestCutAnywhere(t *testing.T) {
	if testing.Short() {
		t.Skip("cuts every archive at every byte")
	}
	for name, data := range everyFormat(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if in, err := inspect(t, name, data); err != nil || len(in.Problems)+len(in.Warnings) > 0 {
				t.Fatalf("the whole archive: %v %v, %v", in.Problems, in.Warnings, err)
			}
			step := max(1, len(data)/500)
			switch ext := filepath.Ext(name); {
			case ext == ".7z" || ext == ".rar":
				step = max(step, 7) // a process each
			case (ext == ".lz4" || ext == ".bz2" || ext == ".xz") && os.Getenv("BAGPIPE_SOAK") == "":
				step = max(step, len(data)/60) // blocks of megabytes each, which the race detector makes slow
			}
			for n := 0; n < len(data); n += step {
				in, err := inspect(t, name, data[:n])
				if err != nil {
					t.Fatalf("cut at %d of %d: %v", n, len(data), err)
				}
				if len(in.Problems)+len(in.Warnings) == 0 {
					t.Errorf("cut at %d of %d: nothing was said", n, len(data))
				}
			}
			for _, more := range []string{"x", "trailing data that is rather long, longer than a header"} {
				in, err := inspect(t, name, append(bytes.Clone(data), more...))
				if err != nil || len(in.Problems) == 0 {
					t.Errorf("with %d bytes more: nothing was said (%v)", len(more), err)
				}
			}
		})
	}
}

func inspect(t *testing.T, name string, data []byte) (Inspected, error) {
	t.Helper()
	return Inspect(t.Context(), put(t, name, data), InspectOptions{Data: true})
}

// What Inspect finds is what Extract refuses, and what it lists is what Extract
// makes.
func TestInspectAgreesWithExtract(t *testing.T) {
	for name, data := range everyFormat(t) {
		var seen []string
		in, err := Inspect(t.Context(), put(t, name, data), InspectOptions{Member: func(m Member) {
			if !m.Folder {
				seen = append(seen, fmt.Sprint(m.Path, " ", m.Size))
			}
		}})
		if err != nil || len(in.Problems) > 0 {
			t.Fatalf("%s: %v, %v", name, in.Problems, err)
		}
		dir, x, err := extract(t, name, data, Limits{})
		if err != nil || x.Files != in.Files || x.Folders != in.Folders || x.Bytes != in.Bytes || int(x.Files) != len(seen) {
			t.Errorf("%s: listed %+v (%v), unpacked %+v, %v", name, in.Extracted, seen, x, err)
		}
		for i := range seen {
			var p string
			var size int64
			if _, err := fmt.Sscan(seen[i], &p, &size); err != nil {
				t.Fatal(err)
			}
			if info, err := os.Stat(filepath.Join(dir, p)); err != nil || info.Size() != size {
				t.Errorf("%s: %s: %v", name, p, err)
			}
		}
	}
}

func TestInspectFindsAll(t *testing.T) {
	data := tarOf(t, file("../a", "x"), file("b", "y"), file("/c", "z"), file("b", "again"), file("ok", "fine"))
	in, err := inspect(t, "x.tar", data)
	if err != nil || in.Files != 2 || len(in.Problems) != 3 {
		t.Fatalf("%+v, %v", in, err)
	}
	for i, want := range []files.Rule{files.RuleParent, files.RuleAbsolute, files.RuleDuplicate} {
		if in.Problems[i].Rule != want {
			t.Errorf("%v, want %s", in.Problems[i], want)
		}
	}
	damaged := zipOf(t, "a", "b", "c")
	for _, n := range []int{1, 3} {
		at := nthIndex(damaged, []byte("PK\x03\x04"), n)
		damaged[at+zips.LocalLen+len("a")+int(damaged[at+28])+2] ^= 0xff
	}
	in, err = inspect(t, "x.zip", damaged)
	if err != nil || len(in.Problems) != 2 {
		t.Errorf("%v, %v; want two damaged members", in.Problems, err)
	}
}

func nthIndex(b, sep []byte, n int) int {
	at := -1
	for range n {
		at += 1 + bytes.Index(b[at+1:], sep)
	}
	return at
}

func TestTimeLimit(t *testing.T) {
	_, _, err := extract(t, "x.tar", tarOf(t, file("a", "x")), Limits{Time: 1})
	var e *files.Error
	if !errors.As(err, &e) || e.Rule != files.RuleTime {
		t.Errorf("%v", err)
	}
}

func TestWarnings(t *testing.T) {
	setuid := file("prog", "x")
	setuid.header.Mode = 0o4755
	_, x, err := extract(t, "x.tar", tarOf(t, setuid, file("con.txt", ""), file("a:b", ""), file("dot./x", "")), Limits{})
	if err != nil || len(x.Warnings) != 4 {
		t.Errorf("%q, %v", x.Warnings, err)
	}
}
