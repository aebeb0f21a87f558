package engine

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"

	"bagpipe/bags"
	"bagpipe/engine/inbox"
	"bagpipe/engine/state"
	"bagpipe/layout"
)

// admission is what recognition decided for a drop.
type admission struct {
	kind     string
	rule     string
	lane     string
	workflow *workflowFile
	skip     map[layout.Name]string
}

// plan recognises a drop; refusal says why it cannot be admitted.
func (e *Engine) plan(t inbox.Taken) (p admission, refusal string, err error) {
	c := e.current()
	if p.kind, err = kindOf(t.Path); err != nil {
		return p, "", fmt.Errorf("recognise %s: %w", layout.EncodePath(t.Name), err)
	}
	rule, where := recognise(c.rules, t.Collection, p.kind, t.Name)
	if rule == nil && t.Ticket.Workflow == "" {
		return p, "no rule in rules/ fits this drop", nil
	}
	if rule == nil {
		rule = &Rule{}
	}
	p.rule = where
	collection := c.settings.collection(t.Collection)
	name := firstOf(string(t.Ticket.Workflow), rule.Workflow, collection.Workflow)
	p.lane = firstOf(string(t.Ticket.Lane), rule.Lane, collection.Lane)
	if p.workflow = c.workflows[name]; p.workflow == nil {
		return p, fmt.Sprintf("no workflow %q in workflows/; it is named by the rule, the collection or the defaults in bagpipe.yaml", name), nil
	}
	p.skip = notAsked(p.workflow.def, t.Collection, collection.Approvals)
	return p, "", nil
}

func firstOf(words ...string) string {
	for _, w := range words {
		if w != "" {
			return w
		}
	}
	return ""
}

// notAsked lists the steps that are done on request only and that the collection
// does not ask for.
func notAsked(d *state.Definition, collection layout.Name, approvals []string) map[layout.Name]string {
	var skip map[layout.Name]string
	for _, s := range d.Steps {
		if !s.OnRequest || slices.Contains(approvals, s.Name) {
			continue
		}
		if skip == nil {
			skip = map[layout.Name]string{}
		}
		skip[layout.Name(s.Name)] = fmt.Sprintf("collection %s does not ask for %s (approvals: in bagpipe.yaml)", collection, s.Name)
	}
	return skip
}

// kindOf tells a folder, a bag, an archive and any other file apart.
func kindOf(path string) (string, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return "", err
	}
	if info.IsDir() {
		if _, err := os.Lstat(filepath.Join(path, "bagit.txt")); err == nil {
			return KindBag, nil
		}
		return KindFolder, nil
	}
	format, err := bags.Sniff(path)
	if err != nil {
		return "", err
	}
	if format != bags.None {
		return KindArchive, nil
	}
	return KindFile, nil
}

func (m Match) fits(collection layout.Name, kind, name string) bool {
	if m.Collection != "" && m.Collection != string(collection) || m.Kind != "" && m.Kind != kind {
		return false
	}
	if m.Name == "" {
		return true
	}
	ok, _ := path.Match(m.Name, name) // the pattern was checked
	return ok
}

// recognise finds the first rule that fits; nil when none does.
func recognise(files []*RuleFile, collection layout.Name, kind, name string) (rule *Rule, where string) {
	for _, f := range files {
		for i := range f.Rules {
			if f.Rules[i].Match.fits(collection, kind, name) {
				return &f.Rules[i], f.Name + "/" + f.Rules[i].Name
			}
		}
	}
	return nil, ""
}
