package engine

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"slices"

	"bagpipe/layout"
	"bagpipe/layout/disk"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/parser"
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
func (e *Engine) Collections() ([]CollectionRow, error) {
	s := e.current().settings
	names := map[string]bool{}
	for n := range s.Collections {
		names[n] = false
	}
	entries, err := os.ReadDir(e.path(layout.InboxDir))
	if err != nil && !os.IsNotExist(err) {
		return nil, err
	}
	for _, entry := range entries {
		if _, err := layout.ParseName(entry.Name()); err == nil && entry.IsDir() {
			names[entry.Name()] = true
		}
	}
	rows := []CollectionRow{}
	for n, folder := range names {
		c := s.collection(layout.Name(n))
		rows = append(rows, CollectionRow{Name: n, Workflow: c.Workflow, Lane: c.Lane, Approvals: append([]string{}, c.Approvals...), Folder: folder})
	}
	slices.SortFunc(rows, func(a, b CollectionRow) int { return bytes.Compare([]byte(a.Name), []byte(b.Name)) })
	return rows, nil
}

// AddCollection makes inbox/NAME and, when it has settings of its own, writes
// them into bagpipe.yaml, whose comments stay, and commits that.
func (e *Engine) AddCollection(ctx context.Context, name layout.Name, c Collection) error {
	s := e.current().settings
	if _, there := s.Collections[string(name)]; there {
		return fmt.Errorf("collection %s is in %s already; edit it there", name, layout.SettingsFile)
	}
	workflow := e.current().workflows[firstOf(c.Workflow, s.Defaults.Workflow)]
	if workflow == nil {
		return fmt.Errorf("no workflow %q; bagpipe workflow list shows them", firstOf(c.Workflow, s.Defaults.Workflow))
	}
	for _, a := range c.Approvals {
		if step := workflow.def.Step(layout.Name(a)); step == nil || !step.OnRequest {
			return fmt.Errorf("workflow %s has no step %q with onRequest: true", workflow.def.Name, a)
		}
	}
	v, err := e.store.Tip()
	if err != nil {
		return err
	}
	was, err := v.ReadFile(layout.SettingsFile)
	if err != nil {
		return err
	}
	now, err := withCollection(was, name, c)
	if err != nil {
		return fmt.Errorf("write collection %s into %s: %w", name, layout.SettingsFile, err)
	}
	if err := e.putSetting(ctx, layout.SettingsFile, was, now, "collection "+string(name)+" in"); err != nil {
		return err
	}
	if err := disk.MkdirAll(e.path(layout.InboxDir+"/"+string(name)), 0o777); err != nil {
		return err
	}
	return e.syncSettings(ctx)
}

// withCollection adds a collection to the text of bagpipe.yaml.
func withCollection(text []byte, name layout.Name, c Collection) ([]byte, error) {
	entry := map[string]any{}
	if c.Workflow != "" {
		entry["workflow"] = c.Workflow
	}
	if c.Lane != "" {
		entry["lane"] = c.Lane
	}
	if len(c.Approvals) > 0 {
		entry["approvals"] = c.Approvals
	}
	settings, err := ParseSettings(layout.SettingsFile, text)
	if err != nil {
		return nil, err
	}
	where, add := "$.collections", map[string]any{string(name): entry}
	if settings.Collections == nil {
		where, add = "$", map[string]any{"collections": add}
	}
	f, err := parser.ParseBytes(text, parser.ParseComments)
	if err != nil {
		return nil, err
	}
	path, err := yaml.PathString(where)
	if err != nil {
		return nil, err
	}
	fragment, err := yaml.Marshal(add)
	if err != nil {
		return nil, err
	}
	if err := path.MergeFromReader(f, bytes.NewReader(fragment)); err != nil {
		return nil, err
	}
	out := append(bytes.TrimRight([]byte(f.String()), "\n"), '\n')
	_, err = ParseSettings(layout.SettingsFile, out)
	return out, err
}
