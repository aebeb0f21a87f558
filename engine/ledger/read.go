package ledger

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"strings"

	"bagpipe/engine/fault"
	"bagpipe/engine/gitstore"
	"bagpipe/layout"
)

// Exists reports whether there is such an item, retired ones too.
func (l *Ledger) Exists(id layout.ItemID) (bool, error) {
	v, err := l.Store.Tip()
	if err != nil {
		return false, err
	}
	_, err = v.ReadFile(layout.ItemDir(id) + "/" + layout.ExecutionJSON)
	if errors.Is(err, fs.ErrNotExist) {
		s, err := ReadRetired(v, id)
		return s != (layout.Standing{}), err
	}
	return err == nil, err
}

func ReadOptional(r gitstore.Reader, p string) ([]byte, error) {
	data, err := r.ReadFile(p)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return data, err
}

// UnknownSite refuses a site that the history does not know, with those that it does.
func UnknownSite(v gitstore.View, name layout.Name) error {
	entries, err := v.List(layout.SitesDir)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	known := map[layout.Name]bool{}
	for _, e := range entries {
		known[layout.Name(strings.TrimSuffix(e.Name, ".json"))] = true
	}
	return errors.Join(fault.Unknown("site", name, " in the history", maps.Keys(known)), err)
}

// OfBefore refuses a workflow that worked on a version which has been replaced.
func OfBefore(rec *Record, workflow string) *fault.Error {
	m, w := rec.Manifest, rec.Execution.Workflows[workflow]
	if w == nil || m.Since.IsZero() || !w.Created.Before(m.Since) {
		return nil
	}
	return fault.New(fault.Refused, fmt.Sprintf("%s belongs to an earlier version of item %s, which is at version %d", workflow, m.Item.Short(), m.Version),
		fault.Remedy{Verb: fault.Show, Item: m.Item})
}
