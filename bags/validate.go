package bags

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"bagpipe/bags/archive"
	"bagpipe/bags/files"
	"bagpipe/bags/finding"
	"bagpipe/bags/profile"
	"bagpipe/bags/tagfile"
	"bagpipe/layout"
)

// Level says how much of a bag is checked.
type Level string

// The levels. Only Full can find a bag valid.
const (
	// Full computes every digest.
	Full Level = ""
	// Complete checks everything but payload and tag digests.
	Complete Level = "complete"
	// Quick counts the payload against Payload-Oxum instead of comparing it with
	// the manifests, where bag-info.txt has one; otherwise it is Complete.
	Quick Level = "quick"
)

// MarshalText names the zero value.
func (l Level) MarshalText() ([]byte, error) {
	if l == Full {
		return []byte("full"), nil
	}
	return []byte(l), nil
}

// ValidateOptions say how to validate. The zero value is a full validation.
type ValidateOptions struct {
	Level    Level
	FailFast bool // stop at the first error
	Workers  int
	Progress func(files.Progress)
	Limits   archive.Limits     // of an archive that is read as a stream
	Profiles []*profile.Profile // which the bag must satisfy as well

	// Serialized is the format of the archive that the folder was unpacked from,
	// for profiles that ask.
	Serialized archive.Format

	// For changes of a bag: digests computed beside those that are compared, of
	// every file, and who is told all; and, at the level Complete, the tag files
	// whose digests are compared all the same.
	unserialized bool // profiles are not asked how the bag is serialized

	also    files.Set
	collect func(path string, sums *files.Sums)
	only    func(path string) bool
}

// errEnough ends a validation that was asked to stop at the first error.
var errEnough = errors.New("stopped at the first error")

// Validate checks a bag against RFC 8493, or against the rules of the version it
// declares: the bag whose folder path is, or the one serialized in the archive
// that path is, which is read as a stream and not unpacked. The report
// holds the faults of the bag; an error is about the machine. Nothing in the bag is
// followed, and nothing but regular files is opened.
func Validate(ctx context.Context, path string, o ValidateOptions) (Report, error) {
	v, err := openBag(ctx, path, o)
	if err != nil {
		return Report{}, fmt.Errorf("validate bag: %w", err)
	}
	defer v.from.Close()
	return v.run(ctx)
}

// openBag lists the bag at path, folder or archive; the caller closes v.from. An
// archive that cannot be read is a finding.
func openBag(ctx context.Context, path string, o ValidateOptions) (*validator, error) {
	if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
		return openSerialized(ctx, path, o)
	}
	tree, err := files.Scan(ctx, path)
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, err
	}
	return newValidator(tree, newFolderBag(root, path), o), nil
}

// run does every check and gives the report.
func (v *validator) run(ctx context.Context) (Report, error) {
	err := v.checks(ctx)
	v.stopDigests()
	var broken *files.Error
	if errors.As(err, &broken) { // an archive that breaks while it is read
		v.broken(broken)
		err = errEnough
	}
	if err != nil && !errors.Is(err, errEnough) {
		return Report{}, fmt.Errorf("validate bag %s: %w", v.report.Bag, err)
	}
	v.sum()
	if errors.Is(err, errEnough) {
		v.report.Complete, v.report.Valid = false, false
	}
	return v.report, nil
}

func (v *validator) checks(ctx context.Context) error {
	if v.stop || v.unread {
		return errEnough
	}
	for _, check := range []func(context.Context) error{
		v.declaration, v.structure, v.beginDigests, v.manifests, v.metadata, v.fetchFile, v.completeness, v.profiles, v.namesAndDigests,
	} {
		if err := check(ctx); err != nil {
			return err
		}
	}
	return nil
}

// namesAndDigests looks at the names while the files are hashed.
func (v *validator) namesAndDigests(ctx context.Context) error {
	if v.o.Level == Quick {
		return nil
	}
	var found []finding.Finding
	var g sync.WaitGroup
	g.Go(func() { found = v.names() })
	err := v.digests(ctx)
	g.Wait()
	v.report.Findings = append(v.report.Findings, found...)
	return err
}

// broken reports what is wrong with the archive around the bag.
func (v *validator) broken(e *files.Error) {
	text := string(e.Rule)
	if e.Detail != "" {
		text += ": " + e.Detail
	}
	v.unread = true
	v.fail(finding.Archive, "", e.Member, text)
}

// validator holds one validation. It is used by one goroutine; the hashing's
// callbacks do not overlap.
type validator struct {
	reading
	findings
	o         ValidateOptions
	oxums     []oxum
	infoName  string   // the file that holds the oxums
	absent    int      // listed files that are not there
	overFetch bool     // fetch.txt lists more than is read
	unread    bool     // the archive around the bag could not be read to its end
	early     *hashing // under way
}

type oxum struct{ bytes, files int64 }

func newValidator(t *files.Tree, from contents, o ValidateOptions) *validator {
	v := &validator{reading: newReading(t, from), o: o}
	v.failFast = o.FailFast
	v.report = Report{Bag: layout.EncodePath(filepath.Base(t.Dir)), Level: o.Level, Findings: []finding.Finding{}}
	return v
}

// text reads a tag file's lines and reports what is wrong with it as text.
func (v *validator) text(p string, do func(tagfile.Line)) error {
	f, err := v.from.Open(p)
	if err != nil {
		return err
	}
	defer f.Close()
	src := &tagfile.NoteReader{R: f}
	last := tagfile.Line{}
	bom, err := tagfile.EachLine(src, v.enc, func(l tagfile.Line) {
		last = l
		do(l)
	})
	if src.Err != nil {
		return src.Err
	}
	if err != nil {
		v.find(finding.Error, finding.Encoding, "2.3", p, last.Number+1, err.Error())
	}
	if bom && v.enc == nil {
		v.find(finding.Warning, finding.BOM, "2.3", p, 1, "begins with a byte-order mark")
	}
	if last.Open {
		v.find(finding.Warning, finding.LineEnd, "2.3", p, last.Number, "the last line has no line end")
	}
	return v.enough()
}
