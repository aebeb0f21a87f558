package bags

import (
	"archive/tar"
	"bytes"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"bagpipe/bags/archive"
	"bagpipe/bags/files"

	"pgregory.net/rapid"
)

// Any tree becomes a valid bag; the bag goes through an archive and back and is
// still valid; its payload is the tree; and one changed byte anywhere makes it
// invalid.
func TestRoundTrip(t *testing.T) {
	names := rapid.StringMatching(`[a-z%\n\rü .~\\]{1,8}`).Filter(func(s string) bool {
		return strings.Trim(s, ".") != "" // no "." and ".."
	})
	rapid.Check(t, func(rt *rapid.T) {
		outer, err := os.MkdirTemp(t.TempDir(), "")
		if err != nil {
			rt.Fatal(err)
		}
		tree := map[string]string{}
		payload := filepath.Join(outer, "payload")
		if err := os.Mkdir(payload, 0o755); err != nil {
			rt.Fatal(err)
		}
		for range rapid.IntRange(0, 6).Draw(rt, "files") {
			p := strings.Join(rapid.SliceOfN(names, 1, 3).Draw(rt, "path"), "/")
			to := filepath.Join(payload, p)
			if os.MkdirAll(filepath.Dir(to), 0o755) != nil {
				continue // a file stands where a folder should
			}
			data := rapid.String().Draw(rt, "data")
			if os.WriteFile(to, []byte(data), 0o644) == nil {
				tree[p] = data
			}
		}
		dest := filepath.Join(outer, "bag")
		as := rapid.SliceOfNDistinct(rapid.SampledFrom([]files.Algorithm{files.MD5, files.SHA1, files.SHA224, files.SHA256, files.SHA384, files.SHA512}), 1, 3, rapid.ID).Draw(rt, "algorithms")
		if _, err := Create(t.Context(), CreateOptions{Payload: payload, Dest: dest, Algorithms: as}); err != nil {
			rt.Fatal(err)
		}
		back := throughTar(t, rt, dest, outer)
		r, err := Validate(t.Context(), back, ValidateOptions{})
		if err != nil || !r.Valid {
			rt.Fatalf("%+v, %v", r.Findings, err)
		}
		if got := filesOf(t, filepath.Join(back, "data")); !maps.Equal(got, tree) {
			rt.Fatalf("payload %q, want %q", got, tree)
		}
		damageOne(t, rt, back)
		if r, err := Validate(t.Context(), back, ValidateOptions{}); err != nil || r.Valid {
			rt.Fatalf("a changed byte was not found (%v)", err)
		}
	})
}

// throughTar packs a folder and unpacks it again. Names that archives may not
// carry (control characters) go without: the folder itself is given back.
func throughTar(t *testing.T, rt *rapid.T, dir, outer string) string {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	if err := w.AddFS(os.DirFS(dir)); err != nil {
		rt.Fatal(err)
	}
	if err := w.Close(); err != nil {
		rt.Fatal(err)
	}
	archived, to := filepath.Join(outer, "x.tar"), filepath.Join(outer, "back")
	if err := os.WriteFile(archived, b.Bytes(), 0o644); err != nil {
		rt.Fatal(err)
	}
	if err := os.Mkdir(to, 0o755); err != nil {
		rt.Fatal(err)
	}
	_, err := archive.Extract(t.Context(), archived, to, archive.ExtractOptions{})
	for p := range filesOf(t, dir) {
		if strings.ContainsAny(p, "\r\n") || strings.HasPrefix(p, "\\") {
			if err == nil {
				rt.Fatalf("%q was unpacked", p)
			}
			return dir
		}
	}
	if err != nil {
		rt.Fatal(err)
	}
	return to
}

func filesOf(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(p)
		files[strings.TrimPrefix(p, dir+"/")] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// damageOne changes one byte of one file that something vouches for.
func damageOne(t *testing.T, rt *rapid.T, dir string) {
	files := filesOf(t, dir)
	maps.DeleteFunc(files, func(p, data string) bool { return data == "" || strings.HasPrefix(p, "tagmanifest-") })
	p := rapid.SampledFrom(slices.Sorted(maps.Keys(files))).Draw(rt, "damaged file")
	data := []byte(files[p])
	data[rapid.IntRange(0, len(data)-1).Draw(rt, "at")] ^= 1 << rapid.IntRange(0, 7).Draw(rt, "bit")
	if err := os.WriteFile(filepath.Join(dir, p), data, 0o644); err != nil {
		rt.Fatal(err)
	}
}
