package inbox

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"hash/fnv"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// signature stands for the state of a drop; see the package comment. The zero
// value is no signature.
type signature struct {
	entries int
	hash    uint64
}

// survey is what one walk over a drop shows, without opening any file.
type survey struct {
	kind   Kind
	files  int
	bytes  int64
	newest time.Time // of all modification and change times
	sig    signature
	temp   string    // an unfinished name inside, relative
	bad    *BadError // the first rule broken
}

// empty tells whether there is nothing to keep: a folder without files, or a
// file without bytes.
func (s survey) empty() bool {
	return s.files == 0 || s.kind == File && s.bytes == 0
}

// pathReserve is what a path grows by, at most, on its way from the inbox to a
// step's scratch folder.
const pathReserve = 160

type surveyor struct {
	survey
	ctx    context.Context
	ignore []string // patterns that hold inside a drop
	limit  int      // longest relative path
	sum    hash.Hash64
}

// look surveys the drop at path. A drop that is not there is ErrGone; one that
// loses entries meanwhile is ErrChanged.
func (b *Box) look(ctx context.Context, path string) (survey, error) {
	s := &surveyor{ctx: ctx, ignore: inner(b.opt.Ignore), sum: fnv.New64a(),
		limit: unix.PathMax - 1 - len(b.opt.Root) - pathReserve}
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return survey{}, ErrGone
	}
	if err != nil {
		return survey{}, err
	}
	s.kind = File
	if info.IsDir() {
		s.kind = Folder
	}
	err = s.visit(path, ".", info)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) {
		return survey{}, ErrChanged
	}
	s.sig.hash = s.sum.Sum64()
	return s.survey, err
}

func (s *surveyor) visit(path, rel string, info fs.FileInfo) error {
	if err := s.ctx.Err(); err != nil {
		return err
	}
	s.note(rel, info)
	if bad := refuse(rel, info.Mode()); bad != nil {
		s.spoil(bad)
		return nil
	}
	if info.Mode().IsRegular() {
		s.files++
		s.bytes += info.Size()
		if info.Mode().Perm()&0o444 != 0o444 && unix.Access(path, unix.R_OK) != nil {
			s.spoil(&BadError{RuleUnreadable, rel, "cannot be read; its permissions forbid it"})
		}
		return nil
	}
	return s.enter(path, rel)
}

func (s *surveyor) enter(path, rel string) error {
	entries, err := os.ReadDir(path)
	if errors.Is(err, fs.ErrPermission) {
		s.spoil(&BadError{RuleUnreadable, rel, "is a folder that cannot be read; its permissions forbid it"})
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		child := e.Name()
		if rel != "." {
			child = rel + "/" + child
		}
		if len(child) > s.limit {
			s.spoil(&BadError{RulePath, rel, fmt.Sprintf("holds a path of %d bytes; the limit here is %d", len(child), s.limit)})
			continue
		}
		info, err := os.Lstat(filepath.Join(path, e.Name()))
		if errors.Is(err, fs.ErrPermission) {
			s.spoil(&BadError{RuleUnreadable, child, "cannot be looked at; its folder's permissions forbid it"})
			continue
		}
		if err != nil {
			return err
		}
		if s.temp == "" && matchAny(s.ignore, e.Name()) {
			s.temp = child
		}
		if err := s.visit(filepath.Join(path, e.Name()), child, info); err != nil {
			return err
		}
	}
	return nil
}

// note adds an entry to the signature and to the newest time.
func (s *surveyor) note(rel string, info fs.FileInfo) {
	st := info.Sys().(*syscall.Stat_t)
	changed := time.Unix(st.Ctim.Unix())
	s.newest = later(s.newest, later(info.ModTime(), changed))
	s.sig.entries++
	var ctime int64
	if rel != "." {
		ctime = changed.UnixNano()
	}
	size := info.Size()
	if info.IsDir() {
		size = 0
	}
	var b [40]byte
	for i, v := range []uint64{uint64(info.Mode().Type()), st.Ino, uint64(size), uint64(info.ModTime().UnixNano()), uint64(ctime)} {
		binary.LittleEndian.PutUint64(b[8*i:], v)
	}
	s.sum.Write(b[:])
	s.sum.Write([]byte(rel))
	s.sum.Write([]byte{0})
}

func (s *surveyor) spoil(bad *BadError) {
	if s.bad == nil {
		s.bad = bad
	}
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// inner are the patterns that count inside a drop too.
func inner(patterns []string) []string {
	var in []string
	for _, p := range patterns {
		if !strings.HasPrefix(p, ".") {
			in = append(in, p)
		}
	}
	return in
}

func matchAny(patterns []string, name string) bool {
	for _, p := range patterns {
		if ok, _ := filepath.Match(p, name); ok { // New has checked the pattern
			return true
		}
	}
	return false
}
