package faultfs

import (
	"bytes"
	"fmt"
	"os"
	"slices"
)

// Loss is what the end of the machine takes.
type Loss int

const (
	// Nothing: the process was killed; the system wrote the rest.
	Nothing Loss = iota
	// Unsynced: names not synced with their folder are as before, bytes not
	// synced are as at the last sync.
	Unsynced
	// Bytes: the names stay as they were last, but bytes that were not synced
	// read as zeros: metadata reached the disk and data did not.
	Bytes
)

func (l Loss) String() string {
	return [...]string{"nothing lost", "unsynced lost", "bytes lost"}[l]
}

// Cut stops the file system and takes away what the loss says.
func (f *FS) Cut(l Loss) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stopped = true
	if l == Nothing {
		return nil
	}
	paths := make([]string, 0, len(f.names))
	for path := range f.names {
		paths = append(paths, path)
	}
	slices.Sort(paths) // folders before what is in them
	made := map[*inode]string{}
	for _, path := range paths {
		if err := f.names[path].settle(path, l, made); err != nil {
			return fmt.Errorf("cut %s: %w", path, err)
		}
	}
	return nil
}

// settle makes a path what it is after the cut. made are the files written anew,
// for their other names.
func (n *name) settle(path string, l Loss, made map[*inode]string) error {
	want := n.stable
	if l == Bytes {
		want = n.live
	}
	if want == nil {
		return os.RemoveAll(path)
	}
	if want.dir {
		err := os.Mkdir(path, 0o755)
		if os.IsExist(err) || os.IsNotExist(err) { // its own folder is lost
			return nil
		}
		return err
	}
	if want == n.live && want.synced {
		return nil
	}
	data := want.durable
	if l == Bytes {
		now, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		data = bytes.Repeat([]byte{0}, len(now))
		copy(data, want.durable[:min(len(want.durable), len(now))])
	}
	if err := os.RemoveAll(path); err != nil {
		return err
	}
	if first, ok := made[want]; ok {
		return ignoreLostFolder(os.Link(first, path))
	}
	made[want] = path
	return ignoreLostFolder(os.WriteFile(path, data, 0o644))
}

func ignoreLostFolder(err error) error {
	if os.IsNotExist(err) {
		return nil
	}
	return err
}
