package export

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"bagpipe/layout"
)

// look is a look at one copy of an item.
type look struct {
	own     string      // source, content, derived or deposit; "": it stands on a target
	target  layout.Name // where it stands
	version int
	layout.FixityCheck
}

// name is what the copy is called in tables.
func (l *look) name() string {
	if l.own != "" {
		return l.own
	}
	return fmt.Sprintf("%s v%d", l.target, l.version)
}

func (l *look) compare(o look) int {
	return cmp.Or(cmp.Compare(l.own, o.own), cmp.Compare(l.target, o.target), cmp.Compare(l.version, o.version), l.At.Compare(o.At))
}

// lookKey names a look: no copy is looked at twice at one time.
type lookKey struct {
	own     string
	target  layout.Name
	version int
	at      int64
}

// looks are all looks at copies that the records have and had, by copy, each copy's by time: those on targets, then those of
// the workspace.
func (r *record) looks() (onTargets, own []look) {
	all := map[lookKey]look{}
	add := func(l look) {
		key := lookKey{l.own, l.target, l.version, l.At.UnixNano()}
		// A page of a sweep, and a last failure, have less of a look than the record that it wrote.
		if was, is := all[key]; !l.At.IsZero() && (!is || cmp.Or(cmp.Compare(l.Path, was.Path), cmp.Compare(l.Outcome, was.Outcome), cmp.Compare(l.Message, was.Message)) > 0) {
			all[key] = l
		}
	}
	for d := range r.everyDeposits() {
		for name, c := range d.Copies {
			add(look{own: name, FixityCheck: c})
		}
		for name, versions := range d.Targets {
			for version, c := range versions {
				add(look{target: name, version: version, FixityCheck: layout.FixityCheck{At: c.Verified, Outcome: c.Outcome, Path: c.Place, Files: c.Files, Bytes: c.Bytes, Message: c.Message}})
				if f := c.LastFailure; f != nil {
					add(look{target: name, version: version, FixityCheck: layout.FixityCheck{At: f.At, Outcome: layout.FixityFailed, Message: f.Message}})
				}
			}
		}
	}
	sorted := slices.SortedFunc(maps.Values(all), func(a, b look) int { return a.compare(b) })
	first := slices.IndexFunc(sorted, func(l look) bool { return l.own != "" })
	if first < 0 {
		return sorted, nil
	}
	return sorted[:first], sorted[first:]
}

// everyDeposits gives the deposits.json that is, and those before.
func (r *record) everyDeposits() func(func(layout.Deposits) bool) {
	return func(yield func(layout.Deposits) bool) {
		for _, d := range r.past {
			if !yield(d) {
				return
			}
		}
		yield(r.deposits)
	}
}

// written are the copies that were ever written on targets, by target, version and time.
func (r *record) written() []copied {
	type key struct {
		target  layout.Name
		version int
		at      int64
	}
	all := map[key]copied{}
	for d := range r.everyDeposits() {
		for name, versions := range d.Targets {
			for version, c := range versions {
				if !c.Written.IsZero() {
					all[key{name, version, c.Written.UnixNano()}] = copied{name, version, c}
				}
			}
		}
	}
	return slices.SortedFunc(maps.Values(all), func(a, b copied) int {
		return cmp.Or(cmp.Compare(a.target, b.target), cmp.Compare(a.version, b.version), a.Written.Compare(b.Written))
	})
}

// stamp is a time of a table or document; "": none.
func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}
