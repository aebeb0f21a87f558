package volume

import (
	"errors"
	"io"
	"io/fs"
	"os"
)

// Joined reads the volumes of one archive as one run of bytes.
type Joined struct {
	all  []*File
	size []int64
}

// Add puts one more volume behind the others.
func (s *Joined) Add(f *os.File, size int64) {
	s.all, s.size = append(s.all, &File{F: f}), append(s.size, size)
}

// Total gives the length of all volumes.
func (s *Joined) Total() (n int64) {
	for _, v := range s.size {
		n += v
	}
	return n
}

// Failure gives the first error of any volume's disk.
func (s *Joined) Failure() error {
	for _, v := range s.all {
		if err := v.Failure(); err != nil {
			return err
		}
	}
	return nil
}

// ReadAt reads over the ends of volumes.
func (s *Joined) ReadAt(p []byte, off int64) (n int, err error) {
	for i, v := range s.all {
		if off >= s.size[i] {
			off -= s.size[i]
			continue
		}
		got, err := v.ReadAt(p[n:n+int(min(int64(len(p)-n), s.size[i]-off))], off)
		n, off = n+got, 0
		if n == len(p) || err != nil && !errors.Is(err, io.EOF) {
			return n, err
		}
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// A VolumeFS opens the volumes in their order, whatever names a decoder asks for.
type VolumeFS struct {
	S    *Joined
	next int
}

// Open opens the next volume.
func (v *VolumeFS) Open(name string) (fs.File, error) {
	i := v.next
	if i == len(v.S.all) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	v.next++
	return volumeFile{io.NewSectionReader(v.S.all[i], 0, v.S.size[i])}, nil
}

type volumeFile struct{ *io.SectionReader }

func (volumeFile) Stat() (fs.FileInfo, error) { return nil, fs.ErrInvalid }
func (volumeFile) Close() error               { return nil }
