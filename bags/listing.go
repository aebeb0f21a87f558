package bags

import (
	"bagpipe/layout"
	"context"
	"errors"
	"fmt"
	"path"
	"strings"

	"golang.org/x/text/unicode/norm"
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

func (v *validator) manifest(ctx context.Context, name string, a Algorithm, isPayload bool) error {
	into := v.tags
	if isPayload {
		into = v.payload
	}
	section := "2.2.1"
	if isPayload {
		section = "2.1.3"
	}
	err := v.text(name, func(l line) {
		if ctx.Err() != nil {
			return
		}
		if strings.TrimSpace(l.text) == "" {
			v.find(v.since1(), CodeManifestSyntax, section, name, l.number, "an empty line")
			return
		}
		m, err := parseManifestLine(l.text)
		if err != nil {
			v.find(SeverityError, CodeManifestSyntax, section, name, l.number, err.Error())
			return
		}
		p, ok := v.resolve(name, l.number, m.path, isPayload)
		if !ok {
			return
		}
		sum, err := decodeSum(m.sum, a)
		if err != nil {
			v.find(SeverityError, CodeDigestSyntax, section, name, l.number, layout.EncodePath(p)+": "+err.Error())
			// The file is listed all the same: with a nil sum it is not reported
			// as unlisted, nor as a mismatch.
		}
		v.list(into, name, l.number, p, a, sum)
	})
	return errors.Join(err, ctx.Err())
}

// list adds one entry.
func (v *validator) list(into map[string]*listed, name string, number int, p string, a Algorithm, sum []byte) {
	e := into[p]
	if e == nil && !v.has(p) {
		most := v.o.Limits.withDefaults().Files
		if v.absent++; int64(v.absent) > most {
			if int64(v.absent) == most+1 {
				v.find(SeverityError, CodeMissing, "3", name, number, fmt.Sprintf("from here on nothing is said of files that are not there: there are more than %d", most))
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
			severity = SeverityError
		}
		v.find(severity, CodeDuplicate, "2.1.3", name, number, layout.EncodePath(p)+" is listed more than once")
		if severity == SeverityWarning {
			return
		}
	}
	e.sums = append(e.sums, listedSum{a, sum})
	e.known |= setOf(a)
}

// own gives a path that does not keep the line it stood in, digest and all, in memory
// (100,000 files: 15 MB).
func (v *validator) own(p string) string {
	if i, ok := v.files[p]; ok {
		return v.tree.Files[i].Path
	}
	return strings.Clone(p)
}

// resolve turns a path as written into the path of a file, present or not. ok is
// false where nothing can be looked for.
func (v *validator) resolve(name string, number int, written string, isPayload bool) (string, bool) {
	section := "2.1.3"
	warn := func(code Code, text string) {
		v.find(SeverityWarning, code, section, name, number, layout.EncodePath(written)+": "+text)
	}
	fail := func(code Code, text string) {
		v.find(SeverityError, code, section, name, number, layout.EncodePath(written)+": "+text)
	}
	p := written
	if rest, star := strings.CutPrefix(p, "*"); star && (isPayload || !v.has(p)) {
		warn(CodeAsterisk, "a \"*\" before the path, as md5sum writes for binary files")
		p = rest
	}
	decoded, bare := decodeManifestPath(p)
	switch {
	case v.version.before(v1) && decoded != p && !v.has(decoded) && v.has(p):
		warn(CodePercent, "taken literally: there is a file of that name")
	case bare:
		v.find(v.since1(), CodePercent, section, name, number, layout.EncodePath(written)+": a \"%\" that is not encoded as %25")
		p = decoded
	default:
		p = decoded
	}
	switch {
	case p == "" || strings.IndexByte(p, 0) >= 0:
		fail(CodeManifestSyntax, "no usable path")
		return "", false
	case p[0] == '/' || leavesBag(p):
		fail(CodeUnsafePath, "leads out of the bag")
		return "", false
	}
	if clean := path.Clean(p); clean != strings.TrimSuffix(p, "/") {
		warn(CodePathForm, "not a plain path; read as "+layout.EncodePath(clean))
		p = clean
	}
	if strings.HasSuffix(p, "/") || v.folders[p] {
		fail(CodeListsFolder, "a folder; manifests list files")
		return "", false
	}
	return v.place(p, isPayload, fail, warn)
}

// place checks that p is in the part of the bag the manifest is about.
func (v *validator) place(p string, isPayload bool, fail, warn func(Code, string)) (string, bool) {
	inside := strings.HasPrefix(p, payloadPrefix)
	switch {
	case isPayload && !inside:
		fail(CodeOutsidePayload, "not below data/")
		return "", false
	case !isPayload && inside:
		fail(CodeListsPayload, "a payload file in a tag manifest")
		return "", false
	}
	if _, isTag := manifestAlgorithm(p, tagPrefix); isTag && !isPayload {
		fail(CodeListsTagManifest, "a tag manifest in a tag manifest")
		return "", false
	}
	if v.has(p) {
		return p, true
	}
	if other, ok := v.normalised(p); ok {
		warn(CodeNormalisation, "found under another Unicode normalisation of its name")
		return other, true
	}
	return p, true
}

// leavesBag tells whether p leads above the bag. One that comes back is read as what
// it means: nothing in a bag is a link, so there is one meaning only.
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

// normalised finds the one file whose name is p but for its normalisation.
func (v *validator) normalised(p string) (string, bool) {
	if isPlain(p) {
		return "", false
	}
	if v.nfc == nil {
		v.nfc = map[string]string{}
		for i := range v.tree.Files {
			f := v.tree.Files[i].Path
			if isPlain(f) {
				continue
			}
			n := norm.NFC.String(f)
			if _, twice := v.nfc[n]; twice {
				f = "" // two candidates: no guess
			}
			v.nfc[n] = f
		}
	}
	f := v.nfc[norm.NFC.String(p)]
	return f, f != ""
}

// fetchFile reads fetch.txt.
func (v *validator) fetchFile(ctx context.Context) error {
	if !v.has(fetchName) {
		return nil
	}
	err := v.text(fetchName, func(l line) {
		if strings.TrimSpace(l.text) == "" {
			v.find(v.since1(), CodeFetchSyntax, "2.2.3", fetchName, l.number, "an empty line")
			return
		}
		f, err := parseFetchLine(l.text)
		if err != nil {
			v.find(SeverityError, CodeFetchSyntax, "2.2.3", fetchName, l.number, err.Error())
			if f.path == "" {
				return
			}
		}
		v.hole(l.number, f)
	})
	return errors.Join(err, ctx.Err())
}

func (v *validator) hole(number int, f fetchLine) {
	fail := func(code Code, text string) {
		v.find(SeverityError, code, "2.2.3", fetchName, number, layout.EncodePath(f.path)+": "+text)
	}
	p, bare := decodeManifestPath(f.path)
	if bare {
		v.find(v.since1(), CodePercent, "2.2.3", fetchName, number, layout.EncodePath(f.path)+": a \"%\" that is not encoded as %25")
	}
	if v.version.before(v1) { // until 0.97: still relative to the bag
		if rest := strings.TrimLeft(p, "/"); rest != "" && rest != p {
			v.find(SeverityWarning, CodePathForm, "2.2.3", fetchName, number, layout.EncodePath(p)+": begins with a slash; read as relative to the bag")
			p = rest
		}
	}
	if most := v.o.Limits.withDefaults().Files; int64(len(v.holes)) >= most {
		if !v.overFetch {
			v.overFetch = true
			fail(CodeFetchSyntax, fmt.Sprintf("from here on nothing is read: there are more than %d files", most))
		}
		return
	}
	clean := path.Clean(p)
	switch {
	case p[0] == '/' || leavesBag(p) || strings.IndexByte(p, 0) >= 0:
		fail(CodeUnsafePath, "leads out of the bag")
		return
	case !strings.HasPrefix(clean, payloadPrefix):
		fail(CodeFetchPath, "not below data/: only payload files are fetched")
		return
	}
	if clean != p {
		v.find(SeverityWarning, CodePathForm, "2.2.3", fetchName, number, layout.EncodePath(p)+": not a plain path; read as "+layout.EncodePath(clean))
	}
	if v.holes[clean] {
		fail(CodeDuplicate, "is listed more than once")
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
		fail(CodeFetchUnlisted, "in no payload manifest")
	case len(e.sums) < len(v.payloads) && !v.version.before(v1):
		fail(CodeFetchUnlisted, "not in every payload manifest")
	}
	f.path = clean
	v.fetches = append(v.fetches, f)
	if i, ok := v.files[clean]; ok && f.length >= 0 && v.tree.Files[i].Size != f.length {
		fail(CodeFetchPath, fmt.Sprintf("is there with %d bytes, where fetch.txt says %d", v.tree.Files[i].Size, f.length))
	}
}
