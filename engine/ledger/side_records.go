package ledger

import (
	"fmt"
	"path"

	"bagpipe/engine/gitstore"
	"bagpipe/engine/state"
	"bagpipe/layout"
)

// ReadDeposits reads an item's deposits.json; without the file it has no copies.
func ReadDeposits(v gitstore.Reader, id layout.ItemID) (layout.Deposits, error) {
	data, err := ReadOptional(v, layout.ItemDir(id)+"/"+layout.DepositsJSON)
	if err != nil || data == nil {
		return layout.Deposits{Item: id}, err
	}
	d, err := layout.DecodeDeposits(data)
	if err != nil {
		return d, fmt.Errorf("item %s: %w", id.Short(), err)
	}
	d.Item = id
	return d, nil
}

// ReadQuality reads an item's quality.json; nil without the file.
func ReadQuality(v gitstore.Reader, id layout.ItemID) (*layout.Quality, error) {
	data, err := ReadOptional(v, layout.ItemDir(id)+"/"+layout.QualityJSON)
	if err != nil || data == nil {
		return nil, err
	}
	q, err := layout.DecodeQuality(data)
	if err != nil {
		return nil, fmt.Errorf("item %s: %w", id.Short(), err)
	}
	return &q, nil
}

// NoteDecisions takes into an item's quality what persons decided of steps that had failed for the content: the check that
// stands for the failure itself warns once the step was completed or skipped, and fails where it was failed. A robot's own checks
// stand. It goes by q and x alone, so that all engines come to the same. It reports whether anything changed.
func NoteDecisions(q *layout.Quality, x *state.Execution) (changed bool) {
	for id, c := range q.Checks {
		step, key := c.Maker()
		if c.Rule != "" || path.Base(id) != step {
			continue
		}
		for _, w := range x.Workflows {
			s := w.Steps[layout.Name(step)]
			if w.Name != c.Workflow || s == nil {
				continue
			}
			was := s.Attempts[key]
			last, is, _ := s.Current()
			if last == key || !is.ByPerson() || !was.ByPerson() && !isOfFailure(c, was) {
				continue
			}
			text := fmt.Sprintf("%s by %s", is.State, is.By)
			if is.Message != "" {
				text += ": " + is.Message
			}
			if c.Result = layout.QualityFail; is.State != state.Failed {
				c.Result = layout.QualityWarn
			}
			if !was.ByPerson() {
				text += "; it had failed: " + c.Text
			}
			c.Text, c.At, c.By = layout.QualityText(OneLine(text, MaxLabel)), is.Ended, step+"."+last.String()
			q.Checks[id], changed = c, true
		}
	}
	return changed
}

// isOfFailure reports whether a check stands for the failure of an attempt, and was not told by its robot.
func isOfFailure(c layout.QualityCheck, a state.Attempt) bool {
	return a.State == state.Failed && a.Kind == state.ContentKind && c.Result == layout.QualityFail &&
		c.Text == layout.QualityText(OneLine(a.Message, MaxLabel))
}

// PutQuality adds quality.json, and its summary in the manifest, to a change of an item's files.
func PutQuality(q layout.Quality, manifest []byte, files map[string][]byte) error {
	m, err := layout.DecodeManifest(manifest)
	if err != nil {
		return err
	}
	summary := q.Reckon()
	m.Quality = &summary
	dir := layout.ItemDir(q.Item) + "/"
	if files[dir+layout.ManifestJSON], err = m.Encode(manifest); err != nil {
		return err
	}
	files[dir+layout.QualityJSON], err = q.Encode()
	return err
}
