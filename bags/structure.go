package bags

import (
	"bagpipe/layout"
	"context"
	"io/fs"
	"path"
	"slices"
	"strings"
	"unicode/utf8"
)

// declaration reads bagit.txt and settles version and encoding, 1.0 and UTF-8
// where it does not say.
func (v *validator) declaration(context.Context) error {
	if !v.has(declarationFile) {
		v.fail(CodeNoDeclaration, "2.1.1", declarationFile, "the bag has no bagit.txt")
		return v.enough()
	}
	data, err := v.readSmall(declarationFile)
	if err != nil {
		return err
	}
	d := parseDeclaration(data)
	v.report.Version, v.report.Encoding = d.version, d.encoding
	known, ok := versions[d.version]
	if ok {
		v.version = known
	} else if d.version != "" {
		v.fail(CodeVersion, "2.1.1", declarationFile, "BagIt version "+layout.EncodePath(d.version)+" is not known; 0.93 to 0.97 and 1.0 are")
	}
	for _, p := range d.problems {
		severity := SeverityError
		if p.strict {
			severity = v.since1()
		}
		if p.code == CodeLineEnd {
			severity = SeverityWarning
		}
		v.find(severity, p.code, "2.1.1", declarationFile, p.line, p.text)
	}
	if d.encoding != "" {
		if v.enc, ok = encodingOf(d.encoding); !ok {
			v.fail(CodeEncoding, "2.1.1", declarationFile, "character encoding "+layout.EncodePath(d.encoding)+" is not one that can be read here")
		} else if v.enc != nil && v.enc != (ascii{}) {
			v.warn(CodeEncoding, "2.3", declarationFile, "UTF-8 is recommended for tag files")
		}
	}
	return v.enough()
}

// structure looks at what must be there and what must not.
func (v *validator) structure(context.Context) error {
	for i := range v.tree.Others {
		o := &v.tree.Others[i]
		if o.Mode&fs.ModeSymlink != 0 {
			v.fail(CodeLink, "5", o.Path, "a symbolic link: its target is not part of the bag, and it is not followed")
			continue
		}
		v.fail(CodeSpecial, "5", o.Path, "not a regular file; it is not opened")
	}
	if v.folders[WorkDir] {
		v.fail(CodeUnfinished, "3", WorkDir, "a change of this bag was interrupted, or is under way; bagpipe bag update completes or undoes it")
	}
	if !v.folders[payloadDir] {
		v.fail(CodeNoPayload, "2.1.2", payloadDir, "the bag has no payload folder data/")
	}
	for i := range v.tree.Files {
		f := &v.tree.Files[i]
		if strings.HasPrefix(f.Path, payloadPrefix) {
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
		v.fail(CodeNoManifest, "2.1.3", "", "the bag has no payload manifest (manifest-ALGORITHM.txt)")
	}
	if v.report.PayloadFiles == 0 && v.folders[payloadDir] {
		v.warn(CodeEmptyPayload, "2.1.2", payloadDir, "the payload is empty")
	}
	if v.has(payloadPrefix+declarationFile) && v.folders[payloadPrefix+payloadDir] {
		v.warn(CodeBagInBag, "2.1.2", payloadDir, "the payload is a bag itself")
	}
	return v.enough()
}

// manifestName notes a manifest by its name. Algorithms that cannot be computed
// cannot be verified, so the bag cannot be found valid.
func (v *validator) manifestName(p string) {
	a, isPayload := manifestAlgorithm(p, manifestPrefix)
	if !isPayload {
		var isTag bool
		if a, isTag = manifestAlgorithm(p, tagPrefix); !isTag {
			return
		}
	}
	if plain := a.plain(); v.version.before(v1) && plain != a && plain.Known() {
		v.warn(CodeAlgorithm, "2.4", p, "the algorithm should be spelled "+string(plain)+" in the name")
		a = plain
	}
	switch {
	case isPayload && v.manifestNames[a] != "" || !isPayload && slices.ContainsFunc(v.tagSets, func(t tagManifest) bool { return t.algorithm == a }):
		v.fail(CodeDuplicate, "2.1.3", p, "a second manifest of the algorithm "+layout.EncodePath(string(a)))
		return
	case isPayload:
		v.payloads = append(v.payloads, a)
		v.manifestNames[a] = p
	default:
		v.tagSets = append(v.tagSets, tagManifest{a, p})
	}
	switch {
	case !a.Known():
		v.fail(CodeAlgorithm, "2.4", p, "the algorithm "+layout.EncodePath(string(a))+" is not one that can be computed here (md5, sha1, sha224, sha256, sha384, sha512)")
	case a.Weak():
		v.warn(CodeWeakAlgorithm, "2.4", p, string(a)+" finds accidents, not intent; sha512 is recommended")
	}
}

// names warns of what other systems cannot hold or would take for one file.
func (v *validator) names() []Finding {
	found := nameFindings(v.tree, "")
	for _, p := range v.tree.EmptyFolders() {
		if p != payloadDir && strings.HasPrefix(p, payloadPrefix) {
			found = append(found, Finding{Code: CodeEmptyFolder, Severity: SeverityWarning, Path: layout.EncodePath(p), Section: "2.1.3",
				Text: "an empty folder: manifests cannot list it"})
		}
	}
	return found
}

// nameFindings are warnings about the files' names, each behind prefix.
func nameFindings(t *Tree, prefix string) (found []Finding) {
	warn := func(code Code, p, text string) {
		found = append(found, Finding{Code: code, Severity: SeverityWarning, Path: layout.EncodePath(prefix + p), Section: "6.1", Text: text})
	}
	folder := newFolder()
	folded := make(map[string]string, len(t.Files))
	for i := range t.Files {
		p := t.Files[i].Path
		if !utf8.ValidString(p) {
			warn(CodeNotUTF8, p, "the name is not UTF-8")
			continue
		}
		if why := windowsHostile(p); why != "" {
			warn(CodeWindowsName, p, "the name "+why)
		}
		if isNoise(path.Base(p)) {
			warn(CodeSystemFile, p, "a file that macOS or Windows makes for itself")
		}
		fold := folder.fold(p)
		if other, seen := folded[fold]; seen {
			warn(CodeCollision, p, "differs only by case or normalisation from "+layout.EncodePath(prefix+other))
			continue
		}
		folded[fold] = p
	}
	return found
}
