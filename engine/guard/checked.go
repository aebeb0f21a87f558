package guard

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"bagpipe/engine/gitstore"
	"bagpipe/engine/ledger"
	"bagpipe/layout"
)

// checkedFile names the commit up to which everything others committed has been
// looked at.
const checkedFile = layout.StateDir + "/checked"

// openArrivals notes what came since the last look, at Open.
func (g *Guard) Open() error {
	if g.ledger.Clone { // the workspace answers
		return nil
	}
	v, err := g.ledger.Store.Tip()
	if err != nil {
		return err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.tip = v.Commit()
	g.saved = g.readChecked()
	if g.saved == g.tip {
		return nil
	}
	from := g.saved
	if from.IsZero() {
		if from, err = g.lastOwnCommit(v.Commit()); err != nil || from == g.tip {
			return err
		}
	}
	g.windows = append([]window{{from, g.tip}}, g.windows...)
	g.touched.unlisted = true
	return nil
}

// readChecked gives zero when the file is not there, damaged, or names a commit
// this repository has not.
func (g *Guard) readChecked() gitstore.Hash {
	data, err := os.ReadFile(g.ledger.Path(checkedFile))
	if err != nil {
		return gitstore.Hash{}
	}
	h, err := gitstore.ParseHash(strings.TrimSpace(string(data)))
	if err != nil {
		return gitstore.Hash{}
	}
	if _, err := g.ledger.Store.At(h); err != nil {
		return gitstore.Hash{}
	}
	return h
}

// maxFirstParents bounds the search for a Bagpipe's commit.
const maxFirstParents = 10_000

// lastOwnCommit finds the newest commit by a Bagpipe on the first-parent line; the
// tip itself when there is none.
func (g *Guard) lastOwnCommit(tip gitstore.Hash) (gitstore.Hash, error) {
	next := tip
	n := 0
	for c, err := range g.ledger.Store.History(context.Background(), gitstore.HistoryOptions{From: tip}) {
		if err != nil {
			return gitstore.Hash{}, fmt.Errorf("look for the last commit of a Bagpipe: %w", err)
		}
		if n++; n > maxFirstParents {
			break
		}
		if c.Hash != next {
			continue
		}
		if ledger.ByBagpipe(c) {
			return c.Hash, nil
		}
		if len(c.Parents) == 0 {
			break
		}
		next = c.Parents[0]
	}
	return tip, nil
}

// SaveChecked writes checkedFile when there is nothing left to look at. It is not
// synced: an older one costs time only.
func (g *Guard) SaveChecked() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.tip == g.saved || g.tip.IsZero() || len(g.windows)+len(g.verdicts)+len(g.files) > 0 || g.signers != nil || g.looking.unlisted || len(g.looking.items) > 0 {
		return
	}
	name := g.ledger.Path(checkedFile)
	temp := fmt.Sprintf("%s.%s", name, g.ledger.ID)
	err := os.WriteFile(temp, []byte(g.tip.String()+"\n"), 0o666)
	if errors.Is(err, os.ErrNotExist) { // .bagpipe was removed; whoever needs it makes it
		return
	}
	if err == nil {
		err = os.Rename(temp, name)
	}
	if err != nil {
		g.ledger.Log.Warn("remember what was checked", "err", errors.Join(err, os.RemoveAll(temp)))
		return
	}
	g.saved = g.tip
}
