package bags

import (
	"context"
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

// profiles holds the bag to every profile asked for.
func (v *validator) profiles(context.Context) error {
	for _, p := range v.o.Profiles {
		c := &profileCheck{v: v, p: p}
		v.report.Profiles = append(v.report.Profiles, p.Identifier)
		for _, f := range p.Problems {
			f.Profile, f.Severity = p.Identifier, SeverityWarning
			f.Text = "the profile itself: " + f.Text
			v.report.Findings = append(v.report.Findings, f)
		}
		c.run()
	}
	return v.enough()
}

type profileCheck struct {
	v *validator
	p *Profile
}

func (c *profileCheck) fail(constraint, path, text string) {
	c.find(SeverityError, constraint, path, text)
	c.v.stop = c.v.stop || c.v.o.FailFast
}

func (c *profileCheck) find(s Severity, constraint, path, text string) {
	c.v.report.Findings = append(c.v.report.Findings, Finding{
		Code: CodeProfile, Severity: s, Path: encoded(path), Section: profileSection,
		Text: text, Profile: c.p.Identifier, Constraint: constraint,
	})
}

// run checks first what makes the rest uncertain.
func (c *profileCheck) run() {
	if !c.v.o.unserialized {
		c.serialization()
	}
	c.version()
	c.info()
	payload := make([]string, len(c.v.payloads))
	for i, a := range c.v.payloads {
		payload[i] = string(a)
	}
	tags := make([]string, len(c.v.tagSets))
	for i, t := range c.v.tagSets {
		tags[i] = string(t.algorithm)
	}
	c.manifests("Manifests", manifestPrefix, payload, c.p.ManifestsRequired, c.p.ManifestsAllowed, c.p.manifestsRestricted)
	c.manifests("Tag-Manifests", tagPrefix, tags, c.p.TagManifestsRequired, c.p.TagManifestsAllowed, c.p.tagManifestRestricted)
	c.fetch()
	c.tagFiles()
	c.payload()
}

func (c *profileCheck) serialization() {
	format := c.v.report.Archive
	if c.v.o.Serialized != None {
		format = c.v.o.Serialized
	}
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
	if got := c.v.report.Version; len(c.p.AcceptVersions) > 0 && !slices.Contains(c.p.AcceptVersions, got) {
		c.fail("Accept-BagIt-Version", declarationFile, fmt.Sprintf("the version is %s; accepted are %s", strconv.Quote(got), quoted(c.p.AcceptVersions)))
	}
}

func (c *profileCheck) info() {
	if !c.v.has(infoFile) {
		c.fail(keyBagInfo, infoFile, "bag-info.txt must be there")
	}
	if c.p.Identifier != "" && !slices.ContainsFunc(c.v.report.Info, func(f Field) bool {
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
	for _, f := range c.v.report.Info {
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

func (c *profileCheck) manifests(key, prefix string, have, required, allowed []string, restricted bool) {
	for _, a := range required {
		if !slices.Contains(have, a) {
			c.fail(key+"-Required", prefix+a+".txt", "it must be there")
		}
	}
	for _, a := range have {
		if restricted && !slices.Contains(allowed, a) {
			c.fail(key+"-Allowed", prefix+a+".txt", "the algorithm is not allowed; allowed are "+quoted(allowed))
		}
	}
}

func (c *profileCheck) fetch() {
	has := c.v.has(fetchName)
	if has && c.p.ForbidFetch {
		c.fail("Allow-Fetch.txt", fetchName, "it must not be there")
	}
	if !has && c.p.RequireFetch {
		c.fail("Fetch.txt-Required", fetchName, "it must be there")
	}
}

func (c *profileCheck) tagFiles() {
	for _, p := range c.p.TagFilesRequired {
		if !c.v.has(p) {
			c.fail("Tag-Files-Required", p, "it must be there")
		}
	}
	if !c.p.tagFilesRestricted {
		return
	}
	for i := range c.v.tree.Files {
		p := c.v.tree.Files[i].Path
		if !strings.HasPrefix(p, payloadPrefix) && !c.v.isOwn(p) && !matchesAny(c.p.TagFilesAllowed, p) {
			c.fail("Tag-Files-Allowed", p, "the tag file is not allowed")
		}
	}
}

// isOwn tells whether a tag file is one the specification itself has.
func (v *validator) isOwn(p string) bool {
	return !strings.Contains(p, "/") && isSpecified(p)
}

func (c *profileCheck) payload() {
	r := &c.v.report
	if c.p.DataEmpty && r.PayloadFiles > 0 && (r.PayloadFiles > 1 || r.PayloadBytes > 0) {
		c.fail("Data-Empty", payloadDir, fmt.Sprintf("the payload must be empty, or one empty file; it has %d files, %d bytes", r.PayloadFiles, r.PayloadBytes))
	}
	for _, p := range c.p.PayloadFilesRequired {
		folder, isFolder := strings.CutSuffix(p, "/")
		if isFolder && !c.v.folders[folder] || !isFolder && !c.v.has(p) {
			c.fail("Payload-Files-Required", p, "it must be there")
		}
	}
	if !c.p.payloadRestricted {
		return
	}
	for i := range c.v.tree.Files {
		p := c.v.tree.Files[i].Path
		if strings.HasPrefix(p, payloadPrefix) && !matchesAny(c.p.PayloadFilesAllowed, p) {
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
