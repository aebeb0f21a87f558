package ask

import (
	"bytes"
	"context"
	"os"
	"slices"
	"strings"

	"bagpipe/engine/gitstore"
	"bagpipe/engine/ledger"
	"bagpipe/engine/settings"
	"bagpipe/engine/state"
	"bagpipe/layout"
)

// RuleRow is one rule in the list of them all.
type RuleRow struct {
	Rule        string   `json:"rule"` // FILE/RULE
	Description string   `json:"description,omitempty"`
	Kind        []string `json:"kind,omitempty"`   // none: all
	Listed      bool     `json:"listed,omitempty"` // asked only where a keyword or a metadata.rule names it
	Type        string   `json:"type,omitempty"`
	Workflow    string   `json:"workflow,omitempty"`
	Collection  string   `json:"collection,omitempty"`
	Lane        string   `json:"lane,omitempty"`
	Verdict     string   `json:"verdict,omitempty"` // maybe or no, where that is all it says
}

// RuleList lists the rules in force in the order in which they are asked.
func (df *Definitions) RuleList() []RuleRow {
	rows := []RuleRow{}
	for _, r := range df.settings.Current().Book.Rules() {
		rows = append(rows, RuleRow{Rule: r.ID(), Description: r.Description, Kind: r.Match.Kind, Listed: r.Listed, Type: r.Type,
			Workflow: r.Workflow, Collection: r.Collection, Lane: r.Lane, Verdict: r.Verdict})
	}
	return rows
}

// Workflows lists the definitions in force by name.
func (df *Definitions) Workflows() []string {
	c := df.settings.Current()
	names := make([]string, 0, len(c.Workflows))
	for n := range c.Workflows {
		names = append(names, n)
	}
	slices.SortFunc(names, strings.Compare)
	return names
}

// WorkflowRow is one definition in force.
type WorkflowRow struct {
	Name        string   `json:"name"`
	Description string   `json:"description"`
	Digest      string   `json:"digest"`
	Steps       []string `json:"steps"`
}

// WorkflowList lists the definitions in force by name.
func (df *Definitions) WorkflowList() []WorkflowRow {
	c := df.settings.Current()
	rows := []WorkflowRow{}
	for _, name := range df.Workflows() {
		d := c.Workflows[name].Def
		row := WorkflowRow{Name: d.Name, Description: d.Description, Digest: d.Digest}
		for i := range d.Steps {
			row.Steps = append(row.Steps, d.Steps[i].Name)
		}
		rows = append(rows, row)
	}
	return rows
}

// WorkflowText gives a definition in force as it is written.
func (df *Definitions) WorkflowText(name string) ([]byte, *state.Definition, error) {
	w := df.settings.Current().Workflows[name]
	if w == nil {
		return nil, nil, ledger.NoWorkflow(name)
	}
	return w.Data, w.Def, nil
}

// SettingsFile is a file that people edit, as it is committed.
type SettingsFile struct {
	Path   string
	Text   string
	Commit *gitstore.Commit // that changed it last
}

// SettingsFiles gives the committed files that people edit, by their paths.
func (de *Details) SettingsFiles(ctx context.Context) ([]SettingsFile, error) {
	v, err := de.ledger.Store.Tip()
	if err != nil {
		return nil, err
	}
	paths, err := settings.Paths(v)
	if err != nil {
		return nil, err
	}
	var files []SettingsFile
	for _, path := range paths {
		text, err := v.ReadFile(path)
		if err != nil {
			return nil, err
		}
		file := SettingsFile{Path: path, Text: string(text)}
		for c, err := range de.ledger.Store.History(ctx, gitstore.HistoryOptions{Path: path, Limit: 1}) {
			if err != nil {
				return nil, err
			}
			file.Commit = &c
		}
		files = append(files, file)
	}
	return files, nil
}

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
