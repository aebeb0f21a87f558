package bags

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"bagpipe/layout"
)

const copyBuffer = 256 << 10

const (
	filePerm   fs.FileMode = 0o644
	folderPerm fs.FileMode = 0o755
)

// sink is the folder an archive is unpacked into. Members are admitted one after
// the other; their bytes may be written by several goroutines at once.
type sink struct {
	root    *os.Root
	archive string
	input   int64
	limits  Limits
	workers int

	// Used by the admitting goroutine alone.
	isDir  map[string]bool // every path so far: a folder, or not
	made   map[string]bool // folders that exist
	folded map[string]string
	folder folder
	times  []folderTime
	report Extracted

	buffers sync.Pool

	mu       sync.Mutex // guards done, and serialises progress
	done     Progress
	progress func(Progress)
}

type folderTime struct {
	path string
	at   time.Time
}

// member is one entry of an archive, as admitted.
type member struct {
	name string // as stored
	path string // as written
	mode fs.FileMode
	at   time.Time
	size int64 // declared; -1 when the archive does not say
}

func newSink(root *os.Root, archive string, input int64, o ExtractOptions) *sink {
	return &sink{
		root: root, archive: archive, input: input, limits: o.Limits.withDefaults(), workers: o.Workers,
		isDir: map[string]bool{}, made: map[string]bool{".": true}, folded: map[string]string{}, folder: newFolder(),
		buffers:  sync.Pool{New: func() any { b := make([]byte, copyBuffer); return &b }},
		progress: o.Progress,
	}
}

func (s *sink) broken(name string, rule Rule, detail string, err error) error {
	return &Error{Archive: s.archive, Member: name, Rule: rule, Detail: detail, Err: err}
}

func (s *sink) warn(name, text string) {
	s.report.Warnings = append(s.report.Warnings, layout.EncodePath(name)+": "+text)
}

// admit checks a member's name against the rules and the members before it, and
// gives the path to write. An empty path is the root folder: nothing to do.
func (s *sink) admit(name string, dir bool) (string, error) {
	p, rule, detail := checkName(name, s.report.Format == Zip, s.limits)
	if rule != "" {
		return "", s.broken(name, rule, detail, nil)
	}
	if n := s.report.Files + s.report.Folders + 1; n > s.limits.Files {
		return "", s.broken(name, RuleFiles, fmt.Sprintf("the archive has more than %d members", s.limits.Files), nil)
	}
	if p == "" {
		if !dir {
			return "", s.broken(name, RuleEmptyName, "the member names the folder itself", nil)
		}
		return "", nil
	}
	if err := s.admitParents(name, p); err != nil {
		return "", err
	}
	was, seen := s.isDir[p]
	switch {
	case seen && was != dir:
		return "", s.broken(name, RuleConflict, "one path is both a file and a folder", nil)
	case seen && !dir:
		return "", s.broken(name, RuleDuplicate, "two members have this name", nil)
	}
	if !seen {
		s.note(name, p, dir)
	}
	if dir {
		s.report.Folders++
	} else {
		s.report.Files++
	}
	return p, nil
}

func (s *sink) admitParents(name, p string) error {
	for d := path.Dir(p); d != "."; d = path.Dir(d) {
		was, seen := s.isDir[d]
		if seen && was {
			return nil
		}
		if seen {
			return s.broken(name, RuleConflict, fmt.Sprintf("%q is a file in this archive", layout.EncodePath(d)), nil)
		}
		s.note(name, d, true)
	}
	return nil
}

func (s *sink) note(name, p string, dir bool) {
	s.isDir[p] = dir
	if strings.IndexByte(p, '\\') >= 0 && !dir {
		s.warn(name, "the name holds a backslash")
	}
	fold := s.folder.fold(p)
	if other, seen := s.folded[fold]; seen {
		s.warn(name, "differs only by case or normalisation from "+layout.EncodePath(other))
		return
	}
	s.folded[fold] = p
}

// mkdir makes p and what is missing above it.
func (s *sink) mkdir(p string) error {
	if s.made[p] {
		return nil
	}
	if err := s.mkdir(path.Dir(p)); err != nil {
		return err
	}
	if err := s.root.Mkdir(p, folderPerm); err != nil {
		return fmt.Errorf("unpack %s: %w", s.archive, err)
	}
	s.made[p] = true
	return nil
}

// write writes one admitted file whose folder exists. Safe for several
// goroutines.
func (s *sink) write(ctx context.Context, m member, r io.Reader) (err error) {
	f, err := s.root.OpenFile(m.path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, filePerm|m.mode&0o111)
	if err != nil {
		return fmt.Errorf("unpack %s: %w", s.archive, err)
	}
	n, err := s.copy(ctx, f, m, r)
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	if m.size >= 0 && n != m.size {
		return s.broken(m.name, RuleSize, fmt.Sprintf("%d bytes where the archive promises %d", n, m.size), nil)
	}
	if !m.at.IsZero() {
		if err := s.root.Chtimes(m.path, m.at, m.at); err != nil {
			return fmt.Errorf("unpack %s: %w", s.archive, err)
		}
	}
	return s.charge(m, 0, 1)
}

func (s *sink) copy(ctx context.Context, f *os.File, m member, r io.Reader) (n int64, err error) {
	buf := s.buffers.Get().(*[]byte)
	defer s.buffers.Put(buf)
	for {
		if err := ctx.Err(); err != nil {
			return n, err
		}
		got, rerr := r.Read(*buf)
		n += int64(got)
		if rule, detail := s.limits.overFile(n); rule != "" {
			return n, s.broken(m.name, rule, detail, nil)
		}
		if m.size >= 0 && n > m.size {
			return n, s.broken(m.name, RuleSize, fmt.Sprintf("more than the %d bytes the archive promises", m.size), nil)
		}
		if err := s.charge(m, int64(got), 0); err != nil {
			return n, err
		}
		if _, err := f.Write((*buf)[:got]); err != nil {
			return n, fmt.Errorf("unpack %s: %w", s.archive, err)
		}
		if errors.Is(rerr, io.EOF) {
			return n, nil
		}
		if rerr != nil {
			rule, detail := damage(rerr)
			return n, s.broken(m.name, rule, detail, rerr)
		}
	}
}

// charge counts bytes before they are written, so that a limit is never passed
// on disk.
func (s *sink) charge(m member, bytes, files int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.done.Bytes += bytes
	s.done.Files += files
	if rule, detail := s.limits.overBytes(s.done.Bytes, s.input); rule != "" {
		return s.broken(m.name, rule, detail, nil)
	}
	if s.progress != nil {
		s.progress(s.done)
	}
	return nil
}

// finish sets the folders' times, deepest first, once nothing is written any
// more.
func (s *sink) finish() (Extracted, error) {
	slices.SortFunc(s.times, func(a, b folderTime) int { return strings.Compare(b.path, a.path) })
	for _, t := range s.times {
		if err := s.root.Chtimes(t.path, t.at, t.at); err != nil {
			return Extracted{}, fmt.Errorf("unpack %s: %w", s.archive, err)
		}
	}
	s.report.Bytes = s.done.Bytes
	return s.report, nil
}

// addFolder makes an admitted folder.
func (s *sink) addFolder(p string, at time.Time) error {
	if p == "" {
		return nil
	}
	if !at.IsZero() {
		s.times = append(s.times, folderTime{p, at})
	}
	return s.mkdir(p)
}
