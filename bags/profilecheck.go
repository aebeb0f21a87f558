package bags

import (
	"bagpipe/layout"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// profileSection is what profile findings cite.
const profileSection = "BagIt Profiles 1.4.0"

// serializations are the media types that profiles name for each format; only some
// are registered.
var serializations = map[Format][]string{
	Zip:      {"application/zip", "application/x-zip", "application/x-zip-compressed"},
	Tar:      {"application/tar", "application/x-tar", "application/x-gtar"},
	TarGzip:  {"application/gzip", "application/x-gzip", "application/tar+gzip", "application/x-tar+gzip", "application/x-gtar-compressed", "application/x-compressed-tar", "application/x-tgz", "application/tgz"},
	TarZstd:  {"application/zstd", "application/x-zstd", "application/tar+zstd", "application/x-tar+zstd", "application/x-zstd-compressed-tar"},
	TarBzip2: {"application/bzip2", "application/x-bzip2", "application/x-bzip", "application/tar+bzip2", "application/x-tar+bzip2", "application/x-bzip-compressed-tar", "application/x-bzip2-compressed-tar"},
	TarXz:    {"application/xz", "application/x-xz", "application/tar+xz", "application/x-tar+xz", "application/x-xz-compressed-tar"},
	TarLz4:   {"application/lz4", "application/x-lz4", "application/tar+lz4", "application/x-tar+lz4", "application/x-lz4-compressed-tar"},
}

// Facts are what profiles ask of a bag.
type Facts struct {
	Format       Format // what it is serialized as
	AnyFormat    bool   // how it is serialized is not asked
	Version      string
	Info         []Field
	Manifests    []string // algorithms
	TagManifests []string
	Files        []Entry
	PayloadFiles int64
	PayloadBytes int64
	Has          func(path string) bool // a file
	HasFolder    func(path string) bool
	IsOwn        func(path string) bool // a tag file of the specification
}

// Check gives what of the profile the bag does not meet, and, as warnings, what is
// wrong with the profile itself.
func (p *Profile) Check(bag *Facts) []Finding {
	c := &profileCheck{bag: bag, p: p}
	for _, f := range p.Problems {
		f.Profile, f.Severity = p.Identifier, SeverityWarning
		f.Text = "the profile itself: " + f.Text
		c.found = append(c.found, f)
	}
	if !bag.AnyFormat { // first what makes the rest uncertain
		c.serialization()
	}
	c.version()
	c.info()
	c.manifests("Manifests", manifestPrefix, bag.Manifests, p.Manifests)
	c.manifests("Tag-Manifests", tagPrefix, bag.TagManifests, p.TagManifests)
	c.fetch()
	c.tagFiles()
	c.payload()
	return c.found
}

type profileCheck struct {
	bag   *Facts
	p     *Profile
	found []Finding
}

func (c *profileCheck) fail(constraint, path, text string) {
	c.find(SeverityError, constraint, path, text)
}

func (c *profileCheck) find(s Severity, constraint, path, text string) {
	c.found = append(c.found, Finding{
		Code: CodeProfile, Severity: s, Path: layout.EncodePath(path), Section: profileSection,
		Text: text, Profile: c.p.Identifier, Constraint: constraint,
	})
}

func (c *profileCheck) serialization() {
	format := c.bag.Format
	switch {
	case format == None && c.p.Serialization == "required":
		c.fail("Serialization", "", "the bag must be serialized, and is a folder")
	case format != None && c.p.Serialization == "forbidden":
		c.fail("Serialization", "", "the bag must not be serialized, and is a "+string(format))
	case format != None && len(c.p.AcceptSerialization) > 0 && !slices.ContainsFunc(c.p.AcceptSerialization, func(s string) bool {
		return slices.Contains(serializations[format], strings.ToLower(strings.TrimSpace(s)))
	}):
		c.fail("Accept-Serialization", "", fmt.Sprintf("the bag is a %s; accepted are %s", format, quoted(c.p.AcceptSerialization)))
	}
}

func (c *profileCheck) version() {
	if got := c.bag.Version; len(c.p.AcceptVersions) > 0 && !slices.Contains(c.p.AcceptVersions, got) {
		c.fail("Accept-BagIt-Version", declarationFile, fmt.Sprintf("the version is %s; accepted are %s", strconv.Quote(got), quoted(c.p.AcceptVersions)))
	}
}

func (c *profileCheck) info() {
	if !c.bag.Has(infoFile) {
		c.fail(keyBagInfo, infoFile, "bag-info.txt must be there")
	}
	if c.p.Identifier != "" && !slices.ContainsFunc(c.bag.Info, func(f Field) bool {
		return sameLabel(f.Label, labelProfile) && f.Value == c.p.Identifier
	}) {
		c.fail(labelProfile, infoFile, "the bag must name the profile: "+labelProfile+": "+c.p.Identifier)
	}
	for _, t := range c.p.Tags {
		if !sameLabel(t.Label, labelProfile) {
			c.tag(t)
		}
	}
}

func (c *profileCheck) tag(t ProfileTag) {
	at := keyBagInfo + "/" + t.Label + "/"
	n := 0
	for _, f := range c.bag.Info {
		if !sameLabel(f.Label, t.Label) {
			continue
		}
		n++
		if len(t.Values) > 0 && !slices.Contains(t.Values, f.Value) {
			c.fail(at+"values", infoFile, fmt.Sprintf("%s is %s; allowed are %s", t.Label, strconv.Quote(f.Value), quoted(t.Values)))
		}
	}
	switch {
	case n == 0 && t.Required:
		c.fail(at+"required", infoFile, t.Label+" must be there")
	case n == 0 && t.Wanted:
		c.find(SeverityWarning, at+"recommended", infoFile, t.Label+" should be there")
	}
	if n > 1 && t.Single {
		c.fail(at+"repeatable", infoFile, fmt.Sprintf("%s is there %d times, and must not be repeated", t.Label, n))
	}
}

func (c *profileCheck) manifests(key, prefix string, have []string, names NameLists) {
	for _, a := range names.Required {
		if !slices.Contains(have, a) {
			c.fail(key+"-Required", prefix+a+".txt", "it must be there")
		}
	}
	for _, a := range have {
		if names.restricted && !slices.Contains(names.Allowed, a) {
			c.fail(key+"-Allowed", prefix+a+".txt", "the algorithm is not allowed; allowed are "+quoted(names.Allowed))
		}
	}
}

func (c *profileCheck) fetch() {
	has := c.bag.Has(fetchName)
	if has && c.p.ForbidFetch {
		c.fail("Allow-Fetch.txt", fetchName, "it must not be there")
	}
	if !has && c.p.RequireFetch {
		c.fail("Fetch.txt-Required", fetchName, "it must be there")
	}
}

func (c *profileCheck) tagFiles() {
	for _, p := range c.p.TagFiles.Required {
		if !c.bag.Has(p) {
			c.fail("Tag-Files-Required", p, "it must be there")
		}
	}
	if !c.p.TagFiles.restricted {
		return
	}
	for i := range c.bag.Files {
		p := c.bag.Files[i].Path
		if !strings.HasPrefix(p, payloadPrefix) && !c.bag.IsOwn(p) && !matchesAny(c.p.TagFiles.Allowed, p) {
			c.fail("Tag-Files-Allowed", p, "the tag file is not allowed")
		}
	}
}

func (c *profileCheck) payload() {
	r := c.bag
	if c.p.DataEmpty && r.PayloadFiles > 0 && (r.PayloadFiles > 1 || r.PayloadBytes > 0) {
		c.fail("Data-Empty", payloadDir, fmt.Sprintf("the payload must be empty, or one empty file; it has %d files, %d bytes", r.PayloadFiles, r.PayloadBytes))
	}
	for _, p := range c.p.PayloadFiles.Required {
		folder, isFolder := strings.CutSuffix(p, "/")
		if isFolder && !c.bag.HasFolder(folder) || !isFolder && !c.bag.Has(p) {
			c.fail("Payload-Files-Required", p, "it must be there")
		}
	}
	if !c.p.PayloadFiles.restricted {
		return
	}
	for i := range c.bag.Files {
		p := c.bag.Files[i].Path
		if strings.HasPrefix(p, payloadPrefix) && !matchesAny(c.p.PayloadFiles.Allowed, p) {
			c.fail("Payload-Files-Allowed", p, "the payload file is not allowed")
		}
	}
}

func quoted(list []string) string {
	all := make([]string, len(list))
	for i, s := range list {
		all[i] = strconv.Quote(s)
	}
	return strings.Join(all, ", ")
}
