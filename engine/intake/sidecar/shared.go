package sidecar

import (
	"slices"
	"sync"
	"time"

	"bagpipe/engine/inbox"

	"golang.org/x/sys/unix"
)

// SharedTable keeps the table about several drops that was read last: it is asked once
// for each of them, and to read it takes the longer the more they are. One that is too
// large to keep, or that has just changed, is read each time.
type SharedTable struct {
	now func() time.Time // nil: time.Now; set before use

	mu   sync.Mutex // guards the rest
	path string
	of   tableFile
	head []string
	rows map[string][][]string // by drop; nil: nothing is kept
}

// tableFile tells whether a file is as it was.
type tableFile struct {
	dev, ino     uint64
	size         int64
	mtime, ctime unix.Timespec
}

const (
	maxSharedFields = 500_000         // that are kept
	freshTable      = 2 * time.Second // in which it may change again, and its times stay
)

// readShared takes the lines about the drop. A drop without one is fine.
func (s *SharedTable) readShared(c file, into map[string]any, t inbox.Taken) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	is, steady := s.fileOf(c.path)
	if !steady || s.rows == nil || s.path != c.path || s.of != is {
		s.rows = nil
		rows, err := s.load(c, into, t)
		if err != nil || !steady {
			return err
		}
		s.path, s.of, s.rows = c.path, is, rows
		return nil
	}
	for _, row := range s.rows[t.Name] {
		fill(into, s.head[1:], row[1:])
	}
	return nil
}

// fileOf tells also whether another change of the file would be seen.
func (s *SharedTable) fileOf(path string) (is tableFile, steady bool) {
	now := s.now
	if now == nil {
		now = time.Now
	}
	var st unix.Stat_t
	if unix.Lstat(path, &st) != nil {
		return is, false
	}
	return tableFile{st.Dev, st.Ino, st.Size, st.Mtim, st.Ctim}, now().Sub(time.Unix(st.Ctim.Unix())) > freshTable
}

// load reads the table for one drop, and gives all its lines to be kept; nil when they
// are too many.
func (s *SharedTable) load(c file, into map[string]any, t inbox.Taken) (map[string][][]string, error) {
	data, err := c.bytes()
	if err != nil {
		return nil, err
	}
	tab, err := c.openTable(data)
	if err != nil {
		return nil, err
	}
	s.head = tab.head
	rows := map[string][][]string{}
	err = tab.each(func() error {
		if tab.row[0] == t.Name {
			fill(into, tab.head[1:], tab.row[1:])
		}
		if tab.n*len(tab.head) > maxSharedFields {
			rows = nil
		}
		if rows != nil {
			rows[tab.row[0]] = append(rows[tab.row[0]], slices.Clone(tab.row))
		}
		return nil
	})
	return rows, err
}
