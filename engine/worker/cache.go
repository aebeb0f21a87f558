package worker

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"bagpipe/engine/remote/wire"
)

// cache keeps files by their digests, up to a size; those used longest ago go first. Its files
// are copies, so that a robot that writes into its item spoils none.
type cache struct {
	dir  string
	most int64 // bytes; 0: nothing is kept

	mu   sync.Mutex // guards the folder against two that make room, and size
	size int64      // of its files in bytes, at most so many; unknown: they are to be counted
}

// unknown is the size of a cache whose files were not counted yet.
const unknown = -1

func newCache(dir string, most int64) *cache { return &cache{dir: dir, most: most, size: unknown} }

func (c *cache) path(sum string) string { return filepath.Join(c.dir, sum[:2], sum) }

// give copies a file from the cache; false where it is not there as announced.
func (c *cache) give(root *os.Root, f wire.File) bool {
	if c.most == 0 || len(f.SHA256) != 64 {
		return false
	}
	in, err := os.Open(c.path(f.SHA256))
	if err != nil {
		return false
	}
	defer in.Close()
	e := errand{w: &Worker{cache: newCache("", 0)}}
	if e.put(root, f, in, 0) != nil {
		return false
	}
	_ = os.Chtimes(c.path(f.SHA256), time.Time{}, time.Now()) // used last; where that cannot be noted it goes earlier
	return true
}

// keep copies a verified file into the cache. What goes wrong costs the next fetch alone.
func (c *cache) keep(root *os.Root, rel string, f wire.File) {
	if c.most == 0 || f.Size > c.most/2 {
		return
	}
	in, err := root.Open(rel)
	if err != nil {
		return
	}
	defer in.Close()
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.room(f.Size); err != nil {
		return
	}
	_ = c.add(in, f) // it is fetched again
}

func (c *cache) add(in io.Reader, f wire.File) (err error) {
	path := c.path(f.SHA256)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	out, err := os.CreateTemp(c.dir, "new-")
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	if err = errors.Join(err, out.Close()); err == nil {
		err = os.Rename(out.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(out.Name()))
	}
	c.size += f.Size
	return nil
}

// room removes the files used longest ago where size more would not fit, and a tenth of all besides: they are counted then,
// and not for each file. c.mu is held.
func (c *cache) room(size int64) error {
	if c.size != unknown && c.size+size <= c.most {
		return nil
	}
	type kept struct {
		path string
		info fs.FileInfo
	}
	var all []kept
	total := int64(0)
	err := filepath.WalkDir(c.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return ignoreMissing(err)
		}
		info, err := d.Info()
		if err == nil {
			all = append(all, kept{path, info})
			total += info.Size()
		}
		return ignoreMissing(err)
	})
	if err != nil {
		return err
	}
	c.size = total
	if total+size <= c.most {
		return nil
	}
	slices.SortFunc(all, func(a, b kept) int { return a.info.ModTime().Compare(b.info.ModTime()) })
	for _, k := range all {
		if c.size+size <= c.most-c.most/10 {
			return nil
		}
		if err := os.Remove(k.path); err != nil {
			return err
		}
		c.size -= k.info.Size()
	}
	return nil
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
