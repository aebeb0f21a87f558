package ledger

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"bagpipe/engine/gitstore"
	"bagpipe/engine/state"
	"bagpipe/layout"
)

// Start puts a definition on an item. skip lists the steps that are not asked for.
func (l *Ledger) Start(ctx context.Context, id layout.ItemID, f *Definition, skip func(*Record) map[layout.Name]string, notBefore time.Time, startedBy string, who Actor) (instance string, err error) {
	workflow := f.Def.Name
	err = l.Transact(ctx, id, func(r gitstore.Reader) (*gitstore.Change, error) {
		rec, err := l.Read(r, id, "")
		if err != nil {
			return nil, err
		}
		x := rec.Execution
		_, last := state.Instance(x.Latest(workflow))
		instance = fmt.Sprintf("%s.%d", workflow, last+1)
		ev := state.Start{Workflow: instance, Attempt: x.NextKey(layout.Name(f.Def.Steps[0].Name), l.ID), At: l.Now(), NotBefore: notBefore,
			Skip: skip(rec), StartedBy: startedBy, Runner: l.Runner(), Version: l.Version}
		if startedBy == "" {
			ev.Runner, ev.Version, ev.By = "", "", who.Agent
		}
		tr, err := state.Apply(x, f.Def, ev)
		if err != nil {
			return nil, err
		}
		files := map[string][]byte{layout.ItemDir(id) + "/" + layout.ExecutionJSON: x.Encode()}
		if err := Pin(r, f, files); err != nil {
			return nil, err
		}
		text := ""
		if startedBy != "" {
			text = "started by " + startedBy
		}
		return &gitstore.Change{Files: files, Author: who.Author,
			Message: who.Sign(StepMessage(id, rec.Manifest, tr, text, who.Agent, Trailer{"Bagpipe-Definition", f.Def.Digest}))}, nil
	})
	return instance, err
}

// Pin adds the definition to a change, unless it has been committed before; a push
// may have put anything there.
func Pin(r gitstore.Reader, f *Definition, files map[string][]byte) error {
	p := layout.PinnedPath(f.Def.Digest)
	pinned, err := ReadOptional(r, p)
	if err == nil && !bytes.Equal(pinned, f.Data) {
		files[p] = f.Data
	}
	return err
}

// RegisterItem commits a new item: what it is, its workflow with the first step
// completed, and, once for good, the definition it was started with. guard may refuse
// it, by what stands at the tip, or say more of it; nil: nothing does.
func (l *Ledger) RegisterItem(ctx context.Context, m layout.Manifest, f *Definition, skip map[layout.Name]string, who Actor, guard func(gitstore.Reader, *layout.Manifest) error) error {
	d := f.Def
	workflow := d.Name + ".1"
	now, parent := l.Now(), ""
	if m.Parent != nil {
		parent = string(m.Parent.Item)
	}
	x := &state.Execution{Item: m.Item}
	tr, err := state.Apply(x, d, state.Start{Workflow: workflow, Attempt: layout.AttemptKey{N: 1, Engine: l.ID},
		At: now, Runner: l.Runner(), Version: l.Version, Skip: skip})
	if err != nil {
		return err
	}
	// What nothing at the tip changes is written here, where others do the same beside, and not one
	// after the other with the commits.
	execution := x.Encode()
	var manifest []byte
	if guard == nil {
		if manifest, err = m.Encode(nil); err != nil {
			return err
		}
	}
	return l.Transact(ctx, m.Item, func(r gitstore.Reader) (*gitstore.Change, error) {
		m, manifest := &m, manifest // of this try
		if guard != nil {
			told := *m
			err := guard(r, &told)
			if err == nil {
				manifest, err = told.Encode(nil)
			}
			if err != nil {
				return nil, err
			}
			m = &told
		}
		dir := layout.ItemDir(m.Item) + "/"
		if _, err := r.ReadFile(dir + layout.ExecutionJSON); !errors.Is(err, fs.ErrNotExist) {
			return nil, err // an item already: begun anew, it would lose what was done
		}
		l.Decoded.Keep(m.Item, execution, x) // the index reads it next
		files := map[string][]byte{dir + layout.ManifestJSON: manifest, dir + layout.ExecutionJSON: execution}
		if err := errors.Join(Pin(r, f, files), l.OpenBatch(r, layout.Name(m.Batch), m.Source.By, files)); err != nil {
			return nil, err
		}
		return &gitstore.Change{Files: files, Author: who.Author,
			Message: StepMessage(m.Item, *m, tr, "", who.Agent,
				Trailer{"Bagpipe-Definition", d.Digest}, Trailer{"Bagpipe-Source", m.Source.Digest}, Trailer{"Bagpipe-Batch", m.Batch}, Trailer{"Bagpipe-Duplicate-Of", string(m.Source.DuplicateOf)},
				Trailer{"Bagpipe-Parent", parent})}, nil
	})
}
