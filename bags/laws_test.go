package bags

import (
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

// drawTree writes a random tree and gives its files.
func drawTree(rt *rapid.T, dir string) map[string]string {
	names := rapid.StringMatching(`[a-z%\n\rü .~\\*]{1,8}`).Filter(func(s string) bool {
		return strings.Trim(s, ".") != "" && !hasParent(strings.ReplaceAll(s, `\`, "/")) // ..\ is refused in every archive
	})
	tree := map[string]string{}
	for range rapid.IntRange(0, 6).Draw(rt, "files") {
		p := strings.Join(rapid.SliceOfN(names, 1, 3).Draw(rt, "path"), "/")
		to := filepath.Join(dir, p)
		if os.MkdirAll(filepath.Dir(to), 0o755) != nil {
			continue // a file stands where a folder should
		}
		data := rapid.String().Draw(rt, "data")
		if os.WriteFile(to, []byte(data), 0o644) == nil {
			tree[p] = data
		}
	}
	return tree
}

// Any tree becomes a bag, in place or beside it; serialized in any format it is
// valid as a stream; unpacked it is the same tree, and valid.
func TestAnyTreeGoesThroughBagAndArchive(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		outer := tempDir(t, rt)
		dir, dest := filepath.Join(outer, "tree"), filepath.Join(outer, "bag")
		must(rt, os.Mkdir(dir, 0o755))
		tree := drawTree(rt, dir)
		o := CreateOptions{Payload: dir, Dest: dest, Date: bagDate, NoSync: true, Algorithms: drawAlgorithms(rt)}
		create := Create
		if rapid.Bool().Draw(rt, "in place") {
			create, dest = CreateInPlace, dir
		}
		_, err := create(t.Context(), o)
		must(rt, err)
		format := rapid.SampledFrom(allFormats).Draw(rt, "format")
		archived := dest + "." + string(format)
		r, err := Serialize(t.Context(), dest, archived, SerializeOptions{Format: format, Verify: true, NoSync: true})
		if format == archive.Zip && hasAny(tree, `\`) {
			if err == nil {
				rt.Fatal("a zip was written that programs read in two ways")
			}
			return
		}
		must(rt, err)
		if !r.Valid {
			rt.Fatalf("as a stream: %+v", r.Findings)
		}
		back := filepath.Join(outer, "back")
		must(rt, os.Mkdir(back, 0o755))
		_, err = archive.Extract(t.Context(), archived, back, archive.ExtractOptions{})
		if hasAny(tree, "\r\n") {
			if err == nil {
				rt.Fatal("a name that may not be unpacked was")
			}
			return
		}
		must(rt, err)
		unpacked := filepath.Join(back, filepath.Base(dest))
		if got := filesOf(t, filepath.Join(unpacked, "data")); !maps.Equal(got, tree) {
			rt.Fatalf("payload %q, want %q", got, tree)
		}
		if r, err := Validate(t.Context(), unpacked, ValidateOptions{}); err != nil || !r.Valid {
			rt.Fatalf("%+v, %v", r.Findings, err)
		}
	})
}

func hasAny(tree map[string]string, chars string) bool {
	for p := range tree {
		if strings.ContainsAny(p, chars) {
			return true
		}
	}
	return false
}

func tempDir(t *testing.T, rt *rapid.T) string {
	dir, err := os.MkdirTemp(t.TempDir(), "")
	must(rt, err)
	return dir
}

func must(rt *rapid.T, err error) {
	rt.Helper()
	if err != nil {
		rt.Fatal(err)
	}
}

func drawAlgorithms(rt *rapid.T) []files.Algorithm {
	return rapid.SliceOfNDistinct(rapid.SampledFrom([]files.Algorithm{files.MD5, files.SHA1, files.SHA224, files.SHA256, files.SHA384, files.SHA512}), 1, 3, rapid.ID).Draw(rt, "algorithms")
}

// Any one change of a bag is found: of a byte, by removing, adding or renaming a
// file, in the payload or among the tag files. A tag manifest is vouched for by
// nothing; an added tag file is a warning, as RFC 8493 allows it.
func TestAnyChangeIsFound(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		outer := tempDir(t, rt)
		dir := filepath.Join(outer, "bag")
		must(rt, os.Mkdir(dir, 0o755))
		writeFile(t, filepath.Join(dir, "always there"), "x")
		drawTree(rt, dir)
		_, err := CreateInPlace(t.Context(), CreateOptions{Payload: dir, Date: bagDate, NoSync: true, Algorithms: drawAlgorithms(rt)})
		must(rt, err)
		before, err := Validate(t.Context(), dir, ValidateOptions{})
		must(rt, err)
		files := filesOf(t, dir)
		maps.DeleteFunc(files, func(p, _ string) bool { return strings.HasPrefix(p, "tagmanifest-") })
		p := rapid.SampledFrom(slices.Sorted(maps.Keys(files))).Draw(rt, "file")
		at := filepath.Join(dir, p)
		kind := rapid.SampledFrom([]string{"byte", "longer", "shorter", "remove", "add", "rename"}).Draw(rt, "change")
		switch kind {
		case "byte", "shorter":
			if files[p] == "" {
				return
			}
			data := []byte(files[p])
			if kind == "shorter" {
				data = data[:len(data)-1]
			} else {
				data[rapid.IntRange(0, len(data)-1).Draw(rt, "at")] ^= 1 << rapid.IntRange(0, 7).Draw(rt, "bit")
			}
			must(rt, os.WriteFile(at, data, 0o644))
		case "longer":
			must(rt, os.WriteFile(at, []byte(files[p]+"x"), 0o644))
		case "remove":
			must(rt, os.Remove(at))
		case "add":
			must(rt, os.WriteFile(at+"~", []byte("new"), 0o644))
		case "rename":
			must(rt, os.Rename(at, at+"~"))
		}
		after, err := Validate(t.Context(), dir, ValidateOptions{})
		must(rt, err)
		isTag := !strings.HasPrefix(p, "data/")
		if after.Valid && !(kind == "add" && isTag && after.Warnings > before.Warnings) {
			rt.Fatalf("%s of %q was not found", kind, p)
		}
	})
}
