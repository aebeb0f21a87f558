package gitstore

import (
	"bytes"
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
	"bagpipe/layout/disk"
)

// Report says what Maintain did.
type Report struct {
	Busy                    bool // another process maintains this repository: nothing was done
	PacksBefore, PacksAfter int
	BytesBefore, BytesAfter int64 // of all packs
	Joined                  int   // packs that became one
	Graph                   bool  // the commit-graph was brought up to date
	Compacted               bool  // everything was packed anew by git repack
}

// Maintenance holds no lock that a commit needs, and may be interrupted at any
// point. The rules are:
//
//   - A joined pack is whole, synced and named before the packs it replaces are
//     removed; a crash in between leaves both, and the next call joins again.
//   - Packs with a .keep (being published, or kept by a person) and cruft packs
//     are left alone.
//   - git repack runs with --keep-unreachable: it, too, deletes no only copy.
const (
	maintainLockFile = layout.StateDir + "/maintain.lock"
	joinFrom         = 8         // packs worth joining
	compactFrom      = 256 << 20 // bytes of packs not yet compacted that are worth a repack
)

// Maintain joins small packs, brings the commit-graph up to date, and packs
// everything anew when what was added since the last time outgrew the rest.
func (s *Store) Maintain(ctx context.Context) (Report, error) {
	return s.maintain(ctx, false)
}

// Compact is Maintain, and packs everything anew in any case.
func (s *Store) Compact(ctx context.Context) (Report, error) {
	return s.maintain(ctx, true)
}

func (s *Store) maintain(ctx context.Context, compact bool) (r Report, err error) {
	lock := s.lockFile(maintainLockFile)
	ok, err := lock.TryLock()
	if err != nil {
		return r, fmt.Errorf("maintain: %w", err)
	}
	if !ok {
		return Report{Busy: true}, nil
	}
	defer func() { err = errors.Join(err, lock.Unlock()) }()
	if err := s.doMaintain(ctx, compact, &r); err != nil {
		return r, fmt.Errorf("maintain: %w", err)
	}
	return r, nil
}

func (s *Store) doMaintain(ctx context.Context, compact bool, r *Report) error {
	if err := s.clearJoining(); err != nil {
		return err
	}
	packs, err := s.listPacks()
	if err != nil {
		return err
	}
	r.PacksBefore, r.BytesBefore = len(packs), sizeOf(packs)
	if small := chooseJoin(packs); len(small) >= joinFrom {
		if err := s.join(ctx, small); err != nil {
			return err
		}
		r.Joined = len(small)
	}
	if compact || s.outgrown(packs) {
		if err := s.compact(ctx); err != nil {
			return err
		}
		r.Compacted = true
	}
	if err := s.program(ctx, "commit-graph", "write", "--reachable", "--split", "--changed-paths", "--no-progress"); err != nil {
		return err
	}
	r.Graph = true
	if packs, err = s.listPacks(); err != nil {
		return err
	}
	r.PacksAfter, r.BytesAfter = len(packs), sizeOf(packs)
	return s.db.Rescan()
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

// chooseJoin takes the smallest packs, as long as the next is not larger than
// twice all those before: what was joined is not copied again until as much has
// been added, so a byte is copied a few times in all.
func chooseJoin(packs []packInfo) []packInfo {
	var list []packInfo
	for _, p := range packs {
		if !p.left {
			list = append(list, p)
		}
	}
	slices.SortFunc(list, func(a, b packInfo) int { return int(min(max(a.size-b.size, -1), 1)) })
	var sum int64
	for i, p := range list {
		if i >= joinFrom && p.size > 2*sum || sum+p.size > odb.MaxJoined {
			return list[:i]
		}
		sum += p.size
	}
	return list
}

// join replaces packs by one. They are taken in the order of their age, so that
// the joined pack is in the order of the history.
func (s *Store) join(ctx context.Context, packs []packInfo) error {
	packs = slices.Clone(packs)
	slices.SortFunc(packs, func(a, b packInfo) int { return a.age.Compare(b.age) })
	paths := make([]string, len(packs))
	for i, p := range packs {
		paths[i] = p.base
	}
	base, err := s.writeJoined(ctx, paths)
	if err != nil {
		return err
	}
	if err := s.dropMultiIndex(); err != nil {
		return err
	}
	for _, old := range paths {
		if old == base {
			continue
		}
		if err := s.removePack(old); err != nil {
			return err
		}
	}
	return errors.Join(s.fs.Remove(s.joiningMark()), s.db.Rescan())
}

// writeJoined writes, syncs and names the joined pack, then its index.
func (s *Store) writeJoined(ctx context.Context, paths []string) (base string, err error) {
	temp := filepath.Join(s.tempDir(), "joined")
	f, err := s.fs.OpenFile(temp+".pack", os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o644)
	if err != nil {
		return "", err
	}
	index, name, err := odb.Join(ctx, f, paths)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return "", errors.Join(err, s.fs.Remove(temp+".pack"))
	}
	base = filepath.Join(s.packDir(), "pack-"+name.String())
	if err := s.markJoining(append([]string{base}, paths...)); err != nil {
		return "", err
	}
	if err := s.fs.Rename(temp+".pack", base+".pack"); err != nil {
		return "", err
	}
	// A crash here leaves a pack without index, which no one sees, and clearJoining
	// removes. The packs it was joined from are all there.
	if err := s.writeIndex(temp+".idx", base+".idx", index); err != nil {
		return "", err
	}
	return base, s.fs.SyncDir(s.packDir())
}

// joiningMark names the packs that a join adds and removes. Any of them that has
// not both its files was left half done by a crash.
func (s *Store) joiningMark() string { return filepath.Join(s.tempDir(), "joining") }

func (s *Store) markJoining(bases []string) error {
	var b bytes.Buffer
	for _, base := range bases {
		b.WriteString(filepath.Base(base) + "\n")
	}
	return disk.WriteFileFS(s.fs, s.joiningMark(), "", b.Bytes(), 0o644)
}

// clearJoining removes what a crash left half.
func (s *Store) clearJoining() error {
	text, err := s.fs.ReadFile(s.joiningMark())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for name := range strings.FieldsSeq(string(text)) {
		base := filepath.Join(s.packDir(), filepath.Base(name))
		_, indexErr := s.fs.Lstat(base + ".idx")
		_, packErr := s.fs.Lstat(base + ".pack")
		if indexErr == nil && packErr == nil {
			continue
		}
		if err := s.removePack(base); err != nil {
			return err
		}
	}
	return s.fs.Remove(s.joiningMark())
}

func (s *Store) writeIndex(temp, name string, index []byte) error {
	f, err := s.fs.OpenFile(temp, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(index)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, s.fs.Remove(temp))
	}
	return s.fs.Rename(temp, name)
}

// removePack removes a pack that was joined: its index first, so that no one
// looks for a pack that is gone.
func (s *Store) removePack(base string) error {
	for _, ext := range []string{".idx", ".rev", ".bitmap", ".pack"} {
		if err := s.fs.Remove(base + ext); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// dropMultiIndex removes an index over several packs that git maintenance may
// have made: it would name packs that are about to go, and can be made again.
func (s *Store) dropMultiIndex() error {
	err := s.fs.Remove(filepath.Join(s.packDir(), "multi-pack-index"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// compactMark names the packs as git repack left them.
func (s *Store) compactMark() string { return filepath.Join(s.tempDir(), "compacted") }

// outgrown tells whether the packs added since the last repack are large, and
// larger than half of what it left.
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
	return added >= compactFrom && added > old/2
}

func (s *Store) compact(ctx context.Context) error {
	if err := s.program(ctx, "repack", "-a", "-d", "-k", "-q"); err != nil {
		return err
	}
	packs, err := s.listPacks()
	if err != nil {
		return err
	}
	var largest packInfo
	for _, p := range packs {
		if p.size > largest.size {
			largest = p
		}
	}
	f, err := s.fs.OpenFile(s.compactMark(), os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write([]byte(filepath.Base(largest.base) + "\n"))
	return errors.Join(err, f.Close())
}

const programPatience = 10 * time.Second // until an interrupted git program is killed

// program runs a git program that only works on the repository's own files. It
// is told to stop when ctx ends, and then removes its temporary files.
func (s *Store) program(ctx context.Context, args ...string) error {
	cmd := exec.CommandContext(ctx, "git", append([]string{"--git-dir=" + s.git}, args...)...)
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
