package folder

import (
	"fmt"
	"sync"
	"time"

	"bagpipe/layout"
	"bagpipe/layout/disk"
)

// freeSpace watches the free space of the workspace's file system.
type freeSpace struct {
	root  string
	now   func() time.Time
	least func() uint64 // bytes below which work pauses

	mu  sync.Mutex // guards the rest
	at  time.Time
	err error
}

// Low is why nothing may be taken in or started, or nil. The answer is a second old at
// most: every step asks for it.
func (s *freeSpace) Low() error {
	const fresh = time.Second
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	if age := now.Sub(s.at); !s.at.IsZero() && age >= 0 && age < fresh {
		return s.err
	}
	s.at, s.err = now, s.look()
	return s.err
}

// Refused notes that the system found no room for a write, whatever is said to be free: a
// quota's end, or what is kept for root. Low says so for a second.
func (s *freeSpace) Refused() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.at, s.err = s.now(), fmt.Errorf("paused: no space left for %s, or its quota is used up; nothing is taken in or started until there is room", s.root)
}

// fewInodes is how many files and folders must still find a place.
const fewInodes = 1000

func (s *freeSpace) look() error {
	free, err := disk.Free(s.root)
	if err != nil {
		return err
	}
	if least := s.least(); free < least {
		return fmt.Errorf("paused: %s free in %s, less than limits: free: %s in bagpipe.yaml; nothing is taken in or started until there is room", layout.FormatSize(free), s.root, layout.FormatSize(least))
	}
	if inodes, bounded, err := disk.FreeInodes(s.root); err == nil && bounded && inodes < fewInodes {
		return fmt.Errorf("paused: the file system of %s has places for %d more files; nothing is taken in or started until there are %d", s.root, inodes, fewInodes)
	}
	return nil
}
