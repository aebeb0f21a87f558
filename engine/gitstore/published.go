package gitstore

import (
	"errors"
	"os"

	"bagpipe/engine/gitstore/internal/repo"
	"bagpipe/layout"
)

// publishedFile remembers where a Bagpipe process last moved the branch, or saw it moved by
// others. It tells a branch that was moved back from one that never was further. It is not
// synced: an older commit in it is only less telling.
const publishedFile = layout.StateDir + "/published"

func readPublished(r *repo.Repo) Hash {
	data, err := r.FS.ReadFile(r.State(publishedFile))
	if err != nil || len(data) < 40 {
		return Hash{}
	}
	h, err := ParseHash(string(data[:40]))
	if err != nil {
		return Hash{}
	}
	return h
}

// writePublished overwrites the one line in place; a reader holds the turn lock, so it
// never sees half of it.
func writePublished(r *repo.Repo, h Hash) (err error) {
	f, err := r.OpenFile(r.State(publishedFile), os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	_, err = f.WriteAt([]byte(h.String()+"\n"), 0)
	return err
}
