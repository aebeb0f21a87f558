package volume

import (
	"errors"
	"io"
	"os"
	"sync"
)

// A File is one file of an archive. It remembers the disk's error, so that a failing
// disk is not taken for a damaged archive.
type File struct {
	F *os.File

	mu  sync.Mutex // guards err
	err error
}

// Read reads on.
func (s *File) Read(p []byte) (int, error) {
	n, err := s.F.Read(p)
	return n, s.note(err)
}

// ReadAt reads at off.
func (s *File) ReadAt(p []byte, off int64) (int, error) {
	n, err := s.F.ReadAt(p, off)
	return n, s.note(err)
}

// Seek sets the place of the next Read.
func (s *File) Seek(offset int64, whence int) (int64, error) { return s.F.Seek(offset, whence) }

func (s *File) note(err error) error {
	if err == nil || errors.Is(err, io.EOF) {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = err
	return err
}

// Failure gives the disk's last error, if there was one.
func (s *File) Failure() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}
