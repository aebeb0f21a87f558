package volume

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"bagpipe/bags/files"
)

// maxVolumes bounds how many files one archive may be made of.
const maxVolumes = 1000

// Volumes are the files of one archive, in order. The first belongs to its opener.
type Volumes struct {
	dir   string
	Files []*os.File
	Base  []string
	Size  []int64
}

// Open opens the archive's further parts, where it is numbered: they stand
// beside it and follow it by name: x.7z.001, x.7z.002. The parts of a rar are opened by its survey, which
// knows whether there are any.
func Open(first *os.File, archive string, numbered bool) (*Volumes, error) {
	info, err := first.Stat()
	if err != nil {
		return nil, err
	}
	v := &Volumes{dir: filepath.Dir(archive), Files: []*os.File{first}, Base: []string{filepath.Base(archive)}, Size: []int64{info.Size()}}
	if !numbered || filepath.Ext(archive) != ".001" {
		return v, nil
	}
	stem := strings.TrimSuffix(v.Base[0], "001")
	for n := 2; ; n++ {
		err := v.Open(fmt.Sprintf("%s%03d", stem, n))
		if errors.Is(err, fs.ErrNotExist) {
			return v, nil
		}
		if err != nil {
			v.Close()
			return nil, err
		}
	}
}

// Open adds the file of that name. A link is not followed, and a FIFO not waited
// for: the folder is as hostile as the archive.
func (v *Volumes) Open(name string) error {
	if len(v.Files) >= maxVolumes {
		return &files.Error{Archive: v.Base[0], Rule: files.RuleMultiDisk, Detail: fmt.Sprintf("the archive has more than %d parts", maxVolumes)}
	}
	f, err := os.OpenFile(filepath.Join(v.dir, name), os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a regular file", name)
	}
	if err != nil {
		return errors.Join(err, f.Close())
	}
	v.Files, v.Base, v.Size = append(v.Files, f), append(v.Base, name), append(v.Size, info.Size())
	return nil
}

// Close closes all volumes but the first.
func (v *Volumes) Close() {
	for _, f := range v.Files[1:] {
		f.Close() // read only: nothing can be lost
	}
}

// Bytes gives the length of all volumes.
func (v *Volumes) Bytes() (n int64) {
	for _, size := range v.Size {
		n += size
	}
	return n
}

// Whole joins the volumes.
func (v *Volumes) Whole() *Joined {
	all := &Joined{}
	for i, f := range v.Files {
		all.Add(f, v.Size[i])
	}
	return all
}

// Volume reads one volume.
func (v *Volumes) Volume(i int) *io.SectionReader {
	return io.NewSectionReader(v.Files[i], 0, v.Size[i])
}
