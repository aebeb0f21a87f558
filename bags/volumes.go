package bags

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// maxVolumes bounds how many files one archive may be made of.
const maxVolumes = 1000

// volumes are the files one archive is made of, in order. The first is its
// opener's to close.
type volumes struct {
	dir   string
	files []*os.File
	base  []string
	size  []int64
}

// openVolumes opens the archive's further parts, where it is numbered: they stand
// beside it and follow it by name: x.7z.001, x.7z.002. Those of a rar are opened by its survey, which
// knows whether there are any.
func openVolumes(first *os.File, archive string, numbered bool) (*volumes, error) {
	info, err := first.Stat()
	if err != nil {
		return nil, err
	}
	v := &volumes{dir: filepath.Dir(archive), files: []*os.File{first}, base: []string{filepath.Base(archive)}, size: []int64{info.Size()}}
	if !numbered || filepath.Ext(archive) != ".001" {
		return v, nil
	}
	stem := strings.TrimSuffix(v.base[0], "001")
	for n := 2; ; n++ {
		err := v.open(fmt.Sprintf("%s%03d", stem, n))
		if errors.Is(err, fs.ErrNotExist) {
			return v, nil
		}
		if err != nil {
			v.close()
			return nil, err
		}
	}
}

// open adds the file of that name. A link is not followed, and a FIFO not waited
// for: the folder is as hostile as the archive.
func (v *volumes) open(name string) error {
	if len(v.files) >= maxVolumes {
		return &Error{Archive: v.base[0], Rule: RuleMultiDisk, Detail: fmt.Sprintf("the archive has more than %d parts", maxVolumes)}
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
	v.files, v.base, v.size = append(v.files, f), append(v.base, name), append(v.size, info.Size())
	return nil
}

// close closes all but the first.
func (v *volumes) close() {
	for _, f := range v.files[1:] {
		f.Close() // read only: nothing can be lost
	}
}

func (v *volumes) bytes() (n int64) {
	for _, size := range v.size {
		n += size
	}
	return n
}

// whole is the parts as one run of bytes.
func (v *volumes) whole() *sources {
	all := &sources{}
	for i, f := range v.files {
		all.add(f, v.size[i])
	}
	return all
}

// volume gives one part.
func (v *volumes) volume(i int) *io.SectionReader {
	return io.NewSectionReader(v.files[i], 0, v.size[i])
}
