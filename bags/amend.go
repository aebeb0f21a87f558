package bags

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"bagpipe/bags/files"
	"bagpipe/bags/finding"
	"bagpipe/bags/tagfile"
)

// This file changes single tag files of a bag that is otherwise as it should be.

// Amended says what an amendment did.
type Amended struct {
	Report    Report  `json:"report"` // of the bag before
	Recovered Outcome `json:"recovered,omitempty"`
}

// AmendOptions are common to amendments.
type AmendOptions struct {
	NoSync   bool
	Workers  int
	Progress func(files.Progress)
}

// AddManifest adds manifests of one more algorithm to the bag in dir, which is
// validated in the same pass: new digests are never made of files that the old
// ones do not fit. A bag that is not valid is ErrNotValid, and its report says why.
func AddManifest(ctx context.Context, dir string, a files.Algorithm, o AmendOptions) (_ Amended, err error) {
	fail := func(did Amended, err error) (Amended, error) {
		return did, fmt.Errorf("add manifest %s to %s: %w", a, dir, err)
	}
	if !a.Known() {
		return fail(Amended{}, fmt.Errorf("the algorithm is not known; md5, sha1, sha224, sha256, sha384 and sha512 are"))
	}
	made := map[string][]byte{}
	vo := ValidateOptions{Workers: o.Workers, Progress: o.Progress, also: files.SetOf(a), collect: func(p string, s *files.Sums) { made[p] = s.Of(a) }}
	e, was, err := openEdit(ctx, dir, !o.NoSync, vo)
	if err != nil {
		return fail(Amended{Recovered: was}, err)
	}
	defer func() { err = e.close(err) }()
	did := Amended{Report: e.v.report, Recovered: was}
	switch {
	case !did.Report.Valid:
		return fail(did, ErrNotValid)
	case slices.Contains(e.v.payloads, a) && was == Completed:
		return did, nil // by the call that was interrupted
	case slices.Contains(e.v.payloads, a):
		return fail(did, fmt.Errorf("the bag has one"))
	}
	if err := e.plain(); err != nil {
		return fail(did, err)
	}
	if err := e.begin(); err != nil {
		return fail(did, err)
	}
	if err := e.addManifest(a, made); err != nil {
		return fail(did, err)
	}
	return did, e.commit()
}

// plain refuses what would have to be written in another encoding or by other
// rules for paths.
func (e *edit) plain() error {
	if e.v.enc != nil || e.v.version.Before(tagfile.V1) {
		return fmt.Errorf("it is BagIt %s in %s; bagpipe bag update makes it BagIt 1.0 in UTF-8 first", e.v.report.Version, e.v.report.Encoding)
	}
	return nil
}

func (e *edit) addManifest(a files.Algorithm, made map[string][]byte) error {
	payload, tags := map[string][]byte{}, map[string][]byte{}
	for p, sum := range made {
		if _, isTag := tagfile.ManifestAlgorithm(p, tagfile.TagPrefix); isTag {
			continue
		}
		if strings.HasPrefix(p, tagfile.PayloadPrefix) {
			payload[p] = sum
		} else {
			tags[p] = sum
		}
	}
	if err := e.writeManifest(tagfile.ManifestPrefix, a, payload); err != nil {
		return err
	}
	if err := e.addWritten(tags, a); err != nil {
		return err
	}
	if err := e.writeManifest(tagfile.TagPrefix, a, tags); err != nil {
		return err
	}
	return e.retag()
}

// retag writes the tag manifests there are anew: as they were, but for what was
// written.
func (e *edit) retag() error {
	for _, t := range e.v.tagSets {
		if e.written[t.name] {
			continue
		}
		lines := map[string][]byte{}
		for p, l := range e.v.tags {
			if sum := l.sum(t.algorithm); sum != nil {
				lines[p] = sum
			}
		}
		if err := e.addWritten(lines, t.algorithm); err != nil {
			return err
		}
		if err := e.writeManifest(tagfile.TagPrefix, t.algorithm, lines); err != nil {
			return err
		}
	}
	return nil
}

// InfoChange is one change of a label by SetInfo: Remove takes every field of it away,
// Add appends one; otherwise the first is replaced, and the others go.
type InfoChange struct {
	tagfile.Field
	Add, Remove bool
}

// ownLabels are computed, and not set by hand.
var ownLabels = []string{tagfile.LabelOxum}

// SetInfo changes bag-info.txt, and with it the tag manifests. Of the rest of the
// bag nothing is hashed or changed; a bag-info.txt that is not what the tag
// manifests have is ErrNotValid.
func SetInfo(ctx context.Context, dir string, changes []InfoChange, o AmendOptions) (_ Amended, err error) {
	fail := func(did Amended, err error) (Amended, error) {
		return did, fmt.Errorf("change bag-info of %s: %w", dir, err)
	}
	for _, c := range changes {
		if err := c.Check(); err != nil {
			return fail(Amended{}, err)
		}
		if slices.ContainsFunc(ownLabels, func(l string) bool { return tagfile.SameLabel(l, c.Label) }) {
			return fail(Amended{}, fmt.Errorf("%s is counted, not set; bagpipe bag update counts it anew", c.Label))
		}
	}
	e, was, err := openEdit(ctx, dir, !o.NoSync, ValidateOptions{Level: Complete, only: isTagText})
	if err != nil {
		return fail(Amended{Recovered: was}, err)
	}
	defer func() { err = e.close(err) }()
	did := Amended{Report: e.v.report, Recovered: was}
	for _, f := range did.Report.Findings {
		if f.Severity == finding.Error && f.Code != finding.Unfetched {
			return fail(did, notValid(f))
		}
	}
	if err := e.plain(); err != nil {
		return fail(did, err)
	}
	fields := did.Report.Info
	for _, c := range changes {
		fields = c.apply(fields)
	}
	if err := e.begin(); err != nil {
		return fail(did, err)
	}
	if err := e.writeFields(tagfile.InfoFile, fields); err != nil {
		return fail(did, err)
	}
	if err := e.retag(); err != nil {
		return fail(did, err)
	}
	return did, e.commit()
}

// isTagText tells which files SetInfo vouches for: those it writes anew.
func isTagText(p string) bool {
	_, isTag := tagfile.ManifestAlgorithm(p, tagfile.TagPrefix)
	return p == tagfile.InfoFile || isTag
}

func (c InfoChange) apply(fields []tagfile.Field) []tagfile.Field {
	same := func(f tagfile.Field) bool { return tagfile.SameLabel(f.Label, c.Label) }
	switch {
	case c.Remove:
		return slices.DeleteFunc(slices.Clone(fields), same)
	case c.Add:
		return append(slices.Clone(fields), c.Field)
	}
	return replaceFields(fields, []tagfile.Field{c.Field})
}
