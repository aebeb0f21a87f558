package recognise

import (
	"fmt"
	"regexp"
	"strconv"
	"time"

	where "bagpipe/engine/condition"
	"bagpipe/layout"
)

// Retention says how long items are kept, and what becomes of them then.
type Retention struct {
	For       string      `yaml:"for"`       // a condition; "": all
	Keep      string      `yaml:"keep"`      // 10y, 6mo or 6m, 90d: years and months of the calendar; forever
	After     layout.Name `yaml:"after"`     // the milestone from which it counts; "": registered
	Then      string      `yaml:"then"`      // dispose, or review (""): a person proposes it
	Approvals int         `yaml:"approvals"` // of persons beside the proposer; 0: two
	Authority string      `yaml:"authority"` // by which they are disposed of

	Which *where.Where `yaml:"-"` // of For; nil: all
	keep  span
}

// What becomes of an item that was kept for its time.
const (
	ThenReview  = "review"
	ThenDispose = "dispose"
)

// Forever is what keep: says of items that are never due.
const Forever = "forever"

// span is a length of time by the calendar.
type span struct {
	years, months, days int
	forever             bool
}

var spans = regexp.MustCompile(`^([0-9]{1,4})(y|mo|m|w|d)$`)

// Due is when an item may be disposed of; never: it is kept for good.
func (r *Retention) Due(from time.Time) (due time.Time, ever bool) {
	k := r.keep
	return from.AddDate(k.years, k.months, k.days), !k.forever
}

// mostRetention is how many rules of retention a file may have.
const mostRetention = 1000

// checkRetention reads retention:, and says where it is wrong.
func checkRetention(all []Retention) (at string, err error) {
	if len(all) > mostRetention {
		return "$.retention", fmt.Errorf("%d rules; at most %d in a file", len(all), mostRetention)
	}
	for i := range all {
		r, at := &all[i], fmt.Sprintf("$.retention[%d]", i)
		if r.Which, err = parseCondition(r.For); err != nil {
			return at + ".for", err
		}
		if key, err := r.read(); err != nil {
			return at + key, err
		}
	}
	return "", nil
}

func (r *Retention) read() (key string, err error) {
	if r.After == "" {
		r.After = "registered"
	}
	if _, err := layout.ParseName(string(r.After)); err != nil {
		return ".after", err
	}
	if r.Then == "" {
		r.Then = ThenReview
	}
	if r.Then != ThenReview && r.Then != ThenDispose {
		return ".then", fmt.Errorf("expected review or dispose, not %q", r.Then)
	}
	if r.Approvals < 0 || r.Approvals > 10 {
		return ".approvals", fmt.Errorf("expected a number from 1 to 10")
	}
	if r.Approvals == 0 {
		r.Approvals = 2
	}
	if r.Keep == Forever {
		r.keep.forever = true
		return "", nil
	}
	part := spans.FindStringSubmatch(r.Keep)
	if part == nil {
		return ".keep", fmt.Errorf("expected a time such as 10y, 6mo, 2w or 90d, or forever, not %q", r.Keep)
	}
	n, err := strconv.Atoi(part[1])
	switch part[2] {
	case "y":
		r.keep.years = n
	case "mo", "m":
		r.keep.months = n
	case "w":
		r.keep.days = 7 * n
	default:
		r.keep.days = n
	}
	return ".keep", err
}
