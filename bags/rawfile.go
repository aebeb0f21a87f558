package bags

import (
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// opener opens many files of one tree, those of one folder after each other: the
// folder is found through os.Root once, and each file then costs one openat
// instead of one per part of its path (20,000 files of 4 KiB: 0.30 s for 0.54 s).
// The last part is never followed when it is a link, and opening does not block
// on a FIFO. Used by one goroutine.
type opener struct {
	root *os.Root
	path string
	dir  *os.File
}

// rawFile is a regular file without the runtime's poller, which costs small files
// more than reading them.
type rawFile struct {
	fd   int
	size int64
}

func (o *opener) open(p string) (fileReader, error) {
	folder := parent(p)
	if o.dir == nil || folder != o.path {
		if err := o.enter(folder); err != nil {
			return nil, err
		}
	}
	base := p
	if folder != "" {
		base = p[len(folder)+1:]
	}
	fd, err := retry(func() (int, error) {
		return unix.Openat(int(o.dir.Fd()), base, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	})
	if errors.Is(err, unix.ELOOP) {
		return nil, errChanged
	}
	if err != nil {
		return nil, err
	}
	f := &rawFile{fd: fd}
	var s unix.Stat_t
	if err := unix.Fstat(fd, &s); err != nil {
		return nil, errors.Join(err, f.close())
	}
	if s.Mode&unix.S_IFMT != unix.S_IFREG {
		return nil, errors.Join(errChanged, f.close())
	}
	f.size = s.Size
	return f, nil
}

func (o *opener) enter(folder string) error {
	o.close()
	name := folder
	if name == "" {
		name = "."
	}
	dir, err := o.root.Open(name)
	if err != nil {
		return err
	}
	o.dir, o.path = dir, folder
	return nil
}

func (o *opener) close() {
	if o.dir != nil {
		o.dir.Close() // read only: nothing can be lost
		o.dir = nil
	}
}

func (f *rawFile) Read(p []byte) (int, error) {
	n, err := retry(func() (int, error) { return unix.Read(f.fd, p) })
	if err != nil {
		return 0, err
	}
	if n == 0 && len(p) > 0 {
		return 0, io.EOF
	}
	return n, nil
}

func (f *rawFile) whole() int64 { return f.size }

func (f *rawFile) close() error { return unix.Close(f.fd) }

// retry repeats a call that a signal interrupted.
func retry(call func() (int, error)) (int, error) {
	for {
		n, err := call()
		if !errors.Is(err, unix.EINTR) {
			return n, err
		}
	}
}
