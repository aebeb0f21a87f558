package feed

import (
	"errors"
	"os"
	"time"
)

// slack is how much more than is kept there may be before the files are written anew.
const slack = 2

// clean drops what is older than is kept, and of each feed what is beyond its newest. A post
// goes from the list once it has been in its feeds for as long as listed says; its entries stay.
// One that waits for its entries stays.
func (f *Feeds) clean(listed time.Duration) error {
	f.cleaned = f.ledger.Now()
	_, err := f.cleanAt(f.cleaned, listed, f.shelf.waits)
	return err
}

// cleanAt drops posts, but those that wait, and reports whether it did.
func (f *Feeds) cleanAt(now time.Time, list time.Duration, waits func(*record) bool) (bool, error) {
	before, done := now.Add(-keep).Unix(), now.Add(-min(list, keep)).Unix()
	s := f.shelf
	goes := func(r *record) bool {
		return !waits(r) && (r.unlisted || r.date < before || r.date < done && !r.failed)
	}
	kept := s.newest(before, waits)
	gone, dropped, listed := 0, 0, 0
	for i := range s.records {
		r := &s.records[i]
		if !waits(r) && !kept[i] {
			dropped++
		}
		if r.unlisted {
			continue
		}
		if listed++; goes(r) {
			gone++
		}
	}
	// A post stays that any feed has among its newest, so that the others have more: what counts is what would go.
	if gone*slack <= listed && dropped*slack <= len(s.records) && (dropped == 0 || s.entries() <= mostInAll) {
		return false, nil
	}
	var left []record
	for i, kept := range kept {
		if r := s.records[i]; waits(&r) || kept {
			r.unlisted = goes(&r)
			left = append(left, r)
		}
	}
	return true, f.replace(left)
}

// entries counts those of all feeds.
func (s *shelf) entries() (n int) {
	for _, of := range s.sizes() {
		n += of
	}
	return n
}

// newest says of each post whether it stays: young ones which are among the newest of some feed,
// and young ones without a template.
func (s *shelf) newest(before int64, waits func(*record) bool) []bool {
	kept, n, total := make([]bool, len(s.records)), make([]int, len(s.names)), 0
	for i := len(s.records) - 1; i >= 0; i-- {
		r := &s.records[i]
		if waits(r) || r.date < before {
			continue
		}
		if r.failed {
			kept[i] = true
			continue
		}
		set := s.sets[r.audience]
		if total+len(set) > mostInAll {
			continue
		}
		for _, name := range set {
			if n[name]++; n[name] <= mostEach {
				kept[i] = true
			}
		}
		if kept[i] {
			total += len(set)
		}
	}
	return kept
}

// copyAtOnce is how much of bodies and texts is read at once.
const copyAtOnce = 1 << 20

// replace writes the files anew with the posts that are left, and has them count. A crash before
// that leaves the old ones, after it an old folder: the next that is written takes it away.
func (f *Feeds) replace(left []record) error {
	old := f.shelf
	s, err := f.newFolder()
	if err != nil {
		return err
	}
	for i := range left {
		left[i].audience = s.audience(old.feeds(left[i].audience))
	}
	if err := errors.Join(s.copyBodies(old, left), s.list(f.turn, listing{old.through, old.next, old.pending, left})); err != nil {
		return err
	}
	for n := range s.parts {
		if err := s.copyPart(old, n, f.turn); err != nil {
			return err
		}
	}
	return f.count(s)
}

// copyBodies brings the bodies over.
func (s *shelf) copyBodies(old *shelf, left []record) error {
	from := singles{path: old.bodies(), ahead: copyAtOnce}
	defer from.close()
	to, err := os.OpenFile(s.bodies(), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o666)
	if err != nil {
		return err
	}
	var at int64
	var out []byte
	for i := range left {
		data, err := from.at(left[i].body, true)
		if err != nil {
			return errors.Join(err, to.Close())
		}
		left[i].body = span{at, len(data)}
		at += int64(len(data))
		if out = append(out, data...); len(out) > copyAtOnce || i == len(left)-1 {
			if _, err := to.Write(out); err != nil {
				return errors.Join(err, to.Close())
			}
			out = out[:0]
		}
	}
	return to.Close()
}

// copyPart brings the entries of a part over; those that were made together make a frame.
func (s *shelf) copyPart(old *shelf, n, turn int) error {
	from := singles{path: old.texts(n), ahead: copyAtOnce}
	defer from.close()
	var some []int
	var out []byte
	write := func(through int) error {
		var made time.Time
		if len(some) > 0 {
			made = time.UnixMilli(s.records[some[0]].made)
		}
		if _, err := appendTo(s.texts(n), out); err != nil {
			return err
		}
		err := s.enter(n, turn, through, made, some)
		some, out = nil, nil
		return err
	}
	var at int64
	for i := range s.records {
		r := &s.records[i]
		if r.part != n || r.made == 0 {
			continue
		}
		if len(some) > 0 && s.records[some[0]].made != r.made {
			if err := write(s.records[some[len(some)-1]].seq); err != nil {
				return err
			}
		}
		data, err := from.at(r.text, true)
		if err != nil {
			return err
		}
		r.text = span{at, len(data)}
		at += int64(len(data))
		some, out = append(some, i), append(out, data...)
	}
	if through := old.parts[n].through; through > 0 {
		return write(through)
	}
	return nil
}
