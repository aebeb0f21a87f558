package volume

import (
	"errors"
	"io"
	"os"
	"sync"
)

// source is the archive's file; it remembers what the disk answered, so that a
// failing disk is not taken for a damaged archive.
type File struct {
	F *os.File

	mu  sync.Mutex // guards err
	err error
}

func (s *File) Read(p []byte) (int, error) {
	n, err := s.F.Read(p)
	return n, s.note(err)
}

func (s *File) ReadAt(p []byte, off int64) (int, error) {
	n, err := s.F.ReadAt(p, off)
	return n, s.note(err)
}

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

func (s *File) Failure() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}
