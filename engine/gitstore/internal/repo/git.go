package repo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"time"

	gogit "github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing"

	"bagpipe/engine/gitstore/internal/odb"
)

const gitPatience = 10 * time.Second // until an interrupted git program is killed

// Windows keep git from mapping whole packs, which took 2.5 GB at 100,000 items. They
// cost git no time.
var Windows = []string{"-c", "core.packedGitLimit=64m", "-c", "core.packedGitWindowSize=1m", "-c", "core.deltaBaseCacheLimit=16m"}

// RunGit runs a git program that works on the repository's own files. When ctx ends, the
// program is told to stop, and removes its temporary files.
func (r *Repo) RunGit(ctx context.Context, args ...string) error {
	out, err := r.GitSays(ctx, args...)
	if ctx.Err() != nil && err != nil {
		return ctx.Err()
	}
	if err != nil {
		return fmt.Errorf("git %s: %w: %s", args[0], err, bytes.TrimSpace(out))
	}
	return nil
}

// GitSays is RunGit of a program whose output, errors included, counts.
func (r *Repo) GitSays(ctx context.Context, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "git", slices.Concat([]string{"--git-dir=" + r.Git}, Windows, args)...)
	cmd.Dir = r.Root
	cmd.Env = append(os.Environ(), "GIT_TERMINAL_PROMPT=0", "LC_ALL=C")
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = gitPatience
	return cmd.CombinedOutput()
}

// readByGoGit asks go-git for an object that the store's own reader does not find, such
// as an alternate's.
func (r *Repo) readByGoGit(h odb.Hash) (t odb.Type, data []byte, err error) {
	repo, err := gogit.PlainOpen(r.Git)
	if err != nil {
		return 0, nil, err
	}
	obj, err := repo.Storer.EncodedObject(plumbing.AnyObject, plumbing.Hash(h))
	if err != nil {
		return 0, nil, err
	}
	in, err := obj.Reader()
	if err != nil {
		return 0, nil, err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	data, err = io.ReadAll(in)
	return odb.Type(obj.Type()), data, err
}
