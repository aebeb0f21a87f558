package recognise

import (
	"context"
	"errors"
	"fmt"
	"image"
	_ "image/gif"  // formats that raster: opens knows
	_ "image/jpeg" //
	_ "image/png"  //
	"io"
	"slices"
	"strings"
	"time"

	asking "bagpipe/engine/condition"
	"bagpipe/layout"
	"bagpipe/steps/raster"

	"github.com/tidwall/gjson"
)

// Subject is an item whose quality is asked for.
type Subject struct {
	Candidate        // its content
	Manifest  []byte // manifest.json
}

// Checked is how one check ended.
type Checked struct {
	ID, Level, Result, Text string
	Rule                    string // the file that asks for it
}

// wanted is a check that an item is to pass.
type wanted struct {
	*Check
	id, rule string // RULE/ID where another file's, too, asks for one of that name
}

// reached begins with what a check is before it was made.
func (a wanted) reached() Checked {
	return Checked{ID: a.id, Level: a.Level, Result: layout.QualityNotReached, Rule: a.rule}
}

// QualityChecks lists the checks that an item is to pass, none of them reached.
func (b *Book) QualityChecks(manifest []byte, now time.Time) (all []Checked) {
	for _, one := range b.asked(manifest, now) {
		all = append(all, one.reached())
	}
	return all
}

// Checks reports whether some rule asks for checks of objects.
func (b *Book) Checks() bool {
	return b != nil && slices.ContainsFunc(b.files, func(f *File) bool { return len(f.Quality) > 0 })
}

// asked are the checks for an item, in the order of the files.
func (b *Book) asked(manifest []byte, now time.Time) (all []wanted) {
	times := map[string]int{}
	values := func(path string) gjson.Result { return gjson.GetBytes(manifest, path) }
	for _, f := range b.files {
		for i := range f.Quality {
			q := &f.Quality[i]
			if holds, _ := q.where.Holds(values, now); !holds {
				continue
			}
			for k := range q.Checks {
				all = append(all, wanted{Check: &q.Checks[k], id: q.Checks[k].ID, rule: f.Name})
				times[q.Checks[k].ID]++
			}
		}
	}
	for i, one := range all {
		if times[one.ID] > 1 {
			all[i].id = one.rule + "/" + one.ID
		}
	}
	return all
}

// Quality checks an item. A check that stops leaves those after it not reached.
func (b *Book) Quality(ctx context.Context, s Subject, o Options, now time.Time) (all []Checked, err error) {
	f, err := b.facts(ctx, s.Candidate, o)
	if err != nil {
		return nil, err
	}
	stopped := false
	for _, one := range b.asked(s.Manifest, now) {
		done := one.reached()
		if !stopped {
			why := f.quality(ctx, one.Check, s)
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			if done.Result = layout.QualityPass; why != "" {
				done.Result, done.Text = one.Else, cut(why, maxReason)
				stopped = one.Stop
			}
		}
		all = append(all, done)
	}
	return all, nil
}

// quality says why a check does not hold; "" where it does.
func (f *facts) quality(ctx context.Context, one *Check, s Subject) (why string) {
	switch {
	case one.regexp != nil:
		if !one.regexp.MatchString(f.c.Name) {
			return fmt.Sprintf("%s does not match %s", layout.EncodePath(f.c.Name), one.Regexp)
		}
	case one.Path != "":
		return one.value(s.Manifest)
	case one.Match != nil:
		if a := (questions{f}).fits(ctx, one.Match, f.base()); a.verdict != Yes {
			return a.why
		}
	default:
		return f.rasters(ctx)
	}
	return ""
}

// value asks for what stands in the manifest.
func (one *Check) value(manifest []byte) (why string) {
	v := gjson.GetBytes(manifest, asking.Lead(one.Path))
	if !v.Exists() {
		v = gjson.GetBytes(manifest, "metadata."+one.Path)
	}
	if !v.Exists() || v.Type == gjson.Null || v.String() == "" {
		return one.Path + " is not there"
	}
	if one.After == nil && one.Before == nil {
		return ""
	}
	at, ok := momentOf(v.String())
	switch {
	case !ok:
		return fmt.Sprintf("%s is no time: %s", one.Path, v.String())
	case one.After != nil && at.Before(one.after):
		return fmt.Sprintf("%s is before %v: %s", one.Path, one.After, v.String())
	case one.Before != nil && !at.Before(one.before):
		return fmt.Sprintf("%s is not before %v: %s", one.Path, one.Before, v.String())
	}
	return ""
}

// maxRasters bounds how many images of one object are opened.
const maxRasters = 1000

// rasters opens the heads of an object's images, and looks whether TIFFs hold all their
// blocks; "" where there are some and all open.
func (f *facts) rasters(ctx context.Context) (why string) {
	names := []string{""}
	if f.isFolder() {
		names = nil
		l := f.listing(ctx)
		if l.err != nil {
			return l.err.Error()
		}
		for _, name := range l.files {
			if isRaster(name) {
				names = append(names, l.onDisk(name))
			}
		}
	}
	if len(names) == 0 {
		return "there is no image in it"
	}
	for _, name := range names[:min(len(names), maxRasters)] {
		if err := f.openRaster(name); err != nil {
			return strings.TrimPrefix(layout.EncodePath(name)+": "+err.Error(), ": ")
		}
	}
	return ""
}

func isRaster(name string) bool {
	name = strings.ToLower(name)
	return slices.ContainsFunc([]string{".tif", ".tiff", ".jpg", ".jpeg", ".png", ".gif"}, func(ext string) bool { return strings.HasSuffix(name, ext) })
}

func (f *facts) openRaster(name string) (err error) {
	defer caught(&err)
	r, err := f.open(name)
	if err != nil {
		return err
	}
	defer r.Close()
	info, err := r.Stat()
	if err != nil {
		return err
	}
	head := make([]byte, 4)
	if _, err := r.ReadAt(head, 0); err == nil && raster.IsTIFF(head) {
		f, err := raster.Open(r, info.Size())
		if err == nil {
			err = f.Whole()
		}
		return err
	}
	c, _, err := image.DecodeConfig(io.LimitReader(r, maxDocument))
	if err == nil && (c.Width <= 0 || c.Height <= 0) {
		err = errors.New("an image without pixels")
	}
	return err
}
