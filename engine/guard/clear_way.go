package guard

import (
	"context"
	"errors"
	"io/fs"

	"bagpipe/engine/gitstore"
	"bagpipe/engine/ledger"
	"bagpipe/layout"
)

// clearWay removes a pushed file that stands in the place of a folder above an item's
// records, or of the folder itself, so that they can be put back. No record of Bagpipe's
// is such a file.
func (g *Guard) clearWay(ctx context.Context, id layout.ItemID) error {
	v, err := g.ledger.Store.Tip()
	if err != nil {
		return err
	}
	if path, err := inTheWay(v, id); path == "" {
		return err
	}
	_, err = g.ledger.Store.Commit(ctx, func(r gitstore.Reader) (*gitstore.Change, error) {
		path, err := inTheWay(r, id)
		if path == "" {
			return nil, err
		}
		who := g.ledger.ByEngine()
		return &gitstore.Change{Files: map[string][]byte{path: nil}, Author: who.Author,
			Message: ledger.Message("answer: removed the file "+path+", which was in the way of items", "", []ledger.Trailer{{"Bagpipe-Agent", who.Agent}})}, nil
	})
	return err
}

// inTheWay finds a file in the place of a folder of an item; empty: there is none.
func inTheWay(r gitstore.Reader, id layout.ItemID) (string, error) {
	path := layout.ItemDir(id)
	for i := range len(path) + 1 {
		if i < len(path) && path[i] != '/' {
			continue
		}
		_, err := r.ReadFile(path[:i])
		if err == nil {
			return path[:i], nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
	}
	return "", nil
}
