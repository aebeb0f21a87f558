package ledger

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"bagpipe/engine/fault"
	"bagpipe/engine/gitstore"
	"bagpipe/engine/state"
	"bagpipe/layout"
)

// NoItem is the error of an item that is not in the workspace.
func NoItem(ref string) error {
	return fault.New(fault.NotFound, fmt.Sprintf("no item %q: give an identifier, the beginning of one, or a label", ref), fault.Remedy{Verb: fault.ListItems})
}

// NoInstance is the error of a workflow that an item has not.
func NoInstance(id layout.ItemID, workflow string) error {
	return fault.New(fault.NotFound, fmt.Sprintf("item %s has no workflow %s", id.Short(), workflow), fault.Remedy{Verb: fault.Show, Item: id})
}

// NoWorkflow is the error of a workflow without a definition.
func NoWorkflow(name string) error {
	return fault.New(fault.NotFound, fmt.Sprintf("no workflow %q in %s/", name, layout.WorkflowsDir), fault.Remedy{Verb: fault.ListWorkflows})
}

// Record is one item as it stands at the tip, ready to be changed.
type Record struct {
	Committed Records // of which the manifest and the execution were read
	Execution *state.Execution
	Manifest  layout.Manifest
	Plan      *state.Definition // of the workflow instance asked for; nil without one
	At        gitstore.Reader   // where it was read
}

// ReadTip is read at the tip, which it gives, too.
func (l *Ledger) ReadTip(id layout.ItemID, workflow string) (gitstore.View, *Record, error) {
	v, err := l.Store.Tip()
	if err != nil {
		return v, nil, err
	}
	rec, err := l.Read(v, id, workflow)
	return v, rec, err
}

// Read loads an item; workflow may be "" for events of the item as a whole.
func (l *Ledger) Read(r gitstore.Reader, id layout.ItemID, workflow string) (*Record, error) {
	dir := layout.ItemDir(id)
	data, err := r.ReadFile(dir + "/" + layout.ExecutionJSON)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, NoRecords(r, id)
	}
	if err != nil {
		return nil, fmt.Errorf("read item %s: %w", id, err)
	}
	rec := &Record{At: r, Committed: Records{Execution: data}}
	if rec.Execution, err = l.Decoded.Take(id, data); err != nil {
		return nil, fmt.Errorf("item %s: %w", id, err)
	}
	if rec.Committed.Manifest, err = r.ReadFile(dir + "/" + layout.ManifestJSON); err != nil {
		return nil, fmt.Errorf("item %s: read %s: %w", id, layout.ManifestJSON, err)
	}
	if rec.Manifest, err = l.Decoded.DecodeManifest(id, rec.Committed.Manifest); err != nil {
		return nil, fmt.Errorf("item %s: %w", id, err)
	}
	rec.Execution.Manifest, rec.Execution.Since, rec.Execution.Around = rec.Committed.Manifest, rec.Manifest.Since, l.around(id)
	rec.Execution.Site, rec.Execution.Bare = l.Site, rec.Manifest.Source.Bare()
	for name, w := range rec.Execution.Workflows {
		plan, err := l.PinnedPlan(r, w.Digest)
		if err != nil {
			return nil, fmt.Errorf("item %s: %w", id, err)
		}
		rec.Execution.Compute(name, plan)
		if name == workflow {
			rec.Plan = plan
		}
	}
	if workflow != "" && rec.Plan == nil {
		return nil, NoInstance(id, workflow)
	}
	return rec, nil
}

// Actor is who causes a transition.
type Actor struct {
	Author gitstore.Signature
	Agent  string // the Bagpipe-Agent trailer
	// Request is the Bagpipe-Request trailer: the digests of a call's key and body, by which
	// the call is known when it comes again; "": there is no key.
	Request string
	// Version is the Bagpipe-Robot-Version trailer: of a robot that is not of this program; "": it is, or says none.
	Version string
}

func (l *Ledger) ByRobot(step layout.Name) Actor {
	return Actor{
		Author: gitstore.Signature{Name: string(step), Email: "robot@" + l.Host.Name},
		Agent:  string(step) + " " + l.Runner(),
	}
}

func (l *Ledger) ByEngine() Actor {
	return Actor{Author: gitstore.Signature{Name: "Bagpipe", Email: "bagpipe@" + l.Host.Name}, Agent: "bagpipe " + l.Runner()}
}

// Step makes one event happen to one step of an item and commits it. event is
// formed on the item as it is at the tip, again when another writer was faster;
// more may change further files of the item in the same commit.
func (l *Ledger) Step(ctx context.Context, id layout.ItemID, workflow string, who Actor, text string,
	event func(*Record) (state.Event, error), more func(*Record, map[string][]byte) error,
) (state.Transition, error) {
	return l.StepThen(ctx, id, workflow, who, text, event, more, nil)
}

// Follow is a transition that another one brings about.
type Follow struct {
	Who   Actor
	Text  string
	Event state.Event
	More  func(*Record, map[string][]byte) error // changes further files in the same commit; nil: none
	Made  func()                                 // called when its commit is in a group, which may be begun again; nil: nobody asks
}

// StepThen is Step, and then what follows on it in the same workflow: a commit each, of the same
// group, so that the item is written once and takes no further turn of the queue. then is asked
// after each transition, with the item as that left it and the workflow, until it answers nil; it
// must be quick.
func (l *Ledger) StepThen(ctx context.Context, id layout.ItemID, workflow string, who Actor, text string,
	event func(*Record) (state.Event, error), more func(*Record, map[string][]byte) error, then func(*Record, string) *Follow,
) (tr state.Transition, err error) {
	err = l.Transact(ctx, id, func(r gitstore.Reader) (*gitstore.Change, error) {
		rec, err := l.Read(r, id, workflow)
		if err != nil {
			return nil, err
		}
		ev, err := event(rec)
		if err != nil {
			return nil, err
		}
		var c *gitstore.Change
		c, tr, err = apply(l, rec, ev, who, text, more, then)
		return c, err
	})
	if err == nil {
		l.Log.Debug("transition", "item", id, "workflow", workflow, "step", tr.Step, "from", tr.From, "to", tr.To, "attempt", tr.Attempt.String())
	}
	return tr, err
}

// apply applies an event to a record, which is no more the caller's.
func apply(l *Ledger, rec *Record, ev state.Event, who Actor, text string, more func(*Record, map[string][]byte) error,
	then func(*Record, string) *Follow,
) (*gitstore.Change, state.Transition, error) {
	tr, err := state.Apply(rec.Execution, rec.Plan, ev)
	if err != nil {
		return nil, tr, err
	}
	id := rec.Execution.Item
	dir := layout.ItemDir(id) + "/"
	data := rec.Execution.Encode()
	c := &gitstore.Change{Files: map[string][]byte{dir + layout.ExecutionJSON: data}, Author: who.Author}
	if more != nil {
		if err := more(rec, c.Files); err != nil {
			return nil, tr, err
		}
	}
	if then != nil {
		if f := then(rec, tr.Workflow); f != nil {
			if len(c.Files) > 1 { // asked again at its turn: the manifest may be another then
				f = nil
			}
			c.Next = follow(l, id, tr.Workflow, then, f)
		}
	}
	l.Decoded.Keep(id, data, rec.Execution)
	c.Message = who.Sign(StepMessage(id, rec.Manifest, tr, text, who.Agent, Trailer{"Bagpipe-Robot-Version", who.Version}))
	return c, tr, nil
}

// follow makes the commit of what follows on the last transition of a workflow: known, or, where that is nil, what then answers.
func follow(l *Ledger, id layout.ItemID, workflow string, then func(*Record, string) *Follow, known *Follow) func(gitstore.Reader) (*gitstore.Change, error) {
	return func(r gitstore.Reader) (*gitstore.Change, error) {
		rec, err := l.Read(r, id, workflow)
		if err != nil {
			return nil, err
		}
		f := known
		if f == nil {
			if f = then(rec, workflow); f == nil {
				return nil, nil
			}
		}
		c, tr, err := apply(l, rec, f.Event, f.Who, f.Text, f.More, then)
		if err == nil {
			c.Made = f.Made
			l.Log.Debug("transition", "item", id, "workflow", workflow, "step", tr.Step, "from", tr.From, "to", tr.To, "attempt", tr.Attempt.String())
		}
		return c, err
	}
}

// Merge lays new over old, object by object; null removes a key.
func Merge(old, new map[string]any) map[string]any {
	out := make(map[string]any, len(old)+len(new))
	for k, v := range old {
		out[k] = v
	}
	for k, v := range new {
		below, isObject := v.(map[string]any)
		was, wasObject := out[k].(map[string]any)
		switch {
		case v == nil:
			delete(out, k)
		case isObject && (wasObject || out[k] == nil):
			out[k] = Merge(was, below)
		default:
			out[k] = v
		}
	}
	return out
}
