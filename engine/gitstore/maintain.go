package gitstore

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"bagpipe/engine/gitstore/internal/odb"
	"bagpipe/layout"
)

// Report says what Maintain did.
type Report struct {
	Busy        bool  `json:"busy"` // another process maintains this repository: nothing was done
	PacksBefore int   `json:"packsBefore"`
	PacksAfter  int   `json:"packsAfter"`
	BytesBefore int64 `json:"bytesBefore"` // of all packs
	BytesAfter  int64 `json:"bytesAfter"`
	Joined      int   `json:"joined"`    // packs that became one
	Graph       bool  `json:"graph"`     // the commit-graph was brought up to date
	Compacted   bool  `json:"compacted"` // files' versions were stored as differences
}

// Maintenance holds no lock that a commit needs, but for the moment in which it
// forgets the pairs it used (replaced.go), and may be interrupted at any
// point. The rules are:
//
//   - A joined pack is whole, synced and named before the packs it replaces are
//     removed; a crash in between leaves both, and the next call joins again.
//   - Packs with a .keep (being published, or kept by a person) and cruft packs
//     are left alone.
//   - A pack that is not as it was written is left where it is and named in the
//     error; the others are joined all the same.
//   - git repack runs with --keep-unreachable: it, too, deletes no only copy.
const (
	maintainLockFile = layout.StateDir + "/maintain.lock"
	joinFrom         = 8 // packs worth joining
	packRetries      = 3 // when a pack is gone that was listed
	compactShare     = 4 // all packs become one when those added are more than one part in so many of the rest
)

// Join joins small packs and brings the commit-graph up to date: what a store at
// work needs every few thousand commits.
func (s *Store) Join(ctx context.Context) (Report, error) {
	return s.maintain(ctx, s.extendGraph, func(ctx context.Context, packs []packInfo, r *Report) error {
		return s.joinSmall(ctx, packs, r, atWork)
	})
}

// Maintain is Join; and when what was added since the last time is more than a
// share of the rest, all packs become one, in which a file's versions are stored
// as differences.
func (s *Store) Maintain(ctx context.Context) (Report, error) {
	return s.maintain(ctx, s.writeGraph, s.shrinkAdded)
}

// Compact packs everything anew by git repack, which looks for differences
// everywhere; it takes long, and memory in proportion.
func (s *Store) Compact(ctx context.Context) (Report, error) {
	return s.maintain(ctx, s.writeGraph, s.repack)
}

// Packs tells how many packs there are.
func (s *Store) Packs() int { return s.db.Packs() }

type packer func(context.Context, []packInfo, *Report) error

func (s *Store) maintain(ctx context.Context, graph func(context.Context) error, pack packer) (r Report, err error) {
	lock := s.lockFile(maintainLockFile)
	ok, err := lock.TryLock()
	if err != nil {
		return r, fmt.Errorf("maintain: %w", err)
	}
	if !ok {
		return Report{Busy: true}, nil
	}
	defer func() { err = errors.Join(err, lock.Unlock()) }()
	if err := s.doMaintain(ctx, graph, pack, &r); err != nil {
		return r, fmt.Errorf("maintain: %w", err)
	}
	return r, nil
}

func (s *Store) doMaintain(ctx context.Context, graph func(context.Context) error, pack packer, r *Report) error {
	if err := s.clearJoining(); err != nil {
		return err
	}
	packs, err := s.listPacks()
	if err != nil {
		return err
	}
	r.PacksBefore, r.BytesBefore = len(packs), sizeOf(packs)
	packErr := pack(ctx, packs, r)
	for n := 0; n < packRetries && errors.Is(packErr, fs.ErrNotExist); n++ { // git repack was at it, too
		if packs, err = s.listPacks(); err != nil {
			return err
		}
		packErr = pack(ctx, packs, r)
	}
	if rotten := new(odb.RottenError); packErr != nil && !errors.As(packErr, &rotten) {
		return packErr
	}
	if err := graph(ctx); err != nil {
		return errors.Join(packErr, err)
	}
	r.Graph = true
	if packs, err = s.listPacks(); err != nil {
		return errors.Join(packErr, err)
	}
	r.PacksAfter, r.BytesAfter = len(packs), sizeOf(packs)
	return errors.Join(packErr, s.db.Rescan())
}

// joinSmall joins again and again, as one joined pack has its largest size.
func (s *Store) joinSmall(ctx context.Context, packs []packInfo, r *Report, rule joinRule) error {
	for {
		small := chooseJoin(packs, rule)
		if len(small) < joinFrom {
			return nil
		}
		joined, _, err := s.joinSound(ctx, small, nil)
		if r.Joined += len(joined); err != nil || len(joined) == 0 {
			return err
		}
		if packs, err = s.listPacks(); err != nil {
			return err
		}
	}
}

func (s *Store) shrinkAdded(ctx context.Context, packs []packInfo, r *Report) error {
	if !s.outgrown(packs) {
		return s.joinSmall(ctx, packs, r, ifAsked)
	}
	pairs, err := s.readReplaced()
	if err != nil {
		return err
	}
	pairs = pairs[:len(pairs)/odb.PairLen*odb.PairLen]
	var rotten error // the others are joined all the same
	for _, chunk := range chooseAll(packs) {
		joined, base, err := s.joinSound(ctx, chunk, pairs)
		if rotten = errors.Join(rotten, err); base == "" {
			return rotten
		}
		r.Joined, r.Compacted = r.Joined+len(joined), true
	}
	if packs, err = s.listPacks(); err != nil {
		return errors.Join(rotten, err)
	}
	return errors.Join(rotten, s.markCompacted(packs), s.dropReplaced(len(pairs)))
}

// packInfo is a pack on disk.
type packInfo struct {
	base string // path without .pack
	size int64
	left bool // not to be touched
	age  time.Time
}

func sizeOf(packs []packInfo) (n int64) {
	for _, p := range packs {
		n += p.size
	}
	return n
}

func (s *Store) listPacks() ([]packInfo, error) {
	list, err := s.fs.ReadDir(s.packDir())
	if err != nil {
		return nil, fmt.Errorf("list packs: %w", err)
	}
	names := map[string]bool{}
	for _, e := range list {
		names[e.Name()] = true
	}
	var packs []packInfo
	for _, e := range list {
		base, ok := strings.CutSuffix(e.Name(), ".pack")
		if !ok || !names[base+".idx"] {
			continue
		}
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue // removed meanwhile
		}
		if err != nil {
			return nil, fmt.Errorf("list packs: %w", err)
		}
		left := names[base+".keep"] || names[base+".mtimes"] || names[base+".promisor"]
		packs = append(packs, packInfo{filepath.Join(s.packDir(), base), info.Size(), left, info.ModTime()})
	}
	return packs, nil
}

// compactMark names the packs whose files are stored as differences.
func (s *Store) compactMark() string { return filepath.Join(s.tempDir(), "compacted") }

// outgrown tells whether the packs added since the last time are more than a
// quarter of the rest: so the whole stays within 1.25 of the least.
func (s *Store) outgrown(packs []packInfo) bool {
	text, err := s.fs.ReadFile(s.compactMark())
	if err != nil {
		text = nil // never done
	}
	var old, added int64
	for _, p := range packs {
		if bytes.Contains(text, []byte(filepath.Base(p.base))) {
			old += p.size
		} else {
			added += p.size
		}
	}
	return added >= s.compactFrom && added > old/compactShare
}

// repack lets git pack everything anew. A crash leaves what git repack leaves: the
// old packs, the new one or both.
func (s *Store) repack(ctx context.Context, packs []packInfo, r *Report) error {
	if err := s.shrinkAdded(ctx, packs, r); err != nil {
		return err
	}
	if err := s.program(ctx, "repack", "-a", "-d", "-k", "-q"); err != nil {
		return err
	}
	r.Compacted = true
	packs, err := s.listPacks()
	if err != nil {
		return err
	}
	largest := slices.MaxFunc(packs, func(a, b packInfo) int { return cmp.Compare(a.size, b.size) })
	return s.markCompacted([]packInfo{largest})
}

// markCompacted is not synced: without the mark everything counts as added, and is
// packed again sooner.
func (s *Store) markCompacted(packs []packInfo) error {
	f, err := s.fs.OpenFile(s.compactMark(), os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	for _, p := range packs {
		_, writeErr := f.Write([]byte(filepath.Base(p.base) + "\n"))
		err = errors.Join(err, writeErr)
	}
	return errors.Join(err, f.Close())
}

const programPatience = 10 * time.Second // until an interrupted git program is killed

// windows keep git from mapping whole packs: at 100,000 items it took 2.5 GB so. They
// cost it no time.
var windows = []string{"-c", "core.packedGitLimit=64m", "-c", "core.packedGitWindowSize=1m", "-c", "core.deltaBaseCacheLimit=16m"}

// program runs a git program that only works on the repository's own files. It
// is told to stop when ctx ends, and then removes its temporary files.
func (s *Store) program(ctx context.Context, args ...string) error {
	cmd := exec.CommandContext(ctx, "git", slices.Concat([]string{"--git-dir=" + s.git}, windows, args)...)
	cmd.Dir = s.root
	cmd.Env = append(os.Environ(), "GIT_TERMINAL_PROMPT=0", "LC_ALL=C")
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = programPatience
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return fmt.Errorf("git %s: %w: %s", args[0], err, bytes.TrimSpace(out.Bytes()))
	}
	return nil
}
