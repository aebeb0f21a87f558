package gitstore

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"bagpipe/engine/gitstore/internal/call"
	"bagpipe/engine/gitstore/internal/repo"
	"bagpipe/layout"
	"bagpipe/layout/disk"
)

// OddConfig lists what of the configuration of a workspace's repository is not as Init makes
// it.
func OddConfig(root string) ([]string, error) {
	return repo.Odd(filepath.Join(root, layout.RepositoryDir))
}

// isHistory refuses what is on this machine and is neither a repository nor a bundle. What is
// not may be an address.
func isHistory(path string) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && !strings.Contains(path, ":"):
		return fmt.Errorf("%s is not there", path)
	case err != nil:
		return nil
	case info.IsDir():
		for _, head := range []string{"HEAD", layout.RepositoryDir} {
			if _, err := os.Stat(filepath.Join(path, head)); err == nil {
				return nil
			}
		}
		return fmt.Errorf("%s is no repository; give the folder of one, a bundle, or an address", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	head := make([]byte, len("gitdir:"))
	if _, err := io.ReadFull(f, head); err != nil || !bytes.HasPrefix(head, []byte("# v")) && string(head) != "gitdir:" {
		return fmt.Errorf("%s is no bundle of a repository", path)
	}
	return nil
}

// plainly leaves of what git said the reasons, without its marks and advice.
func plainly(said string) string {
	var reasons []string
	for line := range strings.Lines(said) {
		line = strings.TrimSpace(line)
		for _, mark := range []string{"fatal: ", "error: ", "warning: "} {
			line = strings.TrimPrefix(line, mark)
		}
		if line == "" || strings.HasPrefix(line, "Please make sure you have") || line == "and the repository exists." {
			continue
		}
		reasons = append(reasons, strings.TrimSuffix(line, "."))
	}
	return strings.Join(reasons, "; ")
}

// Restore makes the repository of the workspace root from a history: a repository, a bundle
// or an address, whatever git clone takes. ready is called with it before it gets its name. It
// is whole, or not there; what a crash left is cleared by the next.
func Restore(ctx context.Context, history, root string, ready func(git string) error) (err error) {
	git := filepath.Join(root, layout.RepositoryDir)
	if _, err := os.Lstat(git); err == nil {
		return fmt.Errorf("%s is there already", git)
	}
	made := git + ".restoring"
	if err := disk.RemoveTree(made); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, disk.RemoveTree(made))
		}
	}()
	if err := isHistory(history); err != nil {
		return err
	}
	silence := call.Silence
	if _, err := os.Stat(history); err == nil {
		silence = call.Longest // git copies its files, and shows no progress
	}
	said, err := call.Run(ctx, silence, "", unprompted(), io.Discard, "clone", "--progress", "--bare", "--no-hardlinks", "--dissociate", "--", history, made)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case call.GivenUp(err):
		return fmt.Errorf("%s cannot be read as a history: %w", Redacted(history), err)
	case err != nil:
		return fmt.Errorf("%s cannot be read as a history: %s", Redacted(history), cmp.Or(plainly(said), err.Error()))
	}
	if _, err := os.Lstat(filepath.Join(made, "shallow")); err == nil {
		return fmt.Errorf("%s is shallow: it lacks the older part of the history", history)
	}
	if err := exec.CommandContext(ctx, "git", "--git-dir="+made, "rev-parse", "--quiet", "--verify", repo.InitialBranch+"^{commit}").Run(); err != nil {
		return fmt.Errorf("%s has no branch main: it is no workspace's history", history)
	}
	names, err := exec.CommandContext(ctx, "git", "--git-dir="+made, "ls-tree", "--name-only", repo.InitialBranch, layout.SettingsFile, layout.ItemsDir).Output()
	if err != nil {
		return fmt.Errorf("git ls-tree in %s: %w", history, err)
	}
	if len(names) == 0 { // settings may have been removed by a push, items may not be there yet
		return fmt.Errorf("%s has neither bagpipe.yaml nor items/ at the tip of main: it is no workspace's history", history)
	}
	if err := errors.Join(repo.Configure(made), ready(made)); err != nil {
		return err
	}
	// Who syncs asks what two commits have in common, which is a look at the whole history without it. It is a cache: maintenance
	// makes it where this does not.
	_ = exec.CommandContext(ctx, "git", "--git-dir="+made, "commit-graph", "write", "--reachable", "--split", "--changed-paths", "--no-progress").Run()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err := disk.SyncTree(made); err != nil {
		return err
	}
	return disk.Rename(made, git)
}
