package target_test

import (
	"crypto/sha512"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"bagpipe/bags/files"
	"bagpipe/steps/target"
	"bagpipe/steps/target/targettest"
	"bagpipe/testdata/sample"

	"github.com/google/go-cmp/cmp"
	"github.com/minio/minio-go/v7"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// The published fixtures draw each of the codes in their names.
func TestOCFLFixtures(t *testing.T) {
	fixtures := "../../../shared/fixtures/ocfl"
	if _, err := os.Stat(fixtures); err != nil {
		t.Skip(err)
	}
	judged := 0
	for _, version := range []string{"1.0", "1.1"} {
		for _, kind := range []string{"good", "warn", "bad"} {
			objects, err := filepath.Glob(filepath.Join(fixtures, version, kind+"-objects", "*"))
			must(t, err)
			for _, at := range objects {
				judged++
				dir := filepath.Join(sample.TempDir(t), "object")
				must(t, os.CopyFS(dir, os.DirFS(at)))
				if filepath.Base(at) == "E003_E063_empty" {
					must(t, os.Remove(filepath.Join(dir, ".keep")))
				}
				r, err := target.ValidateOCFL(t.Context(), dir, false)
				must(t, err)
				if r.Valid != (kind != "bad") || kind == "good" && len(r.Findings) > 0 {
					t.Errorf("%s: valid %v: %+v", at, r.Valid, r.Findings)
				}
				for _, code := range codeInName.FindAllString(filepath.Base(at), -1) {
					if !drawn(r, code) {
						t.Errorf("%s: not %s: %+v", at, code, r.Findings)
					}
				}
			}
		}
	}
	if judged < 50 {
		t.Errorf("%d objects alone", judged)
	}
}

var codeInName = regexp.MustCompile(`\b[EW]\d{3}|_[EW]\d{3}`)

func drawn(r target.OCFLReport, code string) bool {
	return slices.ContainsFunc(r.Findings, func(f target.OCFLFinding) bool { return f.Code == strings.TrimPrefix(code, "_") })
}

// What is done to a sound storage root draws its code.
func TestOCFLCodes(t *testing.T) {
	t.Parallel()
	vault := filepath.Join(sample.TempDir(t), "vault")
	to := open(t, target.Config{Kind: target.KindFolder, Layout: target.LayoutOCFL, Path: vault})
	for n := 1; n <= 2; n++ {
		b := targettest.NewBag(t, "one", targettest.Now(), map[string]string{"a": "A", "b": strings.Repeat("b", n), "twin": "A"})
		b.Version = n
		_, err := to.Put(t.Context(), b)
		must(t, err)
	}
	rewrite := func(object, version, old, new string) error {
		data, err := os.ReadFile(filepath.Join(object, version, "inventory.json"))
		if err != nil || !strings.Contains(string(data), old) {
			return fmt.Errorf("%s: %w", old, err)
		}
		data = []byte(strings.Replace(string(data), old, new, 1))
		sum := sha512.Sum512(data)
		return errors.Join(os.WriteFile(filepath.Join(object, version, "inventory.json"), data, 0o644),
			os.WriteFile(filepath.Join(object, version, "inventory.json.sha512"), []byte(hex.EncodeToString(sum[:])+" inventory.json\n"), 0o644))
	}
	inJSON := func(old, new string) func(string) error {
		return func(object string) error {
			return errors.Join(rewrite(object, ".", old, new), rewrite(object, "v2", old, new))
		}
	}
	inVersion := func(old, new string) func(string) error {
		return func(object string) error { return rewrite(object, "v1", old, new) }
	}
	file := func(name, text string) func(string) error {
		return func(object string) error {
			at := filepath.Join(object, name)
			return errors.Join(os.MkdirAll(filepath.Dir(at), 0o755), os.WriteFile(at, []byte(text), 0o644))
		}
	}
	folder := func(name string) func(string) error {
		return func(object string) error { return os.MkdirAll(filepath.Join(object, name), 0o755) }
	}
	gone := func(name string) func(string) error {
		return func(object string) error { return os.RemoveAll(filepath.Join(object, name)) }
	}
	const root = "../../../../" // of an object
	for code, harm := range map[string]func(string) error{
		"E001": file("stray", ""), "E002": file("0=ocfl_object_x", "x"), "E003": file("0=ocfl_object_1.0", "ocfl_object_1.0\n"), "E004": file("ocfl_object_1.1", ""), "E005": file("1=ocfl_object_1.1", ""), "E006": file("0=ocfl_1.1", ""), "E007": file("0=ocfl_object_1.1", "no"),
		"E008": inJSON(`"versions": {`, `"versions": {}, "x": {`), "E009": gone("v1"), "E010": gone("v2"), "E015": file("v1/stray", ""), "E017": inJSON(`"head"`, `"contentDirectory": "a/b", "head"`), "E018": inJSON(`"head"`, `"contentDirectory": "..", "head"`),
		"E020": inJSON(`"head"`, `"contentDirectory": "other", "head"`), "E023": file("v2/content/stray", ""), "E024": folder("v1/content/empty"), "E025": inJSON(`"sha512"`, `"md5"`), "E033": inJSON(`{`, ``), "E036": inJSON(`"id"`, `"identifier"`),
		"E037": func(object string) error { return os.CopyFS(filepath.Join(object, "../twin"), os.DirFS(object)) }, "E038": inJSON("1.1/spec", "1.9/spec"), "E039": inJSON(`"sha512"`, `"sha256"`), "E040": inJSON(`"head": "v2"`, `"head": "v1"`), "E041": inJSON(`"manifest"`, `"manifold"`),
		"E042": inJSON(`"v1/content/data/a"`, `"/v1/content/data/a"`), "E014": inJSON(`"v1/content/data/a"`, `"v7/content/data/a"`), "E021": inJSON(`"v1/content/data/a"`, `"v1/kontent/data/a"`), "E043": inJSON(`"versions"`, `"verses"`), "E044": inJSON(`"versions": {`, `"versions": 7, "x": {`),
		"E046": folder("v3"), "E047": inJSON(`"v1": {`, `"v1": 7, "x": {`), "E048": inJSON(`"created"`, `"creation"`), "E049": inJSON(`"created": "2`, `"created": "x2`), "E050": inJSON(`"state": {`, `"state": {"abc": ["x"],`), "E052": inJSON(`"data/b"`, `"data/../b"`), "E053": inJSON(`"data/b"`, `"/data/b"`),
		"E051": inJSON(`"data/b"`, `7`), "E054": inJSON(`"name"`, `"nom"`), "E057": inJSON(`"head"`, `"fixity": {"md5": 7}, "head"`), "E058": gone("inventory.json.sha512"), "E059": func(object string) error {
			return os.Rename(filepath.Join(object, "inventory.json.sha512"), filepath.Join(object, "inventory.json.sha256"))
		}, "E060": file("inventory.json.sha512", strings.Repeat("0", 128)+" inventory.json\n"), "E061": file("inventory.json.sha512", "no sidecar"), "E063": gone("inventory.json"), "E064": file("v2/inventory.json", "{}"), "E067": file("extensions/stray", ""),
		"E069": func(object string) error { return os.Remove(filepath.Join(object, root+"0=ocfl_1.1")) }, "E070": file(root+"ocfl_layout.json", "{}"), "E071": file(root+"ocfl_layout.json", `{"extension": "mine", "description": "d"}`), "E072": file(root+"abc/stray", ""), "E084": file(root+"abc/stray", ""),
		"E073": folder(root + "abc"), "E075": file(root+"0=ocfl_x", ""), "E076": file(root+"0=ocfl_1.0", "ocfl_1.0\n"), "E077": file(root+"0=ocfl_x", ""), "E078": file(root+"1=ocfl_1.1", ""), "E079": file(root+"0=ocflx", ""), "E080": file(root+"0=ocfl_1.1", "no"),
		"E081": func(object string) error {
			return errors.Join(os.Remove(filepath.Join(object, root+"0=ocfl_1.1")), file(root+"0=ocfl_1.0", "ocfl_1.0\n")(object))
		}, "E082": file(root+"abc/stray", ""), "E083": func(object string) error { return os.Rename(object, filepath.Join(object, "../elsewhere")) }, "E085": file(root+"abc/stray", ""), "E088": file(root+"abc/stray", ""),
		"E090": func(object string) error {
			return os.Link(filepath.Join(object, "v1/content/data/a"), filepath.Join(object, "v1/content/data/hard"))
		}, "E092": gone("v1/content/data/a"), "E093": inJSON(`"head"`, `"fixity": {"md5": {"00000000000000000000000000000000": ["v1/content/data/a"]}}, "head"`), "E094": inJSON(`"message": "deposit`, `"message": 7, "x": "`),
		"E095": inJSON(`"data/b"`, `"data/a/b"`), "E097": inJSON(`"head"`, `"fixity": {"md5": {"ab": [], "AB": []}}, "head"`), "E099": inJSON(`"v1/content/data/a"`, `"v1/./data/a"`), "E100": inJSON(`"v1/content/data/a"`, `"v1/content/data/a/"`), "E101": inJSON(`"v1/content/data/a"`, `"v1/content/data/a", "v1/content/data/a"`),
		"E102": inJSON(`"head"`, `"extra": 1, "head"`), "E104": inJSON(`"v2": {`, `"2": {`), "E105": inJSON(`"v2": {`, `"v0": {`), "E106": inJSON(`"manifest": {`, `"manifest": 7, "x": {`), "E107": inJSON(`"manifest": {`, `"manifest": {"`+strings.Repeat("0", 128)+`": ["v1/content/data/a"],`),
		"E031": inJSON(`"manifest": {`, `"manifest": {"zz": ["v1/content/data/x"],`), "E108": inJSON(`"head"`, `"contentDirectory": "", "head"`), "E110": inJSON(`"id": "bagpipe`, `"id": "bagpipes`), "E111": inJSON(`"head"`, `"fixity": 7, "head"`), "E112": file(root+"extensions/stray", ""),
		"E066": inVersion(`"data/twin"`, `"data/other"`), "E066 less": inVersion(`"data/a",`, ``), "E066 more": inVersion(`"data/a",`, `"data/a", "data/more",`), "E103": func(object string) error {
			return rewrite(object, "v2", "ocfl.io/1.1/", "ocfl.io/1.0/")
		},
		"E096": inJSON(`"manifest": {`, fmt.Sprintf(`"manifest": {"%X": ["v1/content/data/a"],`, sha512.Sum512([]byte("A")))), "E092 missing": gone("v2/content/data/b"), "E093 missing": inJSON(`"head"`, `"fixity": {"md5": {"00000000000000000000000000000000": ["v1/content/none"]}}, "head"`),
		"E099 fixity": inJSON(`"head"`, `"fixity": {"md5": {"7fc56270e7a70fa81a5935b72eacbe29": ["v1/./content/data/a"]}}, "head"`), "E100 fixity": inJSON(`"head"`, `"fixity": {"md5": {"7fc56270e7a70fa81a5935b72eacbe29": ["/v1/content/data/a"]}}, "head"`),
		"E101 fixity": inJSON(`"head"`, `"fixity": {"md5": {"7fc56270e7a70fa81a5935b72eacbe29": ["v1/content/data/a", "v1/content/data/a"]}}, "head"`), "E095 twice": inJSON(`"data/twin"`, `"data/a"`),
		"E029": inJSON(`"head"`, `"fixity": {"sha1": {"zz": ["v1/content/data/a"]}}, "head"`), "E030": inJSON(`"head"`, `"fixity": {"sha256": {"zz": ["v1/content/data/a"]}}, "head"`), "E032": inJSON(`"head"`, `"fixity": {"blake2b-512": {"zz": ["v1/content/data/a"]}}, "head"`),
		"E035": inJSON(`"v1/content/data/a"`, `"v1\\content\\data\\a"`), "E098": inJSON(`"v1/content/data/a"`, `"v1\\content\\data\\a"`), "E016": func(object string) error {
			return errors.Join(os.RemoveAll(filepath.Join(object, "v1/content")), os.Mkdir(filepath.Join(object, "v1/content"), 0o755))
		},
		"E012": inJSON(`"v2": {`, `"v002": {}, "v02": {`), "E013": inJSON(`"v2": {`, `"v02": {`), "E045": inJSON(`"versions": {`, `"versions": 7, "x": {`),
		"W002": folder("v1/other"), "W003": func(object string) error {
			return errors.Join(os.RemoveAll(filepath.Join(object, "v1/content")), os.Mkdir(filepath.Join(object, "v1/content"), 0o755))
		}, "W013": folder("extensions/mine"), "W014": func(object string) error { return os.Rename(object, filepath.Join(object, "../elsewhere")) }, "W015": func(object string) error { return os.CopyFS(filepath.Join(object, root+"top"), os.DirFS(object)) }, "W016": folder(root + "extensions/mine"),
	} {
		t.Run(code, func(t *testing.T) {
			code := code[:len("E001")]
			dir := sample.TempDir(t)
			must(t, os.CopyFS(dir, os.DirFS(filepath.Join(vault, "ocfl"))))
			must(t, filepath.WalkDir(dir, func(p string, _ os.DirEntry, err error) error { return errors.Join(err, os.Chmod(p, 0o755)) }))
			objects, err := filepath.Glob(filepath.Join(dir, "???/???/???/*"))
			must(t, err)
			must(t, harm(objects[0]))
			r, err := target.ValidateOCFL(t.Context(), dir, false)
			must(t, err)
			if !drawn(r, code) || r.Valid != (code[0] == 'W' && code != "W014" && code != "W015" && code != "W003") {
				t.Errorf("%+v", r)
			}
		})
	}
}

// valid wants a storage root that another's validator finds nothing in.
func valid(t *testing.T, root string) {
	t.Helper()
	r, err := target.ValidateOCFL(t.Context(), root, false)
	must(t, err)
	if !r.Valid || r.Objects == 0 || len(r.Findings) > 0 {
		t.Errorf("%s: %+v", root, r)
	}
	published := "../../../shared/fixtures/ocfl/inventory_schema-1.1.json"
	if _, err := os.Stat(published); err != nil {
		return
	}
	schema, err := jsonschema.NewCompiler().Compile(published)
	must(t, err)
	must(t, filepath.WalkDir(root, func(p string, d os.DirEntry, err error) error {
		if err != nil || d.Name() != "inventory.json" {
			return err
		}
		f, err := os.Open(p)
		if err != nil {
			return err
		}
		defer f.Close()
		v, err := jsonschema.UnmarshalJSON(f)
		if err == nil {
			err = schema.Validate(v)
		}
		return err
	}))
}

// Versions share their contents; the root is valid by another's validator.
func TestOCFLVersions(t *testing.T) {
	dir := filepath.Join(sample.TempDir(t), "vault")
	to := open(t, target.Config{Kind: target.KindFolder, Layout: target.LayoutOCFL, Path: dir})
	big := strings.Repeat("x", 1<<20)
	for n := 1; n <= 3; n++ {
		b := targettest.NewBag(t, "one", targettest.Now(), map[string]string{"big": big, "changed": strings.Repeat("v", n), "100%": "odd"})
		b.Version = n
		c, err := to.Put(t.Context(), b)
		must(t, err)
		if want := "v" + string(rune('0'+n)); c.State != want {
			t.Errorf("the state is %s, want %s", c.State, want)
		}
		valid(t, filepath.Join(dir, "ocfl"))
	}
	copies := 0
	must(t, filepath.WalkDir(dir, func(p string, d os.DirEntry, err error) error {
		if filepath.Base(p) == "big" {
			copies++
		}
		return err
	}))
	if copies != 1 {
		t.Errorf("%d copies of a file that did not change", copies)
	}
}

// What a crash leaves is finished by the next put: a version that the inventory does not
// name, an inventory without its sidecar, a part of a version that is staged.
func TestOCFLGoesOn(t *testing.T) {
	for _, undo := range []string{"inventory", "sidecar", "staged"} {
		t.Run(undo, func(t *testing.T) {
			dir := filepath.Join(sample.TempDir(t), "vault")
			to := open(t, target.Config{Kind: target.KindFolder, Layout: target.LayoutOCFL, Path: dir})
			first := targettest.NewBag(t, "one", targettest.Now(), map[string]string{"a": "A"})
			c, err := to.Put(t.Context(), first)
			must(t, err)
			object := filepath.Join(dir, c.Place)
			before := sample.TempDir(t)
			must(t, os.CopyFS(filepath.Join(before, "o"), os.DirFS(object)))
			second := targettest.NewBag(t, "one", targettest.Now(), map[string]string{"a": "A", "b": "B"})
			second.Version = 2
			_, err = to.Put(t.Context(), second)
			must(t, err)
			put := func(name string) {
				data, err := os.ReadFile(filepath.Join(before, "o", name))
				must(t, err)
				must(t, os.WriteFile(filepath.Join(object, name), data, 0o644))
			}
			switch undo {
			case "inventory":
				put("inventory.json")
				put("inventory.json.sha512")
			case "sidecar":
				put("inventory.json.sha512")
				must(t, os.WriteFile(filepath.Join(object, ".inventory.json.sha512.part"), []byte("half"), 0o644))
			case "staged":
				put("inventory.json")
				put("inventory.json.sha512")
				stage := filepath.Join(dir, "staging", string(targettest.Item))
				must(t, os.MkdirAll(stage, 0o755), os.Rename(filepath.Join(object, "v2"), filepath.Join(stage, "v2")))
				must(t, os.MkdirAll(filepath.Join(stage, "v3", "empty"), 0o755), os.WriteFile(filepath.Join(stage, "v3", "stray"), nil, 0o644))
			}
			c, err = to.Put(t.Context(), second)
			must(t, err)
			if c.State != "v2" {
				t.Errorf("it is %s now", c.State)
			}
			valid(t, filepath.Join(dir, "ocfl"))
		})
	}
}

// Content that a version has of older ones is read before its copy counts; what older versions alone have is not.
func TestOCFLReadsWhatItGoesOnWith(t *testing.T) {
	for name, sound := range map[string]bool{"a": false, "old": true} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(sample.TempDir(t), "vault")
			to := open(t, target.Config{Kind: target.KindFolder, Layout: target.LayoutOCFL, Path: dir})
			c, err := to.Put(t.Context(), targettest.NewBag(t, "one", targettest.Now(), map[string]string{"a": "A", "old": "O"}))
			must(t, err)
			at := filepath.Join(dir, c.Place, "v1/content/data", name)
			must(t, os.Chmod(at, 0o644), os.WriteFile(at, []byte("X"), 0o644))
			second := targettest.NewBag(t, "one", targettest.Now(), map[string]string{"a": "A", "b": "B"})
			second.Version = 2
			var wrong *target.Damage
			if _, err := to.Put(t.Context(), second); sound && err != nil || !sound && !errors.As(err, &wrong) {
				t.Errorf("a put over damage of %s: %v", name, err)
			}
		})
	}
}

// A version's own inventory, the object's declaration, and files that no inventory has, are part of a copy: what is wrong
// with them is found, and mended, also of a version that is not the newest.
func TestOCFLMendsWhatTellsOfIt(t *testing.T) {
	for name, harm := range map[string]func(object string) error{
		"inventory": func(object string) error {
			return os.WriteFile(filepath.Join(object, "v1/inventory.json"), []byte("{}"), 0o644)
		},
		"none":        func(object string) error { return os.Remove(filepath.Join(object, "v1/inventory.json")) },
		"sidecar":     func(object string) error { return os.Remove(filepath.Join(object, "v1/inventory.json.sha512")) },
		"declaration": func(object string) error { return os.Remove(filepath.Join(object, "0=ocfl_object_1.1")) },
		"stray":       func(object string) error { return os.WriteFile(filepath.Join(object, "stray"), nil, 0o644) },
		"content":     func(object string) error { return os.WriteFile(filepath.Join(object, "v1/content/stray"), nil, 0o644) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(sample.TempDir(t), "vault")
			to := open(t, target.Config{Kind: target.KindFolder, Layout: target.LayoutOCFL, Path: dir})
			first := targettest.NewBag(t, "one", targettest.Now(), map[string]string{"a": "A"})
			c, err := to.Put(t.Context(), first)
			must(t, err)
			second := targettest.NewBag(t, "one", targettest.Now(), map[string]string{"a": "A", "b": "B"})
			second.Version = 2
			_, err = to.Put(t.Context(), second)
			must(t, err)
			object := filepath.Join(dir, c.Place)
			before, err := os.ReadFile(filepath.Join(object, "v1/inventory.json"))
			must(t, err, harm(object))
			var wrong *target.Damage
			if _, _, err := to.Check(t.Context(), c, target.Read); !errors.As(err, &wrong) {
				t.Errorf("it was not found: %v", err)
			}
			c, err = to.Replace(t.Context(), c, first)
			must(t, err)
			if _, _, err := to.Check(t.Context(), c, target.Read); err != nil {
				t.Error(err)
			}
			after, err := os.ReadFile(filepath.Join(object, "v1/inventory.json"))
			must(t, err)
			if string(after) != string(before) {
				t.Errorf("the inventory is\n%s\nand was\n%s", after, before)
			}
			valid(t, filepath.Join(dir, "ocfl"))
		})
	}
}

// Names that a store may take for one, as it does not tell case or normalisation apart, do not stand
// beside each other in an object; what is got has them all the same.
func TestOCFLNamesOfOneFold(t *testing.T) {
	dir := filepath.Join(sample.TempDir(t), "vault")
	to := open(t, target.Config{Kind: target.KindFolder, Layout: target.LayoutOCFL, Path: dir})
	content := map[string]string{"Read": "1", "READ": "2", "read/x": "3", "D/y": "4", "d/y": "5", "d/z": "6", "\u00e9": "7", "e\u0301": "8"}
	b := targettest.NewBag(t, "one", targettest.Now(), content)
	c, err := to.Put(t.Context(), b)
	must(t, err)
	valid(t, filepath.Join(dir, "ocfl"))
	fold, seen := files.NewFolder(), map[string]string{}
	object := filepath.Join(dir, c.Place, "v1", "content")
	must(t, filepath.WalkDir(object, func(p string, _ os.DirEntry, err error) error {
		folded := fold.Fold(p)
		if seen[folded] != "" {
			t.Errorf("%s and %s may be one", p, seen[folded])
		}
		seen[folded] = p
		return err
	}))
	back := sample.TempDir(t)
	must(t, to.Get(t.Context(), c, back))
	for name, text := range content {
		if got, err := os.ReadFile(filepath.Join(back, "data", name)); err != nil || string(got) != text {
			t.Errorf("%s is %q: %v", name, got, err)
		}
	}
}

// What a dead put of another bag left in an object on S3, where nothing is staged, is no part of it.
func TestOCFLOnS3LeavesNoStrays(t *testing.T) {
	s := targettest.NewS3(t, false)
	b := targettest.NewBag(t, "one", targettest.Now(), map[string]string{"a": "A"})
	put := func(prefix string) target.Copy {
		c := target.Config{Kind: target.KindS3, Layout: target.LayoutOCFL, Secrets: s.Secrets, S3Config: s.S3Config}
		c.Prefix = prefix
		made, err := open(t, c).Put(t.Context(), b)
		must(t, err)
		return made
	}
	place := put("first").Place
	one := b
	b = targettest.NewBag(t, "one", targettest.Now(), map[string]string{"a": "A"})
	b.Item = "3fa9c0d2e1b7b48"
	put("second") // the storage root
	b = one
	for _, name := range []string{"v1/content/data/a", "v1/content/data/stray"} {
		_, err := s.Client.PutObject(t.Context(), s.Bucket, "second/"+place+"/"+name, strings.NewReader("stray"), 5, minio.PutObjectOptions{})
		must(t, err)
	}
	put("second")
	valid(t, filepath.Join(s.Dir, "buckets", s.Bucket, "second/ocfl"))
}

// A storage root of another layout is gone on with as it says; a broken object is refused.
func TestOCFLOfOthers(t *testing.T) {
	dir := sample.TempDir(t)
	for name, text := range map[string]string{"bagpipe-store.json": "", "0=ocfl_1.1": "ocfl_1.1\n", "ocfl_layout.json": `{"extension": "0003-hash-and-id-n-tuple-storage-layout", "description": "d"}`} {
		must(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	to := open(t, target.Config{Kind: target.KindFolder, Layout: target.LayoutOCFL, Path: dir})
	b := targettest.NewBag(t, "one", targettest.Now(), map[string]string{"a": "A"})
	c, err := to.Put(t.Context(), b)
	must(t, err)
	if !strings.HasSuffix(c.Place, "%253a"+string(targettest.Item)) {
		t.Errorf("the object stands at %s", c.Place)
	}
	b.Version = 2
	must(t, os.WriteFile(filepath.Join(dir, strings.ReplaceAll(c.Place, "%25", "%"), "inventory.json"), []byte("{}"), 0o644))
	if _, err := to.Put(t.Context(), b); err == nil {
		t.Error("a broken object was gone on with")
	}
}

// Another implementation reads our storage root: it finds the object by its identifier, takes the inventory by its sidecar, and
// reads of each version what was put.
func TestOCFLReadByAnother(t *testing.T) {
	module, err := exec.Command("go", "env", "GOMOD").Output()
	must(t, err)
	modules := filepath.Join(filepath.Dir(string(module)), ".cache/ocfl/node_modules")
	if _, err := os.Stat(filepath.Join(modules, "@ocfl/ocfl-fs")); err != nil {
		t.Skip(err) // testdata/tools.sh installs it
	}
	dir := filepath.Join(sample.TempDir(t), "vault")
	to := open(t, target.Config{Kind: target.KindFolder, Layout: target.LayoutOCFL, Path: dir})
	want := map[string]map[string]string{}
	for n, content := range []map[string]string{
		{"a": "A", "twin": "A", "d/é": "é", "100%\nname": "C", "Read": "1", "READ": "2", "empty": ""},
		{"a": "A", "d/é": "changed", "new": "N"}, {"a": "A"},
	} {
		b := targettest.NewBag(t, "one", targettest.Now(), content)
		b.Version = n + 1
		c, err := to.Put(t.Context(), b)
		must(t, err)
		sums := map[string]string{}
		must(t, filepath.WalkDir(b.Dir, func(p string, d os.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			data, err := os.ReadFile(p)
			sum := sha512.Sum512(data)
			sums[strings.TrimPrefix(p, b.Dir+"/")] = hex.EncodeToString(sum[:])
			return err
		}))
		want[c.State] = sums
	}
	cmd := exec.Command("node", "testdata/read-ocfl.cjs", modules, filepath.Join(dir, "ocfl"), "bagpipe:"+string(targettest.Item))
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	must(t, err)
	var got struct {
		IDs      []string
		Versions map[string]map[string]string
	}
	must(t, json.Unmarshal(out, &got))
	if diff := cmp.Diff(want, got.Versions); diff != "" {
		t.Errorf("what is read is not what was put:\n%s", diff)
	}
	if want := []string{"bagpipe:" + string(targettest.Item)}; !slices.Equal(got.IDs, want) {
		t.Errorf("it lists %q", got.IDs)
	}
}
