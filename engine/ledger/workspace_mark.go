package ledger

import (
	"context"

	"bagpipe/engine/gitstore"
	"bagpipe/layout"
)

// Mark gives the workspace's mark, drawn and committed where an earlier version made the
// workspace.
func (l *Ledger) Mark(ctx context.Context) (mark layout.Mark, err error) {
	if m := l.mark.Load(); m != nil {
		return *m, nil
	}
	defer func() {
		if err == nil {
			l.mark.Store(&mark) // it never changes
		}
	}()
	v, err := l.Store.Tip()
	if err != nil {
		return "", err
	}
	w, err := readWorkspace(v)
	if err != nil || w.Mark != "" {
		return w.Mark, err
	}
	drawn, err := layout.NewMark(l.Random)
	if err != nil {
		return "", err
	}
	who := l.ByEngine()
	_, err = l.Store.Commit(ctx, func(r gitstore.Reader) (*gitstore.Change, error) {
		if w, err = readWorkspace(r); err != nil || w.Mark != "" {
			return nil, err
		}
		w.Mark = drawn
		data, err := w.Encode()
		if err != nil {
			return nil, err
		}
		return &gitstore.Change{Files: map[string][]byte{layout.WorkspaceFile: data}, Author: who.Author,
			Message: Message("control: marked the workspace", "", []Trailer{{"Bagpipe-Agent", who.Agent}})}, nil
	})
	return w.Mark, err
}

func readWorkspace(r gitstore.Reader) (w layout.Workspace, err error) {
	data, err := ReadOptional(r, layout.WorkspaceFile)
	if err != nil || data == nil {
		return w, err
	}
	return layout.DecodeWorkspace(data)
}
