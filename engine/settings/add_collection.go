package settings

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"bagpipe/engine/fault"
	"bagpipe/layout"
	"bagpipe/layout/disk"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/parser"
)

// CheckCollection refuses what is no collection: a slip of the pen would pass its approvals by.
func (so *Source) CheckCollection(name layout.Name) error {
	if so.IsCollection(so.Current().Settings, string(name)) {
		return nil
	}
	return fault.New(fault.NotFound, fmt.Sprintf("no collection %q", name), fault.Remedy{Verb: fault.ListCollections}, fault.Remedy{Verb: fault.AddCollection, Name: string(name)})
}

// IsCollection reports whether there is such a collection.
func (so *Source) IsCollection(s *Settings, name string) bool { return so.check.isCollection(s, name) }

// AddCollection makes inbox/NAME and, when it has settings of its own, writes
// them into bagpipe.yaml, whose comments stay, and commits that.
func (so *Source) AddCollection(ctx context.Context, name layout.Name, c Collection) error {
	s := so.Current().Settings
	if _, there := s.Collections[string(name)]; there {
		return fmt.Errorf("collection %s is in %s already; edit it there", name, layout.SettingsFile)
	}
	workflow := so.Current().Workflows[cmp.Or(c.Workflow, s.Defaults.Workflow)]
	if workflow == nil {
		return fault.New(fault.NotFound, fmt.Sprintf("no workflow %q", cmp.Or(c.Workflow, s.Defaults.Workflow)), fault.Remedy{Verb: fault.ListWorkflows})
	}
	for _, a := range c.Approvals {
		if step := workflow.Def.Step(layout.Name(a)); step == nil || !step.OnRequest {
			return fmt.Errorf("workflow %s has no step %q with onRequest: true", workflow.Def.Name, a)
		}
	}
	if err := s.CheckLane(c.Lane); err != nil {
		return err
	}
	v, err := so.ledger.Store.Tip()
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
	if err := so.PutSetting(ctx, layout.SettingsFile, was, now, "collection "+string(name)+" in"); err != nil {
		return err
	}
	if err := disk.MkdirAll(so.ledger.Path(layout.InboxDir+"/"+string(name)), 0o777); err != nil {
		return err
	}
	return so.Sync(ctx)
}

// withCollection adds a collection to the text of bagpipe.yaml: by a few lines
// below collections:, so that the rest stays as people wrote it, or, where it is
// not written as a block, through the parsed document.
func withCollection(text []byte, name layout.Name, c Collection) ([]byte, error) {
	settings, err := ParseSettings(layout.SettingsFile, text)
	if err != nil {
		return nil, err
	}
	out, ok := insertCollection(string(text), name, c)
	if !ok {
		if out, err = mergeCollection(text, name, c, settings.Collections == nil); err != nil {
			return nil, err
		}
	}
	got, err := ParseSettings(layout.SettingsFile, []byte(out))
	if err != nil || len(got.Collections) != len(settings.Collections)+1 {
		return nil, errors.New("collections: is not written as a block with one name a line; add the collection by hand")
	}
	return []byte(out), nil
}

// insertCollection finds the block below collections: and adds to its end.
func insertCollection(text string, name layout.Name, c Collection) (string, bool) {
	lines := strings.SplitAfter(strings.TrimRight(text, "\n")+"\n", "\n")
	at, last := -1, -1
	for i, l := range lines {
		switch {
		case at < 0:
			if key, _, _ := strings.Cut(l, "#"); strings.TrimRight(key, " \n") == "collections:" {
				at, last = i, i
			}
		case strings.HasPrefix(l, "  "):
			last = i
		case strings.TrimSpace(l) != "" && !strings.HasPrefix(l, "#"):
			return insertLines(lines, last+1, name, c), last > at
		}
	}
	return insertLines(lines, last+1, name, c), last > at && at >= 0
}

func insertLines(lines []string, at int, name layout.Name, c Collection) string {
	add := "  " + yamlKey(string(name)) + ":"
	for _, kv := range [][2]string{{"workflow", c.Workflow}, {"lane", c.Lane}} {
		if kv[1] != "" {
			add += "\n    " + kv[0] + ": " + kv[1]
		}
	}
	if len(c.Approvals) > 0 {
		add += "\n    approvals: [" + strings.Join(c.Approvals, ", ") + "]"
	}
	if !strings.Contains(add, "\n") {
		add += " {}"
	}
	return strings.Join(slices.Insert(slices.Clone(lines), at, add+"\n"), "")
}

// yamlKey quotes a name that YAML would read as something else than text, such
// as null or 1894.
func yamlKey(name string) string {
	var v any
	if err := yaml.Unmarshal([]byte(name), &v); err == nil {
		if _, ok := v.(string); ok {
			return name
		}
	}
	return strconv.Quote(name)
}

func mergeCollection(text []byte, name layout.Name, c Collection, first bool) (string, error) {
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
	where, add := "$.collections", map[string]any{string(name): entry}
	if first {
		where, add = "$", map[string]any{"collections": add}
	}
	f, err := parser.ParseBytes(text, parser.ParseComments)
	if err != nil {
		return "", err
	}
	path, err := yaml.PathString(where)
	if err != nil {
		return "", err
	}
	fragment, err := yaml.Marshal(add)
	if err != nil {
		return "", err
	}
	if err := path.MergeFromReader(f, bytes.NewReader(fragment)); err != nil {
		return "", err
	}
	return strings.TrimRight(f.String(), "\n") + "\n", nil
}
