package gitstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"

	"bagpipe/engine/gitstore/internal/history"
	"bagpipe/engine/gitstore/internal/odb"
	"bagpipe/engine/gitstore/internal/trees"
)

// View is the committed files at one commit. It stays valid while the branch moves on; any
// goroutine may use it, but for one that a Scan gave.
type View struct {
	db     *odb.DB
	scan   *odb.Scan   // that reads it; nil: db does
	ways   *trees.Ways // that the Scan knows; nil: none
	commit Hash
	tree   Hash
}

// objects is what reads trees and files.
func (v View) objects() trees.Objects {
	if v.scan != nil {
		return v.scan
	}
	return v.db
}

// Entry is one name of a committed folder.
type Entry struct {
	Name  string
	IsDir bool
	Hash  Hash
}

// Folder is one folder that Folders found to differ. It is valid until the visit ends.
type Folder = trees.Folder

// Commit names the commit.
func (v View) Commit() Hash { return v.commit }

// About gives the commit itself.
func (v View) About() (history.Commit, error) {
	read := v.db.ReadCommit
	if v.scan != nil {
		read = v.scan.ReadCommit
	}
	c, err := read(v.commit)
	return history.NewCommit(v.commit, c), err
}

// At gives the files at another commit, and that commit.
func (v View) At(commit Hash) (View, history.Commit, error) {
	c, err := v.db.ReadCommit(commit)
	if err != nil {
		return View{}, history.Commit{}, err
	}
	return View{db: v.db, commit: commit, tree: c.Tree}, history.NewCommit(commit, c), nil
}

// ReadMany makes reads of very many objects quick, by any view of the store, until end is
// called; an error of end takes nothing from what was read.
func (v View) ReadMany() (end func() error) { return v.db.ReadMany() }

// Signed gives what of the commit a signature is of, and the signature; "": it has none.
func (v View) Signed() (payload []byte, armored string, err error) {
	data, err := v.objects().ReadAs(v.commit, odb.TypeCommit)
	if err != nil {
		return nil, "", err
	}
	if !bytes.Contains(data, []byte("\n"+odb.SignatureHeader)) {
		return data, "", nil
	}
	payload, armored = odb.SplitSignature(data)
	return payload, armored, nil
}

// Tree names the root tree; equal trees hold equal files.
func (v View) Tree() Hash { return v.tree }

// ReadFile gives a file's bytes, which must not be changed; fs.ErrNotExist when there is
// none.
func (v View) ReadFile(name string) ([]byte, error) {
	data, err := trees.ReadFile(v.objects(), v.tree, name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w at %s", err, v.commit)
	}
	return data, err
}

// TreeOf names the tree of a folder; zero when there is none. Equal trees hold equal files.
func (v View) TreeOf(dir string) (Hash, error) { return trees.FindDir(v.objects(), v.tree, dir) }

// ReadFiles is ReadFile of some files of one folder, whose way is gone once; nil where there is none.
func (v View) ReadFiles(dir string, names ...string) (files [][]byte, err error) {
	files = make([][]byte, len(names))
	objects := v.objects()
	h, err := v.ways.FindDir(objects, v.tree, dir)
	if err != nil || h.IsZero() {
		return files, err
	}
	tree, err := objects.ReadTree(h)
	for i := 0; i < len(names) && err == nil; i++ {
		if e, ok, _ := odb.FindEntry(tree, names[i], false); ok && e.Mode.IsRegular() {
			files[i], err = trees.ReadBlob(objects, dir+"/"+names[i], e.Hash)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("%w at %s", err, v.commit)
	}
	return files, nil
}

// List gives the names of a folder in their committed order; fs.ErrNotExist when there is
// none. Links and submodules are not listed.
func (v View) List(dir string) ([]Entry, error) {
	h, err := trees.FindDir(v.objects(), v.tree, dir)
	if err == nil && h.IsZero() {
		return nil, &fs.PathError{Op: "list committed", Path: dir, Err: fs.ErrNotExist}
	}
	var tree []byte
	if err == nil {
		tree, err = v.objects().ReadTree(h)
	}
	if err != nil {
		return nil, fmt.Errorf("list %s at %s: %w", dir, v.commit, err)
	}
	var list []Entry
	for e := range odb.Entries(tree) {
		if e.Mode.IsDir() || e.Mode.IsRegular() {
			list = append(list, Entry{Name: string(e.Name), IsDir: e.Mode.IsDir(), Hash: e.Hash})
		}
	}
	return list, nil
}

// visitError is the error of a visit of folders, which no reading of them made.
type visitError struct{ err error }

func (v *visitError) Error() string { return v.err.Error() }

// Folders visits the folders that stand depth levels below dir and are not the same in the
// tree since; zero: all of them. visit is called by several goroutines side by side, in no
// order, as reading and understanding a folder takes far longer than finding it. Subtrees
// with equal hashes are passed over unread. An error of visit is given as it is.
func (v View) Folders(ctx context.Context, since Hash, dir string, depth int, visit func(Folder) error) error {
	to, err := trees.FindDir(v.db, v.tree, dir)
	from := Hash{}
	if err == nil && !since.IsZero() {
		from, err = trees.FindDir(v.db, since, dir)
	}
	if err == nil {
		err = trees.Folders(ctx, v.db, from, to, dir, depth, func(f Folder) error {
			if err := visit(f); err != nil {
				return &visitError{err}
			}
			return nil
		})
	}
	var ofVisit *visitError
	if errors.As(err, &ofVisit) {
		return ofVisit.err
	}
	if err != nil {
		return fmt.Errorf("read the folders in %s at %s: %w", dir, v.commit, err)
	}
	return nil
}
