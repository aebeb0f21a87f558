package gitstore

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"bagpipe/layout/disk"
)

// The reflog is written a minute or two behind, one entry for all the moves of a
// minute, and at Close. The reason is git fsck: it lists the objects first and
// reads the reflogs last, and calls an entry invalid whose commit was made in
// between. Beside an engine that commits at full speed it would never be silent.
//
// Nothing is synced: a crash loses the last entries, or cuts one (see
// clearReflog). The branch and its history do not depend on them.
const reflogLag = time.Minute

// move is one entry to be: the moves of a minute.
type move struct {
	from, to Hash
	commits  int
	subject  string // of the last commit
	since    time.Time
}

// noteMove takes a group's move into the entries to be written.
func (s *Store) noteMove(b *built) {
	now := s.opts.Now()
	m := &s.own.moves
	if n := len(*m); n > 0 && (*m)[n-1].to == b.base && now.Sub((*m)[n-1].since) < reflogLag {
		last := &(*m)[n-1]
		last.to, last.commits, last.subject = b.tip, last.commits+b.commits, b.subject
		return
	}
	*m = append(*m, move{b.base, b.tip, b.commits, b.subject, now})
	for len(*m) > 1 && now.Sub((*m)[1].since) >= reflogLag { // the first has not moved since
		s.writeMove((*m)[0])
		*m = (*m)[1:]
	}
}

// writeMoves writes all that is left, at Close.
func (s *Store) writeMoves() {
	for _, m := range s.own.moves {
		s.writeMove(m)
	}
	s.own.moves = nil
}

func (s *Store) writeMove(m move) {
	text, _, _ := strings.Cut(m.subject, "\n")
	if m.commits > 1 {
		text = fmt.Sprintf("%d commits: %s", m.commits, text)
	}
	s.writeReflog(m.from, m.to, m.since, "bagpipe: "+text)
}

func (s *Store) writeReflog(from, to Hash, when time.Time, text string) {
	line := s.reflogLine(from, to, when, text)
	for _, name := range []string{s.branch, "HEAD"} {
		if err := s.appendLine(filepath.Join(s.git, "logs", filepath.FromSlash(name)), line); err != nil {
			s.log.Warn("write reflog", "ref", name, "error", err)
		}
	}
}

func (s *Store) reflogLine(from, to Hash, when time.Time, text string) []byte {
	who := s.opts.Committer
	line := fmt.Appendf(nil, "%s %s ", from, to)
	line = personNow(who, when).Append(line)
	line = append(line, '\t')
	line = append(line, strings.Map(func(r rune) rune {
		if r < ' ' {
			return ' '
		}
		return r
	}, text)...)
	return append(line, '\n')
}

func (s *Store) appendLine(name string, line []byte) (err error) {
	const flags = os.O_CREATE | os.O_APPEND | os.O_WRONLY
	f, err := s.fs.OpenFile(name, flags, 0o644)
	if errors.Is(err, fs.ErrNotExist) {
		if err := disk.MkdirAllFS(s.fs, filepath.Dir(name), 0o755); err != nil {
			return err
		}
		f, err = s.fs.OpenFile(name, flags, 0o644)
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	_, err = f.Write(line)
	return err
}
