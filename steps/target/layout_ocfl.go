package target

import (
	"bytes"
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strconv"
	"sync"
	"time"
	"unicode/utf8"

	"bagpipe/bags/files"
	"bagpipe/layout"

	"golang.org/x/sync/errgroup"
)

// ocflTarget keeps the bags of an item as the versions of one OCFL 1.1 object. The rules are:
//
//   - the logical state of a version is the bag, held against its manifests as it is written; a
//     content is stored once in an object, by its digest where a store might take its name for another's;
//   - a version's message ends with (version N), the item's: its first bag is vN where all
//     were deposited, in order and without revisions; the copy's record says which it is;
//   - a version is staged outside the storage root: content, inventory, sidecar; where there
//     are renames its folder then comes in by one, else (S3, see ocfl_in_place.go) in that order in its
//     place; the object's inventory.json next, its sidecar last;
//   - what a put stages has a name of its own. The next put of the item takes it, whoever it was: of two
//     engines that put one item at once, one finds that it lost;
//   - a crash leaves a version that the inventory does not name, or a sidecar of the
//     inventory before: both are finished from the version's own inventory;
//   - an object that others went on with is gone on with where its inventory is sound, of
//     OCFL 1.1 and sha512.
type ocflTarget struct {
	b     backend
	now   func() time.Time
	token string // of this target among those that put into the same storage root

	mu   sync.Mutex // guards root
	root *storageRoot

	turns [64]sync.Mutex // of puts, by item; see alone
}

// alone has one put at a time of an item: both would make the version in the same place, and one
// could carry into the object what the other has not written to its end.
func (t *ocflTarget) alone(item layout.ItemID) (done func()) {
	turn := &t.turns[crc32.ChecksumIEEE([]byte(item))%uint32(len(t.turns))]
	turn.Lock()
	return turn.Unlock
}

// open finds the storage root, or makes it.
func (t *ocflTarget) open(ctx context.Context) (*storageRoot, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.root != nil {
		return t.root, nil
	}
	r, err := openRoot(ctx, t.b)
	if err == nil {
		t.root = r
	}
	return r, err
}

// newOCFL gives a target.
func newOCFL(b backend, now func() time.Time) *ocflTarget {
	return &ocflTarget{b: b, now: now, token: newToken()}
}

// Put finds the bag among the object's versions, or adds one.
func (t *ocflTarget) Put(ctx context.Context, b Bag) (layout.DepositCopy, error) {
	defer t.alone(b.Item)()
	c, err := meanwhile(func() (layout.DepositCopy, error) { return t.put(ctx, b) })
	if errors.Is(err, fs.ErrExist) {
		err = &Down{errTaken}
	}
	return c, err
}

func (t *ocflTarget) put(ctx context.Context, b Bag) (none layout.DepositCopy, err error) {
	root, err := t.open(ctx)
	if err != nil {
		return none, err
	}
	own, err := localVouchers(b.Dir, isVoucher)
	if err != nil {
		return none, err
	}
	at, err := root.object(objectID(b.Item))
	if err != nil {
		return none, err
	}
	have, err := t.finish(ctx, at, objectID(b.Item))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return none, err
	}
	if have != nil {
		version, err := t.find(ctx, b, own, have, at)
		if err != nil {
			return none, err
		}
		if version != "" {
			c, err := t.answer(ctx, b, at, version, nil)
			if err == nil {
				c.Retention, err = retentionOf(ctx, t.b, path.Join(at, have.firstOf(version)))
			}
			return c, errors.Join(err, t.staging(root, b.Item).clear(ctx))
		}
	}
	if err := have.holds(at, b); err != nil {
		return none, err
	}
	sums, err := sumsOf(ctx, b.Dir, own)
	if err != nil {
		return none, err
	}
	made, fresh, err := have.next(objectID(b.Item), b, sums)
	if err != nil {
		return none, err
	}
	begin := t.now()
	if err := prolongVersion(ctx, t, at, made, made.Head, fresh, have != nil, begin); err != nil {
		return none, err
	}
	if err := t.add(ctx, b, root, at, made, fresh); err != nil {
		return none, err
	}
	read := map[string]bool{} // each was read back, or vouched for, as it was sent
	for _, f := range fresh {
		read[f.at] = true
	}
	c, err := t.answer(ctx, b, at, made.Head, read)
	c.Retention = t.b.traits().until(begin)
	return c, err
}

// prolongVersion locks what a version has beside fresh content, and the declaration of an object that is declared, for as long as what is
// written of it from begin on.
func prolongVersion(ctx context.Context, t *ocflTarget, at string, v *inventory, version string, fresh []logical, declared bool, begin time.Time) error {
	if locker(t.b) == nil {
		return nil
	}
	state, err := v.state(version)
	if err != nil {
		return err
	}
	others := map[string]bool{objectMark: declared}
	for _, f := range state {
		others[f.at] = true
	}
	for _, f := range fresh {
		others[f.at] = false
	}
	maps.DeleteFunc(others, func(_ string, is bool) bool { return !is })
	return prolong(ctx, t.b, at, sortedKeys(others), begin)
}

// find gives the version that is the bag; "": none is.
func (t *ocflTarget) find(ctx context.Context, b Bag, own vouchers, have *inventory, at string) (string, error) {
	if err := have.check(); err != nil {
		return "", err
	}
	head, err := have.headNumber()
	if err != nil {
		return "", err
	}
	for n := head; n > 0; n-- {
		name := "v" + strconv.Itoa(n)
		v := have.Versions[name]
		if v == nil || v.of() != b.Version {
			continue
		}
		there, err := t.vouchers(ctx, at, have, name)
		if err != nil {
			return "", err
		}
		how, err := own.compare(there)
		switch {
		case err != nil:
			return "", err
		case how >= RedatedBag:
			return name, nil
		case how == OtherBag:
			return "", fmt.Errorf("%s %s: %w", layout.EncodePath(at), name, ErrOther)
		}
	}
	return "", nil
}

func (t *ocflTarget) vouchers(ctx context.Context, at string, have *inventory, version string) (vouchers, error) {
	state, err := have.state(version)
	if err != nil {
		return nil, err
	}
	v := vouchers{}
	for _, f := range state {
		if !isVoucher(f.name) {
			continue
		}
		if v[f.name], err = readAll(ctx, t.b, path.Join(at, f.at)); err != nil {
			return nil, unsound(err)
		}
	}
	return v, nil
}

// answer reads a version and gives it as a copy.
func (t *ocflTarget) answer(ctx context.Context, b Bag, at, version string, read map[string]bool) (layout.DepositCopy, error) {
	now := t.now()
	c := layout.DepositCopy{Place: layout.EncodePath(at), Layout: LayoutOCFL, State: version, Written: now, Verified: now, Outcome: layout.FixityPassed}
	have, _, err := readInventory(ctx, t.b, at)
	if err != nil {
		return c, err
	}
	if v := have.version(version); read == nil && v != nil { // it was written before
		if written, err := time.Parse(time.RFC3339, v.Created); err == nil && written.Before(now) {
			c.Written = written
		}
	}
	there, err := t.vouchers(ctx, at, have, version)
	if err != nil {
		return c, err
	}
	c.Digest = there.digest()
	if c.Files, c.Bytes, err = t.verify(ctx, at, have, version, Read, read, b.Progress); err == nil {
		c.Version, err = t.b.version(ctx, path.Join(at, inventoryName))
	}
	return c, err
}

// sumsOf gives the SHA-512 of every file of a bag. Those that its manifests have are taken from them,
// and what is written is held against them; the others are read, and held against its manifests here.
func sumsOf(ctx context.Context, dir string, own vouchers) (map[string]string, error) {
	tree, err := files.Scan(ctx, dir)
	if err != nil {
		return nil, err
	}
	if err := tree.CheckRegular(); err != nil {
		return nil, err
	}
	a, listed, err := own.sums()
	if err != nil {
		return nil, err
	}
	sums := map[string]string{}
	var plan []files.Planned
	left := maps.Clone(listed)
	for i := range tree.Files {
		name := tree.Files[i].Path
		if !utf8.ValidString(name) {
			return nil, fmt.Errorf("%s: an OCFL inventory has no names that are not UTF-8", layout.EncodePath(name))
		}
		delete(left, name)
		if a == files.SHA512 && listed[name] != nil {
			sums[name] = hex.EncodeToString(listed[name])
			continue
		}
		plan = append(plan, files.Planned{Index: i, Path: name, Size: tree.Files[i].Size, Set: files.SetOf(files.SHA512, a)})
	}
	for _, name := range sortedKeys(left) {
		return nil, damage("%s is not in the bag, as %d files that its manifests name are", layout.EncodePath(name), len(left))
	}
	err = files.HashPlan(ctx, dir, plan, files.HashOptions{}, func(h files.Hashed) error {
		name := tree.Files[h.Index].Path
		if want := listed[name]; want != nil && !bytes.Equal(h.Sums.Of(a), want) {
			return damage("%s is not in the bag as its manifest says", layout.EncodePath(name))
		}
		sums[name] = hex.EncodeToString(h.Sums.Of(files.SHA512))
		return nil
	})
	return sums, err
}

// verify reads what a version is made of; each content once, but those that were read just now.
func (t *ocflTarget) verify(ctx context.Context, at string, have *inventory, version string, level Level, read map[string]bool, tell func(int64)) (n int, size int64, err error) {
	state, err := have.state(version)
	if err != nil {
		return 0, 0, err
	}
	there, err := t.b.survey(ctx, at)
	if err != nil {
		return 0, 0, err
	}
	if strays := have.strays(there, version, t.comes(ctx, at, have, there)); len(strays) > 0 {
		return 0, 0, damage("%s is in no inventory", layout.EncodePath(strays[0]))
	}
	var plan []files.Planned
	var want []logical
	seen := map[string]bool{}
	for _, f := range state {
		length, is := there.files[f.at]
		if !is && slices.Contains(there.odd, f.at) {
			return n, size, damage("%s is no regular file: %s", layout.EncodePath(f.name), layout.EncodePath(f.at))
		}
		if !is {
			return n, size, damage("%s is missing: %s", layout.EncodePath(f.name), layout.EncodePath(f.at))
		}
		n, size = n+1, size+length
		if !seen[f.at] && !read[f.at] {
			seen[f.at] = true
			plan = append(plan, files.Planned{Index: len(want), Path: f.at, Size: length, Set: files.SetOf(files.SHA512)})
			want = append(want, f)
		}
	}
	if level == Exists {
		return n, size, nil
	}
	err = hashAt(ctx, t.b, at, plan, files.SHA512, tell, func(i int, sum []byte) error {
		if hex.EncodeToString(sum) != want[i].digest {
			return damage("%s is not what the inventory says: %s", layout.EncodePath(want[i].name), layout.EncodePath(want[i].at))
		}
		return nil
	})
	return n, size, unsound(err)
}

// Check judges a version by the object's inventory, and its tag manifests by the record.
func (t *ocflTarget) Check(ctx context.Context, c layout.DepositCopy, level Level) (int, int64, error) {
	at, err := layout.DecodePath(c.Place)
	if err != nil {
		return 0, 0, err
	}
	have, _, err := readInventory(ctx, t.b, at)
	if err != nil {
		return 0, 0, err
	}
	n, size, err := t.verify(ctx, at, have, c.State, level, nil, nil)
	if err = cmp.Or(err, asMuch(c, n, size)); err != nil {
		return n, size, err
	}
	there, err := t.vouchers(ctx, at, have, c.State)
	if err == nil && there.digest() != c.Digest { // also where another bag has become the version
		err = damage("its tag manifests are not those that were written")
	}
	if err == nil && level == Read {
		err = t.described(ctx, at, c.State)
	}
	return n, size, err
}

// comes reports whether the folder after the newest version is the next one, which came in and is not
// yet in the object's inventory. Where versions are made in their place it may be on its way.
func (t *ocflTarget) comes(ctx context.Context, at string, have *inventory, there survey) bool {
	name := have.following()
	_, described := there.files[name+"/"+inventoryName]
	_, ended := there.files[name+"/"+sidecarName]
	if !described || !ended {
		return !t.b.traits().renames
	}
	next, _, err := readInventory(ctx, t.b, path.Join(at, name))
	if err == nil && next.ID == have.ID && next.Head == name {
		_, _, err = t.verify(ctx, at, next, name, Read, nil, nil)
		return err == nil
	}
	return false
}

// described judges what tells of a version, beside the object's inventory: the object's and the storage
// root's declarations and the version's own inventory.
func (t *ocflTarget) described(ctx context.Context, at, version string) error {
	mark, err := readAll(ctx, t.b, path.Join(at, objectMark))
	if errors.Is(err, fs.ErrNotExist) || err == nil && string(mark) != objectText {
		return damage("its declaration %s is missing, or another", objectMark)
	}
	if err == nil {
		err = rootDeclared(ctx, t.b, at)
	}
	if err == nil {
		_, _, err = readInventory(ctx, t.b, path.Join(at, version))
	}
	if errors.Is(err, fs.ErrNotExist) {
		return damage("%s has no inventory", version)
	}
	return unsound(err)
}

// Get copies the logical state of a version.
func (t *ocflTarget) Get(ctx context.Context, c layout.DepositCopy, to string) (err error) {
	at, err := layout.DecodePath(c.Place)
	if err != nil {
		return err
	}
	have, _, err := readInventory(ctx, t.b, at)
	if err != nil {
		return err
	}
	state, err := have.state(c.State)
	if err != nil {
		return err
	}
	into, err := os.OpenRoot(to)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, into.Close()) }()
	there, err := t.b.survey(ctx, at)
	if err != nil {
		return err
	}
	wanted := map[string]bool{}
	for _, f := range state {
		wanted[f.name] = true
	}
	if err := clearOthers(into, wanted); err != nil {
		return err
	}
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(t.b.traits().streams)
	for _, f := range state {
		g.Go(func() error {
			size, is := there.files[f.at]
			if !is {
				return damage("%s is missing: %s", layout.EncodePath(f.name), layout.EncodePath(f.at))
			}
			return unsound(keep(gctx, into, f.name, size, func(offset int64) (reader, error) { return t.b.open(gctx, path.Join(at, f.at), offset) }))
		})
	}
	return g.Wait()
}

// Poor says what the store cannot do.
func (t *ocflTarget) Poor() []string { return t.b.poor() }

// Close ends the connections.
func (t *ocflTarget) Close() error { return t.b.close() }
