package inbox

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"bagpipe/engine/inbox/internal/content"
	"bagpipe/layout"
	"bagpipe/layout/disk"

	"golang.org/x/sys/unix"
)

// taker takes drops into the intake, and from there to their items' folders.
type taker struct {
	workspace
	notes
	versions
	rejects
	*inForce
	engine layout.EngineID
	now    func() time.Time
	random io.Reader
	at     func(string) // told of each step of taking a set, by tests
}

// look surveys the drop at path.
func (b *taker) look(ctx context.Context, path string) (content.Survey, error) {
	return b.survey(ctx, path, b.settlingOf(""), false)
}

func (b *taker) survey(ctx context.Context, path string, set *settling, asks bool) (content.Survey, error) {
	return content.SurveyOf(ctx, path, unix.PathMax-1-len(b.root)-pathReserve, set.inside, set.lists, asks)
}

// pathReserve is what a path grows by, at most, on its way from the inbox to a
// step's scratch folder.
const pathReserve = 160

// CheckLists compares a taken drop with the lists in it. A *BadError tells what is
// not as listed.
func (b *taker) CheckLists(ctx context.Context, t Taken) error {
	set := b.settlingOf(t.Collection)
	if t.Kind != Folder || len(set.Lists) == 0 {
		return nil
	}
	entries, err := os.ReadDir(t.Path)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !e.Type().IsRegular() || !set.lists.Match(e.Name()) {
			continue
		}
		err := readList(t.Path, e.Name(), func(l listed) error { return l.check(ctx, t.Path, e.Name()) })
		if err != nil {
			return err
		}
	}
	return nil
}

// keepSidecars moves the side-cars of a committed item to it. Doing it twice is
// fine.
func (b *taker) keepSidecars(t Taken) error {
	if len(t.Sidecars) == 0 {
		return nil
	}
	dir := filepath.Join(b.path(layout.ItemDir(t.home())), layout.SidecarsDir)
	for i, path := range t.Sidecars {
		seen := carSeen(path)
		if seen == "" || i < len(t.carsSeen) && seen != t.carsSeen[i] {
			continue
		}
		if err := disk.MkdirAll(dir, content.DirPerm); err != nil {
			return err
		}
		to := filepath.Join(dir, filepath.Base(path))
		err := content.RenameNew(path, to)
		if content.IsEXDEV(err) || err != nil && removeOwn(t, err) == nil {
			err = removeOwn(t, moveAcross(path, to))
		}
		if errors.Is(err, fs.ErrExist) {
			continue // of the next drop of this name: it keeps it
		}
		if err != nil {
			return err
		}
		if err := errors.Join(disk.SyncDir(dir), disk.SyncDir(filepath.Dir(path))); err != nil {
			return err
		}
	}
	return nil
}
