package intake

import (
	"context"
	"errors"
	"fmt"
	"os"

	"bagpipe/bags/archive"
	"bagpipe/bags/files"
	"bagpipe/engine/inbox"
	"bagpipe/layout"
	"bagpipe/layout/disk"
)

// The rules are: below limits: free: nothing is taken in or started. A drop is taken
// in only if limits: room: times what it will take expanded is free above that; a
// smaller one behind it may go first. Of several in one scan each is counted. It is
// an estimate, from headers: should the disk be full all the same, what cannot be
// written is put back or stays in intake/, and is tried again.

// Fitting parts the drops for which there is room from those that wait for it. What
// cannot be measured is for admission to tell.
func (in *Intake) Fitting(ctx context.Context, drops []inbox.Drop) (fit []inbox.Drop, wait []inbox.Waiting) {
	s := in.settings.Current().Settings
	free, err := disk.Free(in.ledger.Root)
	if err != nil {
		return drops, nil
	}
	left := float64(free) - float64(s.Free())
	surely := s.Room()*mostExpanded(drops, s.ArchiveLimits()) <= left // without opening any
	for _, d := range drops {
		expanded := d.Bytes
		if d.Kind == inbox.File && !surely {
			if n, err := archive.Expanded(ctx, d.Path, s.ArchiveLimits()); err == nil {
				expanded = n
			}
		}
		need := s.Room() * float64(expanded)
		if need > left {
			wait = append(wait, inbox.Waiting{Drop: d, Reason: crowded(need, left, expanded, s.Room()), Crowded: true})
			continue
		}
		left -= need
		fit = append(fit, d)
	}
	return fit, wait
}

// mostExpanded is more than drops can expand to: what an archive holds beyond its limits is
// refused.
func mostExpanded(drops []inbox.Drop, l archive.Limits) (most float64) {
	for _, d := range drops {
		most += float64(d.Bytes)
		if d.Kind == inbox.File {
			most += float64(l.MostExpanded(d.Bytes))
		}
	}
	return most
}

func crowded(need, left float64, expanded int64, room float64) string {
	return fmt.Sprintf("waits for free space: it needs %s (limits: room: %g times its %s), and %s is free above limits: free:",
		layout.FormatSize(uint64(need)), room, layout.FormatSize(uint64(expanded)), layout.FormatSize(uint64(max(left, 0))))
}

// room is what a path that a person adds needs, and what there is.
type room struct {
	need, left      float64
	bytes, expanded int64
	factor          float64
}

// roomFor looks how much a path needs: a copy its own size besides. What cannot be
// measured needs nothing: Accept says what is wrong with it.
func (in *Intake) roomFor(ctx context.Context, path string, move bool) (r room, err error) {
	s := in.settings.Current().Settings
	r.factor = s.Room()
	if r.left, err = in.roomLeft(); err != nil {
		return r, err
	}
	info, err := os.Lstat(path)
	if err != nil {
		return r, nil
	}
	switch {
	case info.IsDir():
		tree, err := files.Scan(ctx, path)
		if err != nil {
			return r, nil
		}
		r.bytes = tree.Bytes()
		r.expanded = r.bytes
	case info.Mode().IsRegular():
		expanded, err := archive.Expanded(ctx, path, s.ArchiveLimits())
		if err != nil {
			return r, nil
		}
		r.bytes, r.expanded = info.Size(), expanded
	}
	r.need = r.factor * float64(r.expanded)
	if !move {
		r.need += float64(r.bytes)
	}
	return r, nil
}

// roomLeft is what is free above limits: free:.
func (in *Intake) roomLeft() (float64, error) {
	free, err := disk.Free(in.ledger.Root)
	return float64(free) - float64(in.settings.Current().Settings.Free()), err
}

// Low is why nothing may be taken in now, as the disk has no room; nil: it may.
func (in *Intake) Low() error { return in.folder.Space.Low() }

// refuses is why there is no room for a path; nil: there is.
func (r room) refuses(path string) error {
	if r.need <= r.left {
		return nil
	}
	return fmt.Errorf("%s %s", layout.EncodePath(path), crowded(r.need, r.left, r.expanded, r.factor))
}

// paused refuses to add while a pause file is there.
func (in *Intake) paused(box *inbox.Box, collection layout.Name) error {
	if why := box.Paused(collection); why != "" {
		return errors.New("nothing is taken in: " + why)
	}
	return nil
}
