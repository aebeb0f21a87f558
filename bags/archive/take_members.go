package archive

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

	"bagpipe/bags/archive/internal/notes"
	"bagpipe/bags/files"
	"bagpipe/layout"
)

// sink is the folder an archive is unpacked into, or, without a root, the eyes of
// somebody who only looks at it. Members are admitted one after the other; their
// bytes may be written by several goroutines at once.
type sink struct {
	root *os.Root // nil: nothing is written
	look *look    // nil: the first broken rule ends the work
	notes.Notes
	o       ExtractOptions // with its defaults
	input   int64          // what the ratio is of
	from    readFrom
	before  before
	buffers sync.Pool
	meter   meter

	// Used by the admitting goroutine alone.
	paths  admission
	made   map[string]bool // folders that exist
	folds  folds
	times  []folderTime
	report Extracted
}

// before counts the members unpacked so far of the archive around this one.
type before struct {
	within       bool // this archive was in another
	files, bytes int64
}

// folds finds paths that other systems take for one.
type folds struct {
	files.Folder
	seen map[string]string // a path by its fold
}

// meter counts what is done.
type meter struct {
	mu       sync.Mutex // guards done, and serializes progress
	done     files.Progress
	progress func(files.Progress)
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
	if o.Workers <= 0 {
		o.Workers = runtime.GOMAXPROCS(0)
	}
	o.Limits = o.Limits.WithDefaults()
	s := &sink{
		root: root, Notes: notes.Notes{Archive: archive}, o: o, input: input, from: readFrom{bytes: input},
		made: map[string]bool{".": true}, folds: folds{files.NewFolder(), map[string]string{}},
		buffers: sync.Pool{New: func() any { b := make([]byte, files.CopyBuffer); return &b }},
		meter:   meter{progress: o.Progress},
	}
	s.paths = newAdmission(archive, o.Limits, s.note)
	return s
}

// admit gives the path to write a member to, by the rules for names.
func (s *sink) admit(name string, dir bool) (string, error) {
	s.paths.archive, s.paths.zipped, s.paths.before = s.Archive, s.report.Format == Zip, s.before.files
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
		s.Warn(name, "the name is not UTF-8; its bytes are kept as they are")
	}
	base := path.Base(p)
	if strings.IndexByte(base, '\\') >= 0 {
		s.Warn(name, "the name holds a backslash")
	} else if why := files.WindowsHostile(base); why != "" {
		s.Warn(name, "the name "+why)
	}
	fold := s.folds.Fold(p)
	if other, seen := s.folds.seen[fold]; seen {
		s.Warn(name, "differs only by case or normalisation from "+layout.EncodePath(other))
		return
	}
	s.folds.seen[fold] = p
}

// noteMode warns of bits that are dropped.
func (s *sink) noteMode(name string, m fs.FileMode) {
	if m&(fs.ModeSetuid|fs.ModeSetgid) != 0 && !m.IsDir() {
		s.Warn(name, "the setuid or setgid bit is dropped")
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
	if err := s.root.Mkdir(p, files.FolderPerm); err != nil {
		return fmt.Errorf("unpack %s: %w", s.Archive, err)
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
	if s.Unsaid > 0 {
		s.Warnings = append(s.Warnings, fmt.Sprintf("and %d more warnings", s.Unsaid))
	}
	s.report.Warnings = s.Warnings
	s.report.Bytes = s.meter.done.Bytes - s.before.bytes
	if s.root == nil {
		return s.report, nil
	}
	slices.SortFunc(s.times, func(a, b folderTime) int { return strings.Compare(b.path, a.path) })
	pl := &files.Creator{Root: s.root}
	defer pl.Close()
	for _, t := range s.times {
		if err := pl.SetTime(t.path, t.at); err != nil {
			return Extracted{}, fmt.Errorf("unpack %s: %w", s.Archive, err)
		}
	}
	return s.report, nil
}

// look collects the members and broken rules of an archive that is not unpacked.
type look struct {
	data     bool // the members' bytes are read and checked
	each     func(Member)
	peek     *Peek
	mu       sync.Mutex // guards problems
	problems []*files.Error
}

// maxProblems bounds the broken rules that are kept; an archive with more is no
// accident.
const maxProblems = 1000

// pass takes a member's broken rule down and lets the reading go on, where
// somebody only looks; else the error stands. A limit on the whole ends it always.
func (s *sink) pass(err error) error {
	var e *files.Error
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

// said reports whether a problem is the last one again: 7z tells of a member that it
// cannot read by its name, and again by its data.
func said(all []*files.Error, e *files.Error) bool {
	if len(all) == 0 {
		return false
	}
	last := all[len(all)-1]
	return last.Member == e.Member && last.Rule == e.Rule && last.Detail == e.Detail
}

// passName is pass for a stream, which cannot be read on after damage.
func (s *sink) passName(err error) error {
	var e *files.Error
	if errors.As(err, &e) && slices.Contains(ofTheStream, e.Rule) {
		return err
	}
	return s.pass(err)
}

var (
	ofTheWhole  = []files.Rule{files.RuleFiles, files.RuleBytes, files.RuleRatio, files.RuleMemory, files.RuleTime}
	ofTheStream = []files.Rule{files.RuleTruncated, files.RuleChecksum, files.RuleDamaged, files.RuleTrailing, files.RuleMethod, files.RuleSize}
)
