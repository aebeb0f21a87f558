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
	"unicode/utf8"

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
	paths  admission
	made   map[string]bool // folders that exist
	folded map[string]string
	folder folder
	times  []folderTime
	report Extracted
	unsaid int64 // warnings beyond maxWarnings

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
	s := &sink{
		root: root, archive: archive, input: input, packed: input, limits: o.Limits.withDefaults(), workers: workers, names: o.Names,
		made: map[string]bool{".": true}, folded: map[string]string{}, folder: newFolder(),
		buffers:  sync.Pool{New: func() any { b := make([]byte, copyBuffer); return &b }},
		progress: o.Progress,
	}
	s.paths = newAdmission(archive, s.limits, s.note)
	return s
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

// admit gives the path to write a member to, by the rules for names.
func (s *sink) admit(name string, dir bool) (string, error) {
	s.paths.archive, s.paths.zipped, s.paths.before = s.archive, s.report.Format == Zip, s.usedFiles
	p, err := s.paths.admit(name, dir)
	if err == nil && p != "" && !dir {
		s.report.Files++
	}
	return p, err
}

// note warns of a path that is new where other systems could not hold it.
func (s *sink) note(name, p string, dir bool) {
	if dir {
		s.report.Folders++
	}
	if !utf8.ValidString(path.Base(p)) {
		s.warn(name, "the name is not UTF-8; its bytes are kept as they are")
	}
	base := path.Base(p)
	if strings.IndexByte(base, '\\') >= 0 {
		s.warn(name, "the name holds a backslash")
	} else if why := windowsHostile(base); why != "" {
		s.warn(name, "the name "+why)
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
	peek     *Peek
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
