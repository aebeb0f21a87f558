package fetch

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"

	"bagpipe/bags/files"
)

// This file keeps the parts of files that are being fetched. FetchDir may have come
// with the bag, and with it anything under a part's name.

const partEnd = ".part"

// partOf gives the path of a file's part until the file is whole.
func partOf(p string) string {
	return path.Join(Dir, fmt.Sprintf("%x%s", sha256.Sum256([]byte(p)), partEnd))
}

func isPart(name string) bool {
	sum, ok := strings.CutSuffix(name, partEnd)
	b, err := hex.DecodeString(sum)
	return ok && err == nil && len(b) == sha256.Size
}

// openPart opens the part that an earlier call left, or a new one. A part with a second
// name may be payload, and would be written over: it is begun anew.
func (f *fetcher) openPart(part string) (*os.File, error) {
	info, err := f.bag.Root.Lstat(part)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular() || hasOtherNames(info):
		if err := f.bag.Root.Remove(part); err != nil {
			return nil, err
		}
	}
	return f.bag.Root.OpenFile(part, os.O_CREATE|os.O_RDWR|syscall.O_NONBLOCK, files.FilePerm)
}

func hasOtherNames(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && st.Nlink > 1
}

// sweepParts removes the parts of files that came by another way, or that had got their
// name when a crash came. Any other file stays, and Dir with it; validation reports it.
func (f *fetcher) sweepParts() error {
	dir, err := f.bag.Root.Open(Dir)
	if err != nil {
		return err
	}
	names, err := dir.Readdirnames(-1)
	if err := errors.Join(err, dir.Close()); err != nil {
		return err
	}
	left := 0
	for _, name := range names {
		if !isPart(name) || f.begun[name] {
			left++
			continue
		}
		if err := f.bag.Root.Remove(path.Join(Dir, name)); err != nil {
			return err
		}
	}
	if left > 0 {
		return nil
	}
	return f.bag.Root.Remove(Dir)
}
