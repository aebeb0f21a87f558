package bags

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"bagpipe/layout/disk"
)

// SerializeOptions say how to write a bag into an archive.
type SerializeOptions struct {
	Format Format    // one of PackFormats; default: what the archive's name ends in, or tar
	Time   time.Time // of every member; zero: each file's own
	Verify bool      // validate the archive before it gets its name
	NoSync bool

	Workers  int
	Progress func(Progress)
}

// Serialize writes the bag in dir into the archive at dest, which must not exist,
// in one folder named like the bag's own. Members are sorted, and have no owner;
// with a Time, two archives of one bag are the same bytes. dest is whole, or not
// there. A bag that is not complete is ErrNotValid, with the report.
func Serialize(ctx context.Context, dir, dest string, o SerializeOptions) (_ Report, err error) {
	fail := func(r Report, err error) (Report, error) { return r, fmt.Errorf("serialize bag %s: %w", dir, err) }
	if o.Format == None {
		o.Format = cmp.Or(formatOfName(filepath.Base(dest)), Tar)
	}
	if !slices.Contains(PackFormats(), o.Format) {
		return fail(Report{}, fmt.Errorf("%s: %w", dest, ErrPackFormat))
	}
	r, err := Validate(ctx, dir, ValidateOptions{Level: Complete})
	if err != nil {
		return fail(r, err)
	}
	if !r.Complete || r.Errors > 0 {
		return fail(r, ErrNotValid)
	}
	tree, err := bagTree(ctx, dir, o.Format)
	if err != nil {
		return fail(r, err)
	}
	s, err := newScratch(dest)
	if err != nil {
		return fail(r, err)
	}
	defer func() { err = errors.Join(err, s.close()) }()
	// Reproducible is without owners and odd permissions; the time is the caller's.
	p := newPacker(tree, PackOptions{Format: o.Format, Reproducible: true, Time: o.Time, Progress: o.Progress})
	if err := p.writeTo(ctx, s.made()); err != nil {
		return fail(r, err)
	}
	if o.Verify {
		if r, err = Validate(ctx, s.made(), ValidateOptions{Workers: o.Workers, Progress: o.Progress}); err != nil {
			return fail(r, err)
		}
		r.Bag = encoded(filepath.Base(dest))
		r.drop(CodeBaseName) // of the name it has until it is verified
		if !r.Valid {
			return fail(r, ErrNotValid)
		}
	}
	sync := disk.SyncTree
	if o.NoSync {
		sync = nil
	}
	if err := s.publish(sync); err != nil {
		return fail(r, err)
	}
	return r, nil
}

// bagTree lists a bag below its own folder's name. Control characters, which its
// manifests percent-encode, are its only freedom over what Pack takes.
func bagTree(ctx context.Context, dir string, f Format) (*Tree, error) {
	tree, err := namedTree(ctx, dir)
	if err != nil {
		return nil, err
	}
	return tree, tree.packable(f, plainControls)
}

// drop takes the warnings of one code out of a report.
func (r *Report) drop(c Code) {
	n := len(r.Findings)
	r.Findings = slices.DeleteFunc(r.Findings, func(f Finding) bool { return f.Code == c && f.Severity == SeverityWarning })
	r.Warnings -= n - len(r.Findings)
}
