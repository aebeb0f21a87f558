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
	ready  bool      // everything before the follower began is known to be right
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
func (s *Store) readMark() Hash {
	data, err := s.fs.ReadFile(s.statePath(followedFile))
	if err != nil {
		return Hash{}
	}
	var f followed
	if err := json.Unmarshal(data, &f); err != nil {
		return Hash{}
	}
	text := f.Synced
	if f.Boot != "" && f.Boot == bootID() {
		text = f.Written
	}
	h, err := ParseHash(text)
	if err != nil {
		return Hash{}
	}
	if ok, err := s.db.Has(h); err != nil || !ok {
		return Hash{}
	}
	return h
}

// Repair brings the followed files in line with the branch: those that changed
// since the mark in .bagpipe, or all when there is none. Edited ones are kept
// beside and reported. It is called once, at start; until it has been, no mark
// is written. When another process follows, there is nothing to do.
func (s *Store) Repair(ctx context.Context) error {
	return s.repair(ctx, false)
}

// RepairAll is Repair for every followed file, whatever the mark says: it finds
// those that were edited in place since.
func (s *Store) RepairAll(ctx context.Context) error {
	return s.repair(ctx, true)
}

// RepairRest begins what RepairAll does beyond Repair; CaughtUp waits for its end.
func (s *Store) RepairRest() {
	if s.follower != nil {
		s.follower.beginRepair(true)
	}
}

func (s *Store) repair(ctx context.Context, all bool) error {
	f := s.follower
	if f == nil {
		return nil
	}
	if err := s.Refresh(ctx); err != nil {
		return fmt.Errorf("repair followed files: %w", err)
	}
	f.beginRepair(all)
	if err := s.CaughtUp(ctx); err != nil {
		return fmt.Errorf("repair followed files: %w", err)
	}
	return nil
}

func (f *follower) beginRepair(all bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if all && f.takeOver() && !f.done {
		f.lose(Hash{})
		return
	}
	if f.takeOver() && !f.lost && !f.done {
		f.lose(f.s.readMark())
	}
}
