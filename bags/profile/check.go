package profile

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"bagpipe/bags/archive"
	"bagpipe/bags/files"
	"bagpipe/bags/finding"
	"bagpipe/bags/tagfile"
	"bagpipe/layout"
)

// profileSection is the section that profile findings cite.
const profileSection = "BagIt Profiles 1.4.0"

// serializations are the media types that profiles name for each format; only some
// are registered.
var serializations = map[archive.Format][]string{
	archive.Zip:      {"application/zip", "application/x-zip", "application/x-zip-compressed"},
	archive.Tar:      {"application/tar", "application/x-tar", "application/x-gtar"},
	archive.TarGzip:  {"application/gzip", "application/x-gzip", "application/tar+gzip", "application/x-tar+gzip", "application/x-gtar-compressed", "application/x-compressed-tar", "application/x-tgz", "application/tgz"},
	archive.TarZstd:  {"application/zstd", "application/x-zstd", "application/tar+zstd", "application/x-tar+zstd", "application/x-zstd-compressed-tar"},
	archive.TarBzip2: {"application/bzip2", "application/x-bzip2", "application/x-bzip", "application/tar+bzip2", "application/x-tar+bzip2", "application/x-bzip-compressed-tar", "application/x-bzip2-compressed-tar"},
	archive.TarXz:    {"application/xz", "application/x-xz", "application/tar+xz", "application/x-tar+xz", "application/x-xz-compressed-tar"},
	archive.TarLz4:   {"application/lz4", "application/x-lz4", "application/tar+lz4", "application/x-tar+lz4", "application/x-lz4-compressed-tar"},
}

// Facts are the properties of a bag that profiles constrain.
type Facts struct {
	Format       archive.Format // what it is serialized as
	AnyFormat    bool           // how it is serialized is not asked
	Version      string
	Info         []tagfile.Field
	Manifests    []string // algorithms
	TagManifests []string
	Files        []files.Entry
	PayloadFiles int64
	PayloadBytes int64
	Has          func(path string) bool // a file
	HasFolder    func(path string) bool
	IsOwn        func(path string) bool // a tag file of the specification
}

// Check gives what of the profile the bag does not meet, and, as warnings, what is
// wrong with the profile itself.
func (p *Profile) Check(bag *Facts) []finding.Finding {
	c := &profileCheck{bag: bag, p: p}
	for _, f := range p.Problems {
		f.Profile, f.Severity = p.Identifier, finding.Warning
		f.Text = "the profile itself: " + f.Text
		c.found = append(c.found, f)
	}
	if !bag.AnyFormat { // first what makes the rest uncertain
		c.serialization()
	}
	c.version()
	c.info()
	c.manifests("Manifests", tagfile.ManifestPrefix, bag.Manifests, p.Manifests)
	c.manifests("Tag-Manifests", tagfile.TagPrefix, bag.TagManifests, p.TagManifests)
	c.fetch()
	c.tagFiles()
	c.payload()
	return c.found
}

type profileCheck struct {
	bag   *Facts
	p     *Profile
	found []finding.Finding
}

func (c *profileCheck) fail(constraint, path, text string) {
	c.find(finding.Error, constraint, path, text)
}

func (c *profileCheck) find(s finding.Severity, constraint, path, text string) {
	c.found = append(c.found, finding.Finding{
		Code: finding.Profile, Severity: s, Path: layout.EncodePath(path), Section: profileSection,
		Text: text, Profile: c.p.Identifier, Constraint: constraint,
	})
}

func (c *profileCheck) serialization() {
	format := c.bag.Format
	switch {
	case format == archive.None && c.p.Serialization == "required":
		c.fail("Serialization", "", "the bag must be serialized, and is a folder")
	case format != archive.None && c.p.Serialization == "forbidden":
		c.fail("Serialization", "", "the bag must not be serialized, and is a "+string(format))
	case format != archive.None && len(c.p.AcceptSerialization) > 0 && !slices.ContainsFunc(c.p.AcceptSerialization, func(s string) bool {
		return slices.Contains(serializations[format], strings.ToLower(strings.TrimSpace(s)))
	}):
		c.fail("Accept-Serialization", "", fmt.Sprintf("the bag is a %s; accepted are %s", format, quoted(c.p.AcceptSerialization)))
	}
}

func (c *profileCheck) version() {
	if got := c.bag.Version; len(c.p.AcceptVersions) > 0 && !slices.Contains(c.p.AcceptVersions, got) {
		c.fail("Accept-BagIt-Version", tagfile.DeclarationFile, fmt.Sprintf("the version is %s; accepted are %s", strconv.Quote(got), quoted(c.p.AcceptVersions)))
	}
}

func (c *profileCheck) info() {
	if !c.bag.Has(tagfile.InfoFile) {
		c.fail(keyBagInfo, tagfile.InfoFile, "bag-info.txt must be there")
	}
	if c.p.Identifier != "" && !slices.ContainsFunc(c.bag.Info, func(f tagfile.Field) bool {
		return tagfile.SameLabel(f.Label, LabelProfile) && f.Value == c.p.Identifier
	}) {
		c.fail(LabelProfile, tagfile.InfoFile, "the bag must name the profile: "+LabelProfile+": "+c.p.Identifier)
	}
	for _, t := range c.p.Tags {
		if !tagfile.SameLabel(t.Label, LabelProfile) {
			c.tag(t)
		}
	}
}

func (c *profileCheck) tag(t Tag) {
	at := keyBagInfo + "/" + t.Label + "/"
	n := 0
	for _, f := range c.bag.Info {
		if !tagfile.SameLabel(f.Label, t.Label) {
			continue
		}
		n++
		if len(t.Values) > 0 && !slices.Contains(t.Values, f.Value) {
			c.fail(at+"values", tagfile.InfoFile, fmt.Sprintf("%s is %s; allowed are %s", t.Label, strconv.Quote(f.Value), quoted(t.Values)))
		}
	}
	switch {
	case n == 0 && t.Required:
		c.fail(at+"required", tagfile.InfoFile, t.Label+" must be there")
	case n == 0 && t.Wanted:
		c.find(finding.Warning, at+"recommended", tagfile.InfoFile, t.Label+" should be there")
	}
	if n > 1 && t.Single {
		c.fail(at+"repeatable", tagfile.InfoFile, fmt.Sprintf("%s is there %d times, and must not be repeated", t.Label, n))
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
	has := c.bag.Has(tagfile.FetchName)
	if has && c.p.ForbidFetch {
		c.fail("Allow-Fetch.txt", tagfile.FetchName, "it must not be there")
	}
	if !has && c.p.RequireFetch {
		c.fail("Fetch.txt-Required", tagfile.FetchName, "it must be there")
	}
}

func (c *profileCheck) tagFiles() {
	for _, p := range c.p.TagFiles.Required {
		if !c.bag.Has(p) {
			c.fail("Tag-Files-Required", p, "it must be there")
		}
	}
	for i := range c.bag.Files {
		p := c.bag.Files[i].Path
		if !strings.HasPrefix(p, tagfile.PayloadPrefix) && !c.bag.IsOwn(p) && !c.p.AllowsTagFile(p) {
			c.fail("Tag-Files-Allowed", p, "the tag file is not allowed")
		}
	}
}

// AllowsTagFile reports whether a bag may have a tag file at a path.
func (p *Profile) AllowsTagFile(path string) bool {
	return !p.TagFiles.restricted || matchesAny(p.TagFiles.Allowed, path)
}

func (c *profileCheck) payload() {
	r := c.bag
	if c.p.DataEmpty && r.PayloadFiles > 0 && (r.PayloadFiles > 1 || r.PayloadBytes > 0) {
		c.fail("Data-Empty", tagfile.PayloadDir, fmt.Sprintf("the payload must be empty, or one empty file; it has %d files, %d bytes", r.PayloadFiles, r.PayloadBytes))
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
		if strings.HasPrefix(p, tagfile.PayloadPrefix) && !matchesAny(c.p.PayloadFiles.Allowed, p) {
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
