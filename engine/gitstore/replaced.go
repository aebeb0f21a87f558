package gitstore

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"bagpipe/engine/gitstore/internal/odb"
	"bagpipe/layout/disk"
)

// replacedFile says which version of a file, and of a folder, each new one took the
// place of: odb.Pairs, one after the other. Maintain stores the new one as a
// difference from the old by it, which Git finds only by trying. It is a hint: it
// is not synced, a crash may cut its end, and without it all are stored whole.
func (s *Store) replacedFile() string { return filepath.Join(s.tempDir(), "replaced") }

const maxReplaced = 128 << 20 // bytes of hints; what comes after is stored whole

// noteReplaced adds a group's pairs.
func (s *Store) noteReplaced(pairs []byte) {
	if len(pairs) == 0 {
		return
	}
	if err := s.appendReplaced(pairs); err != nil {
		s.log.Warn("note what was replaced", "error", err)
	}
}

func (s *Store) appendReplaced(pairs []byte) (err error) {
	f, err := s.fs.OpenFile(s.replacedFile(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil || info.Size() > maxReplaced {
		return err
	}
	// A crash may have left half a pair; what follows it is filled up to the next.
	if torn := int(info.Size()) % odb.PairLen; torn != 0 {
		pairs = append(make([]byte, odb.PairLen-torn), pairs...)
	}
	_, err = f.Write(pairs)
	return err
}

// readReplaced gives the pairs so far.
func (s *Store) readReplaced() ([]byte, error) {
	data, err := s.fs.ReadFile(s.replacedFile())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return data, err
}

// dropReplaced forgets the first n bytes of pairs, which were used. It holds the
// turn, so that no one adds any meanwhile; a crash leaves the old file or the new.
func (s *Store) dropReplaced(n int) (err error) {
	if n == 0 {
		return nil
	}
	turn, err := s.takeTurn()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, turn.release()) }()
	data, err := s.readReplaced()
	if err != nil {
		return err
	}
	if len(data) < n {
		return nil // deleted meanwhile
	}
	if err := disk.WriteFileFS(s.fs, s.replacedFile(), "", data[n:], 0o644); err != nil {
		return fmt.Errorf("forget the pairs that were used: %w", err)
	}
	return nil
}
