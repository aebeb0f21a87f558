package profile

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"bagpipe/bags/files"
	"bagpipe/bags/finding"
	"bagpipe/bags/tagfile"
	"bagpipe/layout"
)

// Profile is a BagIt profile: what a receiver asks of bags beyond RFC 8493
// (BagIt Profiles 1.1.0 to 1.4.0). Lists that the file leaves out are nil, and
// constrain nothing.
type Profile struct {
	Identifier string // of BagIt-Profile-Info; bags name it
	Version    string // the profile's own
	Spec       string // of the specification; 1.1.0 where the file does not say

	Tags                []Tag     // of bag-info.txt, by label
	Manifests           NameLists // algorithms
	TagManifests        NameLists
	TagFiles            NameLists // paths; those allowed are patterns
	PayloadFiles        NameLists
	ForbidFetch         bool
	RequireFetch        bool
	DataEmpty           bool
	Serialization       string // forbidden, required, optional
	AcceptSerialization []string
	AcceptVersions      []string

	// Problems are the faults of the profile itself, which can be used all the same.
	Problems []finding.Finding
}

// NameLists are the names that must be there and those that may.
type NameLists struct {
	Required   []string
	Allowed    []string
	restricted bool // Allowed was given, be it empty
}

// A Tag is what a profile asks of one label of bag-info.txt.
type Tag struct {
	Label    string
	Required bool
	Wanted   bool     // recommended: true, which some profiles have beyond the specification
	Single   bool     // repeatable: false
	Values   []string // those allowed; empty: any
}

// profileMost is far more than profiles have.
const profileMost = 8 << 20

const (
	keyProfileInfo = "BagIt-Profile-Info"
	keyBagInfo     = "Bag-Info"
	LabelProfile   = "BagIt-Profile-Identifier"
	keyProfileSpec = "BagIt-Profile-Version"
	specDefault    = "1.1.0" // the last version without BagIt-Profile-Version
)

// Load reads a profile's file.
func Load(file string) (*Profile, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("read profile: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, profileMost+1))
	if err != nil {
		return nil, fmt.Errorf("read profile %s: %w", file, err)
	}
	if len(data) > profileMost {
		return nil, fmt.Errorf("read profile %s: larger than %d bytes", file, profileMost)
	}
	p, err := Parse(data)
	if err != nil {
		return nil, fmt.Errorf("read profile %s: %w", file, err)
	}
	return p, nil
}

// Parse reads a profile. A text that is no JSON object, or has a value of another type
// than the specification's, is an error; anything else wrong is in Problems.
func Parse(data []byte) (*Profile, error) {
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	r := &profileReader{p: &Profile{}}
	if err := json.Unmarshal(data, &r.top); err != nil {
		return nil, fmt.Errorf("want a JSON object: %w", err)
	}
	if r.top == nil {
		return nil, fmt.Errorf("want a JSON object, got null")
	}
	r.read()
	if r.err != nil {
		return nil, r.err
	}
	r.consistent()
	return r.p, nil
}

// profileReader takes the keys out of top one by one; the first value of a wrong
// type is err.
type profileReader struct {
	top map[string]json.RawMessage
	p   *Profile
	err error
}

func (r *profileReader) read() {
	p := r.p
	r.info()
	r.tags()
	for _, l := range p.lists() {
		l.Required, _ = r.list(l.key + "-Required")
		l.Allowed, l.restricted = r.list(l.key + "-Allowed")
	}
	p.ForbidFetch = !r.yes("Allow-Fetch.txt", true)
	p.RequireFetch = r.yes("Fetch.txt-Required", false)
	p.DataEmpty = r.yes("Data-Empty", false)
	p.Serialization = r.text("Serialization")
	p.AcceptSerialization, _ = r.list("Accept-Serialization")
	p.AcceptVersions, _ = r.list("Accept-BagIt-Version")
	for _, key := range slices.Sorted(maps.Keys(r.top)) {
		r.problem(finding.Warning, key, "not a key of the specification; it is not checked")
	}
}

// keyed is a pair of lists by what its keys begin with.
type keyed struct {
	key string
	*NameLists
}

func (p *Profile) lists() []keyed {
	return []keyed{{"Manifests", &p.Manifests}, {"Tag-Manifests", &p.TagManifests}, {"Tag-Files", &p.TagFiles}, {"Payload-Files", &p.PayloadFiles}}
}

func (r *profileReader) problem(s finding.Severity, constraint, text string) {
	r.p.Problems = append(r.p.Problems, finding.Finding{
		Code: finding.Profile, Severity: s, Constraint: constraint, Section: profileSection, Text: text,
	})
}

// take decodes the value of key into v, once; false where there is none.
func (r *profileReader) take(key, want string, v any) bool {
	raw, ok := r.top[key]
	delete(r.top, key)
	if !ok || r.err != nil {
		return false
	}
	if bytes.Equal(bytes.TrimSpace(raw), []byte("null")) {
		r.err = fmt.Errorf("%s: want %s, got null", key, want)
		return false
	}
	if err := json.Unmarshal(raw, v); err != nil {
		r.err = fmt.Errorf("%s: want %s", key, want)
	}
	return r.err == nil
}

func (r *profileReader) list(key string) (list []string, ok bool) {
	ok = r.take(key, "a list of texts", &list)
	return list, ok
}

func (r *profileReader) text(key string) (s string) {
	r.take(key, "a text", &s)
	return s
}

// yes reads true or false, which the specification's grammar has in quotes.
func (r *profileReader) yes(key string, absent bool) bool {
	b := flexBool(absent)
	r.take(key, "true or false", &b)
	return bool(b)
}

type flexBool bool

func (b *flexBool) UnmarshalJSON(data []byte) error {
	switch string(data) {
	case `true`, `"true"`:
		*b = true
	case `false`, `"false"`:
		*b = false
	default:
		return fmt.Errorf("want true or false")
	}
	return nil
}

func (r *profileReader) info() {
	var info map[string]any
	if !r.take(keyProfileInfo, "an object", &info) {
		r.problem(finding.Error, keyProfileInfo, "it must be there")
		return
	}
	get := func(key string) string {
		s, _ := info[key].(string)
		return s
	}
	for _, key := range []string{"Source-Organization", "External-Description", "Version", LabelProfile} {
		if get(key) == "" {
			r.problem(finding.Error, keyProfileInfo+"/"+key, "it must be there, as text")
		}
	}
	r.p.Identifier, r.p.Version, r.p.Spec = get(LabelProfile), get("Version"), get(keyProfileSpec)
	r.p.Spec = cmp.Or(r.p.Spec, specDefault)
	if major, _, _ := strings.Cut(r.p.Spec, "."); major != "1" {
		r.problem(finding.Warning, keyProfileInfo+"/"+keyProfileSpec, "version "+layout.EncodePath(r.p.Spec)+" is not known; read as 1.4.0")
	}
}

func (r *profileReader) tags() {
	var keys map[string]map[string]json.RawMessage
	if json.Unmarshal(r.top[keyBagInfo], &keys) == nil { // else take says what is wrong
		r.odd(keys)
	}
	var all map[string]struct {
		Required    flexBool        `json:"required"`
		Recommended flexBool        `json:"recommended"`
		Repeatable  *flexBool       `json:"repeatable"`
		Values      []string        `json:"values"`
		Description json.RawMessage `json:"description"`
	}
	if !r.take(keyBagInfo, "an object of objects with required, values, repeatable and description", &all) {
		return
	}
	for _, label := range slices.Sorted(maps.Keys(all)) {
		t := all[label]
		if tagfile.SameLabel(label, LabelProfile) {
			r.problem(finding.Warning, keyBagInfo+"/"+label, "it is always required, and should not be listed")
		}
		r.p.Tags = append(r.p.Tags, Tag{
			Label: label, Required: bool(t.Required), Wanted: bool(t.Recommended), Values: t.Values, Single: t.Repeatable != nil && !bool(*t.Repeatable),
		})
	}
}

// odd tells of keys of Bag-Info's labels that are none: one that is misspelt would check
// nothing.
func (r *profileReader) odd(labels map[string]map[string]json.RawMessage) {
	known := []string{"required", "recommended", "repeatable", "values", "description"}
	for _, label := range slices.Sorted(maps.Keys(labels)) {
		for _, key := range slices.Sorted(maps.Keys(labels[label])) {
			if slices.Contains(known, key) {
				continue
			}
			severity, text := finding.Warning, "not a key of the specification; it is not checked"
			for _, k := range known {
				if len(key) > 3 && strings.EqualFold(key[:3], k[:3]) && max(len(key)-len(k), len(k)-len(key)) <= 2 {
					severity, text = finding.Error, "not a key of the specification; is it "+k+"?"
				}
			}
			r.problem(severity, keyBagInfo+"/"+label+"/"+layout.EncodePath(key), text)
		}
	}
}

// consistent looks at what the specification asks of one key because of another.
func (r *profileReader) consistent() {
	p := r.p
	for _, l := range p.lists() {
		for _, want := range l.Required {
			covered := slices.Contains(l.Allowed, want) || strings.HasSuffix(l.key, "Files") && matchesAny(l.Allowed, want)
			if l.restricted && !covered {
				r.problem(finding.Error, l.key+"-Required", layout.EncodePath(want)+" is required, and not in "+l.key+"-Allowed")
			}
		}
	}
	if p.ForbidFetch && p.RequireFetch {
		r.problem(finding.Error, "Fetch.txt-Required", "it is true, and Allow-Fetch.txt is false")
	}
	if p.Serialization == "optional" && len(p.AcceptSerialization) == 0 {
		r.problem(finding.Warning, "Accept-Serialization", "at least one is needed, as Serialization is optional; read as any")
	}
	switch p.Serialization {
	case "":
		p.Serialization = "optional"
	case "forbidden", "required", "optional":
	default:
		r.problem(finding.Error, "Serialization", "want forbidden, required or optional, not "+layout.EncodePath(p.Serialization))
		p.Serialization = "optional"
	}
	if p.Serialization == "required" && len(p.AcceptSerialization) == 0 {
		r.problem(finding.Error, "Accept-Serialization", "at least one is needed, as Serialization is required")
	}
	if len(p.AcceptVersions) == 0 {
		r.problem(finding.Error, "Accept-BagIt-Version", "at least one version is required")
	}
}

// Algorithms gives those a bag that satisfies the profile can be made with: what
// it requires, or else what of def it allows, or else what it allows.
func (p *Profile) Algorithms(def []files.Algorithm) []files.Algorithm {
	known := func(names []string) (as []files.Algorithm) {
		for _, n := range names {
			if a := files.Algorithm(n); a.Known() && !slices.Contains(as, a) {
				as = append(as, a)
			}
		}
		return as
	}
	all := append(slices.Clone(p.Manifests.Required), p.TagManifests.Required...)
	if as := known(all); len(as) > 0 || !p.Manifests.restricted {
		if len(as) == 0 {
			return def
		}
		return as
	}
	allowed := known(p.Manifests.Allowed)
	both := slices.DeleteFunc(slices.Clone(def), func(a files.Algorithm) bool { return !slices.Contains(allowed, a) })
	if len(both) > 0 {
		return both
	}
	return allowed
}
