package repo

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"bagpipe/engine/gitstore/internal/odb"
	"bagpipe/layout"
	"bagpipe/layout/disk"
)

// Repo is a workspace and its repository.
type Repo struct {
	Root   string // the workspace
	Git    string // its repository
	Branch string // refs/heads/main
	FS     disk.FS
	Now    func() time.Time // the clock of every commit
	Log    *slog.Logger
	DB     *odb.DB
}

// Open opens the repository of a workspace, or of a clone of one, and lists its packs.
func Open(root string, fsys disk.FS, now func() time.Time, log *slog.Logger, clone bool) (*Repo, error) {
	root, err := filepath.Abs(root)
	if err != nil {
		return nil, err
	}
	r := &Repo{Root: root, Git: filepath.Join(root, layout.RepositoryDir), FS: fsys, Now: now, Log: log}
	if err := r.checkConfig(clone); err != nil {
		return nil, err
	}
	if r.Branch, err = r.Head(); err != nil {
		return nil, err
	}
	r.DB, err = odb.Open(filepath.Join(r.Git, "objects"), r.readByGoGit)
	return r, err
}

// PackDir is the folder of the packs.
func (r *Repo) PackDir() string { return filepath.Join(r.Git, "objects", "pack") }

// Temp is the path of a file of Bagpipe's own within the repository.
func (r *Repo) Temp(name string) string { return filepath.Join(r.Git, "bagpipe", name) }

// State is the path of a file in the workspace; rel begins with layout.StateDir.
func (r *Repo) State(rel string) string { return filepath.Join(r.Root, filepath.FromSlash(rel)) }

// Remove removes a file; a file that is not there is removed already.
func (r *Repo) Remove(name string) error {
	err := r.FS.Remove(name)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return nil
	}
	return err
}

// Exists reports whether a name is taken.
func (r *Repo) Exists(name string) bool {
	_, err := r.FS.Lstat(name)
	return !errors.Is(err, fs.ErrNotExist)
}

// OpenFile is FS.OpenFile, which makes the file's folder when that is missing. The repository
// itself is not made: where it was moved away, one begun anew would stand in its way back.
func (r *Repo) OpenFile(name string, flags int, perm fs.FileMode) (disk.File, error) {
	f, err := r.FS.OpenFile(name, flags, perm)
	if !errors.Is(err, fs.ErrNotExist) {
		return f, err
	}
	if err := r.MkdirAll(filepath.Dir(name)); err != nil {
		return nil, err
	}
	return r.FS.OpenFile(name, flags, perm)
}

// MkdirAll makes a folder of the repository, but never the repository itself.
func (r *Repo) MkdirAll(dir string) error {
	if _, err := r.FS.Lstat(r.Git); errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return disk.MkdirAllFS(r.FS, dir, 0o755)
}

// Append adds bytes to the end of a file; it syncs nothing.
func (r *Repo) Append(name string, data []byte) (err error) {
	f, err := r.OpenFile(name, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	_, err = f.Write(data)
	return err
}

// Signature is a person or an engine; the store adds the time from its clock.
type Signature struct{ Name, Email string }

// At gives the signature with its time.
func (s Signature) At(when time.Time) odb.Person {
	return odb.Person{Name: s.Name, Email: s.Email, When: when}
}
