package gitstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"bagpipe/layout"
)

// followedFile says up to which commit the followed files are right: {"boot":
// ID, "written": COMMIT, "synced": COMMIT}. Written counts while the machine has
// not been started anew, since what was written and not synced is then still
// there; synced counts always. Without the file everything is compared.
const followedFile = layout.StateDir + "/followed"

type followed struct {
	Boot    string `json:"boot"`
	Written string `json:"written"`
	Synced  string `json:"synced"`
}

// marker writes followedFile, at most every markEvery while the store runs, and
// at its end. The follower's lock guards it.
type marker struct {
	s      *Store
	now    followed
	wrote  time.Time // by the store's clock
	ready  bool      // Repair has brought the files up to where the follower began
	broken bool      // a file could not be written: the mark must not pass it
}

const markEvery = 2 * time.Second

// reached: everything up to the commit is written.
func (m *marker) reached(tip Hash) {
	if now := m.s.opts.Now(); now.Sub(m.wrote) >= markEvery {
		m.wrote = now
		m.set(tip)
	}
}

// atEnd is reached at Close: what was written is made durable first.
func (m *marker) atEnd(tip Hash, complete bool) {
	if !m.ready || m.broken || !complete || m.now.Synced == tip.String() {
		return
	}
	if err := m.s.fs.SyncFS(m.s.root); err != nil {
		m.s.log.Warn("sync followed files", "error", err)
		return
	}
	m.now.Synced = tip.String()
	m.set(tip)
}

func (m *marker) set(tip Hash) {
	if !m.ready || m.broken || tip.IsZero() {
		return
	}
	m.now.Boot, m.now.Written = bootID(), tip.String()
	if err := m.s.writeMark(m.now); err != nil {
		m.s.log.Warn("mark followed files", "error", err)
	}
}

// bootID changes whenever the machine is started; empty when unknown.
func bootID() string {
	data, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(data))
}

func (s *Store) writeMark(f followed) (err error) {
	data, err := json.Marshal(f)
	if err != nil {
		return err
	}
	temp := s.statePath(followedFile) + ".tmp"
	file, err := s.openState(followedFile + ".tmp")
	if err != nil {
		return err
	}
	_, err = file.Write(append(data, '\n'))
	if err = errors.Join(err, file.Truncate(int64(len(data)+1)), file.Close()); err != nil {
		return err
	}
	return s.fs.Rename(temp, s.statePath(followedFile))
}

// readMark gives the commit up to which the followed files are right, zero when
// that is not known.
func (s *Store) readMark() (Hash, followed) {
	data, err := s.fs.ReadFile(s.statePath(followedFile))
	if err != nil {
		return Hash{}, followed{}
	}
	var f followed
	if err := json.Unmarshal(data, &f); err != nil {
		return Hash{}, followed{}
	}
	text := f.Synced
	if f.Boot != "" && f.Boot == bootID() {
		text = f.Written
	}
	h, err := ParseHash(text)
	if err != nil {
		return Hash{}, f
	}
	if ok, err := s.db.Has(h); err != nil || !ok {
		return Hash{}, followed{}
	}
	return h, f
}

// Repair brings the followed files in line with the tip: those that changed
// since the mark in .bagpipe, or all when there is none. Edited ones are kept
// beside and reported. It is called once, at start; until it has been, no mark
// is written.
func (s *Store) Repair(ctx context.Context) error {
	f := s.follower
	if f == nil {
		return nil
	}
	if err := f.repair(ctx); err != nil {
		return fmt.Errorf("repair followed files: %w", err)
	}
	return nil
}

func (f *follower) repair(ctx context.Context) error {
	f.mu.Lock()
	f.written = map[string]bool{}
	tip := f.tip // what moves later, the follower is told of
	f.mu.Unlock()
	from, mark := f.s.readMark()
	if err := f.offerAll(ctx, from, tip); err != nil {
		return err
	}
	if err := f.s.CaughtUp(ctx); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.written = nil
	f.mark.ready = true
	f.mark.now.Synced = mark.Synced
	return nil
}

// offerAll queues what may not be on disk as it is at the commit to.
func (f *follower) offerAll(ctx context.Context, from, to Hash) error {
	offer := func(c FileChange) error {
		if !f.s.opts.Follow(c.Path) {
			return nil
		}
		return f.offer(ctx, c)
	}
	if !from.IsZero() {
		return f.s.Diff(ctx, from, to, offer)
	}
	v, err := f.s.At(to)
	if err != nil {
		return err
	}
	return v.Walk(ctx, "", f.s.opts.Follow, func(path string, data []byte) error {
		return offer(FileChange{Path: path, Data: data})
	})
}

// offer queues a file for Repair, unless it was changed since Repair began; it
// waits while the backlog is full.
func (f *follower) offer(ctx context.Context, c FileChange) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for f.crowded() {
		if err := ctx.Err(); err != nil {
			return errors.Join(err, f.full)
		}
		f.changed.Wait()
	}
	if !f.written[c.Path] && f.lost.IsZero() {
		f.put(c.Path, &pendingFile{c.Data, c.Deleted, f.tip, f.seq})
		f.changed.Broadcast()
	}
	return nil
}
