package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"bagpipe/engine/inbox"
	"bagpipe/engine/recognise"
	"bagpipe/engine/state"
	"bagpipe/layout"
)

// admission is what recognition decided for a drop.
type admission struct {
	kind       string
	rule       string
	lane       string
	collection layout.Name // of the item
	workflow   *workflowFile
	skip       map[layout.Name]string
	outcome    *recognise.Outcome
}

// plan recognises a drop; refusal says why it cannot be admitted.
func (e *Engine) plan(ctx context.Context, t inbox.Taken) (p admission, refusal string, err error) {
	c := e.current()
	asked := e.candidate(t.Path, t.Name, t.Collection, t.Origin)
	o, err := c.book.Recognise(ctx, asked, recognise.Options{Limits: c.settings.limits()})
	if isRuleFile(err) {
		return p, err.Error(), nil
	}
	if err != nil {
		return p, "", err
	}
	if t.Ticket.Chosen { // what a person says comes before what a rule says
		o.Collection = ""
	}
	p.kind, p.rule, p.outcome = o.Kind, o.Rule, o
	if o.Refused != "" && (t.Ticket.Workflow == "" || o.Rule != "") {
		return p, o.Refused, nil
	}
	p.collection = layout.Name(cmp.Or(string(o.Collection), string(t.Collection)))
	if o.Collection != "" && !e.isCollection(c.settings, string(o.Collection)) {
		return p, fmt.Sprintf("no collection %q; rule %s names it; bagpipe collection add %s makes it", o.Collection, o.Rule, o.Collection), nil
	}
	collection := c.settings.collection(p.collection)
	name := cmp.Or(string(t.Ticket.Workflow), o.Workflow, collection.Workflow)
	p.lane = cmp.Or(string(t.Ticket.Lane), o.Lane, collection.Lane)
	if p.workflow = c.workflows[name]; p.workflow == nil {
		return p, fmt.Sprintf("no workflow %q in workflows/; it is named by the rule, the collection or the defaults in bagpipe.yaml", name), nil
	}
	p.skip = notAsked(p.workflow.def, p.collection, collection.Approvals)
	return p, "", nil
}

// candidate is what the rules are asked of; dropped is where it lies, or lay, in the
// inbox, if it does.
func (e *Engine) candidate(path, name string, collection layout.Name, dropped string) recognise.Candidate {
	c := recognise.Candidate{Path: path, Name: name, Collection: collection, Inbox: e.path(layout.InboxDir + "/" + string(collection))}
	if dir := filepath.Dir(dropped); dropped != "" && filepath.Dir(dir) == c.Inbox && e.current().settings.drops(collection).Batches == batchFolders {
		c.Batch = dir
	}
	return c
}

func isRuleFile(err error) bool {
	var fe *layout.FileError
	return errors.As(err, &fe)
}

// describe adds to the manifest of a new item what was recognised. What is known of
// it already stays.
func (p *admission) describe(m *layout.Manifest) {
	o := p.outcome
	if o == nil {
		return
	}
	m.Type, m.Recognition = cmp.Or(m.Type, o.Type), o.Manifest()
	for key, value := range o.Identifiers {
		if m.Identifiers == nil {
			m.Identifiers = map[string]string{}
		}
		if _, known := m.Identifiers[key]; !known {
			m.Identifiers[key] = value
		}
	}
	if len(o.Metadata) == 0 {
		return
	}
	all := maps.Clone(o.Metadata)
	maps.Copy(all, m.Metadata)
	m.Metadata = all
}

// keepBack takes out of what has settled what must not be taken in yet, as its rule
// file is broken, or the lists keep it out.
func (e *Engine) keepBack(settled []inbox.Drop, waiting []inbox.Waiting) ([]inbox.Drop, []inbox.Waiting) {
	look := e.current().book.Look()
	free := make([]inbox.Drop, 0, len(settled))
	for _, d := range settled {
		c := e.candidate(d.Path, d.Name, d.Collection, d.Path)
		c.File = d.Kind == inbox.File || d.IsSet()
		if d.IsSet() { // its name is that of no file
			c.Name = filepath.Base(d.Path)
		}
		if why := look.Waits(c); why != "" {
			waiting = append(waiting, inbox.Waiting{Drop: d, Reason: why})
			continue
		}
		free = append(free, d)
	}
	return free, waiting
}

// checkRuleFile refuses to take in what the inbox would keep back.
func (e *Engine) checkRuleFile(path string, collection layout.Name) error {
	why := e.current().book.Waits(e.candidate(path, filepath.Base(path), collection, ""))
	if why == "" {
		return nil
	}
	return fmt.Errorf("%s %s", layout.EncodePath(filepath.Base(path)), why)
}

// Recognised is what would become of a path.
type Recognised struct {
	Path     string   `json:"path"`
	Together []string `json:"together,omitempty"` // the files that it would be taken in with, and the path is one of
	recognise.Outcome
	Held string `json:"held,omitempty"` // why it would not be taken in yet

	Objects []ExplainedObject `json:"objects,omitempty"` // that lie side by side in it
	Left    []string          `json:"left,omitempty"`    // files beside them that belong to none
	Lane    string            `json:"lane,omitempty"`
}

// Recognise tells what the rules make of a path, which it only reads, were it dropped
// into inbox/COLLECTION. More are rule files to be asked as if they were in rules/,
// in the place of those of the same name.
func (e *Engine) Recognise(ctx context.Context, path string, collection layout.Name, more []*RuleFile) (Recognised, error) {
	x := Recognised{Path: layout.EncodePath(path)}
	if err := e.checkCollection(collection); err != nil {
		return x, err
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return x, err
	}
	if _, err := os.Lstat(abs); errors.Is(err, fs.ErrNotExist) {
		return x, fmt.Errorf("%s is not there", layout.EncodePath(path))
	}
	c := *e.current()
	c.rules = slices.Concat(slices.DeleteFunc(slices.Clone(c.rules), func(f *RuleFile) bool {
		return slices.ContainsFunc(more, func(m *RuleFile) bool { return m.Name == f.Name })
	}), more)
	c.makeBook()
	name := filepath.Base(abs)
	asked := e.candidate(abs, name, collection, abs)
	x.Held = c.book.Waits(asked)
	set, err := e.looseSet(ctx, c.book, abs, collection)
	if err != nil {
		return x, err
	}
	if set != nil {
		name, asked.Name, asked.Path, asked.Files = set.Name, set.Name, filepath.Dir(abs), set.Files
		x.Together = encodePaths(set.Files)
	}
	o, err := c.book.Recognise(ctx, asked, recognise.Options{Limits: c.settings.limits()})
	if isRuleFile(err) { // no rule was asked
		x.Outcome = recognise.Outcome{Verdict: recognise.Unknown, Tried: []recognise.Trial{}}
		return x, nil
	}
	if err != nil {
		return x, err
	}
	x.Outcome = *o
	if _, several := o.Metadata[recognise.ObjectCount]; several {
		if err := x.part(ctx, &c, asked); err != nil {
			return x, err
		}
	}
	if o.Refused != "" {
		return x, nil
	}
	s := c.settings.collection(layout.Name(cmp.Or(string(o.Collection), string(collection))))
	x.Collection = layout.Name(cmp.Or(string(o.Collection), string(collection)))
	x.Workflow, x.Lane = cmp.Or(o.Workflow, s.Workflow), cmp.Or(o.Lane, s.Lane)
	x.Label = cmp.Or(o.Label, layout.EncodePath(name))
	return x, nil
}

// ExplainedObject is one of several objects in a drop.
type ExplainedObject struct {
	Object string   `json:"object"` // percent-encoded, as the files are
	Files  []string `json:"files"`
}

// part tells which files belong to which of the objects.
func (x *Recognised) part(ctx context.Context, c *config, asked recognise.Candidate) error {
	parted, err := c.book.Objects(ctx, asked, x.Rule, recognise.Options{Limits: c.settings.limits()})
	if err != nil {
		return err
	}
	for _, o := range parted.Objects {
		x.Objects = append(x.Objects, ExplainedObject{layout.EncodePath(o.Name), encodePaths(o.Files)})
	}
	x.Left = encodePaths(parted.Left)
	return nil
}

func encodePaths(names []string) (out []string) {
	for _, name := range names {
		out = append(out, layout.EncodePath(name))
	}
	return out
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
