package gitstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"bagpipe/engine/fault"
	"bagpipe/layout"
	"bagpipe/layout/disk"
)

// The rules are: in a clone with a checkout the git program makes the commits, of the paths of
// one edit alone, with the person's identity, hooks and signing. A path that the person has
// changed and not committed is refused. One edit at a time is made, also where others act in the
// clone. A commit that git refuses leaves the paths as they were, whoever has git's lock of the index meanwhile; a
// crash leaves changes that git status shows.

// IsClone reports whether root is a clone of a workspace: a repository with a checkout and an
// origin, and none of the folders that make a workspace.
func IsClone(root string) bool { return CloneOf(root) != "" }

// CloneOf is the address that root is a clone of, without a password; empty: it is none.
func CloneOf(root string) string {
	if _, err := os.Lstat(filepath.Join(root, layout.StateDir)); err == nil {
		return ""
	}
	c := configs(root)
	if info, err := os.Stat(filepath.Join(root, layout.RepositoryDir, "config")); err != nil || info.IsDir() || len(c) == 0 {
		return ""
	}
	origin := c[0].Remotes["origin"]
	if c[0].Core.IsBare || origin == nil || len(origin.URLs) == 0 {
		return ""
	}
	return Redacted(origin.URLs[0])
}

func gitAt(ctx context.Context, root string, in []byte, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "git", append([]string{"-C", root}, args...)...)
	cmd.Env = append(os.Environ(), "GIT_TERMINAL_PROMPT=0", "GIT_ASKPASS=true", "SSH_ASKPASS_REQUIRE=never", "LC_ALL=C")
	var out, wrong bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(in), &out, &wrong
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("git %s: %w: %s", args[0], err, bytes.TrimSpace(wrong.Bytes()))
	}
	return out.Bytes(), nil
}

// ShowFile gives a file as it stands in a revision of the repository around the current folder.
func ShowFile(ctx context.Context, rev, path string) ([]byte, error) {
	return gitAt(ctx, ".", nil, "show", rev+":"+path)
}

// driver is the section of the merge driver that .gitattributes names.
const driver = "merge.bagpipe"

// InstallDriver has git join the records of a clone by a program, unless a driver is there and
// again is false.
func InstallDriver(ctx context.Context, root, program string, again bool) error {
	if _, err := gitAt(ctx, root, nil, "config", driver+".driver"); err == nil && !again {
		return nil
	}
	quoted := "'" + strings.ReplaceAll(program, "'", `'\''`) + "'"
	for _, kv := range [][2]string{{"name", "Bagpipe's records are joined"}, {"driver", quoted + " merge-driver run %O %A %B %P"}} {
		if _, err := gitAt(ctx, root, nil, "config", driver+"."+kv[0], kv[1]); err != nil {
			return err
		}
	}
	return nil
}

// commitInClone is Commit in a clone.
func (s *Store) commitInClone(ctx context.Context, apply func(Reader) (*Change, error)) (_ Hash, err error) {
	root := s.repo.Root
	unlock, err := disk.LockDir(filepath.Join(root, layout.RepositoryDir))
	if err != nil {
		return Hash{}, err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	v, err := s.Tip()
	if err != nil {
		return Hash{}, err
	}
	c, err := apply(v)
	if err != nil || c == nil || len(c.Files) == 0 {
		return v.commit, err
	}
	paths := slices.Sorted(maps.Keys(c.Files))
	dirty, err := gitAt(ctx, root, nil, slices.Concat([]string{"--no-optional-locks", "status", "--porcelain", "--untracked-files=all", "--"}, paths)...)
	if err != nil {
		return Hash{}, err
	}
	if len(dirty) > 0 {
		return Hash{}, fault.New(fault.Refused, fmt.Sprintf("the clone has changes that are not committed: %s; commit or stash them first", strings.Join(strings.Fields(string(dirty))[1:2], "")))
	}
	ctx = context.WithoutCancel(ctx) // what is begun is ended, or taken back
	var old, added []string
	for _, p := range paths {
		if _, errRead := v.ReadFile(p); errRead == nil {
			old = append(old, p)
		} else {
			added = append(added, p)
		}
		if err = writeInClone(root, p, c.Files[p]); err != nil {
			break
		}
	}
	if err == nil && len(added) > 0 {
		_, err = gitAt(ctx, root, nil, slices.Concat([]string{"add", "--"}, added)...)
	}
	if err == nil {
		_, err = gitAt(ctx, root, []byte(c.Message), slices.Concat([]string{"commit", "--quiet", "--cleanup=verbatim", "-F", "-", "--only", "--"}, paths)...)
	}
	if err != nil {
		return Hash{}, errors.Join(err, takeBackInClone(ctx, root, v, old, added))
	}
	v, err = s.Tip()
	return v.commit, err
}

// writeInClone writes a path of the checkout; nil removes it.
func writeInClone(root, path string, data []byte) error {
	name := filepath.Join(root, filepath.FromSlash(path))
	if data == nil {
		return layout.RemoveIfThere(name)
	}
	if err := disk.MkdirAll(filepath.Dir(name), 0o777); err != nil {
		return err
	}
	return disk.WriteFile(name, data, 0o666)
}

// takeBackInClone has the paths of an edit as they are in the view again. Git's index has the added ones alone, as a
// commit of paths that git refuses leaves it as it was; bytes that git makes of others as it checks them out come by git.
func takeBackInClone(ctx context.Context, root string, v View, old, added []string) (err error) {
	if len(added) > 0 {
		_, err = gitAt(ctx, root, nil, slices.Concat([]string{"rm", "--cached", "--quiet", "--ignore-unmatch", "--"}, added)...)
	}
	for _, p := range added {
		err = errors.Join(err, writeInClone(root, p, nil))
	}
	if len(old) == 0 {
		return err
	}
	if _, errGit := gitAt(ctx, root, nil, slices.Concat([]string{"checkout", "HEAD", "--"}, old)...); errGit == nil {
		return err
	}
	for _, p := range old {
		data, errOld := v.ReadFile(p)
		if errOld == nil {
			errOld = writeInClone(root, p, data)
		}
		err = errors.Join(err, errOld)
	}
	return err
}
