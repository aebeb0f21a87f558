package mounted

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"bagpipe/layout"
	"bagpipe/layout/disk"
	"bagpipe/steps"
)

// A store that is not mounted must not be filled in its mount point. The rules are:
//
//   - a store that lists the workspace's mark in bagpipe-store.json is the workspace's;
//   - before the workspace's first deposit the mark is added, and the store made if need be;
//   - after it, a store without the file, in which the oldest deposited item stands, is
//     one of an earlier version: the file is written;
//   - an empty file is a person's word that the folder is a new store;
//   - any other store is waited for: it is not mounted, or is another's.
//
// The file is durable before the first byte of a deposit. A crash in between leaves a
// store that lists a workspace without deposits, which does no harm.

// Store is a store as one workspace sees it.
type Store struct {
	Dir  string
	Mark layout.Mark // the workspace's
	// Oldest gives the oldest item that was deposited in the store.
	Oldest func() (layout.ItemID, bool)
	Now    func() time.Time
	Warn   func(string) // told of a store that becomes the workspace's by more than its making
}

// Check answers a *steps.Later when the store is not the workspace's.
func (s *Store) Check() error {
	data, f, err := s.read()
	if _, listed := f.Workspaces[s.Mark]; err != nil || listed {
		return err
	}
	dir, file := layout.EncodePath(s.Dir), layout.StoreFile
	before, deposited := s.Oldest()
	switch {
	case data == nil && deposited && !holdsDeposit(s.Dir, before):
		return &steps.Later{Reason: fmt.Sprintf("the store %s has no %s, and deposits were made before: is it mounted? If it is a new store, make that file in it, empty",
			dir, file)}
	case len(f.Workspaces) > 0 && deposited:
		return &steps.Later{Reason: fmt.Sprintf("the store %s is another workspace's, and deposits of this one were made elsewhere: is the right one mounted? To share it, add %q: {} to workspaces: in its %s",
			dir, s.Mark, file)}
	}
	if err := disk.MkdirAll(s.Dir, 0o755); err != nil {
		return err
	}
	return s.join(deposited)
}

// read reads the store's file; nil bytes where there is none.
func (s *Store) read() (data []byte, f layout.Store, err error) {
	data, err = disk.ReadFile(filepath.Join(s.Dir, layout.StoreFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, f, &steps.Later{Reason: "the store cannot be read: " + err.Error()}
	}
	if f, err = layout.DecodeStore(data); err != nil {
		return nil, f, &steps.Later{Reason: fmt.Sprintf("the store %s: %v", layout.EncodePath(s.Dir), err)}
	}
	return data, f, nil
}

// join adds the mark to the store's file. Another workspace may do so at the same time,
// so the file is read again under the store's lock.
func (s *Store) join(told bool) (err error) {
	unlock, err := disk.LockDir(s.Dir)
	if err != nil {
		return fmt.Errorf("mark store %s: %w", s.Dir, err)
	}
	defer func() { err = errors.Join(err, unlock()) }()
	data, f, err := s.read()
	if _, listed := f.Workspaces[s.Mark]; err != nil || listed {
		return err
	}
	told = told || len(f.Workspaces) > 0
	f.Workspaces[s.Mark] = layout.StoreMember{Since: s.Now()}
	if data, err = f.Encode(data); err != nil {
		return fmt.Errorf("mark store %s: %w", s.Dir, err)
	}
	err = disk.WriteFile(filepath.Join(s.Dir, layout.StoreFile), data, 0o644)
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return &steps.Later{Reason: err.Error()}
	case err == nil && told:
		s.Warn(fmt.Sprintf("the store %s is this workspace's from now on; it is marked in its %s", layout.EncodePath(s.Dir), layout.StoreFile))
	}
	return err
}

// holdsDeposit reports whether a version of the item stands in the store at dir.
func holdsDeposit(dir string, id layout.ItemID) bool {
	at := filepath.Join(dir, filepath.FromSlash(strings.TrimPrefix(layout.ItemDir(id), layout.ItemsDir+"/")))
	entries, err := os.ReadDir(filepath.Dir(at))
	if err != nil {
		return false
	}
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), string(id)) {
			return true
		}
	}
	return false
}
