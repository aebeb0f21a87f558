package bagtool

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"bagpipe/bags/files"
	"bagpipe/cmd/bagpipe/internal/screen"
	"bagpipe/layout"
)

// What the commands for bags and archives are given is looked at before they begin:
// a path that is not there, or is not what the command works on, is a mistake of
// usage. Exit code 1 is then left for what is wrong with the thing itself.

func misused(format string, args ...any) error { return screen.WrongUse(fmt.Sprintf(format, args...)) }

// kindOf tells what stands at a path, links followed.
func kindOf(path string) (fs.FileMode, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, misused("%s: no such file or folder", path)
	}
	if err != nil {
		return 0, err
	}
	return info.Mode().Type(), nil
}

// wantFolder takes a bag's folder, or one that becomes a bag.
func wantFolder(path string) error {
	kind, err := kindOf(path)
	switch {
	case err != nil:
		return err
	case kind.IsRegular():
		return misused("%s: a file, where a folder is wanted; bagpipe archive extract unpacks archives", path)
	case !kind.IsDir():
		return misused("%s: not a folder", path)
	}
	return nil
}

// wantFile takes an archive, or a profile.
func wantFile(path string) error {
	kind, err := kindOf(path)
	switch {
	case err != nil:
		return err
	case kind.IsDir():
		return misused("%s: a folder, where a file is wanted", path)
	case !kind.IsRegular():
		return misused("%s: not a regular file", path)
	}
	return nil
}

// wantEither takes what may be a folder or a file.
func wantEither(path string) error {
	kind, err := kindOf(path)
	if err == nil && !kind.IsDir() && !kind.IsRegular() {
		return misused("%s: neither a file nor a folder", path)
	}
	return err
}

// wantPlace takes the name of what is to be made.
func wantPlace(path string) error {
	parent := filepath.Dir(path)
	kind, err := kindOf(parent)
	if err == nil && !kind.IsDir() {
		return misused("%s: not a folder, so nothing can be made in it", parent)
	}
	return err
}

// wantAlgorithms takes names of algorithms.
func wantAlgorithms(names []string) error {
	for _, n := range names {
		if !files.Algorithm(n).Known() {
			return misused("no algorithm %q; there are md5, sha1, sha224, sha256, sha384 and sha512", n)
		}
	}
	return nil
}

// wantOutsideStore refuses to change what lies in a workspace's store: a deposited bag is
// never changed.
func wantOutsideStore(path string) error {
	whole, err := absolute(path)
	if err != nil {
		return err
	}
	for dir := whole; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if _, err := os.Lstat(filepath.Join(dir, layout.StoreFile)); err == nil && dir != whole {
			return fmt.Errorf("%s lies in the store %s, where nothing is changed: have a copy with bagpipe retrieve, and deposit a new version", path, dir)
		}
	}
	return nil
}
