package bags

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"bagpipe/bags/files"
	"bagpipe/bags/finding"
	"bagpipe/bags/tagfile"
	"bagpipe/layout"
)

// UpdateOptions say how a bag is brought up to date.
type UpdateOptions struct {
	// AcceptChanged and AcceptRemoved take files into the manifests as they are
	// now although the manifests knew them otherwise. Without them such a file is
	// an error, and nothing is written: it may have been damaged or lost.
	AcceptChanged, AcceptRemoved bool

	Date     time.Time // Bagging-Date
	Agent    string    // Bag-Software-Agent
	NoSync   bool
	Workers  int
	Progress func(files.Progress)
}

// Updated says what Update found, by percent-encoded path, and did.
type Updated struct {
	Added     []string `json:"added"`
	Changed   []string `json:"changed"`
	Removed   []string `json:"removed"`
	From      string   `json:"from"` // the version that was declared
	Files     int64    `json:"files"`
	Bytes     int64    `json:"bytes"`
	Written   bool     `json:"written"`
	Recovered Outcome  `json:"recovered,omitempty"`
}

// ErrNotAccepted says that files changed or are gone and that this was not allowed
// for; nothing was written.
var ErrNotAccepted = errors.New("files are not as the manifests have them; nothing was written")

// ErrNotValid says that a bag is to be mended before it is changed.
var ErrNotValid = errors.New("the bag is not valid; nothing was written")

// notValid is ErrNotValid with the finding that says so.
func notValid(f finding.Finding) error {
	if f.Path == "" {
		return fmt.Errorf("%w: %s", ErrNotValid, f.Text)
	}
	return fmt.Errorf("%w: %s: %s", ErrNotValid, f.Path, f.Text)
}

// mendable are the errors that new tag files put right.
var mendable = map[finding.Code]bool{
	finding.NoManifest: true, finding.ManifestSyntax: true, finding.DigestSyntax: true, finding.Duplicate: true, finding.OutsidePayload: true,
	finding.Percent: true, finding.ListsFolder: true, finding.ListsPayload: true, finding.ListsTagManifest: true, finding.ManifestUntagged: true,
	finding.Missing: true, finding.Unlisted: true, finding.Mismatch: true, finding.InfoSyntax: true, finding.OxumSyntax: true,
	finding.OxumRepeated: true, finding.Oxum: true, finding.DeclarationBOM: true, finding.DeclarationSpaces: true, finding.BOM: true,
	finding.Unfetched: true,
}

// Update writes manifests, Payload-Oxum and tag manifests for the bag in dir as its
// files are now, as BagIt 1.0 in UTF-8 whatever it was. Files still to be fetched
// stay in the manifests. It is as safe against interruption as CreateInPlace.
func Update(ctx context.Context, dir string, o UpdateOptions) (_ Updated, err error) {
	e, was, err := openEdit(ctx, dir, !o.NoSync, ValidateOptions{Level: Complete, Workers: o.Workers, Progress: o.Progress})
	if err != nil {
		return Updated{Recovered: was}, fmt.Errorf("update bag %s: %w", dir, err)
	}
	defer func() { err = e.close(err) }()
	u := &updating{edit: e, o: o, sums: map[string]files.Sums{}}
	u.did = Updated{Added: []string{}, Changed: []string{}, Removed: []string{}, Recovered: was, From: e.v.report.Version}
	if err := u.run(ctx); err != nil {
		return u.did, fmt.Errorf("update bag %s: %w", dir, err)
	}
	u.did.Written = true
	return u.did, nil
}

type updating struct {
	*edit
	o    UpdateOptions
	sums map[string]files.Sums // of every file that is there
	did  Updated
}

func (u *updating) run(ctx context.Context) error {
	for _, f := range u.v.report.Findings {
		if f.Severity == finding.Error && !mendable[f.Code] {
			return notValid(f)
		}
	}
	as := u.algorithms()
	if err := u.compare(ctx, as); err != nil {
		return err
	}
	if err := u.begin(); err != nil {
		return err
	}
	if err := u.writeAll(as); err != nil {
		return err
	}
	return u.commit()
}

// algorithms are those of the payload manifests, or the default's.
func (u *updating) algorithms() (as []files.Algorithm) {
	for _, a := range u.v.payloads {
		if a.Known() {
			as = append(as, a)
		}
	}
	if len(as) == 0 {
		return []files.Algorithm{files.SHA256, files.SHA512}
	}
	return as
}

// compare hashes everything and finds what differs from the manifests.
func (u *updating) compare(ctx context.Context, as []files.Algorithm) error {
	set := files.SetOf(as...)
	for _, t := range u.v.tagSets {
		set |= files.SetOf(t.algorithm)
	}
	there := u.v.tree.Files
	plan := make([]files.Planned, len(there))
	for i := range there {
		plan[i] = files.Planned{Index: i, Path: there[i].Path, Size: there[i].Size, Set: set}
	}
	err := u.v.from.Hash(ctx, plan, files.HashOptions{Workers: u.o.Workers, Progress: u.o.Progress}, func(h files.Hashed) error {
		u.note(there[h.Index].Path, &h)
		return nil
	})
	if err != nil {
		return err
	}
	for _, from := range []map[string]*listed{u.v.payload, u.v.tags} {
		for p := range from {
			if !u.v.has(p) && !u.v.holes[p] {
				u.did.Removed = append(u.did.Removed, layout.EncodePath(p))
			}
		}
	}
	slices.Sort(u.did.Added)
	slices.Sort(u.did.Changed)
	slices.Sort(u.did.Removed)
	switch {
	case len(u.did.Changed) > 0 && !u.o.AcceptChanged:
		return fmt.Errorf("%w: changed: %s", ErrNotAccepted, some(u.did.Changed))
	case len(u.did.Removed) > 0 && !u.o.AcceptRemoved:
		return fmt.Errorf("%w: gone: %s", ErrNotAccepted, some(u.did.Removed))
	}
	return nil
}

// note sorts one file under added or changed. The tag files that are written anew
// are neither.
func (u *updating) note(p string, h *files.Hashed) {
	u.sums[p] = h.Sums
	isPayload := strings.HasPrefix(p, tagfile.PayloadPrefix)
	if isPayload {
		u.did.Files++
		u.did.Bytes += h.Size
	} else if isOwn(p) && p != tagfile.FetchName {
		return
	}
	e := u.v.payload[p]
	if !isPayload {
		e = u.v.tags[p]
	}
	if e == nil {
		u.did.Added = append(u.did.Added, layout.EncodePath(p))
		return
	}
	for _, s := range e.sums {
		if got := h.Sums.Of(s.algorithm); got != nil && s.sum != nil && !bytes.Equal(got, s.sum) {
			u.did.Changed = append(u.did.Changed, layout.EncodePath(p))
			return
		}
	}
}

// some shows the first of many.
func some(paths []string) string {
	const most = 3
	if len(paths) <= most {
		return strings.Join(paths, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(paths[:most], ", "), len(paths)-most)
}

// writeAll writes every tag file of the specification anew.
func (u *updating) writeAll(as []files.Algorithm) error {
	if err := u.put(tagfile.DeclarationFile, []byte(tagfile.LabelVersion+": 1.0\n"+tagfile.LabelEncoding+": UTF-8\n")); err != nil {
		return err
	}
	if err := u.writeFields(tagfile.InfoFile, u.fields()); err != nil {
		return err
	}
	if u.v.has(tagfile.OldInfoFile) && u.v.version.Before(tagfile.V096) {
		u.remove(tagfile.OldInfoFile)
	}
	if u.v.enc != nil && u.v.has(tagfile.FetchName) {
		if err := u.recodeFetch(); err != nil {
			return err
		}
	}
	u.removeOddNames()
	for _, a := range as {
		lines, err := u.payloadLines(a)
		if err != nil {
			return err
		}
		if err := u.writeManifest(tagfile.ManifestPrefix, a, lines); err != nil {
			return err
		}
	}
	for _, a := range as {
		if err := u.writeTagManifest(a); err != nil {
			return err
		}
	}
	for _, t := range u.v.tagSets {
		if !slices.Contains(as, t.algorithm) {
			if err := u.writeTagManifest(t.algorithm); err != nil {
				return err
			}
		}
	}
	return nil
}

// removeOddNames removes the manifests of before 1.0 whose names spell the algorithm
// in another way; they are written under the right ones.
func (u *updating) removeOddNames() {
	for a, name := range u.v.manifestNames {
		if name != tagfile.ManifestPrefix+string(a)+".txt" {
			u.remove(name)
		}
	}
	for _, t := range u.v.tagSets {
		if t.name != tagfile.TagPrefix+string(t.algorithm)+".txt" {
			u.remove(t.name)
		}
	}
}

// fields are bag-info.txt as it was, with what only the maker can say anew. With
// files still to be fetched the totals stay.
func (u *updating) fields() []tagfile.Field {
	own := []tagfile.Field{{Label: tagfile.LabelBaggingDate, Value: u.o.Date.UTC().Format(time.DateOnly)}}
	if !u.v.unfetched() {
		own = append(own, tagfile.Field{Label: tagfile.LabelOxum, Value: fmt.Sprintf("%d.%d", u.did.Bytes, u.did.Files)}, tagfile.Field{Label: tagfile.LabelSize, Value: tagfile.FormatSize(u.did.Bytes)})
	}
	if u.o.Agent != "" {
		own = append(own, tagfile.Field{Label: tagfile.LabelAgent, Value: u.o.Agent})
	}
	return replaceFields(u.v.report.Info, own)
}

// replaceFields puts each of own in the place of the first field of its label, or
// at the end.
func replaceFields(fields, own []tagfile.Field) []tagfile.Field {
	var out []tagfile.Field
	done := map[string]bool{}
	for _, f := range fields {
		i := slices.IndexFunc(own, func(o tagfile.Field) bool { return tagfile.SameLabel(o.Label, f.Label) })
		switch {
		case i < 0:
			out = append(out, f)
		case !done[own[i].Label]:
			out = append(out, own[i])
			done[own[i].Label] = true
		}
	}
	for _, o := range own {
		if !done[o.Label] {
			out = append(out, o)
		}
	}
	return out
}

func (u *updating) payloadLines(a files.Algorithm) (map[string][]byte, error) {
	lines := map[string][]byte{}
	for p, s := range u.sums {
		if strings.HasPrefix(p, tagfile.PayloadPrefix) {
			lines[p] = s.Of(a)
		}
	}
	for p := range u.v.holes {
		if u.v.has(p) {
			continue
		}
		sum := u.v.payload[p].sum(a)
		if sum == nil {
			return nil, fmt.Errorf("%w: %s is still to be fetched, and its %s is not known", ErrNotValid, layout.EncodePath(p), a)
		}
		lines[p] = sum
	}
	return lines, nil
}

// writeTagManifest lists the tag files there are, and for those written anew what
// was written.
func (u *updating) writeTagManifest(a files.Algorithm) error {
	lines := map[string][]byte{}
	for p, s := range u.sums {
		_, isTag := tagfile.ManifestAlgorithm(p, tagfile.TagPrefix)
		if !isTag && !strings.HasPrefix(p, tagfile.PayloadPrefix) && !slices.Contains(u.removed, p) {
			lines[p] = s.Of(a)
		}
	}
	if err := u.addWritten(lines, a); err != nil {
		return err
	}
	return u.writeManifest(tagfile.TagPrefix, a, lines)
}

// recodeFetch writes fetch.txt in UTF-8.
func (u *updating) recodeFetch() error {
	var b bytes.Buffer
	if err := u.v.text(tagfile.FetchName, func(l tagfile.Line) { b.WriteString(l.Text + "\n") }); err != nil && !errors.Is(err, errEnough) {
		return err
	}
	return u.put(tagfile.FetchName, b.Bytes())
}
