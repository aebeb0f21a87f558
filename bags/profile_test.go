package bags

import (
	"encoding/json"
	"errors"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"bagpipe/bags/archive"
	"bagpipe/bags/files"
	"bagpipe/bags/finding"
	"bagpipe/bags/profile"
	"bagpipe/bags/tagfile"
)

const profileID = "https://example.org/profile-v1.json"

// aProfile is a profile that goodBag, with its identifier, satisfies.
func aProfile() map[string]any {
	return map[string]any{
		"BagIt-Profile-Info": map[string]any{
			"BagIt-Profile-Identifier": profileID, "BagIt-Profile-Version": "1.4.0", "Source-Organization": "Archive",
			"External-Description": "For tests", "Version": "1.0",
		},
		"Bag-Info":           map[string]any{"Source-Organization": map[string]any{"required": true, "values": []string{"Archive", "Library"}}},
		"Manifests-Required": []string{"sha512"}, "Manifests-Allowed": []string{"sha256", "sha512"},
		"Tag-Manifests-Required": []string{"sha512"}, "Tag-Manifests-Allowed": []string{"sha512"},
		"Tag-Files-Required": []string{"notes/tag.txt"}, "Tag-Files-Allowed": []string{"notes/*"},
		"Payload-Files-Required": []string{"data/a.txt", "data/d/"}, "Payload-Files-Allowed": []string{"data/*"},
		"Allow-Fetch.txt": false, "Serialization": "optional", "Accept-Serialization": []string{"application/zip"},
		"Accept-BagIt-Version": []string{"1.0"},
	}
}

func parsed(t testing.TB, p map[string]any) *profile.Profile {
	t.Helper()
	data, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	got, err := profile.Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// profiledBag satisfies aProfile.
func profiledBag() bag {
	b := goodBag()
	b["bag-info.txt"] += "BagIt-Profile-Identifier: " + profileID + "\n"
	b.sealTags()
	return b
}

func TestProfileThatIsSatisfied(t *testing.T) {
	p := parsed(t, aProfile())
	if len(p.Problems) > 0 {
		t.Errorf("problems %+v", p.Problems)
	}
	r, err := Validate(t.Context(), profiledBag().write(t), ValidateOptions{Profiles: []*profile.Profile{p}})
	if err != nil || !r.Valid || len(r.Findings) > 0 || !slices.Equal(r.Profiles, []string{profileID}) {
		t.Errorf("%+v, %v", r, err)
	}
}

// Every constraint, broken by the bag or asked by the profile, is named.
func TestEveryProfileConstraintIsNamed(t *testing.T) {
	for _, c := range []struct {
		constraint string
		profile    func(p map[string]any)
		bag        func(b bag)
	}{
		{"BagIt-Profile-Identifier", nil, func(b bag) { b["bag-info.txt"] = strings.ReplaceAll(b["bag-info.txt"], "v1.json", "v2.json") }},
		{"Bag-Info", nil, func(b bag) { delete(b, "bag-info.txt") }},
		{"Bag-Info/Contact-Name/required", func(p map[string]any) {
			p["Bag-Info"] = map[string]any{"Contact-Name": map[string]any{"required": true}}
		}, nil},
		{"Bag-Info/Contact-Name/required", func(p map[string]any) {
			p["Bag-Info"] = map[string]any{"Contact-Name": map[string]any{"required": "true"}}
		}, nil},
		{"Bag-Info/Source-Organization/values", nil, func(b bag) { b["bag-info.txt"] = strings.Replace(b["bag-info.txt"], ": Archive", ": Museum", 1) }},
		{"Bag-Info/A/repeatable", func(p map[string]any) { p["Bag-Info"] = map[string]any{"A": map[string]any{"repeatable": false}} }, func(b bag) { b["bag-info.txt"] += "A: 1\na: 2\n" }},
		{"Manifests-Required", func(p map[string]any) { p["Manifests-Required"] = []string{"sha256"} }, nil},
		{"Manifests-Allowed", func(p map[string]any) {
			p["Manifests-Required"], p["Manifests-Allowed"] = []string{}, []string{"sha256"}
		}, nil},
		{"Manifests-Allowed", func(p map[string]any) { p["Manifests-Required"], p["Manifests-Allowed"] = []string{}, []string{} }, nil},
		{"Tag-Manifests-Required", func(p map[string]any) {
			p["Tag-Manifests-Allowed"], p["Tag-Manifests-Required"] = []string{"md5", "sha512"}, []string{"md5"}
		}, nil},
		{"Tag-Manifests-Allowed", func(p map[string]any) {
			p["Tag-Manifests-Required"], p["Tag-Manifests-Allowed"] = []string{}, []string{"md5"}
		}, nil},
		{"Tag-Files-Required", nil, func(b bag) { delete(b, "notes/tag.txt") }},
		{"Tag-Files-Allowed", nil, func(b bag) { b["other.txt"] = "x" }},
		{"Payload-Files-Required", func(p map[string]any) { p["Payload-Files-Required"] = []string{"data/c.txt"} }, nil},
		{"Payload-Files-Required", func(p map[string]any) { p["Payload-Files-Required"] = []string{"data/e/"} }, nil},
		{"Payload-Files-Allowed", func(p map[string]any) {
			p["Payload-Files-Required"], p["Payload-Files-Allowed"] = []string{}, []string{"data/*/*"}
		}, nil},
		{"Allow-Fetch.txt", nil, func(b bag) { b["fetch.txt"] = "https://example.org/a 3 data/a.txt\n" }},
		{"Fetch.txt-Required", func(p map[string]any) { p["Allow-Fetch.txt"], p["Fetch.txt-Required"] = true, true }, nil},
		{"Data-Empty", func(p map[string]any) { p["Data-Empty"] = true }, nil},
		{"Serialization", func(p map[string]any) { p["Serialization"] = "required" }, nil},
		{"Accept-BagIt-Version", func(p map[string]any) { p["Accept-BagIt-Version"] = []string{"0.97"} }, nil},
	} {
		t.Run(c.constraint, func(t *testing.T) {
			p, b := aProfile(), profiledBag()
			if c.profile != nil {
				c.profile(p)
			}
			if c.bag != nil {
				c.bag(b)
				b.sealTags()
			}
			r, err := Validate(t.Context(), b.write(t), ValidateOptions{Profiles: []*profile.Profile{parsed(t, p)}})
			if err != nil || r.Valid || !r.Complete {
				t.Errorf("valid %v, complete %v, %v: %+v", r.Valid, r.Complete, err, r.Findings)
			}
			if !slices.ContainsFunc(r.Findings, func(f finding.Finding) bool {
				return f.Constraint == c.constraint && f.Severity == finding.Error && f.Profile == profileID && f.Text != ""
			}) {
				t.Errorf("%s is not named: %+v", c.constraint, r.Findings)
			}
		})
	}
}

// The same constraints, met.
func TestEveryProfileConstraintCanBeMet(t *testing.T) {
	for _, c := range []struct {
		about   string
		profile func(p map[string]any)
		bag     func(b bag)
	}{
		{"an identifier among others", nil, func(b bag) { b["bag-info.txt"] += "BagIt-Profile-Identifier: https://example.org/other.json\n" }},
		{"Bag-Info absent", func(p map[string]any) { delete(p, "Bag-Info") }, nil},
		{"required, in other letters", func(p map[string]any) {
			p["Bag-Info"] = map[string]any{"source-ORGANIZATION": map[string]any{"required": true}}
		}, nil},
		{"not required", func(p map[string]any) {
			p["Bag-Info"] = map[string]any{"Contact-Name": map[string]any{"required": false, "recommended": false, "values": []string{"A"}, "description": "who"}}
		}, nil},
		{"required is the text false", func(p map[string]any) {
			p["Bag-Info"] = map[string]any{"Contact-Name": map[string]any{"required": "false"}}
		}, nil},
		{"an empty list of values allows any", func(p map[string]any) {
			p["Bag-Info"] = map[string]any{"Source-Organization": map[string]any{"values": []string{}}}
		}, nil},
		{"each value of a repeated label", func(p map[string]any) {
			p["Bag-Info"] = map[string]any{"A": map[string]any{"values": []string{"1", "2"}, "repeatable": true}}
		}, func(b bag) { b["bag-info.txt"] += "A: 1\nA: 2\n" }},
		{"repeatable where it says nothing", func(p map[string]any) { p["Bag-Info"] = map[string]any{"A": map[string]any{}} }, func(b bag) { b["bag-info.txt"] += "A: 1\nA: 2\n" }},
		{"not repeatable, once", func(p map[string]any) { p["Bag-Info"] = map[string]any{"A": map[string]any{"repeatable": false}} }, func(b bag) { b["bag-info.txt"] += "A: 1\n" }},
		{"no lists of manifests", func(p map[string]any) {
			for _, key := range []string{"Manifests-Required", "Manifests-Allowed", "Tag-Manifests-Required", "Tag-Manifests-Allowed"} {
				delete(p, key)
			}
		}, nil},
		{"manifests allowed and not there", func(p map[string]any) {
			p["Manifests-Allowed"], p["Tag-Manifests-Allowed"] = []string{"md5", "sha512"}, []string{"md5", "sha512"}
		}, nil},
		{"no lists of files", func(p map[string]any) {
			for _, key := range []string{"Tag-Files-Required", "Tag-Files-Allowed", "Payload-Files-Required", "Payload-Files-Allowed"} {
				delete(p, key)
			}
		}, func(b bag) { b["other.txt"] = "x" }},
		{"a tag file by its whole name", func(p map[string]any) { p["Tag-Files-Allowed"] = []string{"notes/tag.txt"} }, nil},
		{"tag files of the specification are always allowed", func(p map[string]any) { p["Tag-Files-Required"], p["Tag-Files-Allowed"] = []string{}, []string{} }, func(b bag) { delete(b, "notes/tag.txt") }},
		{"payload files by asterisks", func(p map[string]any) { p["Payload-Files-Allowed"] = []string{"data/*.txt", "data/d/*"} }, nil},
		{"fetch.txt allowed where it says nothing", func(p map[string]any) { delete(p, "Allow-Fetch.txt") }, func(b bag) { b["fetch.txt"] = "https://example.org/a 3 data/a.txt\n" }},
		{"fetch.txt required, and there", func(p map[string]any) { p["Allow-Fetch.txt"], p["Fetch.txt-Required"] = "true", "true" }, func(b bag) { b["fetch.txt"] = "https://example.org/a 3 data/a.txt\n" }},
		{"Data-Empty false", func(p map[string]any) { p["Data-Empty"] = false }, nil},
		{"serialization forbidden, a folder", func(p map[string]any) { p["Serialization"] = "forbidden" }, nil},
		{"one version of several", func(p map[string]any) { p["Accept-BagIt-Version"] = []string{"0.97", "1.0"} }, nil},
	} {
		t.Run(c.about, func(t *testing.T) {
			p, b := aProfile(), profiledBag()
			if c.profile != nil {
				c.profile(p)
			}
			if c.bag != nil {
				c.bag(b)
				b.sealTags()
			}
			r, err := Validate(t.Context(), b.write(t), ValidateOptions{Profiles: []*profile.Profile{parsed(t, p)}})
			if err != nil || !r.Valid || len(r.Findings) > 0 {
				t.Errorf("valid %v, %v: %+v", r.Valid, err, r.Findings)
			}
		})
	}
}

// An empty payload is none, or one empty file that keeps the folder.
func TestProfileDataEmpty(t *testing.T) {
	for about, c := range map[string]struct {
		payload bag
		met     bool
	}{
		"nothing":          {bag{"data/": ""}, true},
		"one empty file":   {bag{"data/.keep": ""}, true},
		"two empty files":  {bag{"data/.keep": "", "data/x": ""}, false},
		"one file, a byte": {bag{"data/x": "1"}, false},
	} {
		p := aProfile()
		p["Data-Empty"] = true
		for _, key := range []string{"Bag-Info", "Tag-Manifests-Required", "Tag-Files-Required", "Payload-Files-Required"} {
			delete(p, key)
		}
		b := bare("1.0", c.payload).with(bag{"bag-info.txt": "BagIt-Profile-Identifier: " + profileID + "\n"})
		delete(b, "manifest-sha512.txt")
		for path, data := range c.payload {
			if !strings.HasSuffix(path, "/") {
				b["manifest-sha512.txt"] += hex512(data) + "  " + path + "\n"
			}
		}
		if _, ok := b["manifest-sha512.txt"]; !ok {
			b["manifest-sha512.txt"] = ""
		}
		r, err := Validate(t.Context(), b.write(t), ValidateOptions{Profiles: []*profile.Profile{parsed(t, p)}})
		if err != nil || r.Valid != c.met {
			t.Errorf("%s: valid %v, %v: %+v", about, r.Valid, err, r.Findings)
		}
	}
}

func TestProfileRecommends(t *testing.T) {
	p := aProfile()
	p["Bag-Info"] = map[string]any{"Contact-Name": map[string]any{"recommended": true}, "Source-Organization": map[string]any{"recommended": true}}
	r, err := Validate(t.Context(), profiledBag().write(t), ValidateOptions{Profiles: []*profile.Profile{parsed(t, p)}})
	if err != nil || !r.Valid || len(r.Findings) != 1 || r.Findings[0].Constraint != "Bag-Info/Contact-Name/recommended" || r.Findings[0].Severity != finding.Warning {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestProfileSerialization(t *testing.T) {
	for _, c := range []struct {
		about      string
		profile    func(p map[string]any)
		format     archive.Format
		constraint string
	}{
		{"accepted", nil, archive.Zip, ""},
		{"not accepted", nil, archive.Tar, "Accept-Serialization"},
		{"a compressed tar is no tar", func(p map[string]any) { p["Accept-Serialization"] = []string{"application/tar"} }, archive.TarGzip, "Accept-Serialization"},
		{"gzip", func(p map[string]any) { p["Accept-Serialization"] = []string{"application/gzip"} }, archive.TarGzip, ""},
		{"tar", func(p map[string]any) { p["Accept-Serialization"] = []string{"application/x-tar"} }, archive.Tar, ""},
		{"required, and is", func(p map[string]any) { p["Serialization"] = "required" }, archive.Zip, ""},
		{"any, where no list is given", func(p map[string]any) { delete(p, "Accept-Serialization") }, archive.Tar, ""},
		{"forbidden", func(p map[string]any) { p["Serialization"] = "forbidden" }, archive.Zip, "Serialization"},
	} {
		p := aProfile()
		if c.profile != nil {
			c.profile(p)
		}
		file := archiveFile(t, "bag."+string(c.format), packed(t, c.format, inFolder("bag", profiledBag())))
		r, err := Validate(t.Context(), file, ValidateOptions{Profiles: []*profile.Profile{parsed(t, p)}})
		if err != nil {
			t.Fatal(err)
		}
		first, _ := r.FirstError()
		if r.Valid != (c.constraint == "") || first.Constraint != c.constraint {
			t.Errorf("%s: valid %v, %+v", c.about, r.Valid, first)
		}
	}
}

// Every format that a bag is read in has its media types.
func TestProfileMediaTypes(t *testing.T) {
	types := map[archive.Format]string{
		archive.Zip: "application/zip", archive.Tar: "application/tar", archive.TarGzip: "application/gzip", archive.TarZstd: "application/zstd",
		archive.TarBzip2: "application/x-bzip2", archive.TarXz: "application/x-xz", archive.TarLz4: "application/x-lz4",
	}
	dir := profiledBag().write(t)
	for format := range types {
		for of, accepted := range types {
			p := aProfile()
			p["Serialization"], p["Accept-Serialization"] = "required", []string{accepted}
			r, err := Validate(t.Context(), dir, ValidateOptions{Profiles: []*profile.Profile{parsed(t, p)}, Serialized: format})
			if first, _ := r.FirstError(); err != nil || r.Valid != (of == format) || !r.Valid && first.Constraint != "Accept-Serialization" {
				t.Errorf("%s where %s is accepted: valid %v, %v: %+v", format, accepted, r.Valid, err, r.Findings)
			}
		}
	}
}

// A bag that would not satisfy its profile is not made.
func TestCreateHoldsToTheProfile(t *testing.T) {
	p := aProfile()
	p["Bag-Info"] = map[string]any{"Contact-Name": map[string]any{"required": true}}
	p["Serialization"] = "required"
	for _, key := range []string{"Tag-Files-Required", "Tag-Files-Allowed"} {
		delete(p, key)
	}
	asked := parsed(t, p)
	inside := bag{"a.txt": "one", "d/b.txt": "two"}
	for _, inPlace := range []bool{false, true} {
		dir := payloadFolder(t, inside)
		o := CreateOptions{Payload: dir, Dest: filepath.Join(t.TempDir(), "made"), Profiles: []*profile.Profile{asked}, Algorithms: asked.Algorithms(nil), Date: bagDate}
		create, made := Create, o.Dest
		if inPlace {
			create, made = CreateInPlace, dir
		}
		_, err := create(t.Context(), o)
		var broken *files.Error
		if !errors.As(err, &broken) || broken.Rule != files.RuleProfile || !strings.Contains(broken.Detail, "Contact-Name") {
			t.Errorf("error %v", err)
		}
		if got := filesOf(t, dir); !maps.Equal(got, map[string]string(inside)) {
			t.Errorf("the folder was changed: %q", got)
		}
		expectNothing(t, filepath.Dir(o.Dest))
		o.Info = []tagfile.Field{{Label: "Contact-Name", Value: "A"}}
		if _, err := create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		r, err := Validate(t.Context(), made, ValidateOptions{Profiles: []*profile.Profile{asked}, Serialized: archive.Zip})
		if err != nil || !r.Valid {
			t.Errorf("%+v, %v", r.Findings, err)
		}
	}
}

func FuzzProfile(f *testing.F) {
	f.Add([]byte(`{"BagIt-Profile-Info":{"Version":"1"},"Bag-Info":{"A":{"required":true,"values":["x"]}},"Accept-BagIt-Version":["1.0"]}`))
	f.Add([]byte(`{"Tag-Files-Allowed":["*","a*b"],"Allow-Fetch.txt":"false"}`))
	f.Add([]byte(`null`))
	dir := goodBag().write(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := profile.Parse(data)
		if err != nil {
			return
		}
		r, err := Validate(t.Context(), dir, ValidateOptions{Level: Complete, Profiles: []*profile.Profile{p}})
		if err != nil || !r.Complete {
			t.Fatalf("%+v, %v", r.Findings, err)
		}
	})
}
