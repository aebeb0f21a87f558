package faultfs

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	"bagpipe/layout/disk"
)

// ErrStopped is what a change gets after the one that failed: the machine
// stands still.
var ErrStopped = errors.New("the machine has stopped")

// FS is a disk.FS that can fail. Make it with New.
type FS struct {
	os disk.OS

	// mu guards what follows.
	mu      sync.Mutex
	count   int
	failAt  int
	fault   error
	goOn    bool
	stopped bool
	log     []string
	names   map[string]*name
	links   map[uint64]*inode // files found with several names
}

// name is what stands under a path: now, and after a power cut.
type name struct{ live, stable *inode }

// inode is one file, whatever names it has.
type inode struct {
	dir     bool
	durable []byte
	synced  bool // durable is what it holds, or nothing was written
}

// New gives a file system that fails at the k-th change (from 1; 0: never) with
// the error fault (nil: ErrStopped), and from then on with ErrStopped.
func New(k int, fault error) *FS {
	if fault == nil {
		fault = ErrStopped
	}
	return &FS{failAt: k, fault: fault, names: map[string]*name{}, links: map[uint64]*inode{}}
}

// NewTransient is New, but only the k-th change fails: a disk that was full for
// a moment.
func NewTransient(k int, fault error) *FS {
	f := New(k, fault)
	f.goOn = true
	return f
}

// Count is the number of changes asked for so far.
func (f *FS) Count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.count
}

// Failed reports whether the k-th change was reached, and which it was.
func (f *FS) Failed() (string, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.failAt == 0 || f.count < f.failAt {
		return "", false
	}
	return f.log[f.failAt-1], true
}

// Stop fails every change from now on.
func (f *FS) Stop() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stopped = true
}

// step counts a change and says whether it fails. The caller holds mu.
func (f *FS) step(op, path string) error {
	if f.stopped {
		return &fs.PathError{Op: op, Path: path, Err: ErrStopped}
	}
	f.count++
	f.log = append(f.log, op+" "+path)
	if f.count == f.failAt {
		f.stopped = !f.goOn
		return &fs.PathError{Op: op, Path: path, Err: f.fault}
	}
	return nil
}

// track gives the books of a path, taking what stands there for durable when it
// is seen for the first time.
func (f *FS) track(path string) *name {
	path = filepath.Clean(path)
	if n := f.names[path]; n != nil {
		return n
	}
	n := &name{}
	f.names[path] = n
	info, err := os.Lstat(path)
	if err != nil {
		return n
	}
	sys, ok := info.Sys().(*syscall.Stat_t)
	if known := f.links[sys.Ino]; ok && known != nil { // a second name of a file we know
		n.live, n.stable = known, known
		return n
	}
	n.live = &inode{dir: info.IsDir(), synced: true}
	if info.Mode().IsRegular() {
		if n.live.durable, err = os.ReadFile(path); err != nil {
			panic(fmt.Sprintf("faultfs: read %s: %v", path, err))
		}
	}
	n.stable = n.live
	if !info.IsDir() && sys.Nlink > 1 {
		f.links[sys.Ino] = n.live
	}
	return n
}

// OpenFile counts as a change when it makes or empties a file.
func (f *FS) OpenFile(path string, flag int, perm fs.FileMode) (disk.File, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if flag&(os.O_WRONLY|os.O_RDWR|os.O_CREATE|os.O_TRUNC) == 0 {
		return f.os.OpenFile(path, flag, perm)
	}
	n := f.track(path)
	makes := n.live == nil && flag&os.O_CREATE != 0
	if makes || n.live != nil && flag&os.O_TRUNC != 0 {
		if err := f.step("create", path); err != nil {
			return nil, err
		}
	} else if f.stopped {
		return nil, &fs.PathError{Op: "open", Path: path, Err: ErrStopped}
	}
	file, err := f.os.OpenFile(path, flag, perm)
	if err != nil {
		return nil, err
	}
	if makes {
		n.live = &inode{synced: true}
	}
	if flag&os.O_TRUNC != 0 {
		n.live.synced = false
	}
	return &openFile{File: file, fs: f, path: path, inode: n.live}, nil
}

// WriteNew counts as the changes that it is made of.
func (f *FS) WriteNew(path string, data []byte, perm fs.FileMode) (err error) {
	file, err := f.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	_, err = file.Write(data)
	return err
}

func (f *FS) Rename(oldPath, newPath string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	from, to := f.track(oldPath), f.track(newPath)
	if err := f.step("rename", newPath); err != nil {
		return err
	}
	if err := f.os.Rename(oldPath, newPath); err != nil {
		return err
	}
	to.live, from.live = from.live, nil
	if to.live != nil && to.live.dir {
		f.alongWith(filepath.Clean(oldPath)+"/", filepath.Clean(newPath)+"/")
	}
	return nil
}

// alongWith renames what is in a folder with it. The caller holds mu.
func (f *FS) alongWith(from, to string) {
	for path, n := range maps.Clone(f.names) {
		if rest, below := strings.CutPrefix(path, from); below && n.live != nil {
			if f.names[to+rest] == nil {
				f.names[to+rest] = &name{}
			}
			f.names[to+rest].live, n.live = n.live, nil
		}
	}
}

func (f *FS) Exchange(path, other string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	from, to := f.track(path), f.track(other)
	if err := f.step("exchange", other); err != nil {
		return err
	}
	if err := f.os.Exchange(path, other); err != nil {
		return err
	}
	to.live, from.live = from.live, to.live
	return nil
}

// Amend does all of a change or nothing.
func (f *FS) Amend(path string, edit func(old []byte) []byte) (done bool, err error) {
	f.mu.Lock()
	n := f.track(path)
	f.mu.Unlock()
	var fault error
	done, err = f.os.Amend(path, func(old []byte) []byte {
		data := edit(old)
		if data == nil {
			return nil
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		if fault = f.step("amend", path); fault != nil {
			return nil
		}
		n.live.synced = false
		return data
	})
	return done, errors.Join(err, fault)
}

func (f *FS) Link(oldPath, newPath string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	from, to := f.track(oldPath), f.track(newPath)
	if err := f.step("link", newPath); err != nil {
		return err
	}
	if err := f.os.Link(oldPath, newPath); err != nil {
		return err
	}
	to.live = from.live
	return nil
}

func (f *FS) Remove(path string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := f.track(path)
	if n.live == nil {
		return f.os.Remove(path)
	}
	if err := f.step("remove", path); err != nil {
		return err
	}
	if err := f.os.Remove(path); err != nil {
		return err
	}
	n.live = nil
	return nil
}

func (f *FS) Mkdir(path string, perm fs.FileMode) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := f.track(path)
	if err := f.step("mkdir", path); err != nil {
		return err
	}
	if err := f.os.Mkdir(path, perm); err != nil {
		return err
	}
	n.live = &inode{dir: true, synced: true}
	return nil
}

func (f *FS) SyncDir(dir string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.step("syncdir", dir); err != nil {
		return err
	}
	for path, n := range f.names {
		if filepath.Dir(path) == filepath.Clean(dir) {
			n.stable = n.live
		}
	}
	return nil
}

func (f *FS) SyncFS(path string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.step("syncfs", path); err != nil {
		return err
	}
	for path, n := range f.names {
		n.stable = n.live
		if n.live != nil && !n.live.dir {
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			n.live.durable, n.live.synced = data, true
		}
	}
	return nil
}

func (f *FS) ReadFile(path string) ([]byte, error)       { return f.os.ReadFile(path) }
func (f *FS) ReadDir(path string) ([]fs.DirEntry, error) { return f.os.ReadDir(path) }
func (f *FS) Lstat(path string) (fs.FileInfo, error)     { return f.os.Lstat(path) }

// openFile counts writes and syncs. A write that fails writes the first half.
type openFile struct {
	disk.File
	fs    *FS
	path  string
	inode *inode
}

func (o *openFile) Write(p []byte) (int, error) {
	return o.write(p, func(p []byte) (int, error) { return o.File.Write(p) })
}

func (o *openFile) WriteAt(p []byte, off int64) (int, error) {
	return o.write(p, func(p []byte) (int, error) { return o.File.WriteAt(p, off) })
}

func (o *openFile) write(p []byte, to func([]byte) (int, error)) (int, error) {
	o.fs.mu.Lock()
	defer o.fs.mu.Unlock()
	wasStopped := o.fs.stopped
	if err := o.fs.step("write", o.path); err != nil {
		if wasStopped {
			return 0, err
		}
		o.inode.synced = false
		n, writeErr := to(p[:len(p)/2])
		return n, errors.Join(err, writeErr)
	}
	o.inode.synced = false
	return to(p)
}

func (o *openFile) Truncate(size int64) error {
	o.fs.mu.Lock()
	defer o.fs.mu.Unlock()
	if err := o.fs.step("truncate", o.path); err != nil {
		return err
	}
	o.inode.synced = false
	return o.File.Truncate(size)
}

func (o *openFile) Sync() error {
	o.fs.mu.Lock()
	defer o.fs.mu.Unlock()
	if err := o.fs.step("sync", o.path); err != nil {
		return err
	}
	data, err := readAll(o.File, o.path)
	if err != nil {
		return err
	}
	o.inode.durable, o.inode.synced = data, true
	return nil
}

// readAll reads an open file whatever it was opened for, through /proc when it
// is open for writing only.
func readAll(f disk.File, path string) ([]byte, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	data := make([]byte, info.Size())
	if len(data) == 0 {
		return data, nil
	}
	if _, err := f.ReadAt(data, 0); err == nil {
		return data, nil
	}
	real, ok := f.(*os.File)
	if !ok {
		return nil, fmt.Errorf("faultfs: read back %s: not a file of the system", path)
	}
	return os.ReadFile(fmt.Sprintf("/proc/self/fd/%d", real.Fd()))
}

// FailNext makes the k-th change from now fail with the error; 0: none.
func (f *FS) FailNext(k int, fault error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.failAt, f.fault = f.count+k, fault
	if k == 0 {
		f.failAt = 0
	}
}

// Forget takes everything as it is now for durable: another program, which syncs
// what it writes, changed files beside the store.
func (f *FS) Forget() {
	f.mu.Lock()
	defer f.mu.Unlock()
	clear(f.names)
	clear(f.links)
}
