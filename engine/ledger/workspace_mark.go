package ledger

import (
	"context"
	"errors"
	"fmt"

	"bagpipe/engine/gitstore"
	"bagpipe/layout"
)

// Mark gives the workspace's mark, drawn and committed where an earlier version made the
// workspace. A file that somebody spoiled or removed is made anew by what stood there before.
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
	if err == nil && w.Mark != "" || newer(err) {
		return w.Mark, err
	}
	before, by, err := lastMarked(ctx, l, v)
	if err != nil {
		return "", err
	}
	if before.Mark == "" {
		if before.Mark, err = layout.NewMark(l.Random); err != nil {
			return "", err
		}
	}
	who := l.ByEngine()
	_, err = l.Store.Commit(ctx, func(r gitstore.Reader) (*gitstore.Change, error) {
		if w, err = readWorkspace(r); err == nil && w.Mark != "" || newer(err) {
			return nil, err
		}
		w = before
		data, err := w.Encode()
		if err != nil {
			return nil, err
		}
		return &gitstore.Change{Files: map[string][]byte{layout.WorkspaceFile: data}, Author: who.Author,
			Message: Message("control: marked the workspace", "", []Trailer{{"Bagpipe-Agent", who.Agent}})}, nil
	})
	if err == nil && by != "" {
		l.Warn(fmt.Sprintf("%s was spoiled by %s; it is as it was before", layout.WorkspaceFile, by))
	}
	return w.Mark, err
}

// LookAtMark reads the workspace's mark anew, and mends the file: a join may have brought one that was spoiled.
func LookAtMark(ctx context.Context, l *Ledger) error {
	l.mark.Store(nil)
	_, err := l.Mark(ctx)
	return err
}

// newer reports whether a file is of a later version of the program, and to be left alone.
func newer(err error) bool {
	var schema *layout.SchemaError
	return errors.As(err, &schema)
}

// lastMarked gives the workspace's file as it last was sound, and which commit spoiled it; the zero
// Workspace where none ever was.
func lastMarked(ctx context.Context, l *Ledger, v gitstore.View) (w layout.Workspace, by string, err error) {
	for c, err := range l.Store.History(ctx, gitstore.HistoryOptions{Path: layout.WorkspaceFile, From: v.Commit()}) {
		if err != nil {
			return w, "", fmt.Errorf("look for a sound version of %s: %w", layout.WorkspaceFile, err)
		}
		at, err := l.Store.At(c.Hash)
		if err != nil {
			return w, "", err
		}
		if found, err := readWorkspace(at); err == nil && found.Mark != "" {
			return found, by, nil
		}
		by = fmt.Sprintf("commit %.12s of %s", c.Hash, Printable(c.Author.Name))
	}
	return w, "", nil
}

func readWorkspace(r gitstore.Reader) (w layout.Workspace, err error) {
	data, err := ReadOptional(r, layout.WorkspaceFile)
	if err != nil || data == nil {
		return w, err
	}
	return layout.DecodeWorkspace(data)
}
