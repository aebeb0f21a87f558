package inbox

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"bagpipe/engine/inbox/internal/content"
	"bagpipe/layout"
)

// Pending walks the intake for what dead engines left and makes it this
// engine's: what took nothing or is half a copy is cleared away, the rest is
// returned to be admitted. An item that is committed already only wants Done. The
// intake of an engine that is alive is not touched. What cannot be understood is
// left as it is and named in err, beside the rest.
func (b *taker) Pending(ctx context.Context, alive func(layout.EngineID) bool) ([]Taken, error) {
	if b.engine == "" {
		return nil, errNoEngine
	}
	entries, err := os.ReadDir(b.path(layout.IntakeDir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("walk intake: %w", err)
	}
	var found []Taken
	var errs []error
	for _, e := range entries {
		if err := ctx.Err(); err != nil {
			return found, err
		}
		t, ok, err := b.recover(e.Name(), alive)
		if err != nil {
			errs = append(errs, fmt.Errorf("recover %s/%s: %w", layout.IntakeDir, layout.EncodePath(e.Name()), err))
		}
		if ok {
			found = append(found, t)
		}
	}
	return found, errors.Join(errs...)
}

// Orphaned tells whether Pending would find something that a dead engine left; what
// cannot be understood is not looked at again. Each engine is asked about once.
func (b *taker) Orphaned(alive func(layout.EngineID) bool) bool {
	entries, err := os.ReadDir(b.path(layout.IntakeDir))
	if err != nil {
		return false
	}
	lives := map[layout.EngineID]bool{b.engine: true}
	dead := func(id layout.EngineID) bool {
		if _, asked := lives[id]; !asked {
			lives[id] = alive(id)
		}
		return !lives[id]
	}
	for _, e := range entries {
		if engine, isTemp := tempOwner(e.Name()); isTemp {
			if dead(engine) {
				return true
			}
			continue
		}
		id, err := layout.ParseItemID(e.Name())
		if err != nil {
			continue
		}
		if j, err := readJournal(b.intakeOf(id)); err == nil && dead(j.Engine) {
			return true
		}
	}
	return false
}

func (b *taker) recover(name string, alive func(layout.EngineID) bool) (t Taken, ok bool, err error) {
	if engine, isTemp := tempOwner(name); isTemp {
		if alive(engine) {
			return Taken{}, false, nil
		}
		return Taken{}, false, discardIntake(b.path(layout.IntakeDir, name))
	}
	id, err := layout.ParseItemID(name)
	if err != nil {
		return Taken{}, false, errors.New("is not an item's folder; move it away, or into inbox/COLLECTION/ to have it taken in")
	}
	err = b.locked(func() error {
		t, ok, err = b.adopt(id, alive)
		return err
	})
	return t, ok, err
}

func (b *taker) adopt(id layout.ItemID, alive func(layout.EngineID) bool) (Taken, bool, error) {
	dir := b.intakeOf(id)
	j, err := readJournal(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return Taken{}, false, clearWithoutJournal(dir)
	}
	if err != nil && holdsNothing(dir) { // a power cut kept its name, and none of its bytes
		return Taken{}, false, discardIntake(dir)
	}
	if err != nil {
		return Taken{}, false, err
	}
	if alive(j.Engine) {
		return Taken{}, false, nil
	}
	t, err := b.taken(id, j)
	if err != nil {
		return Taken{}, false, err
	}
	begun, err := b.Begun(t)
	if err != nil {
		return Taken{}, false, err
	}
	home := filepath.Join(b.itemSource(t.home()), t.Name)
	if !content.Exists(t.Path) && content.Exists(home) && (t.Item == "" || begun) {
		t.Path, t.Promoted = home, true
	}
	if len(t.set) > 0 && !t.Promoted && j.Mode == modeRename {
		whole, err := b.wholeSet(t)
		if err != nil {
			return Taken{}, false, err
		}
		if !whole {
			return Taken{}, false, errors.Join(b.spread(t), discardIntake(dir))
		}
	}
	if !t.Promoted && !content.Exists(t.Path) {
		return Taken{}, false, b.clear(t, j)
	}
	// Without the journal saying so it is not this engine's: another would adopt it too,
	// and so would this one, again.
	err = rewriteJournal(dir, map[string]any{"engine": b.engine})
	return t, err == nil, err
}

// holdsNothing tells whether a take has an empty journal and nothing else: it is none, and
// its drop lies where it was.
func holdsNothing(dir string) bool {
	info, err := os.Stat(filepath.Join(dir, journalFile))
	if err != nil || info.Size() > 0 {
		return false
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return false
	}
	for _, e := range entries {
		if e.Name() == journalFile {
			continue
		}
		if inside, err := os.ReadDir(filepath.Join(dir, e.Name())); err != nil || len(inside) > 0 {
			return false
		}
	}
	return true
}

// wholeSet tells whether a set came into the intake. One of which part is there, as only
// a file system that lost renames leaves it, goes back if the rest is where it was.
func (b *taker) wholeSet(t Taken) (bool, error) {
	if content.Exists(gatherOf(t)) || !content.Exists(t.Path) {
		return false, nil
	}
	lacks := lackingOfSet(t)
	for _, enc := range lacks {
		name, err := layout.DecodePath(enc)
		if err != nil || !content.Exists(filepath.Join(filepath.Dir(t.Origin), name)) {
			return false, fmt.Errorf("of the files taken together %s is gone; restore it there, or move the rest into inbox/COLLECTION/", enc)
		}
	}
	return len(lacks) == 0, nil
}

// clear ends a take that did not come to its drop.
func (b *taker) clear(t Taken, j journal) error {
	if j.Mode == modeCopy {
		if err := b.dropCopy(t); err != nil {
			return err
		}
	}
	return discardIntake(b.intakeOf(t.ID))
}

// clearWithoutJournal removes what a Done that was cut short left.
func clearWithoutJournal(dir string) error {
	if err := discardIntake(dir); err != nil {
		return fmt.Errorf("it has no %s but is not empty; move its files into inbox/COLLECTION/ to have them taken in: %w", journalFile, err)
	}
	return nil
}

// tempOwner reads .ENGINE.ID.tmp.
func tempOwner(name string) (layout.EngineID, bool) {
	parts := strings.Split(name, ".")
	if len(parts) != 4 || parts[0] != "" || parts[3] != "tmp" {
		return "", false
	}
	id, err := layout.ParseEngineID(parts[1])
	return id, err == nil
}

// HasTaken tells whether a drop of this batch is in the intake: taken by any engine,
// and not yet an item.
func (b *taker) HasTaken(batch layout.Name) (bool, error) {
	entries, err := os.ReadDir(b.path(layout.IntakeDir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, fmt.Errorf("walk intake: %w", err)
	}
	for _, e := range entries {
		if _, err := layout.ParseItemID(e.Name()); err != nil {
			continue // a journal being written, whose drop lies where it was; or of no engine
		}
		j, err := readJournal(b.path(layout.IntakeDir, e.Name()))
		if errors.Is(err, fs.ErrNotExist) {
			continue // done meanwhile
		}
		if err != nil {
			return false, fmt.Errorf("walk intake: %s: %w", layout.EncodePath(e.Name()), err)
		}
		if j.Batch == string(batch) {
			return true, nil
		}
	}
	return false, nil
}

// Bound lists, of the drops in the intake, those that are to be versions of items, as
// their journals say; it changes nothing.
func (b *taker) Bound() ([]Taken, error) {
	entries, err := os.ReadDir(b.path(layout.IntakeDir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var found []Taken
	for _, e := range entries {
		id, err := layout.ParseItemID(e.Name())
		if err != nil {
			continue
		}
		j, err := readJournal(b.intakeOf(id))
		if err != nil || j.Item == "" {
			continue // told by Pending, or gone
		}
		if t, err := b.taken(id, j); err == nil {
			found = append(found, t)
		}
	}
	return found, nil
}
