package gitstore

import (
	"bytes"
	"cmp"
	"compress/zlib"
	"context"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"bagpipe/engine/gitstore/internal/repo"
	"bagpipe/layout"
	"bagpipe/layout/disk"

	"github.com/pjbgf/sha1cd"
)

// madeMeanwhile tells a line on an entry of a reflog whose commit is there: git lists the
// packs first and reads the reflogs last, and does not know what a running engine committed in
// between.
func madeMeanwhile(ctx context.Context, root, line string) bool {
	_, hash, is := strings.Cut(line, ": invalid reflog entry ")
	if !is {
		return false
	}
	_, err := gitSays(ctx, root, nil, "cat-file", "-e", strings.TrimSpace(hash)+"^{commit}")
	return err == nil
}

// Fsck has the git program check every object of the workspace at root, and gives what it
// says, a line each; none where all is sound. Of a tip that is not zero, it reads the objects
// alone that the tip needs and since does not.
func Fsck(ctx context.Context, root string, tip, since Hash) ([]string, error) {
	args := []string{"fsck", "--strict", "--no-dangling", "--no-progress"}
	if !since.IsZero() {
		args = []string{"rev-list", "--quiet", "--verify-objects", tip.String(), "^" + since.String()}
	}
	cmd := exec.CommandContext(ctx, "git", slices.Concat([]string{"--git-dir=" + filepath.Join(root, layout.RepositoryDir)}, repo.Windows, args)...)
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	out, err := cmd.CombinedOutput()
	said := strings.FieldsFunc(string(out), func(r rune) bool { return r == '\n' })
	var code *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.As(err, &code) && len(said) > 0:
		return slices.DeleteFunc(said, func(line string) bool { return madeMeanwhile(ctx, root, line) }), nil
	case err != nil:
		return said, fmt.Errorf("git %s: %w", args[0], err)
	}
	return said, nil
}

// Connected looks whether the objects are there that other references than the tip need; those to commits, or tags of
// commits, that lead to the tip need no others.
func Connected(ctx context.Context, root string, tip Hash, leads func(Hash) bool) error {
	out, err := gitSays(ctx, root, nil, asItIs("for-each-ref", "--format=%(objectname) %(*objectname)")...)
	if err != nil {
		return err
	}
	var others bytes.Buffer
	for line := range strings.Lines(string(out)) {
		name, of, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		if h, err := ParseHash(cmp.Or(of, name)); err != nil || !leads(h) {
			others.WriteString(name + "\n")
		}
	}
	if others.Len() == 0 {
		return nil
	}
	others.WriteString("^" + tip.String() + "\n")
	_, err = gitSays(ctx, root, others.Bytes(), asItIs("rev-list", "--quiet", "--objects", "--stdin")...)
	return err
}

// asItIs are the arguments of a git program that is to follow what the commits say, and neither
// what .git/shallow or .git/info/grafts say of them nor objects in their place.
func asItIs(args ...string) []string {
	return append([]string{"--no-replace-objects", "--shallow-file", ""}, args...)
}

// ParentsFirst lists the commits of the workspace at root that lead to a tip and not to
// since, which may be zero, each after its parents. Where the history is cut off below a commit
// that Git holds for one without parents, it is an error.
func ParentsFirst(ctx context.Context, root string, tip, since Hash) ([]Hash, error) {
	args := asItIs("rev-list", "--topo-order", "--reverse", tip.String())
	if !since.IsZero() {
		args = append(args, "^"+since.String())
	}
	out, err := gitSays(ctx, root, nil, args...)
	if err != nil {
		return nil, cmp.Or(shallow(filepath.Join(root, layout.RepositoryDir)), err)
	}
	commits := make([]Hash, 0, len(out)/41)
	for line := range bytes.Lines(out) {
		h, err := ParseHash(string(bytes.TrimSpace(line)))
		if err != nil {
			return nil, err
		}
		commits = append(commits, h)
	}
	return commits, nil
}

// damagedPacks gives the objects of the packs that are not sound, and those packs' paths,
// without their endings.
func (w *mending) damagedPacks(ctx context.Context) (wanted map[string]bool, packs map[string]bool, err error) {
	wanted, packs = map[string]bool{}, map[string]bool{}
	all, err := filepath.Glob(filepath.Join(w.git, "objects", "pack", "*.pack"))
	if err != nil {
		return nil, nil, err
	}
	for _, pack := range all {
		base := strings.TrimSuffix(pack, ".pack")
		if _, err := w.say(ctx, w.git, nil, "verify-pack", base+".idx"); err == nil || ctx.Err() != nil {
			continue
		}
		if made, err := w.indexAnew(ctx, base); err != nil {
			return nil, nil, err
		} else if made {
			w.indexes = append(w.indexes, filepath.Base(base)+".idx")
			continue
		}
		// A damaged index names what the pack never had: what is missing is found below.
		if index, err := os.ReadFile(base + ".idx"); err == nil && soundIndex(index) {
			cmd := exec.CommandContext(ctx, "git", "show-index")
			cmd.Stdin = bytes.NewReader(index)
			out, _ := cmd.Output()
			for line := range strings.Lines(string(out)) {
				if f := strings.Fields(line); len(f) >= 2 {
					wanted[f[1]] = true
				}
			}
		}
		packs[base] = true
	}
	indexes, err := filepath.Glob(filepath.Join(w.git, "objects", "pack", "*.idx"))
	for _, index := range indexes { // without its pack it holds nothing: what the branches need is found to be missing below
		base := strings.TrimSuffix(index, ".idx")
		if _, errPack := os.Lstat(base + ".pack"); errors.Is(errPack, fs.ErrNotExist) {
			packs[base] = true
		}
	}
	return wanted, packs, errors.Join(err, ctx.Err())
}

// soundIndex reports whether the index of a pack has the digest that it ends with.
func soundIndex(index []byte) bool {
	n := len(index) - sha1.Size
	if n < 0 {
		return false
	}
	sum := sha1.Sum(index[:n])
	return bytes.Equal(sum[:], index[n:])
}

// indexAnew replaces the index of a pack that is sound; not made: the pack is damaged itself. A crash leaves either index.
func (w *mending) indexAnew(ctx context.Context, base string) (made bool, err error) {
	if _, err := os.Lstat(base + ".idx"); err != nil { // it may be a pack that was never published
		return false, nil
	}
	temp := filepath.Join(w.scratch, "index")
	cmd := exec.CommandContext(ctx, "git", "index-pack", "--no-rev-index", "-o", temp, base+".pack")
	cmd.Dir = w.scratch
	cmd.Env = append(os.Environ(), "LC_ALL=C", "GIT_DIR="+os.DevNull) // it compares nothing with the objects that are there
	said, err := cmd.CombinedOutput()
	switch {
	case ctx.Err() != nil:
		return false, ctx.Err()
	case err != nil && saysFull(string(said)):
		return false, fmt.Errorf("git index-pack: %w: %s", errNoRoom, gitsReason(string(said)))
	case err != nil:
		return false, layout.RemoveIfThere(temp)
	}
	index, err := os.ReadFile(temp)
	if err != nil {
		return false, err
	}
	if is, err := os.ReadFile(base + ".idx"); err == nil && bytes.Equal(is, index) {
		return false, layout.RemoveIfThere(temp)
	}
	return true, errors.Join(disk.WriteFile(base+".idx", index, 0o444), layout.RemoveIfThere(base+".rev"), layout.RemoveIfThere(base+".bitmap"), layout.RemoveIfThere(temp))
}

// damagedLoose lists the loose objects that are not what their names say.
func (w *mending) damagedLoose() (bad []string, err error) {
	err = filepath.WalkDir(filepath.Join(w.git, "objects"), func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name := d.Name(); name == "pack" || name == "info" {
				return fs.SkipDir
			}
			return nil
		}
		name := filepath.Base(filepath.Dir(path)) + d.Name()
		if _, err := ParseHash(name); err == nil && !soundLoose(path, name) {
			bad = append(bad, name)
		}
		return nil
	})
	return bad, err
}

// soundLoose reports whether a loose object has the digest of its name, and is none of two that were made
// to have one digest. Git looks for these in all that comes in packs.
func soundLoose(path, name string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	z, err := zlib.NewReader(f)
	if err != nil {
		return false
	}
	sum := sha1cd.New().(sha1cd.CollisionResistantHash)
	if _, err := io.Copy(sum, z); err != nil {
		return false
	}
	digest, collided := sum.CollisionResistantSum(nil)
	return !collided && hex.EncodeToString(digest) == name
}
