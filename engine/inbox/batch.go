package inbox

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"bagpipe/engine/fault"
	"bagpipe/engine/inbox/internal/content"
	"bagpipe/layout"

	"golang.org/x/sys/unix"
)

// The rules are: where a collection's folders are batches, inbox/COLLECTION/BATCH/NAME
// is one drop. A batch is whole when nothing is left in its folder and its marker is
// beside it, or nothing has come for BatchQuiet. The caller then closes it and calls
// EndBatch, which removes the marker and then the folder, if that is empty.

// BatchFolder is a folder whose drops are one batch.
type BatchFolder struct {
	Collection layout.Name
	Batch      layout.Name
	Path       string
	Left       int    // what lies in it and may become items yet
	Whole      bool   // nothing is left, and nothing more comes
	Marked     bool   // its marker is there
	Closed     string // why nothing may be added any more; empty: it may

	marker *marker
}

// scanBatches scans a collection whose folders are batches.
func (p *place) scanBatches(ctx context.Context) error {
	var errs []error
	for _, e := range p.entries {
		if err := ctx.Err(); err != nil {
			return err
		}
		path := filepath.Join(p.dir, e.Name())
		if p.box.isRules(e) {
			continue
		}
		reason := p.unfinished(e.Name())
		if reason == "" && !e.IsDir() {
			var isMarker bool
			if isMarker, reason = p.isMarker(e); !isMarker {
				reason = "each folder here is a batch of drops; put it into one"
			}
		} else if reason == "" {
			if _, err := layout.ParseName(e.Name()); err != nil {
				reason = "each folder here is a batch, and this cannot be one: " + err.Error() + "; rename it"
			}
		}
		switch {
		case reason == ownName:
		case reason != "":
			p.wait(e, path, reason)
		case e.IsDir():
			errs = append(errs, p.scanBatch(ctx, layout.Name(e.Name()), path))
		}
	}
	return errors.Join(errs...)
}

func (p *place) scanBatch(ctx context.Context, name layout.Name, path string) error {
	b, f := p.box, p.found
	in, err := b.openPlace(f, p.collection, path)
	if err != nil {
		return err
	}
	in.batch, in.whole, in.closed, in.paused = name, p.markers[string(name)], b.opt.Closed(name), p.paused
	if err := in.scan(ctx); err != nil {
		return err
	}
	folder := BatchFolder{Collection: p.collection, Batch: name, Path: path, Left: in.left, Marked: in.whole != nil, Closed: in.closed, marker: in.whole}
	if in.left == 0 {
		in.settleBatch(&folder)
	}
	f.Batches = append(f.Batches, folder)
	return nil
}

// settleBatch tells whether an empty batch's folder is whole, and what it waits for.
func (p *place) settleBatch(folder *BatchFolder) {
	var st unix.Stat_t
	if unix.Lstat(p.dir, &st) != nil {
		return // gone
	}
	p.found.present[p.dir] = true
	since := content.Later(time.Unix(st.Mtim.Unix()), time.Unix(st.Ctim.Unix()))
	d := Drop{Collection: p.collection, Batch: p.batch, Name: string(p.batch), Path: p.dir, Kind: Folder, Since: since,
		seen: seen{sig: content.Signature{Entries: len(p.entries), Hash: uint64(since.UnixNano())}}}
	still, _ := p.box.stillFor(d, p.foreign)
	quiet := p.set.BatchQuiet
	folder.Whole = folder.Marked || quiet > 0 && still >= quiet
	if folder.Whole || folder.Closed != "" {
		return
	}
	w := Waiting{Drop: d, Reason: fmt.Sprintf("batch %s is open, and nothing is left in its folder; it is closed by %s beside it",
		p.batch, p.set.markersOf(string(p.batch))), Remedies: []fault.Remedy{{Verb: fault.CloseBatch, Name: string(p.batch)}}}
	if quiet > 0 {
		w.Until = p.box.opt.Now().Add(quiet - still)
		w.Reason += ", or when nothing has come for " + quiet.String()
	}
	p.found.Waiting = append(p.found.Waiting, w)
}

// EndBatch removes the marker and the folder of a batch that is closed. A folder in
// which anything lies stays.
func (b *Box) EndBatch(folder BatchFolder) error {
	if m := folder.marker; m != nil {
		if err := removeMarker(m.path, m.seen); err != nil {
			return fmt.Errorf("remove the marker of batch %s: %w", folder.Batch, err)
		}
	}
	err := os.Remove(folder.Path)
	if err == nil || errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTEMPTY) {
		return nil
	}
	return fmt.Errorf("remove the folder of batch %s: %w", folder.Batch, err)
}
