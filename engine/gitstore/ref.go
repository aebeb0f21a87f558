package gitstore

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
)

const maxRefReads = 10

// readRef gives where the branch points, zero when it does not exist. The loose
// file counts, then packed-refs. When neither has it, or it was just packed, the
// loose file is looked at again: git pack-refs writes packed-refs before it
// removes the loose file, and another writer may make a new one right after.
func (s *Store) readRef() (Hash, error) {
	for range maxRefReads {
		h, ok, err := s.readLooseRef()
		if ok || err != nil {
			return h, err
		}
		h, err = s.readPackedRef()
		if err != nil {
			return Hash{}, err
		}
		if _, err := s.fs.Lstat(s.refPath()); errors.Is(err, fs.ErrNotExist) {
			return h, nil
		}
	}
	return Hash{}, fmt.Errorf("read %s: it comes and goes", s.branch)
}

func (s *Store) refPath() string { return filepath.Join(s.git, filepath.FromSlash(s.branch)) }

func (s *Store) readLooseRef() (Hash, bool, error) {
	data, err := s.fs.ReadFile(s.refPath())
	if errors.Is(err, fs.ErrNotExist) {
		return Hash{}, false, nil
	}
	if err != nil {
		return Hash{}, false, fmt.Errorf("read %s: %w", s.branch, err)
	}
	h, err := ParseHash(strings.TrimSpace(string(data)))
	if err != nil {
		return Hash{}, false, fmt.Errorf("read %s: %w", s.refPath(), err)
	}
	return h, true, nil
}

func (s *Store) readPackedRef() (Hash, error) {
	data, err := s.fs.ReadFile(filepath.Join(s.git, "packed-refs"))
	if errors.Is(err, fs.ErrNotExist) {
		return Hash{}, nil
	}
	if err != nil {
		return Hash{}, fmt.Errorf("read packed-refs: %w", err)
	}
	lines := bufio.NewScanner(bytes.NewReader(data))
	for lines.Scan() {
		hex, name, _ := strings.Cut(lines.Text(), " ")
		if name == s.branch {
			return ParseHash(hex)
		}
	}
	return Hash{}, lines.Err()
}

// readHead gives the branch HEAD names.
func (s *Store) readHead() (string, error) {
	data, err := s.fs.ReadFile(filepath.Join(s.git, "HEAD"))
	if err != nil {
		return "", err
	}
	name, ok := strings.CutPrefix(strings.TrimSpace(string(data)), "ref: ")
	if !ok || !strings.HasPrefix(name, "refs/heads/") || strings.Contains(name, "..") {
		return "", fmt.Errorf("%s: HEAD names no branch", s.git)
	}
	return name, nil
}
