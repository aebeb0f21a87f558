package gitstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"

	gogit "github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/config"
	"github.com/go-git/go-git/v5/plumbing"

	"bagpipe/engine/gitstore/internal/odb"
	"bagpipe/layout/disk"
)

const initialBranch = "refs/heads/main"

// Init makes the bare repository of the workspace root, with a first commit of
// files. It fails with fs.ErrExist when there is one with commits already; one
// that a crash left without is completed.
func Init(ctx context.Context, root string, o Options, files map[string][]byte, message string, author Signature) error {
	if err := initStore(ctx, root, o, files, message, author); err != nil {
		return fmt.Errorf("init store of %s: %w", root, err)
	}
	return nil
}

func initStore(ctx context.Context, root string, o Options, files map[string][]byte, message string, author Signature) (err error) {
	if o.FS == nil {
		o.FS = disk.OS{}
	}
	if err := makeRepository(o.FS, root); err != nil {
		return err
	}
	o.Follow, o.Advanced = nil, nil
	s, err := newStore(root, o)
	if err != nil {
		return err
	}
	if err := s.begin(); err != nil {
		return errors.Join(err, s.db.Close())
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if !s.tip.Load().IsZero() {
		return fmt.Errorf("%s has commits: %w", s.branch, fs.ErrExist)
	}
	_, err = s.Commit(ctx, func(r Reader) (*Change, error) {
		return &Change{Files: files, Message: message, Author: author}, nil
	})
	return err
}

// makeRepository writes what git init --bare would. HEAD comes last: without it
// Git does not take the folder for a repository, and Init begins again.
func makeRepository(fsys disk.FS, root string) error {
	git := filepath.Join(root, ".git")
	for _, dir := range []string{"objects/pack", "objects/info", "refs/heads", "refs/tags", "info"} {
		if err := disk.MkdirAllFS(fsys, filepath.Join(git, filepath.FromSlash(dir)), 0o755); err != nil {
			return err
		}
	}
	if _, err := fsys.Lstat(filepath.Join(git, "HEAD")); err == nil {
		return nil
	}
	text, err := initialConfig()
	if err != nil {
		return err
	}
	files := []struct {
		name string
		data []byte
	}{
		{"config", text},
		{"description", []byte("A Bagpipe workspace: work items and their execution metadata.\n")},
		{"HEAD", []byte("ref: " + initialBranch + "\n")},
	}
	for _, f := range files {
		if err := disk.WriteFileFS(fsys, filepath.Join(git, f.name), "", f.data, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// initialConfig is the repository's configuration: bare, never packed by chance
// (Maintain does it), no push that rewrites history, every move logged.
func initialConfig() ([]byte, error) {
	c := config.NewConfig()
	c.Core.IsBare = true
	c.Init.DefaultBranch = "main"
	for _, o := range [][3]string{
		{"core", "repositoryformatversion", "0"},
		{"core", "filemode", "true"},
		{"core", "logAllRefUpdates", "true"},
		{"receive", "denyNonFastForwards", "true"},
		{"receive", "denyDeletes", "true"},
		{"receive", "fsckObjects", "true"},
		{"transfer", "unpackLimit", "1"}, // pushes stay packs, which Maintain joins
		{"gc", "auto", "0"},
		{"maintenance", "auto", "false"},
	} {
		c.Raw.Section(o[0]).SetOption(o[1], o[2])
	}
	return c.Marshal()
}

// checkRepository refuses what the store cannot work on.
func (s *Store) checkRepository() error {
	text, err := s.fs.ReadFile(filepath.Join(s.git, "config"))
	if err != nil {
		return fmt.Errorf("no repository: %w", err)
	}
	c, err := config.ReadConfig(bytes.NewReader(text))
	if err != nil {
		return fmt.Errorf("read %s: %w", filepath.Join(s.git, "config"), err)
	}
	if !c.Core.IsBare {
		return fmt.Errorf("%s is not bare: run git config core.bare true", s.git)
	}
	if format := c.Raw.Section("extensions").Option("objectformat"); format != "" && format != "sha1" {
		return fmt.Errorf("%s: object format %s is not supported", s.git, format)
	}
	if s.branch, err = s.readHead(); err != nil {
		return err
	}
	return s.mendHead()
}

// mendHead is for a repository restored from a bare one whose HEAD names a
// branch that never was (git init makes master by default): when that branch is
// not there and main is, HEAD is made to name main. A crash leaves the old HEAD or
// the new.
func (s *Store) mendHead() error {
	named := s.branch
	if h, err := s.readRef(); err == nil && !h.IsZero() || named == initialBranch {
		return nil
	}
	s.branch = initialBranch
	h, err := s.readRef()
	if err != nil || h.IsZero() {
		s.branch = named // the store is empty, or main is not there either
		return nil
	}
	s.log.Warn("HEAD named a branch that is not there; it names main again", "was", named)
	return disk.WriteFileFS(s.fs, filepath.Join(s.git, "HEAD"), "", []byte("ref: "+initialBranch+"\n"), 0o644)
}

// readSlowly asks go-git for an object the store's own reader does not find: one
// that stands in an alternate, for example.
func (s *Store) readSlowly(h Hash) (t odb.Type, data []byte, err error) {
	repo, err := gogit.PlainOpen(s.git)
	if err != nil {
		return 0, nil, err
	}
	obj, err := repo.Storer.EncodedObject(plumbing.AnyObject, plumbing.Hash(h))
	if err != nil {
		return 0, nil, err
	}
	r, err := obj.Reader()
	if err != nil {
		return 0, nil, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	data, err = io.ReadAll(r)
	return odb.Type(obj.Type()), data, err
}

// HasCommits tells whether the workspace root has a repository whose branch has
// a commit.
func HasCommits(root string) bool {
	repo, err := gogit.PlainOpen(root)
	if err != nil {
		return false
	}
	_, err = repo.Head()
	return err == nil
}
