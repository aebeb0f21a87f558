package ref

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"bagpipe/engine/gitstore/internal/odb"
	"bagpipe/engine/gitstore/internal/repo"
)

// The reflog is written a minute or two behind, one entry for all the moves of a minute,
// and at Close. The reason is git fsck: git lists the objects first and reads the reflogs
// last, and calls an entry invalid whose commit was made in between. Beside an engine that
// commits at full speed git fsck would never be silent.
//
// No entry is synced: a crash loses the last entries, or cuts one (see CutTornReflogs).
// The branch and its history do not depend on them.
const reflogLag = time.Minute

// Move is one group's move of the branch, or all the moves of a minute.
type Move struct {
	From, To odb.Hash
	Commits  int
	Subject  string // of the last commit
	since    time.Time
}

// Reflog collects moves and writes them.
type Reflog struct {
	repo      *repo.Repo
	committer repo.Signature
	moves     []Move // not written yet
}

// NewReflog makes a Reflog; its entries name the committer.
func NewReflog(r *repo.Repo, committer repo.Signature) *Reflog {
	return &Reflog{repo: r, committer: committer}
}

// Note takes a move in, and writes the entries that are old enough.
func (g *Reflog) Note(m Move) {
	now := g.repo.Now()
	if n := len(g.moves); n > 0 && g.moves[n-1].To == m.From && now.Sub(g.moves[n-1].since) < reflogLag {
		last := &g.moves[n-1]
		last.To, last.Commits, last.Subject = m.To, last.Commits+m.Commits, m.Subject
		return
	}
	m.since = now
	g.moves = append(g.moves, m)
	for len(g.moves) > 1 && now.Sub(g.moves[1].since) >= reflogLag { // the first has not moved since
		g.writeMove(g.moves[0])
		g.moves = g.moves[1:]
	}
}

// Flush writes all that is left, at Close.
func (g *Reflog) Flush() {
	for _, m := range g.moves {
		g.writeMove(m)
	}
	g.moves = nil
}

func (g *Reflog) writeMove(m Move) {
	text, _, _ := strings.Cut(m.Subject, "\n")
	if m.Commits > 1 {
		text = fmt.Sprintf("%d commits: %s", m.Commits, text)
	}
	g.Write(m.From, m.To, m.since, text)
}

// Write writes one entry, of the branch and of HEAD.
func (g *Reflog) Write(from, to odb.Hash, when time.Time, text string) {
	line := fmt.Appendf(nil, "%s %s ", from, to)
	line = append(g.committer.At(when).Append(line), "\tbagpipe: "...)
	line = append(line, strings.Map(func(r rune) rune { return max(r, ' ') }, text)...)
	line = append(line, '\n')
	for _, name := range reflogs(g.repo) {
		if err := g.repo.Append(name, line); err != nil {
			g.repo.Log.Warn("write reflog", "file", name, "error", err)
		}
	}
}

func reflogs(r *repo.Repo) []string {
	logs := filepath.Join(r.Git, "logs")
	return []string{filepath.Join(logs, filepath.FromSlash(r.Branch)), filepath.Join(logs, "HEAD")}
}

// CutTornReflogs cuts off a last line that a crash left unfinished.
func CutTornReflogs(r *repo.Repo) error {
	for _, name := range reflogs(r) {
		if err := cutTornLine(r, name); err != nil {
			return fmt.Errorf("repair reflog %s: %w", name, err)
		}
	}
	return nil
}

const maxReflogLine = 64 << 10

func cutTornLine(r *repo.Repo, name string) (err error) {
	f, err := r.FS.OpenFile(name, os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil || info.Size() == 0 {
		return err
	}
	from := max(0, info.Size()-maxReflogLine)
	tail := make([]byte, info.Size()-from)
	if _, err := f.ReadAt(tail, from); err != nil {
		return err
	}
	end := bytes.LastIndexByte(tail, '\n') + 1
	if end == len(tail) {
		return nil
	}
	return f.Truncate(from + int64(end))
}
