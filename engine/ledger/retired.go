package ledger

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"

	"bagpipe/engine/fault"
	"bagpipe/engine/gitstore"
	"bagpipe/layout"
)

// What Bagpipe-To says of a commit that takes an item's records out of the tip, and of one that
// brings them back.
const (
	Retired  = "retired"
	Recalled = "recalled"
)

// committedNames are the files that Bagpipe commits in an item's folder.
var committedNames = []string{layout.ManifestJSON, layout.ExecutionJSON, layout.InventoryJSON, layout.DepositsJSON, layout.QualityJSON, layout.DeliveryJSON}

// SideNames are those of them that are no Records.
var SideNames = committedNames[4:]

// isShown tells those that are shown in an item's folder.
func isShown(rest string) bool { return IsRecord(rest) || rest == layout.QualityJSON }

// retiredCopies visits the paths where the records of retired items were shown.
func retiredCopies(v gitstore.View, visit func(path string) error) error {
	var mu sync.Mutex // guards what visit does
	err := EachRetired(context.Background(), v, gitstore.Hash{}, func(id layout.ItemID, _ layout.Standing) error {
		records, err := ReadRecords(v, id)
		if err != nil || !records.Absent() { // they stand, whatever the line says
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		for _, name := range committedNames {
			if !isShown(name) {
				continue
			}
			if err := visit(layout.ItemDir(id) + "/" + name); err != nil {
				return err
			}
		}
		return nil
	})
	if newer(err) { // whoever asks for an item is told
		return nil
	}
	return err
}

// IsJudged reports whether a change of a file of an item from was to is is held against what it was: of a record, of
// what checks found, and of what is known of deliveries where it is untrue. nil: it is not there.
func IsJudged(rest string, was, is []byte) bool {
	return isShown(rest) || rest == layout.DeliveryJSON && UntrueDelivery(was, is) != ""
}

// ReadRetired reads the line of a retired item; zero: there is none. A file that cannot be read
// has no lines; one of a newer schema is a *layout.SchemaError.
func ReadRetired(r gitstore.Reader, id layout.ItemID) (layout.Standing, error) {
	p := layout.RetiredPath(id)
	data, err := ReadOptional(r, p)
	if err != nil {
		return layout.Standing{}, err
	}
	all, err := decodeRetired(p, data)
	if err != nil && !newer(err) {
		return layout.Standing{}, nil
	}
	return all.Items[id], err
}

// decodeRetired is layout.DecodeRetired, and names the file that is of a newer schema.
func decodeRetired(p string, data []byte) (layout.Retired, error) {
	all, err := layout.DecodeRetired(data)
	if newer, is := errors.AsType[*layout.SchemaError](err); is {
		newer.File = p
	}
	return all, err
}

// lastStood opens the commit that a line names; ok is false where the line names none that has
// the item's records.
func lastStood(l *Ledger, id layout.ItemID, s layout.Standing) (v gitstore.View, ok bool, err error) {
	h, err := gitstore.ParseHash(s.Commit)
	if err != nil {
		return v, false, nil //nolint:nilerr // a push may have put anything there
	}
	if v, err = l.Store.At(h); err != nil {
		return v, false, nil //nolint:nilerr // the commit is none of this history
	}
	_, err = v.ReadFile(layout.ItemDir(id) + "/" + layout.ExecutionJSON)
	if errors.Is(err, fs.ErrNotExist) {
		return v, false, nil
	}
	return v, err == nil, err
}

// Stood gives the files in which a retired item last stood; ok is false where the item is not
// retired at r.
func Stood(l *Ledger, r gitstore.Reader, id layout.ItemID) (v gitstore.View, ok bool, err error) {
	s, err := ReadRetired(r, id)
	if err != nil || s == (layout.Standing{}) {
		return v, false, err
	}
	return lastStood(l, id, s)
}

// StandingOf reads an item's records at r; of a retired item those that last stood.
func StandingOf(l *Ledger, r gitstore.Reader, id layout.ItemID) (Records, error) {
	f, err := ReadRecords(r, id)
	if err != nil || !f.Absent() {
		return f, err
	}
	s, err := ReadRetired(r, id)
	switch {
	case newer(err): // it retires nothing that this version can find
		return f, nil
	case err != nil || s == (layout.Standing{}):
		return f, err
	}
	v, ok, err := lastStood(l, id, s)
	if err != nil || !ok {
		return f, err
	}
	if f, err = ReadRecords(v, id); err == nil {
		f.Retired = s
	}
	return f, err
}

// SetRetired adds to files, which are to change r, the change of an item's line; zero removes it.
func SetRetired(r gitstore.Reader, id layout.ItemID, s layout.Standing, files map[string][]byte) error {
	p := layout.RetiredPath(id)
	data, set := files[p]
	if !set {
		var err error
		if data, err = ReadOptional(r, p); err != nil {
			return err
		}
	}
	all, err := decodeRetired(p, data)
	if newer(err) {
		return err
	}
	if err == nil && all.Items[id] == s {
		return nil
	}
	if all.Items[id] = s; s == (layout.Standing{}) {
		delete(all.Items, id)
	}
	if data, err = all.Encode(); data != nil || err != nil {
		files[p] = data
		return err
	}
	files[p] = nil
	return nil
}

// ErrMovedOn is a retirement of records that were changed since the commit that was to be named.
var ErrMovedOn = errors.New("the item was changed meanwhile")

// Retirement gives the change that takes an item's records out of r and names v, where they
// stand; an item that is not the same there is refused with ErrMovedOn.
func Retirement(r gitstore.Reader, v gitstore.View, m layout.Manifest) (map[string][]byte, error) {
	files := map[string][]byte{}
	for _, name := range committedNames {
		p := layout.ItemDir(m.Item) + "/" + name
		is, err := ReadOptional(r, p)
		if err != nil {
			return nil, err
		}
		was, err := ReadOptional(v, p)
		if err != nil {
			return nil, err
		}
		if string(is) != string(was) {
			return nil, ErrMovedOn
		}
		if is != nil {
			files[p] = nil
		}
	}
	s := layout.Standing{Commit: v.Commit().String(), Collection: m.Collection, Label: Clip(Printable(m.Label), MaxLabel)}
	return files, SetRetired(r, m.Item, s, files)
}

// Beside adds to files, which are to change r, what stood beside an item's records at v, or last
// stood where it was retired there; files that are there already stay.
func Beside(l *Ledger, v gitstore.View, retired bool, r gitstore.Reader, id layout.ItemID, files map[string][]byte) error {
	if retired {
		last, ok, err := Stood(l, v, id)
		if err != nil || !ok {
			return err
		}
		v = last
	}
	for _, name := range SideNames {
		p := layout.ItemDir(id) + "/" + name
		is, err := ReadOptional(r, p)
		if err != nil {
			return err
		}
		was, err := ReadOptional(v, p)
		if err != nil {
			return err
		}
		if _, set := files[p]; !set && was != nil && is == nil {
			files[p] = was
		}
	}
	return nil
}

// SameBeside reports whether what stands beside an item's records at v stood so in the commit that
// a line names.
func SameBeside(l *Ledger, v gitstore.View, s layout.Standing, id layout.ItemID) (bool, error) {
	last, ok, err := lastStood(l, id, s)
	if err != nil || !ok {
		return false, err
	}
	for _, name := range SideNames {
		p := layout.ItemDir(id) + "/" + name
		is, errIs := ReadOptional(v, p)
		was, errWas := ReadOptional(last, p)
		if err := errors.Join(errIs, errWas); err != nil || string(is) != string(was) {
			return false, err
		}
	}
	return true, nil
}

// Recall adds to files what brings a retired item's files back; files that are there already
// stay.
func Recall(l *Ledger, r gitstore.Reader, id layout.ItemID, files map[string][]byte) error {
	v, ok, err := Stood(l, r, id)
	if err != nil {
		return err
	}
	if !ok {
		return SetRetired(r, id, layout.Standing{}, files)
	}
	for _, name := range committedNames {
		p := layout.ItemDir(id) + "/" + name
		data, err := ReadOptional(v, p)
		if err != nil {
			return err
		}
		if _, set := files[p]; !set && data != nil {
			files[p] = data
		}
	}
	return SetRetired(r, id, layout.Standing{}, files)
}

// RetiredLines are the lines that differ by the change of a file; zero are those that are gone.
// What cannot be read has none.
func RetiredLines(before gitstore.Reader, c gitstore.FileChange) (map[layout.ItemID]layout.Standing, error) {
	if !layout.IsRetiredPath(c.Path) {
		return nil, nil
	}
	old, err := ReadOptional(before, c.Path)
	if err != nil {
		return nil, err
	}
	return movedLines(old, c.Data), nil
}

// MovedLines is RetiredLines of a file that a scan found to differ.
func MovedLines(read *gitstore.Scan, d gitstore.Difference) (map[layout.ItemID]layout.Standing, error) {
	if !layout.IsRetiredPath(d.Path) {
		return nil, nil
	}
	old, errOld := read.Blob(d, d.Was)
	now, errNow := read.Blob(d, d.Is)
	return movedLines(old, now), errors.Join(errOld, errNow)
}

func movedLines(old, now []byte) map[layout.ItemID]layout.Standing {
	read := func(data []byte) (lines layout.Retired) {
		lines, err := layout.DecodeRetired(data)
		if newer(err) { // what it says of the items is not known
			lines.Items = nil
		}
		return lines
	}
	was, is := read(old), read(now)
	moved := map[layout.ItemID]layout.Standing{}
	for id, s := range is.Items {
		if was.Items[id] != s {
			moved[id] = s
		}
	}
	for id := range was.Items {
		if _, there := is.Items[id]; !there {
			moved[id] = layout.Standing{}
		}
	}
	return moved
}

// Missing is the error of an item without records at the tip.
func Missing(l *Ledger, id layout.ItemID) error {
	v, err := l.Store.Tip()
	if err != nil {
		return err
	}
	return NoRecords(v, id)
}

// NoRecords is the error of an item without records at r.
func NoRecords(r gitstore.Reader, id layout.ItemID) error {
	s, err := ReadRetired(r, id)
	switch {
	case newer(err):
		return err
	case err == nil && s != (layout.Standing{}):
		return fault.New(fault.Refused, fmt.Sprintf("item %s (%s/%s) is retired", id.Short(), s.Collection, s.Label), fault.Remedy{Verb: fault.Recall, Item: id})
	}
	return NoItem(string(id))
}

// EachRetired visits the lines of retired items in files that differ from those of the tree since;
// zero: all of them. visit is called by several goroutines side by side. Where one file is of a newer schema, and may
// have items that do not stand, the others are visited, and it is a *layout.SchemaError.
func EachRetired(ctx context.Context, v gitstore.View, since gitstore.Hash, visit func(layout.ItemID, layout.Standing) error) error {
	var mu sync.Mutex // guards hidden
	var hidden error
	err := v.Folders(ctx, since, layout.RetiredDir, retiredDepth, func(f gitstore.Folder) error {
		for _, digit := range "0123456789abcdef" {
			name := string(digit) + ".json"
			data, err := f.ReadFile(name)
			if err != nil {
				return err
			}
			all, unread := decodeRetired(f.Path+"/"+name, data) // what cannot be read has no lines
			if newer(unread) {
				stand, err := allStand(v, all)
				if err != nil {
					return err
				}
				mu.Lock()
				if !stand && (hidden == nil || unread.Error() < hidden.Error()) {
					hidden = unread
				}
				mu.Unlock()
				continue
			}
			for id, s := range all.Items {
				if err := visit(id, s); err != nil {
					return err
				}
			}
		}
		return nil
	})
	return errors.Join(err, hidden)
}

// allStand reports whether the records stand at v of all items that a file of a newer schema has.
func allStand(v gitstore.View, of layout.Retired) (bool, error) {
	for id := range of.Items {
		f, err := ReadRecords(v, id)
		if err != nil || f.Absent() {
			return false, err
		}
	}
	return len(of.Items) > 0, nil
}

// retiredDepth is how many folders below retired/ the files stand.
const retiredDepth = 3

// FindRetired lists the retired items whose identifier begins with ref, or whose label it is.
// "" lists all. What a file of a newer schema may hide is a *layout.SchemaError, beside what was found.
func FindRetired(ctx context.Context, v gitstore.View, ref string) (found []layout.ItemID, err error) {
	if layout.IsItemPrefix(ref) && len(ref) >= len("3fa9c0d2") { // as listings show them
		p := layout.RetiredDir + "/" + strings.Join(strings.Split(ref[:4], ""), "/") + ".json"
		data, err := ReadOptional(v, p)
		all, unread := decodeRetired(p, data)
		if newer(unread) {
			return nil, unread
		}
		for id := range all.Items {
			if strings.HasPrefix(string(id), ref) {
				found = append(found, id)
			}
		}
		if err != nil || len(found) > 0 {
			return found, err
		}
	}
	var mu sync.Mutex // guards found
	err = EachRetired(ctx, v, gitstore.Hash{}, func(id layout.ItemID, s layout.Standing) error {
		if strings.HasPrefix(string(id), ref) || s.Label == ref {
			mu.Lock()
			defer mu.Unlock()
			found = append(found, id)
		}
		return nil
	})
	slices.Sort(found)
	return found, err
}
