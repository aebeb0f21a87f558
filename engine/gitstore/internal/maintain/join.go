package maintain

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"bagpipe/engine/gitstore/internal/odb"
	"bagpipe/engine/gitstore/internal/repo"
	"bagpipe/layout/disk"
)

const maxRotten = 4 // packs left out, each of which costs another try

// joinSound joins packs without those that turn out to be rotten, which the error names;
// base is empty when no pack was joined.
func joinSound(ctx context.Context, r *repo.Repo, packs []packInfo, pairs odb.Pairs) (joined []packInfo, base string, err error) {
	var left error
	for range maxRotten {
		base, err := join(ctx, r, packs, pairs)
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

// join replaces packs by one. They are taken in the order of their age, so that the joined
// pack is in the order of the history. With pairs, objects become differences from those
// they replaced.
func join(ctx context.Context, r *repo.Repo, packs []packInfo, pairs odb.Pairs) (base string, err error) {
	packs = byAge(packs)
	if base, err = writeJoined(ctx, r, packs, pairs); err != nil {
		return "", err
	}
	// git maintenance may have made an index over several packs, which would name packs
	// that are about to go; git can make it again.
	if err := r.Remove(filepath.Join(r.PackDir(), "multi-pack-index")); err != nil {
		return "", err
	}
	for _, old := range packs {
		if old.base == base {
			continue
		}
		if err := removePack(r, old.base); err != nil {
			return "", err
		}
	}
	return base, errors.Join(r.FS.Remove(r.Temp(joiningFile)), r.DB.Rescan())
}

// writeJoined writes, syncs and names the joined pack, then its index.
func writeJoined(ctx context.Context, r *repo.Repo, packs []packInfo, pairs odb.Pairs) (base string, err error) {
	temp := r.Temp("joined")
	name, err := writeJoinedTemp(ctx, r, temp, packs, pairs)
	if err != nil {
		return "", errors.Join(err, r.Remove(temp+".pack"), r.Remove(temp+".idx"))
	}
	base = filepath.Join(r.PackDir(), "pack-"+name.String())
	mark := baseNames(append([]packInfo{{base: base}}, packs...))
	if err := disk.WriteFileFS(r.FS, r.Temp(joiningFile), "", mark, 0o644); err != nil {
		return "", err
	}
	if err := r.FS.Rename(temp+".pack", base+".pack"); err != nil {
		return "", err
	}
	// A crash here leaves a pack without index, which no reader sees, and clearJoining
	// removes. The packs it was joined from are all there.
	if err := r.FS.Rename(temp+".idx", base+".idx"); err != nil {
		return "", err
	}
	return base, r.FS.SyncDir(r.PackDir())
}

// writeJoinedTemp leaves pack and index durable under their temporary names. A crash
// leaves them there, and the next join writes them anew.
func writeJoinedTemp(ctx context.Context, r *repo.Repo, temp string, packs []packInfo, pairs odb.Pairs) (name odb.Hash, err error) {
	var files [2]disk.File
	for i, ext := range []string{".pack", ".idx"} {
		f, err := r.FS.OpenFile(temp+ext, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o644)
		if err != nil {
			return name, err
		}
		defer func() { err = errors.Join(err, f.Close()) }()
		files[i] = f
	}
	paths := make([]string, len(packs))
	for i, p := range packs {
		paths[i] = p.base
	}
	var d *odb.Differences
	if len(pairs) > 0 {
		d = &odb.Differences{Pairs: pairs, Read: r.DB.ReadAsUncached}
	}
	if name, err = odb.Join(ctx, files[0], files[1], paths, d); err != nil {
		return name, err
	}
	return name, errors.Join(files[0].Sync(), files[1].Sync())
}

// joiningFile names the packs that a join adds and removes. Any of them that has not both
// its files was left half done by a crash.
const joiningFile = "joining"

// clearJoining removes the half packs of a crash.
func clearJoining(r *repo.Repo) error {
	text, err := r.FS.ReadFile(r.Temp(joiningFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for name := range strings.FieldsSeq(string(text)) {
		base := filepath.Join(r.PackDir(), filepath.Base(name))
		_, indexErr := r.FS.Lstat(base + ".idx")
		_, packErr := r.FS.Lstat(base + ".pack")
		if indexErr == nil && packErr == nil {
			continue
		}
		if err := removePack(r, base); err != nil {
			return err
		}
	}
	return r.FS.Remove(r.Temp(joiningFile))
}

// removePack removes a pack that was joined: its index first, so that no reader looks for
// a pack that is gone.
func removePack(r *repo.Repo, base string) error {
	for _, ext := range []string{".idx", ".rev", ".bitmap", ".pack"} {
		if err := r.Remove(base + ext); err != nil {
			return err
		}
	}
	return nil
}
