package files

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"bagpipe/layout/disk"

	"golang.org/x/sys/unix"
)

// Entry is one thing found in a folder.
type Entry struct {
	Path  string // relative to the folder, forward slashes, raw bytes
	Size  int64
	Mode  fs.FileMode
	Links uint32 // its names, of a scanned one
	Time  time.Time
}

// Tree is a folder's contents. Links are never followed; nothing is opened but
// folders.
type Tree struct {
	Dir     string
	Files   []Entry // regular files, in byte order of their folders' walk
	Folders []Entry // without Dir itself
	Others  []Entry // links, devices, FIFOs, sockets
	Stands  string  // the name below Dir of the only file, where its Path is another; "": as its Path
}

// At is where a file of the tree stands, by its Path.
func (t *Tree) At(path string) string {
	return filepath.Join(t.Dir, filepath.FromSlash(t.stands(path)))
}

// stands is the name below Dir of a file, by its Path.
func (t *Tree) stands(path string) string {
	if t.Stands != "" {
		return t.Stands
	}
	return path
}

// Bytes is the size of all files together.
func (t *Tree) Bytes() (n int64) {
	for i := range t.Files {
		n += t.Files[i].Size
	}
	return n
}

// EmptyFolders gives the folders that hold nothing at all.
func (t *Tree) EmptyFolders() []string {
	used := map[string]bool{}
	for _, es := range [][]Entry{t.Files, t.Folders, t.Others} {
		for i := range es {
			used[parent(es[i].Path)] = true
		}
	}
	var empty []string
	for i := range t.Folders {
		if !used[t.Folders[i].Path] {
			empty = append(empty, t.Folders[i].Path)
		}
	}
	return empty
}

// CheckRegular gives an *Error for the first link or special file.
func (t *Tree) CheckRegular() error {
	if len(t.Others) == 0 {
		return nil
	}
	first := &t.Others[0]
	if first.Mode&fs.ModeSymlink != 0 {
		return &Error{Archive: filepath.Base(t.Dir), Member: first.Path, Rule: RuleSymlink, Detail: RefusedLink(SymbolicLinks, "")}
	}
	return &Error{Archive: filepath.Base(t.Dir), Member: first.Path, Rule: RuleSpecial, Detail: "devices, FIFOs and sockets are not taken"}
}

func parent(p string) string {
	for i := len(p) - 1; i >= 0; i-- {
		if p[i] == '/' {
			return p[:i]
		}
	}
	return ""
}

// Scan lists everything below dir.
func Scan(ctx context.Context, dir string) (*Tree, error) { return ScanExcept(ctx, dir, "") }

// ScanExcept lists everything below dir but its folder skip.
func ScanExcept(ctx context.Context, dir, skip string) (*Tree, error) {
	s := &scanner{dir: dir, skip: skip}
	top := &scanned{}
	if err := s.all(ctx, top); err != nil {
		if info, statErr := os.Stat(dir); statErr == nil && !info.IsDir() {
			return nil, fmt.Errorf("list %s: not a folder", dir)
		}
		return nil, fmt.Errorf("list folder: %w", err)
	}
	t := &Tree{Dir: dir, Files: make([]Entry, 0, s.files)}
	top.flatten(t)
	return t, nil
}

// scanner lists folders: each costs one open, and its entries are looked up from it, not
// from the root. The caller lists by itself until so many folders wait that others help:
// to wake them for a few takes longer than to list these.
type scanner struct {
	dir, skip string

	mu      sync.Mutex // guards the rest
	more    *sync.Cond
	waiting []*scanned
	busy    int
	err     error
	files   int
	helpers int
	ended   sync.WaitGroup // of the helpers
}

// worthHelp is how many folders wait when others help.
const worthHelp = 8

// scanned is one folder of the walk.
type scanned struct {
	path    string // "" for the top
	entries []Entry
	folders []*scanned // those among entries, in their order
}

func (s *scanner) all(ctx context.Context, top *scanned) error {
	s.more = sync.NewCond(&s.mu)
	s.waiting = []*scanned{top}
	s.work(ctx)
	s.ended.Wait()
	return s.err
}

// work lists folders until there are no more.
func (s *scanner) work(ctx context.Context) {
	for d := s.next(); d != nil; d = s.next() {
		err := ctx.Err()
		if err == nil {
			err = s.list(d)
		}
		s.done(ctx, d, err)
	}
}

// next waits for a folder to list; nil when there will be none.
func (s *scanner) next() *scanned {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.waiting) == 0 && s.busy > 0 && s.err == nil {
		s.more.Wait()
	}
	if len(s.waiting) == 0 || s.err != nil {
		return nil
	}
	d := s.waiting[len(s.waiting)-1]
	s.waiting = s.waiting[:len(s.waiting)-1]
	s.busy++
	return d
}

func (s *scanner) done(ctx context.Context, d *scanned, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.busy--
	if s.err == nil {
		s.err = err
	}
	s.files += len(d.entries) - len(d.folders)
	s.waiting = append(s.waiting, d.folders...)
	if len(s.waiting) >= worthHelp {
		for ; s.helpers+1 < runtime.GOMAXPROCS(0); s.helpers++ {
			s.ended.Go(func() { s.work(ctx) })
		}
	}
	if s.helpers > 0 {
		s.more.Broadcast()
	}
}

// list reads one folder. The top may be a link; what is below is never followed.
func (s *scanner) list(d *scanned) (err error) {
	flags := unix.O_RDONLY | unix.O_DIRECTORY | unix.O_CLOEXEC
	if d.path != "" {
		flags |= unix.O_NOFOLLOW
	}
	at := filepath.Join(s.dir, filepath.FromSlash(d.path))
	fd, err := retry(func() (int, error) { return unix.Open(at, flags, 0) })
	if err != nil {
		return &fs.PathError{Op: "open", Path: at, Err: err}
	}
	defer func() { err = errors.Join(err, unix.Close(fd)) }()
	names, err := disk.NamesIn(fd)
	if err != nil {
		return &fs.PathError{Op: "readdir", Path: at, Err: err}
	}
	slices.SortFunc(names, func(a, b disk.Named) int { return strings.Compare(a.Name, b.Name) })
	d.entries = make([]Entry, 0, len(names))
	for _, n := range names {
		name := n.Name
		if s.skip != "" && d.path == "" && name == s.skip {
			continue
		}
		e, err := statAt(fd, name)
		if err != nil {
			return &fs.PathError{Op: "lstat", Path: filepath.Join(at, name), Err: err}
		}
		if e.Path = name; d.path != "" {
			e.Path = d.path + "/" + name
		}
		if e.Mode.IsDir() {
			d.folders = append(d.folders, &scanned{path: e.Path})
		}
		d.entries = append(d.entries, e)
	}
	return nil
}

func statAt(fd int, name string) (Entry, error) {
	var st unix.Stat_t
	if _, err := retry(func() (int, error) { return 0, unix.Fstatat(fd, name, &st, unix.AT_SYMLINK_NOFOLLOW) }); err != nil {
		return Entry{}, err
	}
	e := Entry{Size: st.Size, Mode: modeOf(st.Mode), Links: uint32(st.Nlink), Time: time.Unix(st.Mtim.Unix())}
	if e.Mode.IsDir() {
		e.Size = 0
	}
	return e, nil
}

// modeOf gives Unix's mode as io/fs has it.
func modeOf(m uint32) fs.FileMode {
	mode := fs.FileMode(m & 0o777)
	switch m & unix.S_IFMT {
	case unix.S_IFREG:
	case unix.S_IFDIR:
		mode |= fs.ModeDir
	case unix.S_IFLNK:
		mode |= fs.ModeSymlink
	case unix.S_IFIFO:
		mode |= fs.ModeNamedPipe
	case unix.S_IFSOCK:
		mode |= fs.ModeSocket
	case unix.S_IFBLK:
		mode |= fs.ModeDevice
	case unix.S_IFCHR:
		mode |= fs.ModeDevice | fs.ModeCharDevice
	default:
		mode |= fs.ModeIrregular
	}
	for _, b := range [...]struct {
		bit  uint32
		mode fs.FileMode
	}{{unix.S_ISUID, fs.ModeSetuid}, {unix.S_ISGID, fs.ModeSetgid}, {unix.S_ISVTX, fs.ModeSticky}} {
		if m&b.bit != 0 {
			mode |= b.mode
		}
	}
	return mode
}

// flatten puts the walk in its order: each folder before what is in it, entries by
// their names' bytes.
func (d *scanned) flatten(t *Tree) {
	folders := d.folders
	for i := range d.entries {
		e := &d.entries[i]
		switch {
		case e.Mode.IsDir():
			t.Folders = append(t.Folders, *e)
			folders[0].flatten(t)
			folders = folders[1:]
		case e.Mode.IsRegular():
			t.Files = append(t.Files, *e)
		default:
			t.Others = append(t.Others, *e)
		}
	}
	d.entries = nil
}
