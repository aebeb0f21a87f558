package bags

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"

	"bagpipe/bags/files"
	"bagpipe/bags/finding"
	"bagpipe/bags/tagfile"
	"bagpipe/layout"
)

// manifests reads all manifests into v.payload and v.tags.
func (v *validator) manifests(ctx context.Context) error {
	for _, a := range v.payloads {
		if err := v.manifest(ctx, v.manifestNames[a], a, true); err != nil {
			return err
		}
	}
	for _, t := range v.tagSets {
		if err := v.manifest(ctx, t.name, t.algorithm, false); err != nil {
			return err
		}
	}
	return v.enough()
}

func (v *validator) manifest(ctx context.Context, name string, a files.Algorithm, isPayload bool) error {
	into := v.tags
	if isPayload {
		into = v.payload
	}
	section := "2.2.1"
	if isPayload {
		section = "2.1.3"
	}
	err := v.text(name, func(l tagfile.Line) {
		if ctx.Err() != nil {
			return
		}
		if strings.TrimSpace(l.Text) == "" {
			v.find(v.since1(), finding.ManifestSyntax, section, name, l.Number, "an empty line")
			return
		}
		m, err := tagfile.ParseManifestLine(l.Text)
		if err != nil {
			v.find(finding.Error, finding.ManifestSyntax, section, name, l.Number, err.Error())
			return
		}
		p, ok := v.resolve(name, l.Number, m.Path, isPayload)
		if !ok {
			return
		}
		sum, err := tagfile.DecodeSum(m.Sum, a)
		if err != nil {
			v.find(finding.Error, finding.DigestSyntax, section, name, l.Number, layout.EncodePath(p)+": "+err.Error())
			// The file is listed all the same: with a nil sum it is not reported
			// as unlisted, nor as a mismatch.
		}
		v.list(into, name, l.Number, p, a, sum)
	})
	return errors.Join(err, ctx.Err())
}

// list adds one entry.
func (v *validator) list(into map[string]*listed, name string, number int, p string, a files.Algorithm, sum []byte) {
	e := into[p]
	if e == nil && !v.has(p) {
		most := v.o.Limits.WithDefaults().Files
		if v.absent++; int64(v.absent) > most {
			if int64(v.absent) == most+1 {
				v.find(finding.Error, finding.Missing, "3", name, number, fmt.Sprintf("from here on nothing is said of files that are not there: there are more than %d", most))
			}
			return
		}
	}
	if e == nil {
		e = &listed{}
		p = v.own(p)
		e.sums = e.first[:0]
		into[p] = e
	}
	for _, s := range e.sums {
		if s.algorithm != a {
			continue
		}
		severity := v.since1()
		if string(s.sum) != string(sum) {
			severity = finding.Error
		}
		v.find(severity, finding.Duplicate, "2.1.3", name, number, layout.EncodePath(p)+" is listed more than once")
		if severity == finding.Warning {
			return
		}
	}
	e.sums = append(e.sums, listedSum{a, sum})
	e.known |= files.SetOf(a)
}

// resolve turns a path as written into the path of a file, present or not. ok is
// false where nothing can be looked for.
func (v *validator) resolve(name string, number int, written string, isPayload bool) (string, bool) {
	section := "2.1.3"
	warn := func(code finding.Code, text string) {
		v.find(finding.Warning, code, section, name, number, layout.EncodePath(written)+": "+text)
	}
	fail := func(code finding.Code, text string) {
		v.find(finding.Error, code, section, name, number, layout.EncodePath(written)+": "+text)
	}
	p := written
	if rest, star := strings.CutPrefix(p, "*"); star && (isPayload || !v.has(p)) {
		warn(finding.Asterisk, "a \"*\" before the path, as md5sum writes for binary files")
		p = rest
	}
	decoded, bare := tagfile.DecodeManifestPath(p)
	switch {
	case v.version.Before(tagfile.V1) && decoded != p && !v.has(decoded) && v.has(p):
		warn(finding.Percent, "taken literally: there is a file of that name")
	case bare:
		v.find(v.since1(), finding.Percent, section, name, number, layout.EncodePath(written)+": a \"%\" that is not encoded as %25")
		p = decoded
	default:
		p = decoded
	}
	switch {
	case p == "" || strings.IndexByte(p, 0) >= 0:
		fail(finding.ManifestSyntax, "no usable path")
		return "", false
	case p[0] == '/' || leavesBag(p):
		fail(finding.UnsafePath, "leads out of the bag")
		return "", false
	}
	if clean := path.Clean(p); clean != strings.TrimSuffix(p, "/") {
		warn(finding.PathForm, "not a plain path; read as "+layout.EncodePath(clean))
		p = clean
	}
	if strings.HasSuffix(p, "/") || v.folders[p] {
		fail(finding.ListsFolder, "a folder; manifests list files")
		return "", false
	}
	return v.place(p, isPayload, fail, warn)
}

// place checks that p is in the part of the bag the manifest is about.
func (v *validator) place(p string, isPayload bool, fail, warn func(finding.Code, string)) (string, bool) {
	inside := strings.HasPrefix(p, tagfile.PayloadPrefix)
	switch {
	case isPayload && !inside:
		fail(finding.OutsidePayload, "not below data/")
		return "", false
	case !isPayload && inside:
		fail(finding.ListsPayload, "a payload file in a tag manifest")
		return "", false
	}
	if _, isTag := tagfile.ManifestAlgorithm(p, tagfile.TagPrefix); isTag && !isPayload {
		fail(finding.ListsTagManifest, "a tag manifest in a tag manifest")
		return "", false
	}
	if v.has(p) {
		return p, true
	}
	if other, ok := v.normalised(p); ok {
		warn(finding.Normalisation, "found under another Unicode normalisation of its name")
		return other, true
	}
	return p, true
}

// leavesBag reports whether p leads above the bag. A path that comes back into
// the bag is cleaned: nothing in a bag is a link, so it has one meaning only.
func leavesBag(p string) bool {
	clean := path.Clean(p)
	return clean == ".." || strings.HasPrefix(clean, "../")
}

func hasParent(p string) bool {
	for part := range strings.SplitSeq(p, "/") {
		if part == ".." {
			return true
		}
	}
	return false
}

// fetchFile reads fetch.txt.
func (v *validator) fetchFile(ctx context.Context) error {
	if !v.has(tagfile.FetchName) {
		return nil
	}
	err := v.text(tagfile.FetchName, func(l tagfile.Line) {
		if strings.TrimSpace(l.Text) == "" {
			v.find(v.since1(), finding.FetchSyntax, "2.2.3", tagfile.FetchName, l.Number, "an empty line")
			return
		}
		f, err := tagfile.ParseFetchLine(l.Text)
		if err != nil {
			v.find(finding.Error, finding.FetchSyntax, "2.2.3", tagfile.FetchName, l.Number, err.Error())
			if f.Path == "" {
				return
			}
		}
		v.hole(l.Number, f)
	})
	return errors.Join(err, ctx.Err())
}

func (v *validator) hole(number int, f tagfile.FetchLine) {
	fail := func(code finding.Code, text string) {
		v.find(finding.Error, code, "2.2.3", tagfile.FetchName, number, layout.EncodePath(f.Path)+": "+text)
	}
	p, bare := tagfile.DecodeManifestPath(f.Path)
	if bare {
		v.find(v.since1(), finding.Percent, "2.2.3", tagfile.FetchName, number, layout.EncodePath(f.Path)+": a \"%\" that is not encoded as %25")
	}
	if v.version.Before(tagfile.V1) { // until 0.97: still relative to the bag
		if rest := strings.TrimLeft(p, "/"); rest != "" && rest != p {
			v.find(finding.Warning, finding.PathForm, "2.2.3", tagfile.FetchName, number, layout.EncodePath(p)+": begins with a slash; read as relative to the bag")
			p = rest
		}
	}
	if most := v.o.Limits.WithDefaults().Files; int64(len(v.holes)) >= most {
		if !v.overFetch {
			v.overFetch = true
			fail(finding.FetchSyntax, fmt.Sprintf("from here on nothing is read: there are more than %d files", most))
		}
		return
	}
	clean := path.Clean(p)
	switch {
	case p[0] == '/' || leavesBag(p) || strings.IndexByte(p, 0) >= 0:
		fail(finding.UnsafePath, "leads out of the bag")
		return
	case !strings.HasPrefix(clean, tagfile.PayloadPrefix):
		fail(finding.FetchPath, "not below data/: only payload files are fetched")
		return
	}
	if clean != p {
		v.find(finding.Warning, finding.PathForm, "2.2.3", tagfile.FetchName, number, layout.EncodePath(p)+": not a plain path; read as "+layout.EncodePath(clean))
	}
	if v.holes[clean] {
		fail(finding.Duplicate, "is listed more than once")
	}
	v.holes[clean] = true
	e := v.payload[clean]
	if e == nil && !v.has(clean) {
		if other, ok := v.normalised(clean); ok {
			clean, e = other, v.payload[other]
		}
	}
	switch {
	case e == nil:
		fail(finding.FetchUnlisted, "in no payload manifest")
	case len(e.sums) < len(v.payloads) && !v.version.Before(tagfile.V1):
		fail(finding.FetchUnlisted, "not in every payload manifest")
	}
	f.Path = clean
	v.fetches = append(v.fetches, f)
	if i, ok := v.files[clean]; ok && f.Length >= 0 && v.tree.Files[i].Size != f.Length {
		fail(finding.FetchPath, fmt.Sprintf("is there with %d bytes, where fetch.txt says %d", v.tree.Files[i].Size, f.Length))
	}
}
