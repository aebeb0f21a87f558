package gitstore

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"bagpipe/engine/gitstore/internal/maintain"
	"bagpipe/engine/gitstore/internal/ref"
	"bagpipe/engine/gitstore/internal/repo"
	"bagpipe/layout"
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
//     packs' folder.
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
	prepareRef := func() error { return errors.Join(lock.Write(b.To), o.locker.CloseOld()) }
	if err := p.sync(prepareRef); err != nil {
		return errors.Join(fmt.Errorf("sync pack: %w", err), p.remove())
	}
	moved, err := lock.Move(b.From)
	if !moved {
		return errors.Join(err, p.remove())
	}
	if err != nil {
		return errors.Join(err, p.release()) // the branch needs the pack
	}
	o.reflog.Note(b.Move)
	after := []error{
		maintain.AddHints(o.repo, o.work.Replaced),
		writePublished(o.repo, b.To),
		p.release(),
		o.repo.DB.Add(p.base, index),
	}
	if err := errors.Join(after...); err != nil { // the commits are durable all the same
		o.repo.Log.Warn("after publication", "pack", p.base, "error", err)
	}
	return nil
}

// publishedFile remembers where a Bagpipe process last moved the branch, or saw it moved by
// others. It tells a branch that was moved back from one that never was further. It is not
// synced: an older commit in it is only less telling.
const publishedFile = layout.StateDir + "/published"

func readPublished(r *repo.Repo) Hash {
	data, err := r.FS.ReadFile(r.State(publishedFile))
	if err != nil || len(data) < 40 {
		return Hash{}
	}
	h, err := ParseHash(string(data[:40]))
	if err != nil {
		return Hash{}
	}
	return h
}

// writePublished overwrites the one line in place; a reader holds the turn lock, so it
// never sees half of it.
func writePublished(r *repo.Repo, h Hash) (err error) {
	f, err := r.OpenFile(r.State(publishedFile), os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	_, err = f.WriteAt([]byte(h.String()+"\n"), 0)
	return err
}
