package profile

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"bagpipe/bags/files"
	"bagpipe/bags/finding"
)

func TestProfileThatContradictsItself(t *testing.T) {
	for _, c := range []struct {
		constraint string
		change     func(p map[string]any)
	}{
		{"BagIt-Profile-Info", func(p map[string]any) { delete(p, "BagIt-Profile-Info") }},
		{"BagIt-Profile-Info/Version", func(p map[string]any) { delete(p["BagIt-Profile-Info"].(map[string]any), "Version") }},
		{"Accept-BagIt-Version", func(p map[string]any) { delete(p, "Accept-BagIt-Version") }},
		{"Accept-Serialization", func(p map[string]any) { p["Serialization"] = "required"; delete(p, "Accept-Serialization") }},
		{"Serialization", func(p map[string]any) { p["Serialization"] = "sometimes" }},
		{"Manifests-Required", func(p map[string]any) { p["Manifests-Allowed"] = []string{"md5"} }},
		{"Tag-Manifests-Required", func(p map[string]any) { p["Tag-Manifests-Allowed"] = []string{"md5"} }},
		{"Tag-Files-Required", func(p map[string]any) { p["Tag-Files-Allowed"] = []string{"other/*"} }},
		{"Payload-Files-Required", func(p map[string]any) { p["Payload-Files-Allowed"] = []string{"data/b*"} }},
		{"Fetch.txt-Required", func(p map[string]any) { p["Fetch.txt-Required"] = true }},
	} {
		p := aProfile()
		c.change(p)
		problems := parsed(t, p).Problems
		if !slices.ContainsFunc(problems, func(f finding.Finding) bool { return f.Constraint == c.constraint && f.Severity == finding.Error }) {
			t.Errorf("%s: problems %+v", c.constraint, problems)
		}
	}
	for _, bad := range []string{`[]`, `null`, `{`, `"x"`, `{"Manifests-Required": "md5"}`, `{"Allow-Fetch.txt": 1}`, `{"Bag-Info": []}`,
		`{"Accept-BagIt-Version": [1.0]}`, `{"Serialization": null}`, `{"Bag-Info": {"A": {"required": "yes"}}}`, `{} x`} {
		if _, err := Parse([]byte(bad)); err == nil {
			t.Errorf("%s: was read", bad)
		}
	}
}

func TestProfileWithoutItsVersionIs11(t *testing.T) {
	p := aProfile()
	delete(p["BagIt-Profile-Info"].(map[string]any), "BagIt-Profile-Version")
	if got := parsed(t, p); got.Spec != "1.1.0" || len(got.Problems) > 0 {
		t.Errorf("%+v", got)
	}
}

func TestProfileAlgorithms(t *testing.T) {
	def := []files.Algorithm{files.SHA256, files.SHA512}
	for _, c := range []struct {
		p    Profile
		want []files.Algorithm
	}{
		{Profile{}, def},
		{Profile{Manifests: NameLists{Required: []string{"md5"}}}, []files.Algorithm{files.MD5}},
		{Profile{Manifests: NameLists{Allowed: []string{"sha512", "md5"}, restricted: true}}, []files.Algorithm{files.SHA512}},
		{Profile{Manifests: NameLists{Allowed: []string{"sha1", "other"}, restricted: true}}, []files.Algorithm{files.SHA1}},
	} {
		if got := c.p.Algorithms(def); !slices.Equal(got, c.want) {
			t.Errorf("%+v: %v", c.p, got)
		}
	}
}

func TestLoadProfile(t *testing.T) {
	if _, err := Load(filepath.Join(t.TempDir(), "none.json")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("error %v", err)
	}
}
