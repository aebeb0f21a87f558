package search

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"bagpipe/engine/gitstore"
	"bagpipe/engine/ledger"
	"bagpipe/layout"
	"bagpipe/layout/disk"
)

const indexFile = "index.db"

func (s *Searches) path() string { return filepath.Join(s.ledger.Path(layout.SearchDir), indexFile) }

// bring makes the index follow from the tree of v. It goes on when ctx ends: who asks again, as
// people do with a page that takes long, finds it done.
func (s *Searches) bring(ctx context.Context, v gitstore.View) error {
	done := make(chan error, 1)
	work, end := s.untilClosed(context.WithoutCancel(ctx))
	s.work.Go(func() {
		defer end()
		done <- s.bringTo(work, v)
	})
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// untilClosed is a context that ends once the searches are closed.
func (s *Searches) untilClosed(ctx context.Context) (context.Context, context.CancelFunc) {
	work, end := context.WithCancel(ctx)
	go func() {
		select {
		case <-s.closed:
			end()
		case <-work.Done():
		}
	}()
	return work, end
}

// bringTo makes the index follow from the tree of v.
func (s *Searches) bringTo(ctx context.Context, v gitstore.View) (err error) {
	tree, err := s.tree(ctx)
	if err == nil && tree == v.Tree() {
		return nil
	}
	if err != nil && !damaged(err) {
		return err
	}
	unlock, err := s.lock()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	tree, err = s.tree(ctx) // another process may have been at work
	if err == nil && tree == v.Tree() {
		return nil
	}
	if there, hasErr := s.ledger.Store.HasTree(tree); err == nil && there && hasErr == nil {
		if err = s.update(ctx, v, tree); err == nil || !damaged(err) {
			return err
		}
	}
	if err != nil && !damaged(err) {
		return err
	}
	return s.build(ctx, v)
}

// lock waits until nobody else writes.
func (s *Searches) lock() (unlock func() error, err error) {
	dir := s.ledger.Path(layout.SearchDir)
	if err := disk.MkdirAll(dir, 0o777); err != nil {
		return nil, err
	}
	return disk.LockDir(dir)
}

// isThere looks at the index's file before SQLite does.
func (s *Searches) isThere() error {
	info, err := os.Stat(s.path())
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() || info.Size()%pageBytes != 0 { // cut within its last page, which SQLite takes for zeros
		return errOther
	}
	return nil
}

// tree is the one that the index follows from.
func (s *Searches) tree(ctx context.Context) (tree gitstore.Hash, err error) {
	if err := s.isThere(); err != nil {
		return tree, err
	}
	db, conn, err := openDB(ctx, s.path())
	if err != nil {
		return tree, err
	}
	defer func() { err = errors.Join(err, conn.Close(), db.Close()) }()
	return treeOf(ctx, conn)
}

// update takes in the items whose folders differ. A crash leaves the index as it was.
func (s *Searches) update(ctx context.Context, v gitstore.View, since gitstore.Hash) (err error) {
	db, conn, err := openDB(ctx, s.path(), "synchronous(1)", largeCache)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close(), db.Close()) }()
	bits, err := bitsOf(ctx, conn)
	if err != nil {
		return err
	}
	young, err := youngOf(ctx, conn, bits)
	if err != nil {
		return err
	}
	err = inTransaction(ctx, conn, v, func(tx *sql.Tx) error {
		w := newWriter(tx, bits)
		w.young = young
		// Beyond what it is to have it grows until it is taken into the others, but not by more at once.
		if w.most, err = roomOfYoung(ctx, tx, young); err != nil {
			return err
		}
		return s.fill(ctx, v, since, w)
	})
	if !errors.Is(err, errYoung) {
		return err
	}
	if since, err = treeNoted(ctx, conn, stateParts); err != nil {
		return err
	}
	if there, err := s.ledger.Store.HasTree(since); err != nil || !there {
		return errors.Join(err, errOther)
	}
	return inTransaction(ctx, conn, v, func(tx *sql.Tx) error {
		w := newWriter(tx, bits)
		if err := s.fill(ctx, v, since, w); err != nil {
			return err
		}
		if err := beginYoung(ctx, tx, young, young+1); err != nil {
			return err
		}
		return setState(ctx, tx, stateParts, v.Tree())
	})
}

// roomOfYoung is how many documents the young part may have had after an update.
func roomOfYoung(ctx context.Context, q querier, young int64) (int, error) {
	most, err := mostYoung(ctx, q, young)
	if err != nil {
		return 0, err
	}
	var next int
	err = q.QueryRowContext(ctx, "SELECT next FROM part WHERE part=?", young).Scan(&next)
	return min(maxPlaces, next+most), unlike(err)
}

func inTransaction(ctx context.Context, conn *sql.Conn, v gitstore.View, fill func(*sql.Tx) error) error {
	tx, err := conn.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if err := fill(tx); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	if err := setState(ctx, tx, stateTree, v.Tree()); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}

// build makes a new index in a file of its own, and renames it: until then the one that is
// there is answered from, and a crash leaves that.
func (s *Searches) build(ctx context.Context, v gitstore.View) error {
	if s.Building != nil {
		s.Building()
	}
	tmp := s.path() + "." + string(s.ledger.ID)
	bits, err := s.buildAt(ctx, v, tmp, 0)
	for errors.Is(err, errFull) && bits < maxBits { // identifiers that did not come by chance
		bits, err = s.buildAt(ctx, v, tmp, bits+2)
	}
	if err == nil {
		// A journal of the index before would be played into the new one.
		err = errors.Join(os.RemoveAll(s.path()+"-journal"), s.clearPath())
	}
	if err == nil {
		err = disk.Rename(tmp, s.path())
	}
	if err != nil {
		return errors.Join(fmt.Errorf("build the search index: %w", err), os.RemoveAll(tmp))
	}
	return nil
}

// clearPath removes what is no file where the index is to be; a file is replaced.
func (s *Searches) clearPath() error {
	if info, err := os.Lstat(s.path()); err != nil || info.Mode().IsRegular() {
		return nil
	}
	return os.RemoveAll(s.path())
}

// buildAt makes an index whose parts have at least so many bits of an identifier, and tells how many they have.
func (s *Searches) buildAt(ctx context.Context, v gitstore.View, name string, least int) (bits int, err error) {
	if err := os.RemoveAll(name); err != nil {
		return 0, err
	}
	db, conn, err := openDB(ctx, name, "journal_mode(OFF)", "synchronous(OFF)", "cache_size(-131072)", "locking_mode(EXCLUSIVE)")
	if err != nil {
		return 0, err
	}
	defer func() {
		if err = errors.Join(err, conn.Close(), db.Close()); err == nil {
			err = syncFile(name)
		}
	}()
	if err := makeTables(ctx, conn); err != nil {
		return 0, err
	}
	// Few large parts, which are not merged while the index is filled.
	if _, err := conn.ExecContext(ctx, "INSERT INTO words(words, rank) VALUES('hashsize', 33554432), ('automerge', 0)"); err != nil {
		return 0, err
	}
	bits = least
	err = inTransaction(ctx, conn, v, func(tx *sql.Tx) error {
		w := newWriter(tx, least)
		w.fresh = true
		defer func() { bits = w.bits }()
		if err := s.fill(ctx, v, gitstore.Hash{}, w); err != nil {
			return err
		}
		return setState(ctx, tx, stateParts, v.Tree())
	})
	if err == nil {
		_, err = conn.ExecContext(ctx, "INSERT INTO words(words, rank) VALUES('hashsize', 1048576), ('automerge', 4)")
	}
	return bits, err
}

func syncFile(name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// found is an item whose folder differs.
type found struct {
	id  layout.ItemID
	row *row // nil: it is gone, or cannot be read
}

// fill puts the items whose folders differ from those of since into the index, a 256th of
// the identifiers at a time, so that they can be put in order; zero: all items.
func (s *Searches) fill(ctx context.Context, v gitstore.View, since gitstore.Hash, w *writer) (err error) {
	defer func() { err = errors.Join(err, w.close()) }()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	parts, ended := make(chan []found, 1), make(chan error, 1)
	go func() {
		defer close(parts)
		ended <- s.readParts(ctx, v, since, parts)
	}()
	first := true
	for part := range parts {
		if first && w.fresh {
			w.bits = max(w.bits, bitsFor(256*len(part)))
		}
		first = false
		if err == nil {
			err = w.putAll(ctx, part)
		}
		if err != nil {
			stop()
		}
	}
	if readErr := <-ended; err == nil {
		err = readErr
	}
	if err == nil {
		err = w.end(context.WithoutCancel(ctx))
	}
	return err
}

// putAll ends at once where ctx does; SQLite itself is not asked to, which costs each statement a goroutine.
func (w *writer) putAll(ctx context.Context, part []found) error {
	slices.SortFunc(part, func(a, b found) int { return cmp.Compare(a.id, b.id) })
	for _, f := range part {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := w.put(context.WithoutCancel(ctx), f.id, f.row); err != nil {
			return fmt.Errorf("index item %s: %w", f.id.Short(), err)
		}
	}
	return nil
}

const digits = "0123456789abcdef"

// readParts reads the items, those whose identifiers begin with the same two digits at once.
func (s *Searches) readParts(ctx context.Context, v gitstore.View, since gitstore.Hash, to chan<- []found) error {
	for i := range 256 {
		dir := layout.ItemsDir + "/" + digits[i>>4:i>>4+1] + "/" + digits[i&15:i&15+1]
		part, err := s.readPart(ctx, v, since, dir)
		if err != nil {
			return err
		}
		select {
		case to <- part:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

func (s *Searches) readPart(ctx context.Context, v gitstore.View, since gitstore.Hash, dir string) (part []found, err error) {
	var mu sync.Mutex // guards part
	err = v.Folders(ctx, since, dir, ledger.ItemDepth-2, func(folder gitstore.Folder) error {
		id, rest, ok := layout.ItemOfPath(folder.Path)
		if !ok || rest != "" {
			return nil // no item's folder
		}
		r, err := searchedOf(folder)
		if err != nil {
			return err
		}
		f := found{id: id}
		if d := read(id, r); d != nil {
			f.row = d.row()
		}
		mu.Lock()
		defer mu.Unlock()
		part = append(part, f)
		return nil
	})
	return part, err
}
