package gitstore

import (
	"errors"
	"fmt"
	"path/filepath"

	"bagpipe/engine/gitstore/internal/maintain"
	"bagpipe/engine/gitstore/internal/ref"
)

// Publication, in this order, each step made possible by the one before:
//
//  1. pack-X.keep, not synced: it tells git repack -ad, which would not find the
//     pack's objects from any branch yet, to leave the pack alone, and tells the
//     next Open that the pack may be half written. It is a second name of one
//     file of ours, synced long ago, so that even a power cut leaves our mark in
//     it and no empty file, which could be a person's.
//  2. pack-X.pack under its final name (without its index no reader sees it), and
//     the index under a temporary name, renamed to pack-X.idx when whole.
//  3. pack, index and the branch's new value synced, side by side; then the
//     packs' folder. Readers of this process know the pack from here on: the branch
//     must not name, for them, a commit that no pack they know holds.
//  4. the branch moved by Git's own protocol, its folder synced (ref/lock.go).
//  5. .keep removed, the publication remembered, the replaced versions noted for
//     maintenance; not synced. The reflog follows later (ref/reflog.go).
//
// A crash up to 3 leaves a pack with its .keep: the next Open removes it when it
// is not whole. A crash up to 4 leaves a whole pack no branch needs, which git gc
// clears. A crash in 5 leaves a .keep, which the next Open removes.

// publish makes the group durable and moves the branch.
func (o *owner) publish(b *built, lock *ref.Lock) error {
	pack, index, name := o.builder.Finish()
	p := &packFiles{repo: o.repo, base: filepath.Join(o.repo.PackDir(), "pack-"+name.String())}
	if err := p.write(pack, index); err != nil {
		return errors.Join(fmt.Errorf("write pack: %w", err), p.remove())
	}
	b.packed = o.opts.Now()
	prepareRef := func() error { return errors.Join(lock.Write(b.To), o.locker.CloseOld()) }
	if err := p.sync(prepareRef); err != nil {
		return errors.Join(fmt.Errorf("sync pack: %w", err), p.remove())
	}
	b.synced = o.opts.Now()
	if err := o.repo.DB.Add(p.base, index); err != nil {
		return errors.Join(fmt.Errorf("read the pack's index: %w", err), p.remove())
	}
	o.known.next.Store(&View{db: o.repo.DB, commit: b.To, tree: o.work.Root()})
	moved, err := lock.Move(b.From)
	if !moved {
		o.known.next.Store(nil)
		return errors.Join(err, p.remove())
	}
	for n := 1; err != nil && n < moveTries; n++ {
		err = o.moveAgain(lock, b.To)
	}
	if err != nil {
		o.known.next.Store(nil)
		o.unsure = &UnsureError{err}
		return errors.Join(o.unsure, p.release()) // the branch needs the pack
	}
	o.reflog.Note(b.Move)
	after := []error{
		maintain.AddHints(o.repo, o.work.Replaced),
		ref.WritePublished(o.repo, b.To),
		p.release(),
	}
	if err := errors.Join(after...); err != nil { // the commits are durable all the same
		o.repo.Log.Warn("after publication", "pack", p.base, "error", err)
	}
	return nil
}

// moveTries is how often a branch is moved when the sync of its folder fails.
const moveTries = 3

// moveAgain puts a new file with the same commit in the branch's place. A sync that failed is not asked for a second time:
// the kernel may have dropped the folder's bytes, and would answer that all is well.
func (o *owner) moveAgain(lock *ref.Lock, to Hash) error {
	if err := lock.Renew(false); err != nil {
		return err
	}
	if err := lock.Write(to); err != nil {
		return err
	}
	_, err := lock.Move(to)
	return err
}

// UnsureError says that the branch points at commits that may not be durable, as the disk failed. Nothing is committed until
// the store is opened again, which goes by what the disk has then.
type UnsureError struct{ Cause error }

func (e *UnsureError) Error() string {
	return fmt.Sprintf("%v: a power cut may take the last commits back; see to the disk and start again, the work goes on from what is there then", e.Cause)
}

func (e *UnsureError) Unwrap() error { return e.Cause }
