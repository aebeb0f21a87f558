package guard

import (
	"bytes"
	"context"
	"errors"
	"reflect"
	"slices"

	"bagpipe/engine/gitstore"
	"bagpipe/engine/ledger"
	"bagpipe/engine/state"
	"bagpipe/layout"
)

// untrue is what was done to what stands beside an item's records: its deliveries, and what checks found.
type untrue struct {
	what []string
	was  map[string][]byte // the files as they were, by path; nil: there was none
}

// untrueBeside holds the files beside an item's records now, at view, against what they were at a commit, beside the records
// before.
func untrueBeside(at func(gitstore.Hash) (gitstore.View, error), commit gitstore.Hash, view gitstore.Reader, id layout.ItemID, before, now ledger.Records) (u untrue, err error) {
	if commit.IsZero() || now.Absent() || now.Retired != (layout.Standing{}) || tombstone(now.Manifest) != nil {
		return u, nil
	}
	then, err := at(commit)
	if err != nil {
		return u, err
	}
	for name, judge := range map[string]func(was, is []byte) string{
		layout.DeliveryJSON: ledger.UntrueDelivery,
		layout.QualityJSON:  func(was, is []byte) string { return untrueQuality(id, before, now, was, is) },
	} {
		p := layout.ItemDir(id) + "/" + name
		was, errWas := ledger.ReadOptional(then, p)
		is, errIs := ledger.ReadOptional(view, p)
		if err := errors.Join(errWas, errIs); err != nil {
			return u, err
		}
		if bytes.Equal(was, is) && (was == nil) == (is == nil) {
			continue
		}
		if what := judge(was, is); what != "" {
			if u.was == nil {
				u.was = map[string][]byte{}
			}
			u.what, u.was[p] = append(u.what, what), was
		}
	}
	slices.Sort(u.what)
	return u, nil
}

// untrueQuality says what a commit that changed quality.json from was to is did that no engine does: it changes with a robot's
// end, by a person's decision as ledger.NoteDecisions has it, and goes with the version. What could not be used before may go.
func untrueQuality(id layout.ItemID, before, now ledger.Records, was, is []byte) string {
	q, err := layout.DecodeQuality(is)
	noted, unusable := layout.DecodeQuality(was)
	switch {
	case was != nil && unusable != nil:
		return ""
	case is != nil && err != nil:
		return "left a record that cannot be used: " + err.Error()
	case is != nil && q.Item != id:
		return "put another item's " + layout.QualityJSON + " in its place"
	}
	x, errX := state.Decode(before.Execution)
	y, errY := state.Decode(now.Execution)
	if errX != nil || errY != nil || state.Ended(x, y) {
		return ""
	}
	if was != nil && is != nil && state.Decided(x, y) && ledger.NoteDecisions(&noted, y) {
		noted.Reckon()
		if want, err := noted.Encode(); err == nil && bytes.Equal(want, is) {
			return ""
		}
	}
	if is != nil {
		return "changed " + layout.QualityJSON
	}
	m, errM := layout.DecodeManifest(before.Manifest)
	n, errN := layout.DecodeManifest(now.Manifest)
	if errM != nil || errN != nil || m.Version != n.Version {
		return ""
	}
	return "removed " + layout.QualityJSON
}

// untrueSummary gives the manifest with the quality it had, where a commit with a person's decision has it sum up no
// quality.json; nil: it is in order, or for others to judge.
func untrueSummary(view gitstore.Reader, id layout.ItemID, before, now ledger.Records) ([]byte, error) {
	if bytes.Equal(before.Manifest, now.Manifest) {
		return nil, nil
	}
	x, errX := state.Decode(before.Execution)
	y, errY := state.Decode(now.Execution)
	m, errM := layout.DecodeManifest(before.Manifest)
	n, errN := layout.DecodeManifest(now.Manifest)
	if errX != nil || errY != nil || errM != nil || errN != nil || reflect.DeepEqual(m.Quality, n.Quality) || state.Ended(x, y) || !state.Decided(x, y) {
		return nil, nil //nolint:nilerr // others judge what cannot be read
	}
	if q, err := ledger.ReadQuality(view, id); err != nil || q != nil && n.Quality != nil && reflect.DeepEqual(q.Reckon(), *n.Quality) {
		return nil, err
	}
	n.Quality = m.Quality
	return n.Encode(now.Manifest)
}

// LeadsTo reports whether the commit in which an item's records last stood leads to another.
func LeadsTo(ctx context.Context, l *ledger.Ledger, s layout.Standing, c gitstore.Commit) (bool, error) {
	h, err := gitstore.ParseHash(s.Commit)
	if err != nil || slices.Contains(c.Parents, h) {
		return err == nil, nil //nolint:nilerr // it names no commit
	}
	base, err := l.Store.Base(ctx, h, c.Hash)
	return base == h, err
}
