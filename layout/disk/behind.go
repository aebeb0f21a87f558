package disk

import (
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// Behind copies in to out, from an offset of it in bytes, and has the disk begin with what
// is written while more comes: a sync at the end finds little left. It syncs nothing itself.
func Behind(out *os.File, offset int64, in io.Reader) (n int64, err error) {
	return io.CopyBuffer(&behind{out, offset, offset}, struct{ io.Reader }{in}, make([]byte, 256<<10))
}

type behind struct {
	out       *os.File
	begun, at int64 // the disk has begun up to begun
}

// Write writes, and has the disk begin with each 8 MiB.
func (b *behind) Write(data []byte) (int, error) {
	const each = 8 << 20
	n, err := b.out.Write(data)
	if b.at += int64(n); err == nil && b.at-b.begun >= each {
		// A hint: where the file system does not know it, the sync does all.
		_ = unix.SyncFileRange(int(b.out.Fd()), b.begun, b.at-b.begun, unix.SYNC_FILE_RANGE_WRITE)
		b.begun = b.at
	}
	return n, err
}
