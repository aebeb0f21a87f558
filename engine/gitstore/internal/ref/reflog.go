package ref

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"bagpipe/engine/gitstore/internal/odb"
	"bagpipe/engine/gitstore/internal/repo"
	"bagpipe/layout"
	"bagpipe/layout/disk"
)

// The reflog is written a minute or two behind, one entry for all the moves of a minute. The
// reason is git fsck: git lists the objects first and reads the reflogs last, and calls an
// entry invalid whose commit was made in between. Beside an engine that commits at full speed,
// or commands that follow each other, git fsck would never be silent. What is too young at
// Close stands in leftFile until a later process writes it.
//
// No entry is synced: a crash loses the last entries, or cuts one (see CutTornReflogs).
// The branch and its history do not depend on them.
const reflogLag = time.Minute

// leftFile has a line for each entry that was too young when its process ended: from when on
// it may be written, in Unix seconds, and the entry. Its lock guards it.
const leftFile = layout.StateDir + "/reflog"

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
	moves     []Move    // not written yet
	looked    time.Time // into leftFile
}

// NewReflog makes a Reflog; its entries name the committer.
func NewReflog(r *repo.Repo, committer repo.Signature) *Reflog {
	return &Reflog{repo: r, committer: committer}
}

// Note takes a move in, and writes the entries that are old enough.
func (g *Reflog) Note(m Move) {
	now := g.repo.Now()
	if now.Sub(g.looked) >= reflogLag {
		g.looked = now
		if err := g.pass(nil); err != nil {
			g.repo.Log.Warn("write reflog", "error", err)
		}
	}
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

// Flush leaves the rest to later processes, at Close; where it cannot, it writes it.
func (g *Reflog) Flush() {
	if len(g.moves) > 0 && g.pass(g.moves) != nil {
		for _, m := range g.moves {
			g.writeMove(m)
		}
	}
	g.moves = nil
}

// pass writes what ended processes left, where it is old enough, and leaves moves.
func (g *Reflog) pass(moves []Move) (err error) {
	path := g.repo.State(leftFile)
	if len(moves) == 0 && !g.repo.Exists(path) {
		return nil
	}
	unlock, err := disk.LockFile(path, 0o666)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	left, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	now := g.repo.Now()
	var young []byte
	for line := range bytes.Lines(left) {
		at, entry, _ := bytes.Cut(line, []byte(" "))
		from, err := strconv.ParseInt(string(at), 10, 64)
		switch {
		case err != nil || !bytes.HasSuffix(entry, []byte("\n")): // torn by a crash
		case now.Unix() < from && from <= now.Add(2*reflogLag).Unix(): // else the clock was set back
			young = append(young, line...)
		default:
			g.append(entry)
		}
	}
	for _, m := range moves {
		if due := m.since.Add(2 * reflogLag); now.Before(due) { // its last commit came a minute after the first at most
			young = append(fmt.Appendf(young, "%d ", due.Unix()), g.entry(m)...)
		} else {
			g.writeMove(m)
		}
	}
	return os.WriteFile(path, young, 0o666)
}

func (g *Reflog) writeMove(m Move) { g.append(g.entry(m)) }

func (g *Reflog) entry(m Move) []byte {
	text, _, _ := strings.Cut(m.Subject, "\n")
	if m.Commits > 1 {
		text = fmt.Sprintf("%d commits: %s", m.Commits, text)
	}
	return g.line(m.From, m.To, m.since, text)
}

// Write writes one entry at once, of the branch and of HEAD.
func (g *Reflog) Write(from, to odb.Hash, when time.Time, text string) {
	g.append(g.line(from, to, when, text))
}

func (g *Reflog) line(from, to odb.Hash, when time.Time, text string) []byte {
	line := fmt.Appendf(nil, "%s %s ", from, to)
	line = append(g.committer.At(when).Append(line), "\tbagpipe: "...)
	line = append(line, strings.Map(func(r rune) rune { return max(r, ' ') }, text)...)
	return append(line, '\n')
}

func (g *Reflog) append(line []byte) {
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
