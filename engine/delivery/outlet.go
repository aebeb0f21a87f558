package delivery

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"bagpipe/engine/ledger"
	"bagpipe/engine/settings"
	"bagpipe/layout"
	"bagpipe/layout/disk"
	"bagpipe/steps/target"
)

// outlet is a target as deliveries use it. Its methods are idempotent by the parcel's key.
type outlet interface {
	// ask reports whether the target holds the parcel already.
	ask(ctx context.Context, p parcel) (receipt string, has bool, err error)
	// put brings the parcel in the place of what was there of the item.
	put(ctx context.Context, p parcel) (receipt string, err error)
	// remove takes the item back, where versions stand apart that version; one that is not there is no error.
	remove(ctx context.Context, p parcel) error
	// apart reports whether versions may stand side by side: then put leaves the earlier ones there.
	apart() bool
}

// folderOutlet is a folder: PATH/ITEM is what it holds of an item, and
// PATH/.bagpipe/ITEM.json, written last, says which delivery that is. A crash leaves
// .ITEM.part or .ITEM.old, which the next put removes, and a note that says so: without a note, what
// stands in an item's place is somebody's else, and is left alone. Where PATH/.bagpipe is not there and
// something was delivered, another folder should be mounted there.
type folderOutlet struct {
	dir  string
	used func(context.Context) (bool, error) // something was delivered
}

func (o folderOutlet) apart() bool { return false }

func (o folderOutlet) place(id layout.ItemID) string { return filepath.Join(o.dir, string(id)) }
func (o folderOutlet) note(id layout.ItemID) string {
	return filepath.Join(o.notes(), string(id)+".json")
}
func (o folderOutlet) notes() string { return filepath.Join(o.dir, ".bagpipe") }

// beside are where an item is written, and where the delivery before it goes.
func (o folderOutlet) beside(id layout.ItemID) (part, old string) {
	return filepath.Join(o.dir, "."+string(id)+".part"), filepath.Join(o.dir, "."+string(id)+".old")
}

// there refuses a folder that is not there, or has nothing of what was delivered: it may be a mount that is away.
func (o folderOutlet) there(ctx context.Context) error {
	info, err := os.Stat(o.dir)
	if err == nil && !info.IsDir() {
		err = errors.New("is no folder")
	}
	if err != nil {
		return &target.Down{Err: fmt.Errorf("the target's folder: %w", err)}
	}
	known, err := o.known()
	if known || err != nil {
		return err
	}
	used, err := o.used(ctx)
	if err != nil || !used {
		return err
	}
	// Another item may be the first, and have come there since.
	if known, err = o.known(); err == nil && !known {
		err = &target.Down{Err: o.unmarked()}
	}
	return err
}

func (o folderOutlet) unmarked() error {
	return fmt.Errorf("%s has nothing of what was delivered to it, and no folder .bagpipe: is it mounted? If it is a new one, make that folder in it", layout.EncodePath(o.dir))
}

// markedSince reports whether a try failed for want of the mark in a target's folder, which is there now: a person made it, and
// the pause before the next try is over.
func markedSince(k *Keeper, to layout.Name, d *layout.Delivery) bool {
	s := k.settings.Current().Settings
	g, is := s.Targets[string(to)]
	if !is || d.Message == "" || g.Kind != target.KindFolder || g.Layout != "" {
		return false
	}
	o := folderOutlet{dir: settings.Below(k.ledger.Root, g.Path)}
	if !strings.HasSuffix(d.Message, ledger.Printable(o.unmarked().Error())) {
		return false
	}
	marked, err := o.known()
	return err == nil && marked
}

// Unmarked tells of the targets of a workspace that were sent something, as of an engine's last look, and are folders without
// a mark: runs take them for away. Settings that cannot be read are told of by others.
func Unmarked(root string) (all []error, err error) {
	last, err := lookIn(root)
	data, failed := os.ReadFile(filepath.Join(root, layout.SettingsFile))
	if err != nil || last == nil || failed != nil {
		return nil, err
	}
	s, failed := settings.ParseSettings(layout.SettingsFile, data)
	y, wrong := layout.ParseYAML(layout.SettingsFile, data)
	if failed != nil || wrong != nil {
		return nil, nil
	}
	for _, name := range last.Held {
		g, is := s.Targets[string(name)]
		if !is || g.Kind != target.KindFolder || g.Layout != "" {
			continue
		}
		o := folderOutlet{dir: settings.Below(root, g.Path)}
		if info, err := os.Stat(o.dir); err != nil || !info.IsDir() {
			continue // away, and no matter of its mark
		}
		if known, err := o.known(); err == nil && !known {
			all = append(all, y.Errorf("$.targets."+string(name)+".path", "%v", o.unmarked()))
		}
	}
	return all, nil
}

// known reports whether the folder has the notes of deliveries.
func (o folderOutlet) known() (bool, error) {
	_, err := os.Lstat(o.notes())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, &target.Down{Err: err}
	}
	return err == nil, nil
}

func (o folderOutlet) ask(ctx context.Context, p parcel) (string, bool, error) {
	if err := o.there(ctx); err != nil {
		return "", false, err
	}
	is, err := o.noted(p.Item)
	if err != nil {
		return "", false, err
	}
	if is.Key != p.Key || is.Half || is.Digest != p.Digest || is.Format != p.Format || !p.holds(o.place(p.Item)) {
		return "", false, nil
	}
	return o.place(p.Item), true, nil
}

// placeNote is what a note says. Half: what stands in the place may be the delivery before, or nothing.
type placeNote struct {
	parcel
	Half bool `json:"half,omitempty"`
}

// noted reads the note of an item; the zero note where there is none.
func (o folderOutlet) noted(id layout.ItemID) (is placeNote, err error) {
	data, err := os.ReadFile(o.note(id))
	if errors.Is(err, fs.ErrNotExist) {
		return is, nil
	}
	if err != nil {
		return is, &target.Down{Err: err}
	}
	if json.Unmarshal(data, &is) != nil || is.Item != id {
		return placeNote{}, nil
	}
	return is, nil
}

// free refuses a place where something stands that no delivery of the item brought.
func (o folderOutlet) free(id layout.ItemID) error {
	is, err := o.noted(id)
	if err != nil || is.Item == id {
		return err
	}
	if _, err := os.Lstat(o.place(id)); errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return &target.Down{Err: err}
	}
	return fmt.Errorf("%s is there already, and no delivery brought it; it is not overwritten", layout.EncodePath(o.place(id)))
}

func (o folderOutlet) put(ctx context.Context, p parcel) (string, error) {
	if err := o.there(ctx); err != nil {
		return "", err
	}
	if err := o.free(p.Item); err != nil {
		return "", err
	}
	if err := disk.MkdirAll(o.notes(), 0o777); err != nil {
		return "", &target.Down{Err: err}
	}
	place := o.place(p.Item)
	part, old := o.beside(p.Item)
	if err := clearAway(part, old); err != nil {
		return "", err
	}
	if err := os.Mkdir(part, 0o777); err != nil {
		return "", &target.Down{Err: err}
	}
	if err := p.write(ctx, part); err != nil {
		err = errors.Join(err, disk.RemoveTree(part))
		var other *changed
		if errors.As(err, &other) {
			return "", err
		}
		return "", &target.Down{Err: err}
	}
	if err := o.swap(p, part, place, old); err != nil {
		return "", &target.Down{Err: err}
	}
	return place, nil
}

// swap gives the new folder its name, and notes which delivery it is.
func (o folderOutlet) swap(p parcel, part, place, old string) error {
	if err := o.write(placeNote{p, true}); err != nil {
		return err
	}
	if err := os.Rename(place, old); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := disk.Rename(part, place); err != nil {
		return err
	}
	if err := disk.RemoveTree(old); err != nil {
		return err
	}
	return o.write(placeNote{p, false})
}

func (o folderOutlet) write(n placeNote) error {
	data, err := json.Marshal(n)
	if err != nil {
		return err
	}
	// By one name, which the next put writes over: a kill leaves nothing that nobody clears.
	return disk.WriteFileFS(disk.OS{}, o.note(n.Item), "", append(data, '\n'), 0o666)
}

// remove puts the item aside by one rename, so that no half of it is ever seen in its place, and takes the note away last: what a
// crash leaves is known for a delivery, and is removed by the next remove or put. What no delivery brought stays.
func (o folderOutlet) remove(ctx context.Context, p parcel) error {
	if err := o.there(ctx); err != nil {
		return err
	}
	is, err := o.noted(p.Item)
	if err != nil {
		return err
	}
	part, old := o.beside(p.Item)
	if err := clearAway(part, old, o.note(p.Item)+".tmp"); err != nil {
		return err
	}
	if is.Item == p.Item {
		if err := disk.Rename(o.place(p.Item), old); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return &target.Down{Err: err}
		}
		if err := clearAway(old, o.note(p.Item)); err != nil {
			return err
		}
	}
	return disk.SyncDir(o.dir)
}

func clearAway(names ...string) error {
	for _, name := range names {
		if err := disk.RemoveTree(name); err != nil {
			return &target.Down{Err: err}
		}
	}
	return nil
}
