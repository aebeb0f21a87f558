package bags

import (
	"cmp"
	"context"
	"strings"

	"bagpipe/bags/finding"
	"bagpipe/bags/profile"
	"bagpipe/bags/tagfile"
)

// profiles holds the bag to every profile asked for.
func (v *validator) profiles(context.Context) error {
	if len(v.o.Profiles) == 0 {
		return nil
	}
	facts := &profile.Facts{
		Format: cmp.Or(v.o.Serialized, v.report.Archive), AnyFormat: v.o.unserialized,
		Version: v.report.Version, Info: v.report.Info, Files: v.tree.Files,
		PayloadFiles: v.report.PayloadFiles, PayloadBytes: v.report.PayloadBytes,
		Has: v.has, HasFolder: func(p string) bool { return v.folders[p] }, IsOwn: isOwn,
	}
	for _, a := range v.payloads {
		facts.Manifests = append(facts.Manifests, string(a))
	}
	for _, t := range v.tagSets {
		facts.TagManifests = append(facts.TagManifests, string(t.algorithm))
	}
	for _, p := range v.o.Profiles {
		v.report.Profiles = append(v.report.Profiles, p.Identifier)
		for _, f := range p.Check(facts) {
			v.stop = v.stop || v.o.FailFast && f.Severity == finding.Error
			v.report.Findings = append(v.report.Findings, f)
		}
	}
	return v.enough()
}

// isOwn reports whether a tag file is one the specification itself has.
func isOwn(p string) bool { return !strings.Contains(p, "/") && tagfile.IsSpecified(p) }
