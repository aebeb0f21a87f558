package bags

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"strings"

	"bagpipe/bags/files"
	"bagpipe/bags/finding"
	"bagpipe/bags/tagfile"
	"bagpipe/layout"
)

// completeness compares what is listed with what is there (RFC 8493, section 3).
func (v *validator) completeness(ctx context.Context) error {
	v.checkOxum()
	if v.o.Level == Quick && len(v.oxums) > 0 {
		return v.enough()
	}
	if v.o.Level == Quick {
		v.warn(finding.NoOxum, "2.2.2", tagfile.InfoFile, "no Payload-Oxum: the payload is compared with the manifests instead")
	}
	v.listedPayload()
	v.unlistedPayload()
	v.listedTags()
	v.untagged()
	return cmp.Or(v.enough(), ctx.Err())
}

func (v *validator) listedPayload() {
	differ := false
	for p, e := range v.payload {
		switch {
		case v.has(p):
		case v.holes[p]:
			v.fail(finding.Unfetched, "2.2.3", p, "still to be fetched: listed in fetch.txt and not there")
		default:
			v.fail(finding.Missing, "3", p, "listed in a manifest and not there")
		}
		if len(v.payloads) > 1 && !v.inEvery(e) {
			differ = true
			if !v.version.Before(tagfile.V1) {
				v.fail(finding.Unlisted, "2.1.3", p, "not in every payload manifest: missing from "+v.lacking(e))
			}
		}
	}
	if differ && v.version.Before(tagfile.V1) {
		v.warn(finding.ManifestsDiffer, "2.1.3", "", "the payload manifests do not list the same files")
	}
}

func (v *validator) unlistedPayload() {
	if len(v.payloads) == 0 {
		return // said already; every file would be reported
	}
	for i := range v.tree.Files {
		p := v.tree.Files[i].Path
		if strings.HasPrefix(p, tagfile.PayloadPrefix) && v.payload[p] == nil {
			v.fail(finding.Unlisted, "2.1.3", p, "in data/ and in no payload manifest")
		}
	}
}

func (v *validator) listedTags() {
	for p := range v.tags {
		if !v.has(p) {
			v.fail(finding.Missing, "3", p, "listed in a tag manifest and not there")
		}
	}
}

// untagged looks at what tag manifests leave out: payload manifests must be in
// every one (since 1.0), other tag files should be.
func (v *validator) untagged() {
	if len(v.tagSets) == 0 {
		return
	}
	v.tagSetsDiffer()
	for _, a := range v.payloads {
		name := v.manifestNames[a]
		for _, t := range v.tagSets {
			if e := v.tags[name]; e == nil || !e.hasAlgorithm(t.algorithm) {
				v.find(v.since1(), finding.ManifestUntagged, "2.2.1", t.name, 0, "does not list "+layout.EncodePath(name))
			}
		}
	}
	for i := range v.tree.Files {
		p := v.tree.Files[i].Path
		if strings.HasPrefix(p, tagfile.PayloadPrefix) || v.tags[p] != nil {
			continue
		}
		_, isManifest := tagfile.ManifestAlgorithm(p, tagfile.ManifestPrefix)
		_, isTag := tagfile.ManifestAlgorithm(p, tagfile.TagPrefix)
		if !isManifest && !isTag {
			v.warn(finding.TagUnlisted, "2.2.1", p, "a tag file in no tag manifest: changes to it are not noticed")
		}
	}
}

// tagSetsDiffer warns once: each tag manifest should list the same files.
func (v *validator) tagSetsDiffer() {
	for _, e := range v.tags {
		for _, t := range v.tagSets {
			if !e.hasAlgorithm(t.algorithm) {
				v.warn(finding.ManifestsDiffer, "2.2.1", t.name, "the tag manifests do not list the same files")
				return
			}
		}
	}
}

// compare looks for digests that are not the manifests'.
func (f *findings) compare(e *listed, p string, sums *files.Sums) {
	if e == nil {
		return
	}
	for _, s := range e.sums {
		got := sums.Of(s.algorithm)
		if got == nil || s.sum == nil || bytes.Equal(got, s.sum) {
			continue
		}
		f.fail(finding.Mismatch, "3", p, fmt.Sprintf("%s is %s…, the manifest has %s…", s.algorithm, files.Short(got), files.Short(s.sum)))
	}
}
