package target_test

import (
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"bagpipe/steps/target"
	"bagpipe/steps/target/targettest"
	"bagpipe/testdata/sample"
)

// rewritten changes the object's inventory and its newest version's, with their sidecars.
func rewritten(t *testing.T, object, head string, pairs ...string) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(object, "inventory.json"))
	must(t, err)
	for i := 0; i < len(pairs); i += 2 {
		if !strings.Contains(string(data), pairs[i]) {
			t.Fatalf("the inventory has no %s", pairs[i])
		}
	}
	data = []byte(strings.NewReplacer(pairs...).Replace(string(data)))
	sum := sha512.Sum512(data)
	for _, dir := range []string{object, filepath.Join(object, head)} {
		must(t, os.WriteFile(filepath.Join(dir, "inventory.json"), data, 0o644),
			os.WriteFile(filepath.Join(dir, "inventory.json.sha512"), []byte(hex.EncodeToString(sum[:])+" inventory.json\n"), 0o644))
	}
}

// standing is all that stands below a folder.
func standing(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	must(t, filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(p)
		all[p] = string(data)
		return err
	}))
	return all
}

// An object of OCFL 1.0, one whose versions are padded with zeros, one of other digests or another content folder, and one
// whose sidecar or inventory is broken or hostile, is not gone on with: that is said, and not a byte of it is changed.
func TestOCFLThatIsNotGoneOnWith(t *testing.T) {
	t.Parallel()
	const end = `"digestAlgorithm": "sha512"`
	for name, c := range map[string]struct {
		harm func(t *testing.T, object string)
		want string
	}{
		"1.0": {func(t *testing.T, object string) {
			rewritten(t, object, "v2", "ocfl.io/1.1/", "ocfl.io/1.0/")
			must(t, os.Remove(filepath.Join(object, "0=ocfl_object_1.1")), os.WriteFile(filepath.Join(object, "0=ocfl_object_1.0"), []byte("ocfl_object_1.0\n"), 0o644))
		}, "OCFL 1.1 alone"},
		"padded": {func(t *testing.T, object string) {
			must(t, os.Rename(filepath.Join(object, "v1"), filepath.Join(object, "v001")), os.Rename(filepath.Join(object, "v2"), filepath.Join(object, "v002")))
			rewritten(t, object, "v002", `"v1`, `"v001`, `"v2`, `"v002`)
		}, `head "v002" is none that is gone on with`},
		"sha256":  {func(t *testing.T, object string) { rewritten(t, object, "v2", end, `"digestAlgorithm": "sha256"`) }, "sha512 alone"},
		"content": {func(t *testing.T, object string) { rewritten(t, object, "v2", end, end+`, "contentDirectory": "data"`) }, "content alone"},
		"sidecar": {func(t *testing.T, object string) {
			must(t, os.WriteFile(filepath.Join(object, "inventory.json.sha512"), []byte(strings.Repeat("0", 128)+" inventory.json\n"), 0o644),
				os.WriteFile(filepath.Join(object, "v2/inventory.json.sha512"), []byte("none"), 0o644))
		}, "not what its sidecar says"},
		"no JSON": {func(t *testing.T, object string) { rewritten(t, object, "v2", "{", "[") }, "cannot be read"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			harmedKinds(t, func(t *testing.T, open func(*testing.T, string) *harmed) {
				h := open(t, target.LayoutOCFL)
				c.harm(t, h.object)
				before := standing(t, h.dir)
				third := targettest.NewBag(t, "one", targettest.Now(), map[string]string{"z": "Z"})
				third.Version = 3
				if made, err := h.to.Put(t.Context(), third); err == nil || !strings.Contains(err.Error(), c.want) {
					t.Errorf("a put: %+v, %v", made, err)
				}
				for name, text := range standing(t, h.dir) {
					if before[name] != text {
						t.Errorf("%s was changed, or made", name)
					}
					delete(before, name)
				}
				for name := range before {
					t.Errorf("%s is gone", name)
				}
			})
		})
	}
}

// Paths in an inventory that lead out of the object, or out of the folder that a copy is written into, are damage: nothing is read or
// written there, neither by a look nor by what is got, walked or put.
func TestOCFLHostilePaths(t *testing.T) {
	t.Parallel()
	for name, pairs := range map[string][]string{
		"logical up":       {`"data/a"`, `"../../evil"`},
		"logical absolute": {`"data/a"`, `"/nowhere/evil"`},
		"logical element":  {`"data/a"`, `"data/../../../evil"`},
		"logical empty":    {`"data/a"`, `""`},
		"content up":       {`"v1/content/data/a"`, `"../../../../../secret"`},
		"content element":  {`"v1/content/data/a"`, `"v1/../../../../../../secret"`},
		"content absolute": {`"v1/content/data/a"`, `"/etc/passwd"`},
		"content dot":      {`"v1/content/data/a"`, `"v1/./content/data/a"`},
		"no content":       {`"v1/content/data/a"`, `"extensions/a"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			harmedKinds(t, func(t *testing.T, open func(*testing.T, string) *harmed) {
				h := open(t, target.LayoutOCFL)
				must(t, os.WriteFile(filepath.Join(h.dir, "secret"), []byte("A"), 0o644))
				rewritten(t, h.object, "v2", pairs...)
				h.found(t, 2)
				top := sample.TempDir(t)
				to := filepath.Join(top, "x/y")
				must(t, os.MkdirAll(to, 0o755))
				var wrong *target.Damage
				if err := h.to.Get(t.Context(), h.copies[1], to); !errors.As(err, &wrong) {
					t.Errorf("it is got: %v", err)
				}
				if got := standing(t, top); len(got) > 0 {
					t.Errorf("written: %v", got)
				}
				must(t, h.to.Walk(t.Context(), func(target.Found) error { return nil }))
				third := targettest.NewBag(t, "one", targettest.Now(), map[string]string{"a": "A"})
				third.Version = 3
				if c, err := h.to.Put(t.Context(), third); err == nil {
					if _, _, err := h.to.Check(t.Context(), c, target.Read); err != nil {
						t.Errorf("what was put is not sound: %v", err)
					}
				}
			})
		})
	}
}

// Extensions and logs of others, in an object and in the storage root, are none of ours: they stay, also through a mend, and a version
// that another added is gone on with.
func TestOCFLWithExtensions(t *testing.T) {
	t.Parallel()
	harmedKinds(t, func(t *testing.T, open func(*testing.T, string) *harmed) {
		h := open(t, target.LayoutOCFL)
		foreign := []string{filepath.Join(h.object, "extensions/mine/config.json"), filepath.Join(h.object, "logs/2026.log"), filepath.Join(h.dir, "ocfl/extensions/0008-schema-registry/config.json")}
		for _, name := range foreign {
			must(t, os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, []byte("{}"), 0o644))
		}
		for n := range h.copies {
			if _, _, err := h.to.Check(t.Context(), h.copies[n], target.Read); err != nil {
				t.Errorf("version %d: %v", n+1, err)
			}
		}
		addVersion(t, h.object)
		third := targettest.NewBag(t, "one", targettest.Now(), map[string]string{"a": "A", "z": "Z"})
		third.Version, third.Record = 3, map[int]target.Copy{1: h.copies[0], 2: h.copies[1]}
		c, err := h.to.Put(t.Context(), third)
		must(t, err)
		if c.State != "v4" {
			t.Errorf("beside another's v3 it is %s", c.State)
		}
		if !targettest.FlipIn(t, h.object, "v1/content/data/a") {
			t.Fatal("nothing was damaged")
		}
		h.mend(t, 1)
		for n, copied := range []target.Copy{h.copies[0], h.copies[1], c} {
			if _, _, err := h.to.Check(t.Context(), copied, target.Read); err != nil {
				t.Errorf("version %d: %v", n+1, err)
			}
		}
		var walked []string
		must(t, h.to.Walk(t.Context(), func(f target.Found) error {
			walked = append(walked, fmt.Sprint(f.Version, f.Copy.State))
			return nil
		}))
		if want := []string{"1v1", "2v2", "3v4"}; !slices.Equal(walked, want) {
			t.Errorf("told of %q, want %q", walked, want)
		}
		for _, name := range foreign {
			if _, err := os.Lstat(name); err != nil {
				t.Error(err)
			}
		}
		if r, err := target.ValidateOCFL(t.Context(), filepath.Join(h.dir, "ocfl"), false); err != nil || !r.Valid {
			t.Errorf("%+v, %v", r, err)
		}
	})
}

// addVersion makes v3 of an object as another program does: v2's state, with a message of its own.
func addVersion(t *testing.T, object string) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(object, "inventory.json"))
	must(t, err)
	var v map[string]any
	must(t, json.Unmarshal(data, &v))
	versions := v["versions"].(map[string]any)
	third := maps.Clone(versions["v2"].(map[string]any))
	third["message"], v["head"], versions["v3"] = "by another", "v3", third
	data, err = json.Marshal(v)
	must(t, err, os.Mkdir(filepath.Join(object, "v3"), 0o755), os.WriteFile(filepath.Join(object, "inventory.json"), data, 0o644))
	rewritten(t, object, "v3")
}

// An older inventory that gives a version another state, or a content another digest, contradicts the object's: also where it is of
// another digest algorithm.
func TestOCFLOldInventories(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		edit  func(data string, content map[string]string) string // content has the SHA-512 of files of v1, and their SHA-256 by it
		codes []string
		valid bool
	}{
		"sha256": {func(data string, content map[string]string) string { return ofSHA256(data, content) }, nil, true},
		"sha256, another": {func(data string, content map[string]string) string {
			return strings.Replace(ofSHA256(data, content), `"data/d/b"`, `"data/d/x"`, 1)
		}, []string{"E066"}, false},
		"another digest": {func(data string, content map[string]string) string {
			return strings.ReplaceAll(data, content["v1/content/data/a"], strings.Repeat("0", 128))
		}, []string{"E066", "E092"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			kind := sweptKinds()[0]
			conf, dir := kind.open(t)
			conf.Layout = target.LayoutOCFL
			h := newHarmed(t, conf, dir)
			content := map[string]string{}
			for at, text := range standing(t, filepath.Join(h.object, "v1/content")) {
				name := strings.TrimPrefix(at, h.object+"/")
				long, short := sha512.Sum512([]byte(text)), sha256.Sum256([]byte(text))
				content[name] = hex.EncodeToString(long[:])
				content[content[name]] = hex.EncodeToString(short[:])
			}
			at := filepath.Join(h.object, "v1")
			data, err := os.ReadFile(filepath.Join(at, "inventory.json"))
			must(t, err)
			text := c.edit(string(data), content)
			must(t, os.WriteFile(filepath.Join(at, "inventory.json"), []byte(text), 0o644), os.Remove(filepath.Join(at, "inventory.json.sha512")))
			sum, ending := sha512.Sum512([]byte(text)), "sha512"
			side := hex.EncodeToString(sum[:])
			if strings.Contains(text, `"sha256"`) {
				short := sha256.Sum256([]byte(text))
				side, ending = hex.EncodeToString(short[:]), "sha256"
			}
			must(t, os.WriteFile(filepath.Join(at, "inventory.json."+ending), []byte(side+" inventory.json\n"), 0o644))
			r, err := target.ValidateOCFL(t.Context(), filepath.Join(h.dir, "ocfl"), false)
			must(t, err)
			if r.Valid != c.valid {
				t.Errorf("%+v", r)
			}
			for _, code := range c.codes {
				if !drawn(r, code) {
					t.Errorf("not %s: %+v", code, r)
				}
			}
		})
	}
}

// ofSHA256 makes an inventory one of SHA-256.
func ofSHA256(data string, content map[string]string) string {
	for long, short := range content {
		if len(long) == 128 {
			data = strings.ReplaceAll(data, long, short)
		}
	}
	return strings.Replace(data, `"digestAlgorithm": "sha512"`, `"digestAlgorithm": "sha256"`, 1)
}
