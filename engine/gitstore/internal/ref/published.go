package ref

import (
	"errors"
	"os"

	"bagpipe/engine/gitstore/internal/odb"
	"bagpipe/engine/gitstore/internal/repo"
	"bagpipe/layout"
)

// publishedFile remembers where a Bagpipe process last moved the branch, or saw it moved by
// others. It tells a branch that was moved back from one that never was further. It is not
// synced: an older commit in it is only less telling.
const publishedFile = layout.StateDir + "/published"

// ReadPublished gives it; zero: nobody has noted one.
func ReadPublished(r *repo.Repo) odb.Hash {
	data, err := r.FS.ReadFile(r.State(publishedFile))
	if err != nil || len(data) < 40 {
		return odb.Hash{}
	}
	h, err := odb.ParseHash(string(data[:40]))
	if err != nil {
		return odb.Hash{}
	}
	return h
}

// WritePublished overwrites the one line in place; a reader holds the turn lock, so it
// never sees half of it.
func WritePublished(r *repo.Repo, h odb.Hash) (err error) {
	f, err := r.OpenFile(r.State(publishedFile), os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	_, err = f.WriteAt([]byte(h.String()+"\n"), 0)
	return err
}
