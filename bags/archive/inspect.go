package archive

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"bagpipe/bags/archive/internal/volume"
	"bagpipe/bags/files"
)

// Member is one entry of an archive, for those who look at it.
type Member struct {
	Path   string
	Folder bool
	Size   int64 // -1 where the archive does not say
	Mode   fs.FileMode
	Time   time.Time
}

// InspectOptions say how to look at an archive.
type InspectOptions struct {
	Limits   Limits
	Workers  int
	Names    string
	Data     bool                 // read every member and check its sums; else names alone
	Member   func(Member)         // each member, in the archive's order
	Peek     *Peek                // without Data: members whose bytes are wanted; nil: none
	Progress func(files.Progress) // calls do not overlap
}

// Inspected says what an archive holds and what is wrong with it. An archive
// without problems can be unpacked.
type Inspected struct {
	Extracted
	Problems []*files.Error
}

// Inspect reads an archive without writing anything. Where it can it reads on
// after a broken rule, so that all are found; what ends the reading stands last in
// Problems. Its error is about the machine alone.
func Inspect(ctx context.Context, archive string, o InspectOptions) (_ Inspected, err error) {
	f, err := os.OpenFile(archive, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return Inspected{}, fmt.Errorf("read archive: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return Inspected{}, fmt.Errorf("read archive: %w", err)
	}
	if !info.Mode().IsRegular() {
		return Inspected{}, fmt.Errorf("read archive %s: not a regular file", archive)
	}
	s := newSink(nil, filepath.Base(archive), info.Size(), ExtractOptions{Limits: o.Limits, Workers: o.Workers, Names: o.Names, Progress: o.Progress})
	s.look = &look{data: o.Data, each: o.Member, peek: o.Peek}
	ctx, cancel := s.o.Limits.clock(ctx)
	defer cancel()
	err = overTime(ctx, s.Archive, read(ctx, &volume.File{F: f}, archive, info.Size(), s))
	x, ferr := s.finish()
	in := Inspected{Extracted: x, Problems: s.look.problems}
	var broken *files.Error
	if errors.As(err, &broken) {
		if !said(in.Problems, broken) {
			in.Problems = append(in.Problems, broken)
		}
		return in, nil
	}
	return in, errors.Join(err, ferr)
}

// saw tells whoever looks of a member.
func (s *sink) saw(m member, dir bool) {
	s.noteMode(m.name, m.mode)
	if s.look == nil || s.look.each == nil || m.path == "" {
		return
	}
	size := m.size
	if dir {
		size = 0
	}
	s.look.each(Member{Path: m.path, Folder: dir, Size: size, Mode: m.mode, Time: m.at})
}

// onlyNames reports whether the members' bytes are of no interest.
func (s *sink) onlyNames() bool { return s.look != nil && !s.look.data }
