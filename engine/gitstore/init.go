package gitstore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	gogit "github.com/go-git/go-git/v5"

	"bagpipe/engine/gitstore/internal/repo"
)

// Init makes the bare repository of the workspace root, with a first commit of files. It
// fails with fs.ErrExist when there is one with commits already; one that a crash left
// without is completed.
func Init(ctx context.Context, root string, o Options, files map[string][]byte, message string, author Signature) error {
	if err := initStore(ctx, root, o, files, message, author); err != nil {
		return fmt.Errorf("init store of %s: %w", root, err)
	}
	return nil
}

func initStore(ctx context.Context, root string, o Options, files map[string][]byte, message string, author Signature) (err error) {
	o, err = o.withDefaults()
	if err != nil {
		return err
	}
	if err := repo.Make(o.FS, root); err != nil {
		return err
	}
	o.Follow, o.Advanced = nil, nil
	s, err := open(root, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if !s.known.tip.Load().IsZero() {
		return fmt.Errorf("%s has commits: %w", s.repo.Branch, fs.ErrExist)
	}
	_, err = s.Commit(ctx, func(Reader) (*Change, error) {
		return &Change{Files: files, Message: message, Author: author}, nil
	})
	return err
}

// HasCommits reports whether the workspace root has a repository whose branch has a commit.
func HasCommits(root string) bool {
	repository, err := gogit.PlainOpen(root)
	if err != nil {
		return false
	}
	_, err = repository.Head()
	return err == nil
}
