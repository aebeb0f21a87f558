package follow

import (
	"encoding/json"
	"errors"
	"os"
	"strings"
	"time"

	"bagpipe/engine/gitstore/internal/odb"
	"bagpipe/engine/gitstore/internal/repo"
	"bagpipe/layout"
)

// markFile says up to which commit the followed files are right: {"boot": ID, "written":
// COMMIT, "synced": COMMIT}. Written counts while the machine has not been started anew,
// since files that were written and not synced are then still there; synced counts always.
// Without the file every followed file is compared.
const markFile = layout.StateDir + "/followed"

type position struct {
	Boot    string `json:"boot"`
	Written string `json:"written"`
	Synced  string `json:"synced"`
}

// marker writes markFile, at most every markEvery while the store runs, and at its end.
// The follower's lock guards it.
type marker struct {
	repo   *repo.Repo
	now    position
	wrote  time.Time // by the store's clock
	ready  bool      // every file from before the follower began is known to be right
	broken bool      // a file could not be written: the mark must not pass it
}

const markEvery = 2 * time.Second

// reached notes that every file up to the commit is written.
func (m *marker) reached(tip odb.Hash) {
	if now := m.repo.Now(); now.Sub(m.wrote) >= markEvery {
		m.wrote = now
		m.set(tip)
	}
}

// atEnd is reached at Close: the files are made durable first.
func (m *marker) atEnd(tip odb.Hash, complete bool) {
	if !m.ready || m.broken || !complete || m.now.Synced == tip.String() {
		return
	}
	if err := m.repo.FS.SyncFS(m.repo.Root); err != nil {
		m.repo.Log.Warn("sync followed files", "error", err)
		return
	}
	m.now.Synced = tip.String()
	m.set(tip)
}

func (m *marker) set(tip odb.Hash) {
	if !m.ready || m.broken || tip.IsZero() {
		return
	}
	m.now.Boot, m.now.Written = bootID(), tip.String()
	if err := m.write(); err != nil {
		m.repo.Log.Warn("mark followed files", "error", err)
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

// write replaces the mark; a crash leaves the old one or the new one.
func (m *marker) write() error {
	data, err := json.Marshal(m.now)
	if err != nil {
		return err
	}
	name := m.repo.State(markFile)
	f, err := m.repo.OpenFile(name+".tmp", os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(append(data, '\n'))
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return m.repo.FS.Rename(name+".tmp", name)
}

// Shown gives the commit up to which the followed files are right, zero when that is not known.
func Shown(r *repo.Repo) odb.Hash { return (&marker{repo: r}).read() }

// read gives the commit up to which the followed files are right, zero when that is not
// known.
func (m *marker) read() odb.Hash {
	data, err := m.repo.FS.ReadFile(m.repo.State(markFile))
	if err != nil {
		return odb.Hash{}
	}
	var p position
	if err := json.Unmarshal(data, &p); err != nil {
		return odb.Hash{}
	}
	text := p.Synced
	if p.Boot != "" && p.Boot == bootID() {
		text = p.Written
	}
	h, err := odb.ParseHash(text)
	if err != nil {
		return odb.Hash{}
	}
	if ok, err := m.repo.DB.Has(h); err != nil || !ok {
		return odb.Hash{}
	}
	return h
}
