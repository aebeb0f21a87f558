package gitstore

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"bagpipe/engine/gitstore/internal/odb"
	"bagpipe/layout/disk"
)

// joinRule says which packs are worth joining: those that come to so many times the
// largest of them, or to twice where more would not fit a joined pack.
type joinRule struct{ times, most int64 }

// A byte is copied once for each power of eight the store grows by, and a few packs of
// each size stay; with two times, joining was a quarter of the work at a million commits.
// What joins beside the work takes 17 bytes of memory an object, some 20 MB at most.
// Who asks for maintenance gets fewer packs.
var (
	atWork  = joinRule{8, odb.MaxJoined / 4}
	ifAsked = joinRule{2, odb.MaxJoined}
)

// chooseJoin takes as many of the smallest packs as the rule allows.
func chooseJoin(packs []packInfo, rule joinRule) []packInfo {
	list := bySize(packs)
	var sum int64
	n := 0
	for i, p := range list {
		if sum+p.size > rule.most {
			if i > 0 && sum >= 2*list[i-1].size {
				n = i
			}
			break
		}
		if sum += p.size; sum >= rule.times*p.size {
			n = i + 1
		}
	}
	return list[:n]
}

// chooseAll shares out every pack, the oldest first, so that each share fits one
// joined pack and a file's versions mostly stand in one. A pack that is as large
// already by itself stays.
func chooseAll(packs []packInfo) (shares [][]packInfo) {
	list := slices.DeleteFunc(slices.Clone(packs), func(p packInfo) bool { return p.left || p.size > odb.MaxJoined })
	slices.SortFunc(list, func(a, b packInfo) int { return a.age.Compare(b.age) })
	var sum int64
	for i, p := range list {
		if sum += p.size; i == 0 || sum > odb.MaxJoined {
			shares, sum = append(shares, nil), p.size
		}
		shares[len(shares)-1] = append(shares[len(shares)-1], p)
	}
	return shares
}

// bySize leaves out what is not to be touched.
func bySize(packs []packInfo) []packInfo {
	list := slices.DeleteFunc(slices.Clone(packs), func(p packInfo) bool { return p.left })
	slices.SortFunc(list, func(a, b packInfo) int { return int(min(max(a.size-b.size, -1), 1)) })
	return list
}

const maxRotten = 4 // packs left out, each of which costs another try

// joinSound joins packs without those that turn out to be rotten, which the error
// names; base is empty when nothing was joined.
func (s *Store) joinSound(ctx context.Context, packs []packInfo, pairs odb.Pairs) (joined []packInfo, base string, err error) {
	var left error
	for range maxRotten {
		base, err := s.join(ctx, packs, pairs)
		var rotten *odb.RottenError
		if !errors.As(err, &rotten) {
			if err != nil {
				return nil, "", errors.Join(left, err)
			}
			return packs, base, left
		}
		left = errors.Join(left, err)
		packs = slices.DeleteFunc(slices.Clone(packs), func(p packInfo) bool { return p.base == rotten.Path })
		if len(packs) < 2 {
			break
		}
	}
	return nil, "", left
}

// join replaces packs by one. They are taken in the order of their age, so that
// the joined pack is in the order of the history.
// With pairs, objects become differences from those they replaced.
func (s *Store) join(ctx context.Context, packs []packInfo, pairs odb.Pairs) (base string, err error) {
	packs = slices.Clone(packs)
	slices.SortFunc(packs, func(a, b packInfo) int { return a.age.Compare(b.age) })
	paths := make([]string, len(packs))
	for i, p := range packs {
		paths[i] = p.base
	}
	if base, err = s.writeJoined(ctx, paths, pairs); err != nil {
		return "", err
	}
	if err := s.dropMultiIndex(); err != nil {
		return "", err
	}
	for _, old := range paths {
		if old == base {
			continue
		}
		if err := s.removePack(old); err != nil {
			return "", err
		}
	}
	return base, errors.Join(s.fs.Remove(s.joiningMark()), s.db.Rescan())
}

// writeJoined writes, syncs and names the joined pack, then its index.
func (s *Store) writeJoined(ctx context.Context, paths []string, pairs odb.Pairs) (base string, err error) {
	temp := filepath.Join(s.tempDir(), "joined")
	name, err := s.writeJoinedTemp(ctx, temp, paths, pairs)
	if err != nil {
		return "", errors.Join(err, s.removeJoinedTemp(temp))
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
	if err := s.fs.Rename(temp+".idx", base+".idx"); err != nil {
		return "", err
	}
	return base, s.fs.SyncDir(s.packDir())
}

// writeJoinedTemp leaves pack and index durable under their temporary names. A
// crash leaves them there, and the next join writes them anew.
func (s *Store) writeJoinedTemp(ctx context.Context, temp string, paths []string, pairs odb.Pairs) (name odb.Hash, err error) {
	const flags = os.O_CREATE | os.O_TRUNC | os.O_WRONLY
	var files [2]disk.File
	for i, ext := range []string{".pack", ".idx"} {
		f, err := s.fs.OpenFile(temp+ext, flags, 0o644)
		if err != nil {
			return name, err
		}
		defer func() { err = errors.Join(err, f.Close()) }()
		files[i] = f
	}
	var d *odb.Differences
	if len(pairs) > 0 {
		d = &odb.Differences{Pairs: pairs, Read: s.db.ReadAsUncached}
	}
	if name, err = odb.Join(ctx, files[0], files[1], paths, d); err != nil {
		return name, err
	}
	return name, errors.Join(files[0].Sync(), files[1].Sync())
}

func (s *Store) removeJoinedTemp(temp string) error {
	var errs []error
	for _, ext := range []string{".pack", ".idx"} {
		if err := s.fs.Remove(temp + ext); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
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
