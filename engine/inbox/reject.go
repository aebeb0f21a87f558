package inbox

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

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

const reasonSuffix = ".reason.json"

// Reject moves a drop from the inbox to rejected/, its reason first, and tells
// where it is. Nothing in it is opened.
func (b *Box) Reject(ctx context.Context, d Drop, rule, reason string) (string, error) {
	where, err := b.reject(ctx, d, nil, rule, reason)
	if err == nil {
		err = removeMarker(d.Marker, d.markerSeen)
	}
	return where, wrapDrop("reject", d, err)
}

// RejectTaken does the same with a drop in the intake, and forgets it. Of a copy
// the original goes last: a crash before that puts it back, to be taken and
// rejected a second time.
func (b *Box) RejectTaken(ctx context.Context, t Taken, rule, reason string) (string, error) {
	d := Drop{Collection: t.Collection, Batch: layout.Name(t.Ticket.Batch), Name: t.Name, Path: t.Path}
	if t.Promoted {
		return "", wrapDrop("reject", d, errors.New("it is in its item's folder already"))
	}
	where, err := b.reject(ctx, d, t.Original, rule, reason)
	if err == nil {
		err = errors.Join(b.removeAside(t), removeOwn(t, removeMarker(t.marker, t.markerSeen)))
	}
	if err == nil {
		err = discardIntake(b.intakeOf(t.ID))
	}
	return where, wrapDrop("reject", d, err)
}

func (b *Box) reject(ctx context.Context, d Drop, stays *layout.Original, rule, reason string) (where string, err error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	if _, err := layout.ParseName(string(d.Collection)); err != nil {
		return "", err
	}
	dir := b.path(layout.RejectedDir, string(d.Collection))
	if err := disk.MkdirAll(dir, dirPerm); err != nil {
		return "", err
	}
	r := reasonFile{Batch: d.Batch, Collection: d.Collection, Name: layout.EncodePath(d.Name), Original: stays, Reason: reason, Rule: rule, Schema: 1,
		Time: b.opt.Now().UTC().Truncate(time.Microsecond)}
	err = b.locked(func() error {
		where, err = b.setAside(dir, d.Path, d.Name, r)
		return err
	})
	return where, err
}

// setAside is called with the lock held, so that a reason without its drop is
// what a crash left, and may be written over.
func (b *Box) setAside(dir, path, name string, r reasonFile) (string, error) {
	if !exists(path) {
		return "", ErrGone
	}
	home := dir
	if same, err := disk.SameFileSystem(filepath.Dir(path), dir); err == nil && !same {
		home = filepath.Join(filepath.Dir(path), setAsideName)
		if err := disk.MkdirAll(home, dirPerm); err != nil {
			return "", err
		}
	}
	to := freeName(name, home, dir)
	reason := filepath.Join(dir, filepath.Base(to)+reasonSuffix)
	r.Where = b.shorten(to)
	data, err := encode(r)
	if err != nil {
		return "", err
	}
	if err := disk.WriteFile(reason, data, filePerm); err != nil {
		return "", err
	}
	// A crash here leaves a reason without a drop; the drop is rejected again.
	if err := moveDrop(path, to); err != nil {
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
	const room = maxNameLen - len(reasonSuffix) - len(".1000000") - 24
	if len(name) > room {
		sum := sha256.Sum256([]byte(name))
		name = name[:room-9] + "~" + hex.EncodeToString(sum[:4])
	}
	for n := 1; ; n++ {
		base := numbered(name, n)
		if !exists(filepath.Join(home, base)) && !exists(filepath.Join(dir, base)) {
			return filepath.Join(home, base)
		}
	}
}
