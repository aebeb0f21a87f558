package target

import (
	"context"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"sync"

	"bagpipe/bags/files"
	"bagpipe/layout"

	"golang.org/x/sync/errgroup"
)

// Shelf is a target as a place to read from: beside bags, or without any, it holds folders of
// plain files, PLACE/PART/…, which follow what their items are now. What stands there is
// replaced and removed; it is no deposit.
type Shelf struct{ b backend }

// ShelfOf gives the shelf of a target whose layout is bag; others hold no plain files.
func ShelfOf(t Target) (Shelf, bool) {
	bags, is := t.(*bagTarget)
	if !is {
		return Shelf{}, false
	}
	return Shelf{bags.b}, true
}

// Shelved is a file of a shelf.
type Shelved struct {
	Size   int64
	SHA512 string // in hexadecimal
	Open   func(offset int64) (io.ReadCloser, error)
}

// Shelving is what making a shelf's folder took.
type Shelving struct {
	Sent, Kept, Removed int
	Bytes               int64 // of all that are there now
}

// Hold makes the folder of an item's part hold these files, by name, and no others. Each is
// read back, or, where one of its size is there, read; one that is not as wanted is removed
// and written anew, so that it is absent for a moment, never wrong. A crash leaves some of
// both; the next call goes on. Errors: *Down, *Damage of what was read back.
func (s Shelf) Hold(ctx context.Context, item layout.ItemID, part string, want map[string]Shelved) (out Shelving, err error) {
	dir := path.Join(Place(item, 1), part)
	have := map[string]int64{}
	err = s.b.list(ctx, dir, true, func(name string, size int64) error {
		have[name] = size
		return nil
	})
	if err != nil {
		return out, err
	}
	var mu sync.Mutex // guards out
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(s.b.traits().streams)
	for name, f := range want {
		size, there := have[name]
		g.Go(func() error {
			sent, err := s.hold(gctx, path.Join(dir, name), f, there, size)
			mu.Lock()
			defer mu.Unlock()
			out.Bytes += f.Size
			if sent {
				out.Sent++
			} else {
				out.Kept++
			}
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return out, err
	}
	for _, name := range slices.Sorted(maps.Keys(have)) {
		if _, wanted := want[name]; !wanted {
			out.Removed++
			if err := s.b.remove(ctx, path.Join(dir, name)); err != nil {
				return out, err
			}
		}
	}
	if len(want) == 0 {
		return out, s.b.remove(ctx, dir)
	}
	return out, s.b.settle(ctx, dir)
}

func (s Shelf) hold(ctx context.Context, at string, f Shelved, there bool, size int64) (sent bool, err error) {
	if there && size == f.Size {
		if sum, err := sumOf(ctx, s.b, at, files.SHA512); err != nil || hex.EncodeToString(sum) == f.SHA512 {
			return false, err
		}
	}
	stage := at
	if s.b.traits().renames {
		stage = staged(at)
		if err := s.b.remove(ctx, stage); err != nil { // half of another
			return true, err
		}
	} else if err := s.b.remove(ctx, at); err != nil {
		return true, err
	}
	if err := s.b.write(ctx, stage, file{size: f.Size, open: f.Open}); err != nil {
		return true, err
	}
	if sum, err := sumOf(ctx, s.b, stage, files.SHA512); err != nil || hex.EncodeToString(sum) != f.SHA512 {
		return true, errors.Join(err, s.b.remove(ctx, stage), damage("%s is not what was sent", layout.EncodePath(at)))
	}
	if stage == at {
		return true, nil
	}
	if err := s.b.remove(ctx, at); err != nil {
		return true, err
	}
	return true, s.b.rename(ctx, stage, at)
}

// Held tells of the names and sizes in the folder of an item's part.
func (s Shelf) Held(ctx context.Context, item layout.ItemID, part string, each func(name string, size int64) error) error {
	err := s.b.list(ctx, path.Join(Place(item, 1), part), true, each)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
