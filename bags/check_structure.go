package bags

import (
	"context"
	"io/fs"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"bagpipe/bags/files"
	"bagpipe/bags/finding"
	"bagpipe/bags/tagfile"
	"bagpipe/layout"
)

// declaration reads bagit.txt and settles version and encoding, 1.0 and UTF-8
// where it does not say.
func (v *validator) declaration(context.Context) error {
	if !v.has(tagfile.DeclarationFile) {
		v.fail(finding.NoDeclaration, "2.1.1", tagfile.DeclarationFile, "the bag has no bagit.txt")
		return v.enough()
	}
	data, err := v.readSmall(tagfile.DeclarationFile)
	if err != nil {
		return err
	}
	d := tagfile.ParseDeclaration(data)
	v.report.Version, v.report.Encoding = d.Version, d.Encoding
	known, ok := tagfile.Versions[d.Version]
	if ok {
		v.version = known
	} else if d.Version != "" {
		v.fail(finding.Version, "2.1.1", tagfile.DeclarationFile, "BagIt version "+layout.EncodePath(d.Version)+" is not known; 0.93 to 0.97 and 1.0 are")
	}
	for _, p := range d.Problems {
		severity := finding.Error
		if p.Strict {
			severity = v.since1()
		}
		if p.Code == finding.LineEnd {
			severity = finding.Warning
		}
		v.find(severity, p.Code, "2.1.1", tagfile.DeclarationFile, p.Line, p.Text)
	}
	if d.Encoding != "" {
		if v.enc, ok = tagfile.EncodingOf(d.Encoding); !ok {
			v.fail(finding.Encoding, "2.1.1", tagfile.DeclarationFile, "character encoding "+layout.EncodePath(d.Encoding)+" is not one that can be read here")
		} else if v.enc != nil && v.enc != (tagfile.Ascii{}) {
			v.warn(finding.Encoding, "2.3", tagfile.DeclarationFile, "UTF-8 is recommended for tag files")
		}
	}
	return v.enough()
}

// structure looks at what must be there and what must not.
func (v *validator) structure(context.Context) error {
	for i := range v.tree.Others {
		o := &v.tree.Others[i]
		if o.Mode&fs.ModeSymlink != 0 {
			v.fail(finding.Link, "5", o.Path, "a symbolic link: its target is not part of the bag, and it is not followed")
			continue
		}
		v.fail(finding.Special, "5", o.Path, "not a regular file; it is not opened")
	}
	if v.folders[WorkDir] {
		v.fail(finding.Unfinished, "3", WorkDir, "a change of this bag was interrupted, or is under way; bagpipe bag update completes or undoes it")
	}
	if !v.folders[tagfile.PayloadDir] {
		v.fail(finding.NoPayload, "2.1.2", tagfile.PayloadDir, "the bag has no payload folder data/")
	}
	for i := range v.tree.Files {
		f := &v.tree.Files[i]
		if strings.HasPrefix(f.Path, tagfile.PayloadPrefix) {
			v.report.PayloadFiles++
			v.report.PayloadBytes += f.Size
			continue
		}
		v.report.TagFiles++
		v.manifestName(f.Path)
	}
	slices.Sort(v.payloads)
	v.report.Algorithms = v.payloads
	if len(v.payloads) == 0 {
		v.fail(finding.NoManifest, "2.1.3", "", "the bag has no payload manifest (manifest-ALGORITHM.txt)")
	}
	if v.report.PayloadFiles == 0 && v.folders[tagfile.PayloadDir] {
		v.warn(finding.EmptyPayload, "2.1.2", tagfile.PayloadDir, "the payload is empty")
	}
	if v.has(tagfile.PayloadPrefix+tagfile.DeclarationFile) && v.folders[tagfile.PayloadPrefix+tagfile.PayloadDir] {
		v.warn(finding.BagInBag, "2.1.2", tagfile.PayloadDir, "the payload is a bag itself")
	}
	return v.enough()
}

// manifestName notes a manifest by its name. Algorithms that cannot be computed
// cannot be verified, so the bag cannot be found valid.
func (v *validator) manifestName(p string) {
	a, isPayload := tagfile.ManifestAlgorithm(p, tagfile.ManifestPrefix)
	if !isPayload {
		var isTag bool
		if a, isTag = tagfile.ManifestAlgorithm(p, tagfile.TagPrefix); !isTag {
			return
		}
	}
	if plain := a.Plain(); v.version.Before(tagfile.V1) && plain != a && plain.Known() {
		v.warn(finding.Algorithm, "2.4", p, "the algorithm should be spelled "+string(plain)+" in the name")
		a = plain
	}
	switch {
	case isPayload && v.manifestNames[a] != "" || !isPayload && slices.ContainsFunc(v.tagSets, func(t tagManifest) bool { return t.algorithm == a }):
		v.fail(finding.Duplicate, "2.1.3", p, "a second manifest of the algorithm "+layout.EncodePath(string(a)))
		return
	case isPayload:
		v.payloads = append(v.payloads, a)
		v.manifestNames[a] = p
	default:
		v.tagSets = append(v.tagSets, tagManifest{a, p})
	}
	switch {
	case !a.Known():
		v.fail(finding.Algorithm, "2.4", p, "the algorithm "+layout.EncodePath(string(a))+" is not one that can be computed here (md5, sha1, sha224, sha256, sha384, sha512)")
	case a.Weak():
		v.warn(finding.WeakAlgorithm, "2.4", p, string(a)+" finds accidents, not intent; sha512 is recommended")
	}
}

// names warns of what other systems cannot hold or would take for one file.
func (r *reading) names() []finding.Finding {
	found := nameFindings(r.tree, "")
	for _, p := range r.tree.EmptyFolders() {
		if p != tagfile.PayloadDir && strings.HasPrefix(p, tagfile.PayloadPrefix) {
			found = append(found, finding.Finding{Code: finding.EmptyFolder, Severity: finding.Warning, Path: layout.EncodePath(p), Section: "2.1.3",
				Text: "an empty folder: manifests cannot list it"})
		}
	}
	return found
}

// nameFindings are warnings about the files' names, each behind prefix.
func nameFindings(t *files.Tree, prefix string) (found []finding.Finding) {
	warn := func(code finding.Code, p, text string) {
		found = append(found, finding.Finding{Code: code, Severity: finding.Warning, Path: layout.EncodePath(prefix + p), Section: "6.1", Text: text})
	}
	folder := files.NewFolder()
	folded := make(map[string]string, len(t.Files))
	for i := range t.Files {
		p := t.Files[i].Path
		if !utf8.ValidString(p) {
			warn(finding.NotUTF8, p, "the name is not UTF-8")
			continue
		}
		if why := files.WindowsHostile(p); why != "" {
			warn(finding.WindowsName, p, "the name "+why)
		}
		if isNoise(path.Base(p)) {
			warn(finding.SystemFile, p, "a file that macOS or Windows makes for itself")
		}
		fold := folder.Fold(p)
		if other, seen := folded[fold]; seen {
			warn(finding.Collision, p, "differs only by case or normalisation from "+layout.EncodePath(prefix+other))
			continue
		}
		folded[fold] = p
	}
	return found
}
