package bags

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"runtime"
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

// maxWarnings is how many warnings are kept by their words; the rest are counted.
const maxWarnings = 1000

// sink is the folder an archive is unpacked into, or, without a root, the eyes of
// somebody who only looks at it. Members are admitted one after the other; their
// bytes may be written by several goroutines at once.
type sink struct {
	root    *os.Root // nil: nothing is written
	look    *look    // nil: the first broken rule ends the work
	archive string
	input   int64
	limits  Limits
	workers int
	names   string
	volumes []string // the files that the archive is made of, where there may be several
	packed  int64    // their bytes; input, but for an archive within another

	// What was unpacked before, of the archive that this one was in.
	within               bool
	usedFiles, usedBytes int64

	// Used by the admitting goroutine alone.
	isDir   map[string]bool // every path so far: a folder, or not
	made    map[string]bool // folders that exist
	folded  map[string]string
	folder  folder
	times   []folderTime
	report  Extracted
	members int64 // seen, the same folder again included
	unsaid  int64 // warnings beyond maxWarnings

	buffers sync.Pool

	mu       sync.Mutex // guards done, and serializes progress
	done     Progress
	progress func(Progress)
}

type folderTime struct {
	path string
	at   time.Time
}

// member is one entry of an archive, as admitted.
type member struct {
	name   string // as stored, in UTF-8 where its code page is known
	path   string // as written
	mode   fs.FileMode
	at     time.Time
	size   int64 // declared; -1 when the archive does not say
	sparse bool  // runs of zeros become holes
}

func newSink(root *os.Root, archive string, input int64, o ExtractOptions) *sink {
	workers := o.Workers
	if workers <= 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	return &sink{
		root: root, archive: archive, input: input, packed: input, limits: o.Limits.withDefaults(), workers: workers, names: o.Names,
		isDir: map[string]bool{}, made: map[string]bool{".": true}, folded: map[string]string{}, folder: newFolder(),
		buffers:  sync.Pool{New: func() any { b := make([]byte, copyBuffer); return &b }},
		progress: o.Progress,
	}
}

func (s *sink) broken(name string, rule Rule, detail string, err error) error {
	return &Error{Archive: s.archive, Member: name, Rule: rule, Detail: detail, Err: err}
}

func (s *sink) warn(name, text string) {
	if len(s.report.Warnings) >= maxWarnings {
		s.unsaid++
		return
	}
	if name != "" {
		text = layout.EncodePath(name) + ": " + text
	}
	s.report.Warnings = append(s.report.Warnings, text)
}

// admit checks a member's name against the rules and the members before it, and
// gives the path to write. An empty path is the root folder: nothing to do.
func (s *sink) admit(name string, dir bool) (string, error) {
	p, rule, detail := checkName(name, s.report.Format == Zip, s.limits)
	if rule != "" {
		return "", s.broken(name, rule, detail, nil)
	}
	if s.members++; s.usedFiles+s.members > s.limits.Files {
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
	if !dir {
		s.report.Files++
	}
	return p, nil
}

// admitParents counts the folders that no member stands for as members too: they
// are made all the same.
func (s *sink) admitParents(name, p string) error {
	for d := path.Dir(p); d != "."; d = path.Dir(d) {
		was, seen := s.isDir[d]
		if seen && was {
			return nil
		}
		if seen {
			return s.broken(name, RuleConflict, fmt.Sprintf("%q is a file in this archive", layout.EncodePath(d)), nil)
		}
		if int64(len(s.isDir)) >= s.limits.Files+int64(s.limits.Depth) {
			return s.broken(name, RuleFiles, fmt.Sprintf("the archive has more than %d members and folders above them", s.limits.Files), nil)
		}
		s.note(name, d, true)
	}
	return nil
}

func (s *sink) note(name, p string, dir bool) {
	s.isDir[p] = dir
	if dir {
		s.report.Folders++
	}
	base := path.Base(p)
	if strings.IndexByte(base, '\\') >= 0 {
		s.warn(name, "the name holds a backslash")
	} else if why := windowsHostile(base); why != "" {
		s.warn(name, layout.EncodePath(base)+" "+why)
	}
	fold := s.folder.fold(p)
	if other, seen := s.folded[fold]; seen {
		s.warn(name, "differs only by case or normalisation from "+layout.EncodePath(other))
		return
	}
	s.folded[fold] = p
}

// noteMode warns of bits that are dropped.
func (s *sink) noteMode(name string, m fs.FileMode) {
	if m&(fs.ModeSetuid|fs.ModeSetgid) != 0 && !m.IsDir() {
		s.warn(name, "the setuid or setgid bit is dropped")
	}
}

// mkdir makes p and what is missing above it.
func (s *sink) mkdir(p string) error {
	if s.root == nil || s.made[p] {
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

// finish sets the folders' times, deepest first, once nothing is written any
// more.
func (s *sink) finish() (Extracted, error) {
	if s.unsaid > 0 {
		s.report.Warnings = append(s.report.Warnings, fmt.Sprintf("and %d more warnings", s.unsaid))
	}
	s.report.Bytes = s.done.Bytes - s.usedBytes
	if s.root == nil {
		return s.report, nil
	}
	slices.SortFunc(s.times, func(a, b folderTime) int { return strings.Compare(b.path, a.path) })
	pl := &placer{root: s.root}
	defer pl.close()
	for _, t := range s.times {
		if err := pl.setTime(t.path, t.at); err != nil {
			return Extracted{}, fmt.Errorf("unpack %s: %w", s.archive, err)
		}
	}
	return s.report, nil
}

// look is what a sink without a folder tells of an archive.
type look struct {
	data     bool // the members' bytes are read and checked
	each     func(Member)
	mu       sync.Mutex // guards problems
	problems []*Error
}

// maxProblems is how many broken rules are kept; an archive with more is no
// accident.
const maxProblems = 1000

// pass takes a member's broken rule down and lets the reading go on, where
// somebody only looks; else the error stands. A limit on the whole ends it always.
func (s *sink) pass(err error) error {
	var e *Error
	if s.look == nil || !errors.As(err, &e) || e.Member == "" || slices.Contains(ofTheWhole, e.Rule) {
		return err
	}
	s.look.mu.Lock()
	defer s.look.mu.Unlock()
	if said(s.look.problems, e) {
		return nil
	}
	if len(s.look.problems) >= maxProblems {
		return err
	}
	s.look.problems = append(s.look.problems, e)
	return nil
}

// said tells whether a problem is the last one again: 7z tells of a member that it
// cannot read by its name, and again by its data.
func said(all []*Error, e *Error) bool {
	if len(all) == 0 {
		return false
	}
	last := all[len(all)-1]
	return last.Member == e.Member && last.Rule == e.Rule && last.Detail == e.Detail
}

// passName is pass for a stream, which cannot be read on after damage.
func (s *sink) passName(err error) error {
	var e *Error
	if errors.As(err, &e) && slices.Contains(ofTheStream, e.Rule) {
		return err
	}
	return s.pass(err)
}

var (
	ofTheWhole  = []Rule{RuleFiles, RuleBytes, RuleRatio, RuleMemory, RuleTime}
	ofTheStream = []Rule{RuleTruncated, RuleChecksum, RuleDamaged, RuleTrailing, RuleMethod, RuleSize}
)
