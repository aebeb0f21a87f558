package target

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"bagpipe/bags/files"
	"bagpipe/layout"

	"golang.org/x/sync/errgroup"
)

// bagTarget keeps each bag as it is, file by file.
type bagTarget struct {
	b     backend
	now   func() time.Time
	token string // of this target among those that put on the same store
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
			if err == nil {
				err = parts(t.b, at, t.token).clear(ctx)
			}
			c := t.copy(at, there.digest(), n, size)
			if err == nil {
				c.Retention, err = retentionOf(ctx, t.b, at+"/"+slices.Min(sortedKeys(there)))
			}
			return t.versioned(ctx, c, at, err)
		}
	}
}

func (t *bagTarget) copy(at, digest string, n int, size int64) layout.DepositCopy {
	now := t.now()
	return layout.DepositCopy{Place: layout.EncodePath(at), Layout: LayoutBag, Files: n, Bytes: size, Digest: digest,
		Written: now, Verified: now, Outcome: layout.FixityPassed}
}

// versioned adds what the store calls the declaration, which is written last.
func (t *bagTarget) versioned(ctx context.Context, c layout.DepositCopy, at string, err error) (layout.DepositCopy, error) {
	if err == nil {
		c.Version, err = t.b.version(ctx, at+"/"+declaration)
	}
	return c, err
}

// make writes the copy, reads it back, and gives it its name or its declaration.
func (t *bagTarget) make(ctx context.Context, b Bag, own vouchers, at string) (layout.DepositCopy, error) {
	c, err := t.makeStaged(ctx, b, own, at)
	return c, parts(t.b, at, t.token).lost(ctx, err)
}

func (t *bagTarget) makeStaged(ctx context.Context, b Bag, own vouchers, at string) (none layout.DepositCopy, err error) {
	tree, err := files.Scan(ctx, b.Dir)
	if err != nil {
		return none, err
	}
	if err := tree.CheckRegular(); err != nil {
		return none, err
	}
	begin := t.now()
	stage, last := at, declaration
	if t.b.traits().renames {
		part := parts(t.b, at, t.token)
		stage, last = part.at(), ""
		if err := part.claim(ctx); err != nil {
			return none, err
		}
	}
	for try := 1; ; try++ {
		vouched, stood, err := t.send(ctx, b, own, tree, stage, last)
		if err != nil {
			return none, err
		}
		n, size, err := t.readBack(ctx, b, own, stage, last, vouched)
		var wrong *Damage
		if errors.As(err, &wrong) && last != "" { // another engine's bag may be whole by now, and is left alone
			if there, err := readVouchers(ctx, t.b, at); err != nil || there[declaration] != nil {
				return t.copy(at, "", 0, 0), cmp.Or(err, fs.ErrExist)
			}
		}
		if errors.As(err, &wrong) && try == 1 { // a dead put's files, or one altered on the way
			if err := t.clear(ctx, own, tree, stage); err != nil {
				return none, err
			}
			continue
		}
		if err == nil {
			err = prolong(ctx, t.b, stage, stood, begin)
		}
		if err == nil {
			err = t.publish(ctx, b, own, stage, at)
		}
		if last != "" {
			n, size = len(tree.Files), tree.Bytes()
		}
		c := t.copy(at, own.digest(), n, size)
		c.Retention = t.b.traits().until(begin)
		return t.versioned(ctx, c, at, err)
	}
}

// clear removes from a copy that has no name yet what is not as the bag has it; what is sound stays.
func (t *bagTarget) clear(ctx context.Context, own vouchers, tree *files.Tree, at string) error {
	bad, err := t.differing(ctx, own, tree, at)
	var wrong *Damage
	if errors.As(err, &wrong) { // a link, or a file in the place of a folder
		return t.b.remove(ctx, at)
	}
	for name := range bad {
		if err == nil {
			err = t.b.remove(ctx, at+"/"+name)
		}
	}
	return err
}

// send writes the files that are not there with their size yet, but the last. vouched are those of
// which the store says that it has them as the manifests want them; stood are those that were there.
func (t *bagTarget) send(ctx context.Context, b Bag, own vouchers, tree *files.Tree, to, last string) (vouched map[string]bool, stood []string, err error) {
	a, sums, err := own.sums()
	if err != nil {
		return nil, nil, err
	}
	vouched = map[string]bool{}
	var mu sync.Mutex // guards vouched and stood
	standing := func(name string) {
		mu.Lock()
		defer mu.Unlock()
		stood = append(stood, name)
	}
	have := map[string]int64{}
	err = t.b.list(ctx, to, true, func(name string, size int64) error {
		have[name] = size
		return nil
	})
	if err != nil {
		return nil, nil, err
	}
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(t.b.traits().streams)
	for i := range tree.Files {
		f := &tree.Files[i]
		if f.Path == last {
			continue
		}
		if size, there := have[f.Path]; there && size == f.Size {
			standing(f.Path)
			continue
		}
		g.Go(func() error {
			if err := gctx.Err(); err != nil {
				return err
			}
			what, ok := hashed(t.b, localFile(b, f.Path, f.Size), a, own.want(a, sums, f.Path))
			err := t.b.write(gctx, to+"/"+f.Path, what)
			if _, there := have[f.Path]; there && errors.Is(err, fs.ErrExist) { // of an earlier bag that was never finished
				if err := t.b.remove(gctx, to+"/"+f.Path); err != nil {
					return err
				}
				err = t.b.write(gctx, to+"/"+f.Path, what)
			}
			if err == nil && ok() {
				mu.Lock()
				vouched[f.Path] = true
				mu.Unlock()
			}
			if errors.Is(err, fs.ErrExist) { // another engine's, or a dead one's that came late: the reading back judges it
				standing(f.Path)
				err = nil
			}
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, nil, err
	}
	return vouched, stood, t.b.settle(ctx, to)
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
func (t *bagTarget) readBack(ctx context.Context, b Bag, own vouchers, at, except string, vouched map[string]bool) (int, int64, error) {
	there, err := readVouchers(ctx, t.b, at)
	if err != nil {
		return 0, 0, unsound(err)
	}
	return there.verify(ctx, t.b, at, own.digest(), except, Read, vouched, b.Progress)
}

// publish makes the copy one.
func (t *bagTarget) publish(ctx context.Context, b Bag, own vouchers, stage, at string) error {
	if t.b.traits().renames {
		if err := t.freeze(stage); err != nil {
			return err
		}
		return t.b.rename(ctx, stage, at)
	}
	text, err := os.ReadFile(filepath.Join(b.Dir, declaration))
	if err != nil {
		return err
	}
	wrote := t.b.write(ctx, at+"/"+declaration, localFile(b, declaration, int64(len(text))))
	if wrote != nil && !errors.Is(wrote, fs.ErrExist) {
		return wrote
	}
	there, err := readVouchers(ctx, t.b, at)
	switch {
	case err != nil:
		return err
	case string(there[declaration]) != string(text):
		return fmt.Errorf("%s: %w", layout.EncodePath(at), ErrOther)
	case there.digest() != own.digest(): // of another engine, which took these files for a dead put's
		return fs.ErrExist
	}
	return nil
}

// freeze makes the folders of a copy read-only, as its files are, where the store has folders of this machine.
func (t *bagTarget) freeze(at string) error {
	if dir, is := unpaced(t.b).(*folder); is {
		return dir.freeze(at)
	}
	return nil
}

// Check judges the copy by its own manifests, and those by the digest on record.
func (t *bagTarget) Check(ctx context.Context, c layout.DepositCopy, level Level) (int, int64, error) {
	at, err := layout.DecodePath(c.Place)
	if err != nil {
		return 0, 0, err
	}
	n, size, err := verify(ctx, t.b, at, c.Digest, level, nil)
	return n, size, cmp.Or(err, asMuch(c, n, size))
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
	sizes := map[string]int64{}
	err = t.b.list(ctx, at, true, func(name string, size int64) error {
		sizes[name] = size
		return nil
	})
	if err != nil {
		return err
	}
	if len(sizes) == 0 {
		return fs.ErrNotExist
	}
	if err := clearOthers(into, sizes); err != nil {
		return err
	}
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(t.b.traits().streams)
	for _, name := range sortedKeys(sizes) {
		g.Go(func() error {
			return keep(gctx, into, name, sizes[name], func(offset int64) (reader, error) { return t.b.open(gctx, at+"/"+name, offset) })
		})
	}
	return g.Wait()
}

// Replace sends the files of a copy that are missing or not as they should be, sets the damaged
// ones aside, with what does not belong there, and removes those once the copy is sound. A crash
// in between leaves them aside, and the next Replace goes on.
func (t *bagTarget) Replace(ctx context.Context, c layout.DepositCopy, b Bag) (none layout.DepositCopy, err error) {
	at, err := layout.DecodePath(c.Place)
	if err != nil {
		return none, err
	}
	own, err := localVouchers(b.Dir, isVoucher)
	if err != nil {
		return none, err
	}
	if _, _, err := verify(ctx, t.b, at, own.digest(), Read, b.Progress); err == nil { // a dead Replace made it
		return mended(ctx, t.b, at, func() (layout.DepositCopy, error) { return t.Put(ctx, b) })
	}
	tree, err := files.Scan(ctx, b.Dir)
	if err != nil {
		return none, err
	}
	bad, err := t.differing(ctx, own, tree, at)
	var wrong *Damage
	if errors.As(err, &wrong) { // a link, or no folder at all: nothing of it is kept
		if err := setAside(ctx, t.b, at, aside(at)); err != nil {
			return none, err
		}
		return mended(ctx, t.b, at, func() (layout.DepositCopy, error) {
			return remade(func() (layout.DepositCopy, error) { return t.make(ctx, b, own, at) }, func() (layout.DepositCopy, error) { return t.there(ctx, own, at) })
		})
	}
	if err != nil {
		return none, err
	}
	return mended(ctx, t.b, at, func() (layout.DepositCopy, error) {
		c, err := t.mend(ctx, b, own, tree, at, bad)
		return c, parts(t.b, at, t.token).lost(ctx, err)
	})
}

// there reads the copy of a bag that stands at its place.
func (t *bagTarget) there(ctx context.Context, own vouchers, at string) (layout.DepositCopy, error) {
	n, size, err := verify(ctx, t.b, at, own.digest(), Read, nil)
	return t.versioned(ctx, t.copy(at, own.digest(), n, size), at, err)
}

// differing lists what is wrong with a copy: names of the bag that are missing or damaged, and
// names that are not the bag's.
func (t *bagTarget) differing(ctx context.Context, own vouchers, tree *files.Tree, at string) (bad map[string]bool, err error) {
	a, sums, err := own.sums()
	if err != nil {
		return nil, err
	}
	bad = map[string]bool{}
	above := map[string]bool{} // the folders that the bag's files are in
	for i := range tree.Files {
		bad[tree.Files[i].Path] = true
		for dir := path.Dir(tree.Files[i].Path); dir != "." && !above[dir]; dir = path.Dir(dir) {
			above[dir] = true
		}
	}
	wanted := maps.Clone(bad)
	var plan []files.Planned
	err = t.b.list(ctx, at, true, func(name string, size int64) error {
		if above[name] || wanted[path.Dir(name)] {
			return damage("%s is a file in a folder's place, or in one in a file's", layout.EncodePath(name))
		}
		if !bad[name] {
			bad[name] = true
			return nil
		}
		plan = append(plan, files.Planned{Index: len(plan), Path: name, Size: size, Set: files.SetOf(a)})
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, p := range plan { // one by one: what cannot be read is bad, and the others are looked at all the same
		sum, err := sumOf(ctx, t.b, at+"/"+p.Path, a)
		if down := (*Down)(nil); errors.As(err, &down) || ctx.Err() != nil {
			return nil, errors.Join(err, ctx.Err())
		}
		if err == nil && bytes.Equal(sum, own.want(a, sums, p.Path)) {
			delete(bad, p.Path)
		}
	}
	return bad, nil
}

// mend replaces what is wrong with a copy, file by file: each is staged and read back before the
// damaged one goes, where files can be renamed. Elsewhere the declaration goes first, so that what
// stands there is no bag meanwhile.
func (t *bagTarget) mend(ctx context.Context, b Bag, own vouchers, tree *files.Tree, at string, bad map[string]bool) (none layout.DepositCopy, err error) {
	stage := parts(t.b, at, t.token).at()
	_, sums, err := own.sums()
	if err != nil {
		return none, err
	}
	if !t.b.traits().renames {
		if err := setAside(ctx, t.b, at+"/"+declaration, aside(at)+"/"+declaration); err != nil {
			return none, err
		}
		delete(bad, declaration)
		for name := range bad {
			if err := setAside(ctx, t.b, at+"/"+name, aside(at)+"/"+name); err != nil {
				return none, err
			}
		}
		return remade(func() (layout.DepositCopy, error) { return t.make(ctx, b, own, at) }, func() (layout.DepositCopy, error) { return t.there(ctx, own, at) })
	}
	if err := t.b.remove(ctx, stage); err != nil {
		return none, err
	}
	part := &files.Tree{Dir: tree.Dir}
	for i := range tree.Files {
		if bad[tree.Files[i].Path] {
			part.Files = append(part.Files, tree.Files[i])
		}
	}
	if len(part.Files) > 0 { // else there is but what does not belong there
		if _, _, err := t.send(ctx, b, own, part, stage, ""); err != nil {
			return none, err
		}
	}
	staged := map[string]bool{}
	for i := range part.Files {
		name := part.Files[i].Path
		if err := t.readOne(ctx, own, sums, stage+"/"+name, name); err != nil {
			return none, err
		}
		staged[name] = true
	}
	for _, name := range slices.Sorted(maps.Keys(bad)) {
		err := setAside(ctx, t.b, at+"/"+name, aside(at)+"/"+name)
		if err == nil && staged[name] {
			err = comeIn(ctx, t.b, stage+"/"+name, at+"/"+name, aside(at)+"/"+name)
		}
		if err != nil {
			return none, err
		}
	}
	n, size, err := t.readBack(ctx, b, own, at, "", nil)
	if err == nil {
		err = errors.Join(t.freeze(at), t.b.remove(ctx, stage))
	}
	return t.versioned(ctx, t.copy(at, own.digest(), n, size), at, err)
}

// readOne reads a staged file back.
func (t *bagTarget) readOne(ctx context.Context, own vouchers, sums map[string][]byte, at, name string) error {
	a, _, err := own.sums()
	if err != nil {
		return err
	}
	sum, err := sumOf(ctx, t.b, at, a)
	if err == nil && !bytes.Equal(sum, own.want(a, sums, name)) {
		err = damage("%s was altered on its way", layout.EncodePath(name))
	}
	return err
}

// Poor says what the store cannot do.
func (t *bagTarget) Poor() []string { return t.b.poor() }

// Close ends the connections.
func (t *bagTarget) Close() error { return t.b.close() }
