package target

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"time"

	"bagpipe/bags/files"
	"bagpipe/layout"

	"golang.org/x/sync/errgroup"
)

// bagTarget keeps each bag as it is, file by file.
type bagTarget struct {
	b   backend
	now func() time.Time
}

// Put finds the bag among the revisions there, or makes the next.
func (t *bagTarget) Put(ctx context.Context, b Bag) (layout.DepositCopy, error) {
	return meanwhile(func() (layout.DepositCopy, error) { return t.put(ctx, b) })
}

// meanwhile puts again where another engine came first: its copy is compared then.
func meanwhile(put func() (layout.DepositCopy, error)) (layout.DepositCopy, error) {
	c, err := put()
	if errors.Is(err, fs.ErrExist) {
		c, err = put()
	}
	if errors.Is(err, fs.ErrExist) {
		err = fmt.Errorf("%s: %w", c.Place, ErrOther)
	}
	return c, err
}

func (t *bagTarget) put(ctx context.Context, b Bag) (layout.DepositCopy, error) {
	own, err := localVouchers(b.Dir, isVoucher)
	if err != nil {
		return layout.DepositCopy{}, err
	}
	for n := 1; ; n++ {
		at := Revision(Place(b.Item, b.Version), n)
		there, err := readVouchers(ctx, t.b, at)
		switch {
		case errors.Is(err, fs.ErrNotExist), err == nil && there[declaration] == nil && !t.b.traits().renames:
			return t.make(ctx, b, own, at)
		case err != nil:
			return layout.DepositCopy{}, err
		}
		how, err := own.compare(there)
		switch {
		case err != nil:
			return layout.DepositCopy{}, err
		case how == OtherBag:
			return layout.DepositCopy{}, fmt.Errorf("%s: %w", layout.EncodePath(at), ErrOther)
		case how >= RedatedBag:
			n, size, err := verify(ctx, t.b, at, there.digest(), Read, b.Progress)
			if err == nil { // a dead put may have renamed it just now
				err = t.b.settle(ctx, at)
			}
			c := t.copy(at, there.digest(), n, size)
			c.Retention = time.Time{} // as the put said that wrote it
			return c, err
		}
	}
}

func (t *bagTarget) copy(at, digest string, n int, size int64) layout.DepositCopy {
	now := t.now()
	return layout.DepositCopy{Place: layout.EncodePath(at), Layout: LayoutBag, Files: n, Bytes: size, Digest: digest,
		Retention: t.b.traits().until(now), Written: now, Verified: now, Outcome: layout.FixityPassed}
}

// make writes the copy, reads it back, and gives it its name or its declaration.
func (t *bagTarget) make(ctx context.Context, b Bag, own vouchers, at string) (none layout.DepositCopy, err error) {
	tree, err := files.Scan(ctx, b.Dir)
	if err != nil {
		return none, err
	}
	if err := tree.CheckRegular(); err != nil {
		return none, err
	}
	stage, last := at, declaration
	if t.b.traits().renames {
		stage, last = staged(at), ""
	}
	for try := 1; ; try++ {
		if err := t.send(ctx, b, tree, stage, last); err != nil {
			return none, err
		}
		n, size, err := t.readBack(ctx, b, own, stage, last)
		var wrong *Damage
		if errors.As(err, &wrong) && try == 1 { // a dead put's files, or one altered on the way
			if err := t.b.remove(ctx, stage); err != nil {
				return none, err
			}
			continue
		}
		if err == nil {
			err = t.publish(ctx, b, stage, at)
		}
		if last != "" {
			n, size = len(tree.Files), tree.Bytes()
		}
		return t.copy(at, own.digest(), n, size), err
	}
}

// send writes the files that are not there with their size yet, but the last.
func (t *bagTarget) send(ctx context.Context, b Bag, tree *files.Tree, to, last string) error {
	have := map[string]int64{}
	err := t.b.list(ctx, to, true, func(name string, size int64) error {
		have[name] = size
		return nil
	})
	if err != nil {
		return err
	}
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(t.b.traits().streams)
	for i := range tree.Files {
		f := &tree.Files[i]
		if size, there := have[f.Path]; there && size == f.Size || f.Path == last {
			continue
		}
		g.Go(func() error {
			if err := gctx.Err(); err != nil {
				return err
			}
			err := t.b.write(gctx, to+"/"+f.Path, localFile(b, f.Path, f.Size))
			if _, there := have[f.Path]; there && errors.Is(err, fs.ErrExist) { // of an earlier bag that was never finished
				if err := t.b.remove(gctx, to+"/"+f.Path); err != nil {
					return err
				}
				err = t.b.write(gctx, to+"/"+f.Path, localFile(b, f.Path, f.Size))
			}
			if errors.Is(err, fs.ErrExist) { // another engine's, or a dead one's that came late: the reading back judges it
				err = nil
			}
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	return t.b.settle(ctx, to)
}

func localFile(b Bag, name string, size int64) file {
	return file{size: size, tell: b.Progress, open: func(offset int64) (reader, error) {
		f, err := os.Open(filepath.Join(b.Dir, filepath.FromSlash(name)))
		if err != nil || offset == 0 {
			return f, err
		}
		_, err = f.Seek(offset, io.SeekStart)
		return f, err
	}}
}

// readBack judges what was written by the bag's own vouchers.
func (t *bagTarget) readBack(ctx context.Context, b Bag, own vouchers, at, except string) (int, int64, error) {
	there, err := readVouchers(ctx, t.b, at)
	if err != nil {
		return 0, 0, unsound(err)
	}
	return there.verify(ctx, t.b, at, own.digest(), except, Read, b.Progress)
}

// publish makes the copy one.
func (t *bagTarget) publish(ctx context.Context, b Bag, stage, at string) error {
	if t.b.traits().renames {
		return t.b.rename(ctx, stage, at)
	}
	text, err := os.ReadFile(filepath.Join(b.Dir, declaration))
	if err != nil {
		return err
	}
	err = t.b.write(ctx, at+"/"+declaration, localFile(b, declaration, int64(len(text))))
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	there, err := readAll(ctx, t.b, at+"/"+declaration)
	if err == nil && string(there) != string(text) {
		err = fmt.Errorf("%s: %w", layout.EncodePath(at), ErrOther)
	}
	return err
}

// Check judges the copy by its own manifests, and those by the digest on record.
func (t *bagTarget) Check(ctx context.Context, c layout.DepositCopy, level Level) (int, int64, error) {
	at, err := layout.DecodePath(c.Place)
	if err != nil {
		return 0, 0, err
	}
	return verify(ctx, t.b, at, c.Digest, level, nil)
}

// Get copies the bag.
func (t *bagTarget) Get(ctx context.Context, c layout.DepositCopy, to string) (err error) {
	at, err := layout.DecodePath(c.Place)
	if err != nil {
		return err
	}
	into, err := os.OpenRoot(to)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, into.Close()) }()
	var names []string
	err = t.b.list(ctx, at, true, func(name string, _ int64) error {
		names = append(names, name)
		return nil
	})
	if err != nil {
		return err
	}
	if len(names) == 0 {
		return fs.ErrNotExist
	}
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(t.b.traits().streams)
	for _, name := range names {
		g.Go(func() error {
			r, err := t.b.open(gctx, at+"/"+name, 0)
			if err != nil {
				return err
			}
			return errors.Join(keep(gctx, into, name, r), r.Close())
		})
	}
	return g.Wait()
}

// keep writes a file that was read, below a root.
func keep(ctx context.Context, into *os.Root, name string, r io.Reader) error {
	if !filepath.IsLocal(filepath.FromSlash(name)) {
		return damage("%s is no name in a bag", layout.EncodePath(name))
	}
	if err := into.MkdirAll(path.Dir(name), 0o755); err != nil {
		return err
	}
	out, err := into.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, files.FilePerm)
	if err != nil {
		return err
	}
	return errors.Join(copyTold(ctx, out, r, nil), out.Close())
}

// Replace sets the damaged copy aside, writes a sound one, and removes the damaged. A crash
// in between leaves it aside, and the next Replace goes on.
func (t *bagTarget) Replace(ctx context.Context, c layout.DepositCopy, b Bag) (none layout.DepositCopy, err error) {
	at, err := layout.DecodePath(c.Place)
	if err != nil {
		return none, err
	}
	own, err := localVouchers(b.Dir, isVoucher)
	if err != nil {
		return none, err
	}
	if !t.b.traits().renames {
		return t.overwrite(ctx, b, own, at)
	}
	if _, _, err := verify(ctx, t.b, at, own.digest(), Read, nil); err == nil { // a dead Replace made it
		return mended(ctx, t.b, at, func() (layout.DepositCopy, error) { return t.Put(ctx, b) })
	}
	if err := setAside(ctx, t.b, at, aside(at)); err != nil {
		return none, err
	}
	return mended(ctx, t.b, at, func() (layout.DepositCopy, error) { return t.make(ctx, b, own, at) })
}

// mended removes what was set aside, once made has made a sound copy.
func mended(ctx context.Context, b backend, at string, made func() (layout.DepositCopy, error)) (layout.DepositCopy, error) {
	c, err := made()
	if err != nil || !b.traits().renames {
		return c, err
	}
	return c, b.remove(ctx, aside(at))
}

// setAside makes room at a damaged copy's place, to which it gives another name. Where nothing stands, what a dead Replace set
// aside stays; where a copy does, that is the newer of two broken ones.
func setAside(ctx context.Context, b backend, at, to string) error {
	if there, err := stands(ctx, b, at); err != nil || !there {
		return err
	}
	err := b.rename(ctx, at, to)
	if errors.Is(err, fs.ErrExist) {
		if err = b.remove(ctx, to); err == nil {
			err = b.rename(ctx, at, to)
		}
	}
	return err
}

// stands reports whether there is a file, or a folder with files.
func stands(ctx context.Context, b backend, at string) (bool, error) {
	r, err := b.open(ctx, at, 0)
	if err == nil {
		return true, r.Close()
	}
	var wrong *Damage
	if !errors.Is(err, fs.ErrNotExist) && !errors.As(err, &wrong) {
		return false, err
	}
	err = b.list(ctx, at, true, func(string, int64) error { return errEnough })
	if errors.Is(err, errEnough) {
		return true, nil
	}
	return false, err
}

// overwrite mends a copy where nothing can be renamed: the declaration goes first, so that
// what stands there is no bag meanwhile. Where the store keeps versions the damaged files
// stay as older ones.
func (t *bagTarget) overwrite(ctx context.Context, b Bag, own vouchers, at string) (layout.DepositCopy, error) {
	if err := t.b.remove(ctx, at+"/"+declaration); err != nil {
		return layout.DepositCopy{}, err
	}
	return t.make(ctx, b, own, at)
}

// Close ends the connections.
func (t *bagTarget) Close() error { return t.b.close() }
