package ask

import (
	"bytes"
	"os"
	"slices"

	"bagpipe/layout"
)

// CollectionRow is one collection: listed in the settings, or a folder in the
// inbox, or both.
type CollectionRow struct {
	Name      string   `json:"name"`
	Workflow  string   `json:"workflow"`
	Lane      string   `json:"lane"`
	Approvals []string `json:"approvals"`
	Folder    bool     `json:"folder"` // inbox/NAME is there
}

// Collections lists the collections by name.
func (dr *Drops) Collections() ([]CollectionRow, error) {
	s := dr.settings.Current().Settings
	names := map[string]bool{}
	for n := range s.Collections {
		names[n] = false
	}
	entries, err := os.ReadDir(dr.ledger.Path(layout.InboxDir))
	if err != nil && !os.IsNotExist(err) {
		return nil, err
	}
	for _, entry := range entries {
		if _, err := layout.ParseName(entry.Name()); err == nil && entry.IsDir() && s.HasCollection(entry.Name(), true) {
			names[entry.Name()] = true
		}
	}
	rows := []CollectionRow{}
	for n, folder := range names {
		c := s.Collection(layout.Name(n))
		rows = append(rows, CollectionRow{Name: n, Workflow: c.Workflow, Lane: c.Lane, Approvals: append([]string{}, c.Approvals...), Folder: folder})
	}
	slices.SortFunc(rows, func(a, b CollectionRow) int { return bytes.Compare([]byte(a.Name), []byte(b.Name)) })
	return rows, nil
}
