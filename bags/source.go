package bags

import (
	"errors"
	"io"
	"os"
	"sync"
)

// source is the archive's file; it remembers what the disk answered, so that a
// failing disk is not taken for a damaged archive.
type source struct {
	f *os.File

	mu  sync.Mutex // guards err
	err error
}

func (s *source) Read(p []byte) (int, error) {
	n, err := s.f.Read(p)
	return n, s.note(err)
}

func (s *source) ReadAt(p []byte, off int64) (int, error) {
	n, err := s.f.ReadAt(p, off)
	return n, s.note(err)
}

func (s *source) Seek(offset int64, whence int) (int64, error) { return s.f.Seek(offset, whence) }

func (s *source) note(err error) error {
	if err == nil || errors.Is(err, io.EOF) {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = err
	return err
}

func (s *source) failure() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}
