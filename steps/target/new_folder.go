package target

import (
	"fmt"
	"os"
	"path"
	"path/filepath"

	"github.com/pkg/sftp"

	"bagpipe/layout"
	"bagpipe/layout/disk"
)

// marked reports whether a folder has the mark of a target.
func marked(dir string) bool {
	_, err := os.Lstat(filepath.Join(dir, layout.StoreFile))
	return err == nil
}

// mayMake refuses to make a folder in which copies were made.
func mayMake(dir string, used func() (bool, error)) error {
	is, err := used()
	if is {
		err = fmt.Errorf("the folder %s is not there, and copies were made in it: is it mounted? If it is a new one, make it, with an empty file %s in it", layout.EncodePath(dir), layout.StoreFile)
	}
	if err != nil {
		return &Down{err}
	}
	return nil
}

// makeMarked makes a folder that has the mark before it has its name: one that a killed
// program left without would be waited for as one that is not mounted. Of two that make it at
// once one does.
func makeMarked(dir string) error {
	made := unnamed(dir)
	err := disk.MkdirAll(made, 0o755)
	if err == nil {
		err = os.WriteFile(filepath.Join(made, layout.StoreFile), nil, 0o644) // empty: whole as soon as it is there
	}
	if err == nil {
		err = disk.SyncDir(made)
	}
	if err == nil {
		err = disk.Rename(made, dir)
	}
	if !marked(dir) {
		return err
	}
	_ = os.RemoveAll(made) // who makes it anew meanwhile comes here, too
	return nil
}

// unnamed is where a target's folder is made.
func unnamed(dir string) string { return path.Join(path.Dir(dir), "."+path.Base(dir)+".new") }

// makeMarked is the makeMarked of a folder, there.
func (s *server) makeMarked(c *sftp.Client, mark string) error {
	made := unnamed(s.config.Path)
	marked := path.Join(made, layout.StoreFile)
	err := c.MkdirAll(made)
	if err == nil {
		var f *sftp.File
		if f, err = c.OpenFile(marked, os.O_WRONLY|os.O_CREATE); err == nil {
			err = f.Close()
		}
	}
	if err == nil {
		err = c.Rename(made, s.config.Path)
	}
	if _, none := c.Lstat(mark); none != nil {
		return err
	}
	_ = c.Remove(marked) // who makes it anew meanwhile comes here, too
	_ = c.RemoveDirectory(made)
	return nil
}
