package bags

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"bagpipe/bags/archive"
	"bagpipe/bags/files"
	"bagpipe/bags/finding"
	"bagpipe/layout"
)

// SerializeOptions say how to write a bag into an archive.
type SerializeOptions struct {
	Format archive.Format // one of PackFormats; default: what the archive's name ends in, or tar
	Time   time.Time      // of every member; zero: each file's own
	Verify bool           // validate the archive before it gets its name
	NoSync bool

	Workers  int
	Progress func(files.Progress)
}

// Serialize writes the bag in dir into the archive at dest, which must not exist,
// in one folder named like the bag's own. Members are sorted, and have no owner;
// with a Time, two archives of one bag are the same bytes. dest is whole, or not
// there. A bag that is not complete is ErrNotValid, with the report.
func Serialize(ctx context.Context, dir, dest string, o SerializeOptions) (Report, error) {
	fail := func(r Report, err error) (Report, error) { return r, fmt.Errorf("serialize bag %s: %w", dir, err) }
	if o.Format == archive.None {
		o.Format = cmp.Or(archive.FormatOfName(filepath.Base(dest)), archive.Tar)
	}
	if !slices.Contains(archive.PackFormats(), o.Format) {
		return fail(Report{}, fmt.Errorf("%s: %w", dest, archive.ErrPackFormat))
	}
	r, err := Validate(ctx, dir, ValidateOptions{Level: Complete})
	if err != nil {
		return fail(r, err)
	}
	if !r.Complete || r.Errors > 0 {
		return fail(r, ErrNotValid)
	}
	if r.Archive != archive.None {
		return fail(r, errors.New("it is serialized already"))
	}
	verify := func(made string) (err error) {
		if r, err = Validate(ctx, made, ValidateOptions{Workers: o.Workers, Progress: o.Progress}); err != nil {
			return err
		}
		r.Bag = layout.EncodePath(filepath.Base(dest))
		r.drop(finding.BaseName) // of the name it has until it is verified
		if !r.Valid {
			return ErrNotValid
		}
		return nil
	}
	if !o.Verify {
		verify = nil
	}
	if _, err := archive.Pack(ctx, dir, dest, archive.PackOptions{Format: o.Format, Bag: true, Time: o.Time, NoSync: o.NoSync, Progress: o.Progress, Check: verify}); err != nil {
		return fail(r, err)
	}
	return r, nil
}

// drop takes the warnings of one code out of a report.
func (r *Report) drop(c finding.Code) {
	n := len(r.Findings)
	r.Findings = slices.DeleteFunc(r.Findings, func(f finding.Finding) bool { return f.Code == c && f.Severity == finding.Warning })
	r.Warnings -= n - len(r.Findings)
}
