package maintain

import (
	"errors"
	"fmt"
	"io/fs"

	"bagpipe/engine/gitstore/internal/odb"
	"bagpipe/engine/gitstore/internal/repo"
	"bagpipe/layout/disk"
)

// hintsFile names the older version that each new version of a file or a folder replaced:
// odb.Pairs, one after the other. Maintenance stores the older one's successor as a
// difference by a hint, which Git finds only by trying. The file is not synced, a crash may
// cut its end, and without it all objects are stored whole.
const hintsFile = "replaced"

const maxHints = 128 << 20 // bytes; versions noted later are stored whole

// AddHints adds a group's pairs. The caller holds the turn lock.
func AddHints(r *repo.Repo, pairs odb.Pairs) error {
	if len(pairs) == 0 {
		return nil
	}
	if info, err := r.FS.Lstat(r.Temp(hintsFile)); err == nil {
		if info.Size() > maxHints {
			return nil
		}
		// A crash may have left half a pair, which is filled up to the next.
		if torn := int(info.Size()) % odb.PairLen; torn != 0 {
			pairs = append(make([]byte, odb.PairLen-torn), pairs...)
		}
	}
	if err := r.Append(r.Temp(hintsFile), pairs); err != nil {
		return fmt.Errorf("note the replaced versions: %w", err)
	}
	return nil
}

// readHints gives the whole pairs so far.
func readHints(r *repo.Repo) (odb.Pairs, error) {
	data, err := r.FS.ReadFile(r.Temp(hintsFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return data[:len(data)/odb.PairLen*odb.PairLen], err
}

// dropHints forgets the first n bytes of pairs, which were used. It takes the turn, so
// that no other process adds pairs meanwhile; a crash leaves the old file or the new one.
func dropHints(r *repo.Repo, n int) (err error) {
	if n == 0 {
		return nil
	}
	turn, err := r.TakeTurn()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, turn.Release()) }()
	data, err := r.FS.ReadFile(r.Temp(hintsFile))
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(data) < n {
		return nil // deleted meanwhile
	}
	if err == nil {
		err = disk.WriteFileFS(r.FS, r.Temp(hintsFile), "", data[n:], 0o644)
	}
	if err != nil {
		return fmt.Errorf("forget the hints that were used: %w", err)
	}
	return nil
}

// HintsTemp is the name that dropHints writes the file under.
const HintsTemp = hintsFile + ".tmp"
