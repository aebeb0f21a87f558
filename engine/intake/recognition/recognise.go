package recognition

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"strings"

	"bagpipe/engine/inbox"
	"bagpipe/engine/ledger"
	"bagpipe/engine/recognise"
	"bagpipe/engine/settings"
	"bagpipe/layout"
)

// Admission is what recognition decided for a drop.
type Admission struct {
	Kind       string
	Rule       string
	Lane       string
	Collection layout.Name // of the item
	Workflow   *ledger.Definition
	Skip       map[layout.Name]string
	Outcome    *recognise.Outcome
}

// Plan recognises a drop; refusal says why it cannot be admitted. One that was found at some
// depth of another drop lay in the folders above.
func (re *Recogniser) Plan(ctx context.Context, t inbox.Taken, above ...recognise.Folder) (p Admission, refusal string, err error) {
	c := re.settings.Current()
	asked, how := re.Candidate(t.Path, t.Name, t.Collection, t.Origin), re.Asking(c.Settings)
	asked.Above, how.Within = append(above, asked.Above...), len(above) > 0
	o, err := c.Book.Recognise(ctx, asked, how)
	return re.admission(c, t, o, err)
}

// PlanInPlace is Plan of an object that stays where it is, below the root of a catalog. seen has read the
// rule files of the folders there; nil: they are read. told is what it recognised, which still holds; nil: the
// rules are asked. files are the names of those that are the object together, the one at its path first; nil: what is
// there is the object.
func (re *Recogniser) PlanInPlace(ctx context.Context, t inbox.Taken, files []string, root string, seen *recognise.Survey, told *recognise.Outcome) (p Admission, refusal string, err error) {
	c := re.settings.Current()
	if told != nil && seen.Of(c.Book) {
		return re.admission(c, t, told, nil)
	}
	asked := recognise.Candidate{Path: t.Path, Name: t.Name, Collection: t.Collection, Inbox: root, InPlace: true}
	if dir, err := filepath.Rel(root, filepath.Dir(t.Path)); err == nil {
		asked.Above = recognise.FoldersTo(root, dir)
	}
	if files != nil {
		asked.Path, asked.Files = filepath.Dir(t.Path), files
	}
	how := re.Asking(c.Settings)
	how.Particular = true
	ask := c.Book.Recognise
	if seen.Of(c.Book) {
		ask = seen.Recognise
	}
	o, err := ask(ctx, asked, how)
	return re.admission(c, t, o, err)
}

// NameOf is what files that lie side by side below the root of a catalog, and are one object, are called together.
func (re *Recogniser) NameOf(ctx context.Context, t inbox.Taken, root string, files []string) (string, error) {
	all := re.settings.Current().Book.Together(ctx, t.Collection, filepath.Dir(t.Path), root, files)
	if err := ctx.Err(); err != nil {
		return "", err
	}
	if len(all) > 0 && all[0].Files[0] == files[0] {
		return all[0].Name, nil
	}
	return cmp.Or(strings.TrimSuffix(files[0], filepath.Ext(files[0])), files[0]), nil
}

// admission says what becomes of a drop, by what was recognised.
func (re *Recogniser) admission(c *settings.Snapshot, t inbox.Taken, o *recognise.Outcome, err error) (p Admission, refusal string, _ error) {
	if IsRuleFile(err) {
		return p, err.Error(), nil
	}
	if err != nil {
		return p, "", err
	}
	if t.Ticket.Chosen { // what a person says comes before what a rule says
		o.Collection = ""
	}
	p.Kind, p.Rule, p.Outcome = o.Kind, o.Rule, o
	if o.Refused != "" && (t.Ticket.Workflow == "" || o.Rule != "") {
		return p, o.Refused, nil
	}
	p.Collection = layout.Name(cmp.Or(string(o.Collection), string(t.Collection)))
	if o.Collection != "" && !re.settings.IsCollection(c.Settings, string(o.Collection)) {
		return p, fmt.Sprintf("no collection %q, which rule %s names; add the collection first", o.Collection, o.Rule), nil
	}
	collection := c.Settings.Collection(p.Collection)
	name := cmp.Or(string(t.Ticket.Workflow), o.Workflow, collection.Workflow)
	p.Lane = cmp.Or(string(t.Ticket.Lane), o.Lane, collection.Lane)
	if p.Workflow = c.Workflows[name]; name == "" {
		return p, "has no workflow: neither its rule, nor its collection, nor defaults: in bagpipe.yaml names one", nil
	} else if p.Workflow == nil {
		return p, fmt.Sprintf("no workflow %q in workflows/; it is named by the rule, the collection or the defaults in bagpipe.yaml", name), nil
	}
	p.Skip = settings.NotAsked(p.Workflow.Def, p.Collection, collection.Approvals)
	return p, "", nil
}

// Candidate is what the rules are asked of; dropped is where it lies, or lay, in the
// inbox, if it does.
func (re *Recogniser) Candidate(path, name string, collection layout.Name, dropped string) recognise.Candidate {
	c := recognise.Candidate{Path: path, Name: name, Collection: collection, Inbox: re.ledger.Path(layout.InboxDir + "/" + string(collection))}
	if dir := filepath.Dir(dropped); dropped != "" && filepath.Dir(dir) == c.Inbox && re.settings.Current().Settings.Drops(collection).Batches == settings.BatchFolders {
		c.Above = []recognise.Folder{{Path: dir, Name: filepath.Base(dir)}}
	}
	return c
}

func IsRuleFile(err error) bool {
	var fe *layout.FileError
	return errors.As(err, &fe)
}

// Describe adds to the manifest of a new item what was recognised. What is known of
// it already stays.
func (p *Admission) Describe(m *layout.Manifest) {
	o := p.Outcome
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

// CheckRuleFile refuses to take in what the inbox would keep back.
func (re *Recogniser) CheckRuleFile(path string, collection layout.Name) error {
	why := re.settings.Current().Book.Waits(re.Candidate(path, filepath.Base(path), collection, ""))
	if why == "" {
		return nil
	}
	return fmt.Errorf("%s %s", layout.EncodePath(filepath.Base(path)), why)
}
