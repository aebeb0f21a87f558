package gitstore

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"bagpipe/engine/gitstore/internal/odb"
)

// clearLeftovers removes what dead processes of Bagpipe left. It holds the turn
// lock, so no live one is publishing; what git programs hold is not touched.
func (s *Store) clearLeftovers() (err error) {
	turn, err := s.takeTurn()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, turn.release()) }()
	return errors.Join(s.clearRefLock(), s.clearPacks(), s.clearTemp(), s.clearReflog())
}

// clearPacks looks at the packs that were being published. A whole one stays: a
// branch may need it. A half one was never published, for it is synced first.
func (s *Store) clearPacks() error {
	keeps, err := filepath.Glob(filepath.Join(s.packDir(), "pack-*.keep"))
	if err != nil {
		return err
	}
	for _, keep := range keeps {
		text, err := s.fs.ReadFile(keep)
		if err != nil {
			return err
		}
		if string(text) != keepMark {
			continue // someone else's
		}
		base := strings.TrimSuffix(keep, ".keep")
		whole, err := s.packIsWhole(base)
		if err != nil {
			return err
		}
		if !whole {
			s.log.Warn("removed a half-written pack", "pack", base)
			if err := (&packFiles{s: s, base: base}).remove(); err != nil {
				return err
			}
			continue
		}
		if err := s.fs.Remove(keep); err != nil {
			return err
		}
	}
	return nil
}

// packIsWhole checks a pack and its index against their checksums.
func (s *Store) packIsWhole(base string) (bool, error) {
	pack, err := s.fs.ReadFile(base + ".pack")
	if err == nil {
		var index []byte
		if index, err = s.fs.ReadFile(base + ".idx"); err == nil {
			return odb.Whole(pack, index), nil
		}
	}
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return false, fmt.Errorf("check pack %s: %w", base, err)
}

// clearTemp removes what was not yet renamed and is written under the turn lock,
// and makes our mark.
func (s *Store) clearTemp() error {
	list, err := s.fs.ReadDir(s.tempDir())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, e := range list {
		if name := e.Name(); !strings.HasPrefix(name, "pack-") && name != filepath.Base(s.replacedFile())+".tmp" {
			continue // our mark, and Maintain's files: it clears them itself
		}
		if err := s.fs.Remove(filepath.Join(s.tempDir(), e.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return s.makeKeep()
}

// clearReflog cuts off a last line that a crash left unfinished.
func (s *Store) clearReflog() error {
	for _, name := range []string{s.branch, "HEAD"} {
		if err := s.cutTornLine(filepath.Join(s.git, "logs", filepath.FromSlash(name))); err != nil {
			return fmt.Errorf("repair reflog of %s: %w", name, err)
		}
	}
	return nil
}

const maxReflogLine = 64 << 10

func (s *Store) cutTornLine(name string) (err error) {
	f, err := s.fs.OpenFile(name, os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil || info.Size() == 0 {
		return err
	}
	from := max(0, info.Size()-maxReflogLine)
	tail := make([]byte, info.Size()-from)
	if _, err := f.ReadAt(tail, from); err != nil {
		return err
	}
	end := bytes.LastIndexByte(tail, '\n') + 1
	if end == len(tail) {
		return nil
	}
	return f.Truncate(from + int64(end))
}
