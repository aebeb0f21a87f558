package engine

import (
	"context"
	"errors"
	"io/fs"

	"bagpipe/engine/gitstore"
	"bagpipe/engine/state"
	"bagpipe/layout"
)

// registerItem commits a new item: what it is, its workflow with the first step
// completed, and, once for good, the definition it was started with. guard may refuse
// it, by what stands at the tip, or say more of it; nil: nothing does.
func (e *Engine) registerItem(ctx context.Context, m layout.Manifest, f *workflowFile, skip map[layout.Name]string, who actor, guard func(gitstore.Reader, *layout.Manifest) error) error {
	d := f.def
	workflow := d.Name + ".1"
	now, parent := e.o.Now(), ""
	if m.Parent != nil {
		parent = string(m.Parent.Item)
	}
	return e.transact(ctx, m.Item, func(r gitstore.Reader) (*gitstore.Change, error) {
		m := m // of this try
		if guard != nil {
			if err := guard(r, &m); err != nil {
				return nil, err
			}
		}
		record := layout.ItemDir(m.Item) + "/" + layout.ExecutionJSON
		if _, err := r.ReadFile(record); !errors.Is(err, fs.ErrNotExist) {
			return nil, err // an item already: begun anew, it would lose what was done
		}
		x := &state.Execution{Item: m.Item}
		tr, err := state.Apply(x, d, state.Start{Workflow: workflow, Attempt: layout.AttemptKey{N: 1, Engine: e.id},
			At: now, Runner: e.runner(), Skip: skip})
		if err != nil {
			return nil, err
		}
		manifest, err := m.Encode(nil)
		if err != nil {
			return nil, err
		}
		dir := layout.ItemDir(m.Item) + "/"
		files := map[string][]byte{dir + layout.ManifestJSON: manifest, dir + layout.ExecutionJSON: x.Encode()}
		if err := errors.Join(pin(r, f, files), e.openBatch(r, layout.Name(m.Batch), m.Source.By, files)); err != nil {
			return nil, err
		}
		return &gitstore.Change{Files: files, Author: who.author,
			Message: stepMessage(m.Item, m, tr, "", who.agent,
				trailer{"Bagpipe-Definition", d.Digest}, trailer{"Bagpipe-Source", m.Source.Digest}, trailer{"Bagpipe-Batch", m.Batch}, trailer{"Bagpipe-Duplicate-Of", string(m.Source.DuplicateOf)},
				trailer{"Bagpipe-Parent", parent})}, nil
	})
}
