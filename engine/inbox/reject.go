package inbox

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"bagpipe/engine/inbox/internal/content"
	"bagpipe/layout"
	"bagpipe/layout/disk"
)

// reasonFile stands beside a rejected drop; its fields are in the order of their
// keys.
type reasonFile struct {
	Batch      layout.Name      `json:"batch,omitempty"`
	Collection layout.Name      `json:"collection"`
	Name       string           `json:"name"`
	Original   *layout.Original `json:"original,omitempty"` // that stays in the inbox
	Reason     string           `json:"reason"`
	Rule       string           `json:"rule"`
	Schema     int              `json:"schema"`
	Time       time.Time        `json:"time"`
	Where      string           `json:"where"`
}

// rejects sets drops aside in rejected/, and lists them.
type rejects struct {
	workspace
	now func() time.Time
}

const reasonSuffix = ".reason.json"

func (rs rejects) reject(ctx context.Context, d Drop, stays *layout.Original, rule, reason string) (where string, err error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	if _, err := layout.ParseName(string(d.Collection)); err != nil {
		return "", err
	}
	dir := rs.path(layout.RejectedDir, string(d.Collection))
	if err := disk.MkdirAll(dir, content.DirPerm); err != nil {
		return "", err
	}
	r := reasonFile{Batch: d.Batch, Collection: d.Collection, Name: layout.EncodePath(d.Name), Original: stays, Reason: reason, Rule: rule, Schema: 1,
		Time: rs.now().UTC().Truncate(time.Microsecond)}
	err = rs.locked(func() error {
		where, err = rs.setAside(dir, d.Path, d.Name, r)
		return err
	})
	return where, err
}

// setAside is called with the lock held, so that a reason without its drop is
// what a crash left, and may be written over.
func (rs rejects) setAside(dir, path, name string, r reasonFile) (string, error) {
	if !content.Exists(path) {
		return "", ErrGone
	}
	home := dir
	if same, err := disk.SameFileSystem(filepath.Dir(path), dir); err == nil && !same {
		home = filepath.Join(filepath.Dir(path), setAsideName)
		if err := disk.MkdirAll(home, content.DirPerm); err != nil {
			return "", err
		}
	}
	to := freeName(name, home, dir)
	reason := filepath.Join(dir, filepath.Base(to)+reasonSuffix)
	r.Where = rs.shorten(to)
	data, err := encode(r)
	if err != nil {
		return "", err
	}
	if err := disk.WriteFile(reason, data, filePerm); err != nil {
		return "", err
	}
	// A crash here leaves a reason without a drop; the drop is rejected again.
	if err := content.MoveDrop(path, to); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			err = ErrGone
		}
		return "", errors.Join(err, os.Remove(reason))
	}
	return to, errors.Join(disk.SyncDir(home), disk.SyncDir(filepath.Dir(path)))
}

// freeName gives a path in home whose name is free there and in dir.
func freeName(name, home, dir string) string {
	// Beside the suffixes, disk.WriteFile's temporary name needs 24 bytes.
	const room = content.MaxNameLen - len(reasonSuffix) - len(".1000000") - 24
	if len(name) > room {
		sum := sha256.Sum256([]byte(name))
		name = name[:room-9] + "~" + hex.EncodeToString(sum[:4])
	}
	for n := 1; ; n++ {
		base := content.Numbered(name, n)
		if !content.Exists(filepath.Join(home, base)) && !content.Exists(filepath.Join(dir, base)) {
			return filepath.Join(home, base)
		}
	}
}

// Rejection is a drop that was set aside and is still there.
type Rejection struct {
	Drop   string      `json:"drop"` // COLLECTION/NAME, as it is called in rejected/, percent-encoded
	Batch  layout.Name `json:"batch,omitempty"`
	Rule   string      `json:"rule,omitempty"`
	Reason string      `json:"reason,omitempty"`
	Time   time.Time   `json:"time,omitzero"`
	Where  string      `json:"where"` // below the workspace, or absolute; percent-encoded
}

// Rejections lists them, by collection and name. A reason whose drop was taken away
// counts for nothing; a drop without a reason is listed without one.
func (rs rejects) Rejections() ([]Rejection, error) {
	found := []Rejection{}
	collections, err := os.ReadDir(rs.path(layout.RejectedDir))
	if errors.Is(err, fs.ErrNotExist) {
		return found, nil
	}
	if err != nil {
		return found, fmt.Errorf("list rejected drops: %w", err)
	}
	for _, c := range collections {
		if !c.IsDir() {
			continue
		}
		entries, err := os.ReadDir(rs.path(layout.RejectedDir, c.Name()))
		if err != nil {
			return found, fmt.Errorf("list rejected drops: %w", err)
		}
		found = append(found, rs.rejectionsOf(c.Name(), entries)...)
	}
	return found, nil
}

func (rs rejects) rejectionsOf(collection string, entries []fs.DirEntry) (found []Rejection) {
	there := map[string]bool{}
	for _, e := range entries {
		there[e.Name()] = true
	}
	dir := rs.path(layout.RejectedDir, collection)
	for _, e := range entries {
		name, isReason := strings.CutSuffix(e.Name(), reasonSuffix)
		switch {
		case there[e.Name()+reasonSuffix] || strings.HasPrefix(e.Name(), "."):
			// Its reason tells of it.
		case !isReason:
			found = append(found, Rejection{Drop: layout.EncodePath(collection + "/" + name), Where: rs.shorten(filepath.Join(dir, name))})
		default:
			r := rs.readReason(filepath.Join(dir, e.Name()))
			if r.Where == "" && there[name] {
				r.Where = rs.shorten(filepath.Join(dir, name))
			}
			if at, err := rs.lengthen(r.Where); err != nil || at == "" || !content.Exists(at) {
				continue
			}
			found = append(found, Rejection{Drop: layout.EncodePath(collection + "/" + name), Batch: r.Batch, Rule: r.Rule, Reason: r.Reason, Time: r.Time, Where: r.Where})
		}
	}
	return found
}

// readReason reads what it can: a reason that a person changed hides no drop.
func (rs rejects) readReason(path string) (r reasonFile) {
	data, err := disk.ReadFile(path)
	if err != nil || json.Unmarshal(data, &r) != nil {
		return reasonFile{}
	}
	return r
}

// refusedOriginal finds the reason for which the copy of an original that stays was
// set aside; empty: it was not, or somebody took the reason away.
func (rs rejects) refusedOriginal(d Drop, o layout.Original) string {
	dir := rs.path(layout.RejectedDir, string(d.Collection))
	entries, err := os.ReadDir(dir)
	if err != nil {
		return ""
	}
	for _, e := range entries {
		if filepath.Ext(e.Name()) != filepath.Ext(reasonSuffix) {
			continue
		}
		if r := rs.readReason(filepath.Join(dir, e.Name())); r.Original != nil && *r.Original == o {
			return r.Reason
		}
	}
	return ""
}
