package bags

import (
	"context"
	"os"

	"bagpipe/bags/files"
	"bagpipe/bags/finding"
	"bagpipe/bags/tagfile"
)

// Holes is a bag, locked, some of whose files are still to be put in their places. It
// is used by one goroutine, Root by any.
type Holes struct {
	Dir       string
	Root      *os.Root
	Missing   []Hole
	There     int64 // files that fetch.txt lists and that are there already
	Recovered Outcome

	edit *edit
}

// Hole is a payload file that is not there, as fetch.txt and the manifests have it.
type Hole struct {
	tagfile.FetchLine
	Sums files.Sums
}

// OpenHoles locks the bag in dir, finishes what was interrupted there, and lists the
// files to be fetched. A bag that is wrong in another way is ErrNotValid. The answer
// tells Recovered even with an error.
func OpenHoles(ctx context.Context, dir string) (*Holes, error) {
	e, was, err := openEdit(ctx, dir, true, ValidateOptions{Level: Complete})
	if err != nil {
		return &Holes{Recovered: was}, err
	}
	h := &Holes{Dir: dir, Root: e.root, Recovered: was, edit: e}
	for _, f := range e.v.report.Findings {
		if f.Severity == finding.Error && f.Code != finding.Unfetched && f.Code != finding.Missing && f.Code != finding.Oxum {
			return h, h.Close(notValid(f))
		}
	}
	for _, l := range e.v.fetches {
		switch listed := e.v.payload[l.Path]; {
		case e.v.has(l.Path):
			h.There++
		case listed != nil:
			hole := Hole{FetchLine: l}
			for _, s := range listed.sums {
				hole.Sums.Set(s.algorithm, s.sum)
			}
			h.Missing = append(h.Missing, hole)
		}
	}
	return h, nil
}

// Close unlocks the bag; err is what ended the work, and part of the answer.
func (h *Holes) Close(err error) error { return h.edit.close(err) }
