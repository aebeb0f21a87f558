package steps

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"bagpipe/bags"
	"bagpipe/bags/files"
	"bagpipe/layout"
	"bagpipe/layout/disk"
	"bagpipe/steps/target"
)

// storeReserve is left free on the store's file system.
const storeReserve = 64 << 20

// fullStore is how long a deposit waits for space.
const fullStore = time.Minute

// deposit copies the bag into the store: STORE/3/f/a/9/ID; of a later version of the
// item STORE/3/f/a/9/ID-v2. The rules are:
//
//   - the copy is made beside its place under a name that begins with a dot,
//     synced, validated in full, and renamed: what stands under its own name is
//     whole;
//   - nothing in the store is ever overwritten: the same bag there already is a
//     success, one with other tag files gets a place beside it (findRevision), another
//     payload is a system failure;
//   - a crash leaves the copy's dotted folder; the item's next attempt removes
//     it. A crash just after the rename leaves the deposit, which the next
//     attempt finds.
func deposit(ctx context.Context, c *Call) (_ Result, err error) {
	if c.Goals != nil {
		return c.depositOnTargets(ctx)
	}
	from := c.bagDir()
	to, err := c.depositDir()
	if err != nil {
		return Result{}, err
	}
	if _, err := os.Lstat(from); err != nil {
		return c.recogniseDeposit(ctx, newestRevision(to))
	}
	if err := removeLeftovers(to); err != nil {
		return Result{}, failure(err)
	}
	first := to
	to, how, err := findRevision(from, to)
	if err != nil {
		return Result{}, failure(err)
	}
	if _, err := os.Lstat(to); err == nil {
		return c.compareDeposit(ctx, to, how)
	}
	if to != first { // a bag that was damaged since is no reason for a revision
		if _, err := c.checkStored(ctx, newestRevision(first)); err != nil {
			return Result{}, err
		}
	}
	tree, err := files.Scan(ctx, from)
	if err != nil {
		return Result{}, failure(err)
	}
	writing, err := c.writeIn(c.Store)
	if err != nil {
		return Result{}, failure(err)
	}
	defer func() { err = errors.Join(err, writing.End()) }()
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return Result{}, failure(err)
	}
	if err := checkSpace(c.Store, tree.Bytes()); err != nil {
		return Result{}, err
	}
	err = c.store(ctx, tree, to, writing)
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return Result{}, &Later{After: fullStore, Reason: "no space left in the store " + c.Store}
	case errors.Is(err, fs.ErrExist), errors.Is(err, syscall.ENOTEMPTY):
		return c.depositedMeanwhile(ctx, from, to)
	case err != nil:
		return Result{}, err
	}
	return Result{Message: fmt.Sprintf("deposited at %s: %s, %s", layout.EncodePath(to),
		layout.Count(len(tree.Files), "file"), layout.Count(tree.Bytes(), "byte"))}, nil
}

// recogniseDeposit is for an item whose bag is in the store and no longer beside
// the item, as after a restore of an older history: the deposit is as good as
// made when it is whole and this item's.
func (c *Call) recogniseDeposit(ctx context.Context, to string) (Result, error) {
	missing := SystemFailure("no bag to deposit: derived/bag/%s is not there; the bag step makes it", c.Item)
	if _, err := os.Lstat(to); err != nil {
		return Result{}, missing
	}
	report, err := bags.Validate(ctx, to, bags.ValidateOptions{})
	if err != nil {
		return Result{}, failure(err)
	}
	for _, f := range report.Info {
		if report.Valid && f.Label == "External-Identifier" && f.Value == string(c.Item) {
			return Result{Message: "deposited before, and valid, at " + layout.EncodePath(to)}, nil
		}
	}
	return Result{}, missing
}

func (c *Call) depositDir() (string, error) {
	if !filepath.IsAbs(c.Store) {
		return "", SystemFailure("the store %q is not an absolute path", c.Store)
	}
	version, err := c.version()
	if err != nil {
		return "", err
	}
	return depositPlace(c.Store, c.Item, version), nil
}

// depositPlace is where the first bag of an item's version belongs in a store.
func depositPlace(store string, item layout.ItemID, version int) string {
	return filepath.Join(store, filepath.FromSlash(target.Place(item, version)))
}

// Deposited is where the newest bag of an item's version stands in a store, if any does.
func Deposited(store string, item layout.ItemID, version int) (dir string, is bool) {
	dir = newestRevision(depositPlace(store, item, version))
	_, err := os.Lstat(dir)
	return dir, err == nil
}

func leftoverPrefix(to string) string { return "." + filepath.Base(to) + "." }

// removeLeftovers removes the copies that dead attempts left beside to, of any revision.
func removeLeftovers(to string) error {
	names, err := os.ReadDir(filepath.Dir(to))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, n := range names {
		if strings.HasPrefix(n.Name(), leftoverPrefix(to)) || strings.HasPrefix(n.Name(), "."+filepath.Base(to)+"-r") {
			err = errors.Join(err, disk.RemoveTree(filepath.Join(filepath.Dir(to), n.Name())))
		}
	}
	return err
}

// checkSpace names the store alone, so that all items that wait for its space have one reason.
func checkSpace(store string, need int64) error {
	free, err := disk.Free(store)
	if err != nil {
		return err
	}
	if free < uint64(need)+storeReserve {
		return &Later{After: fullStore, Reason: fmt.Sprintf("no space in the store: %s has %s free, the bag needs %s and %s are kept free",
			store, layout.FormatSize(free), layout.FormatSize(uint64(need)), layout.FormatSize(storeReserve))}
	}
	return nil
}

// store makes the copy and puts it in its place, or leaves nothing.
func (c *Call) store(ctx context.Context, t *files.Tree, to string, writing *disk.Writing) (err error) {
	tmp := filepath.Join(filepath.Dir(to), leftoverPrefix(to)+c.Attempt.String())
	if err := os.Mkdir(tmp, 0o755); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, disk.RemoveTree(tmp))
		}
	}()
	if err := files.PlaceReadOnly(ctx, t, tmp); err != nil {
		return err
	}
	if err := c.durable(writing, []string{tmp}, nil); err != nil {
		return err
	}
	r, err := bags.Validate(ctx, tmp, bags.ValidateOptions{Progress: c.progress()})
	if err != nil {
		return err
	}
	if first, bad := r.FirstError(); bad {
		return SystemFailure("the copy in the store is not valid: %s", findingText(first))
	}
	same, err := target.SameBag(t.Dir, tmp)
	if err != nil {
		return err
	}
	if !same {
		return SystemFailure("the copy in the store is not the bag it was made from")
	}
	if err := os.Rename(tmp, to); err != nil {
		return err
	}
	return c.durable(writing, nil, disk.FoldersTo(c.Store, filepath.Dir(to)))
}

// writeIn begins to write on the file system of dir, which is made if need be.
func (c *Call) writeIn(dir string) (*disk.Writing, error) {
	if err := disk.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	if c.Rounds == nil {
		c.Rounds = &disk.Rounds{}
	}
	return c.Rounds.Begin(dir)
}

// durable waits for the disk, aside.
func (c *Call) durable(writing *disk.Writing, trees, folders []string) error {
	wait := func() error { return writing.Durable(trees, folders) }
	if c.Aside == nil {
		return wait()
	}
	return c.Aside(wait)
}

// depositedMeanwhile answers where an attempt that was thought dead came first.
func (c *Call) depositedMeanwhile(ctx context.Context, from, to string) (Result, error) {
	how, err := target.Compare(from, to)
	if err != nil {
		return Result{}, failure(err)
	}
	return c.compareDeposit(ctx, to, how)
}

// compareDeposit answers for the bag that stands in the store already. It may be this
// attempt's own predecessor, so it must be synced before it counts.
func (c *Call) compareDeposit(ctx context.Context, to string, how target.Likeness) (Result, error) {
	if how < target.RedatedBag {
		return Result{}, SystemFailure("the store holds another bag at %s; nothing was overwritten", layout.EncodePath(to))
	}
	if _, err := c.checkStored(ctx, to); err != nil {
		return Result{}, err
	}
	writing, err := c.writeIn(c.Store)
	if err == nil {
		err = errors.Join(c.durable(writing, []string{to}, disk.FoldersTo(c.Store, filepath.Dir(to))), writing.End())
	}
	if err != nil {
		return Result{}, failure(err)
	}
	message := "deposited before at " + layout.EncodePath(to)
	if how == target.RedatedBag {
		message += "; it differs in its " + strings.Join(target.MakingLabels, " or ") + " and in the history until then alone, and stays as it is"
	}
	return Result{Message: message}, nil
}

// checkStored validates a bag of the item that stands in the store.
func (c *Call) checkStored(ctx context.Context, at string) (r bags.Report, err error) {
	r, err = bags.Validate(ctx, at, bags.ValidateOptions{Progress: c.progress()})
	if err != nil {
		return r, failure(err)
	}
	if first, bad := r.FirstError(); bad {
		return r, SystemFailure("the bag in the store at %s is not valid; nothing was overwritten, and another try will find the same until a mend from a sound copy, or a backup, has brought the bag back: %s", layout.EncodePath(at), findingText(first))
	}
	return r, nil
}

func storeParam(with map[string]any) (string, error) { return stringParam(with, "store") }

// A bag made anew differs from the deposited one in its date, and where the metadata
// changed in its tag files. The rules are:
//
//   - a bag that differs in the labels of its making alone is the deposited one: the
//     stored bag stays as it is;
//   - a bag of the same payload with other tag files is a revision: ID-r2 beside ID, then
//     ID-r3; of a later version ID-v2-r2;
//   - a bag of another payload is never put beside: it is a system failure, as a new
//     payload is a new version.

// findRevision looks for the item's own bag among the revisions in the store, and answers
// the first free place when there is none like it.
func findRevision(from, to string) (at string, how target.Likeness, err error) {
	for n := 1; ; n++ {
		at = target.Revision(to, n)
		if _, err := os.Lstat(at); errors.Is(err, fs.ErrNotExist) {
			return at, target.RevisedBag, nil
		} else if err != nil {
			return "", target.OtherBag, err
		}
		how, err = target.Compare(from, at)
		if err != nil || how != target.RevisedBag {
			return at, how, err
		}
	}
}

// newestRevision is the last of a bag's revisions in the store; to itself when there is
// none.
func newestRevision(to string) string {
	for n := 2; ; n++ {
		if _, err := os.Lstat(target.Revision(to, n)); err != nil {
			return target.Revision(to, n-1)
		}
	}
}
