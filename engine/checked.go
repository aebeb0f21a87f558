package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"bagpipe/engine/gitstore"
	"bagpipe/layout"
)

// checkedFile names the commit up to which everything others committed has been
// looked at.
const checkedFile = layout.StateDir + "/checked"

// openArrivals notes what came since the last look, at Open.
func (e *Engine) openArrivals() error {
	a := &e.arrivals
	v, err := e.store.Tip()
	if err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.tip = v.Commit()
	a.saved = e.readChecked()
	if a.saved == a.tip {
		return nil
	}
	from := a.saved
	if from.IsZero() {
		if from, err = e.lastOwnCommit(v.Commit()); err != nil || from == a.tip {
			return err
		}
	}
	a.windows = append([]window{{from, a.tip}}, a.windows...)
	a.unlisted = true
	return nil
}

// readChecked gives zero when the file is not there, damaged, or names a commit
// this repository has not.
func (e *Engine) readChecked() gitstore.Hash {
	data, err := os.ReadFile(e.path(checkedFile))
	if err != nil {
		return gitstore.Hash{}
	}
	h, err := gitstore.ParseHash(strings.TrimSpace(string(data)))
	if err != nil {
		return gitstore.Hash{}
	}
	if _, err := e.store.At(h); err != nil {
		return gitstore.Hash{}
	}
	return h
}

// maxFirstParents bounds the search for a Bagpipe's commit.
const maxFirstParents = 10_000

// lastOwnCommit finds the newest commit by a Bagpipe on the first-parent line; the
// tip itself when there is none.
func (e *Engine) lastOwnCommit(tip gitstore.Hash) (gitstore.Hash, error) {
	next := tip
	n := 0
	for c, err := range e.store.History(context.Background(), gitstore.HistoryOptions{From: tip}) {
		if err != nil {
			return gitstore.Hash{}, fmt.Errorf("look for the last commit of a Bagpipe: %w", err)
		}
		if n++; n > maxFirstParents {
			break
		}
		if c.Hash != next {
			continue
		}
		if c.Committer.Name == committerName && strings.HasPrefix(c.Committer.Email, committerEmail) {
			return c.Hash, nil
		}
		if len(c.Parents) == 0 {
			break
		}
		next = c.Parents[0]
	}
	return tip, nil
}

// saveChecked writes checkedFile when there is nothing left to look at. It is not
// synced: an older one costs time only.
func (e *Engine) saveChecked() {
	a := &e.arrivals
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.tip == a.saved || a.tip.IsZero() || len(a.windows)+len(a.verdicts)+len(a.pinned) > 0 || a.lookAll || len(a.looking) > 0 {
		return
	}
	name := e.path(checkedFile)
	temp := fmt.Sprintf("%s.%s", name, e.id)
	err := os.WriteFile(temp, []byte(a.tip.String()+"\n"), 0o666)
	if errors.Is(err, os.ErrNotExist) { // .bagpipe was removed; whoever needs it makes it
		return
	}
	if err == nil {
		err = os.Rename(temp, name)
	}
	if err != nil {
		e.o.Log.Warn("remember what was checked", "err", errors.Join(err, os.RemoveAll(temp)))
		return
	}
	a.saved = a.tip
}
