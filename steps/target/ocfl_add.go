package target

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"

	"bagpipe/bags/files"
	"bagpipe/layout"

	"golang.org/x/sync/errgroup"
)

// add writes a version, and makes it the object's newest.
func (t *ocflTarget) add(ctx context.Context, b Bag, root *storageRoot, at string, made *inventory, fresh []logical) error {
	data, err := made.encode()
	if err != nil {
		return err
	}
	stage, first := at, made.Head == "v1"
	if t.b.traits().renames {
		stage = path.Join(root.stage, string(b.Item))
	}
	there, err := t.leftovers(ctx, stage, made.Head, first, fresh)
	if err != nil {
		return err
	}
	if first {
		if err := t.b.replace(ctx, path.Join(stage, objectMark), []byte(objectText)); err != nil {
			return err
		}
	}
	if err := t.send(ctx, b, stage, fresh, there); err != nil {
		return err
	}
	dirs := []string{path.Join(stage, made.Head)}
	if first && stage != at { // the whole object comes in by one rename
		dirs = append(dirs, stage)
	}
	for _, dir := range dirs {
		if err := t.describe(ctx, dir, data); err != nil {
			return err
		}
	}
	if err := t.b.settle(ctx, stage); err != nil {
		return err
	}
	if stage != at {
		from, to := path.Join(stage, made.Head), path.Join(at, made.Head)
		if first {
			from, to = stage, at
		}
		if err := t.b.rename(ctx, from, to); err != nil {
			return err
		}
		if first {
			return nil
		}
	}
	if err := t.describe(ctx, at, data); err != nil {
		return err
	}
	return t.b.remove(ctx, path.Join(root.stage, string(b.Item)))
}

// leftovers lists what a dead put left of a version where it is made, and removes what it left of
// another version or bag: in an object it would be content that no inventory names.
func (t *ocflTarget) leftovers(ctx context.Context, stage, head string, first bool, fresh []logical) (there map[string]bool, err error) {
	staged, below := t.b.traits().renames, head
	ours := map[string]bool{head + "/" + inventoryName: true, head + "/" + sidecarName: true}
	if staged {
		below = ""
	}
	if staged && first {
		ours[objectMark], ours[inventoryName], ours[sidecarName] = true, true, true
	}
	for _, f := range fresh {
		ours[f.at] = true
	}
	there = map[string]bool{}
	var strays []string
	err = t.b.list(ctx, path.Join(stage, below), true, func(name string, _ int64) error {
		name = path.Join(below, name)
		there[name] = true
		if !ours[name] {
			strays = append(strays, name)
		}
		return nil
	})
	if staged && ctx.Err() == nil && (err != nil || len(strays) > 0) { // a link, too, or what else is in the way
		return nil, t.b.remove(ctx, stage)
	}
	for _, name := range strays {
		if err == nil {
			err = t.b.remove(ctx, path.Join(stage, name))
		}
	}
	return there, err
}

// describe writes an inventory and, last, its sidecar.
func (t *ocflTarget) describe(ctx context.Context, dir string, data []byte) error {
	if err := t.b.replace(ctx, path.Join(dir, inventoryName), data); err != nil {
		return err
	}
	return t.b.replace(ctx, path.Join(dir, sidecarName), sidecar(data))
}

// send writes and reads back the content that the object has not; a dead put's files that
// are right are kept: there names them.
func (t *ocflTarget) send(ctx context.Context, b Bag, stage string, fresh []logical, there map[string]bool) error {
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(t.b.traits().streams)
	for _, f := range fresh {
		g.Go(func() error { return t.sendOne(gctx, b, stage, f, there[f.at]) })
	}
	return g.Wait()
}

// sendOne writes and reads back one content, or keeps what may stand there if it is right.
func (t *ocflTarget) sendOne(ctx context.Context, b Bag, stage string, f logical, mayStand bool) error {
	name := path.Join(stage, f.at)
	want, err := hex.DecodeString(f.digest)
	if err != nil {
		return err
	}
	if mayStand {
		sum, err := t.there(ctx, name)
		if err == nil && bytes.Equal(sum, want) {
			return nil
		}
		if err == nil {
			err = t.b.remove(ctx, name)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	info, err := os.Lstat(filepath.Join(b.Dir, filepath.FromSlash(f.name)))
	if err != nil {
		return err
	}
	what, vouched := hashed(t.b, localFile(b, f.name, info.Size()), files.SHA512, want)
	err = t.b.write(ctx, name, what)
	if err != nil && !errors.Is(err, fs.ErrExist) { // another engine's, or a dead one's that came late, is judged, too
		return err
	}
	if err == nil && vouched() {
		return nil
	}
	sum, err := sumOf(ctx, t.b, name, files.SHA512)
	if err == nil && !bytes.Equal(sum, want) {
		err = damage("%s was altered on its way", layout.EncodePath(f.name))
	}
	return err
}

// there gives the digest of a file that a dead put may have left.
func (t *ocflTarget) there(ctx context.Context, name string) ([]byte, error) {
	r, err := t.b.open(ctx, name, 0) // most are not there, and no server need be asked for their digests
	if err != nil {
		return nil, err
	}
	if err := r.Close(); err != nil {
		return nil, err
	}
	return sumOf(ctx, t.b, name, files.SHA512)
}

// finish reads an object's inventory, and ends what a crash left of a version: its folder is
// there and the inventory does not name it, or the sidecar is the one before.
func (t *ocflTarget) finish(ctx context.Context, at string) (*inventory, error) {
	have, data, err := readInventory(ctx, t.b, at)
	var wrong *Damage
	if errors.As(err, &wrong) && data != nil { // the same bytes stand in the version's folder
		var named struct {
			Head string `json:"head"`
		}
		if json.Unmarshal(data, &named) != nil || !fs.ValidPath(named.Head) {
			return nil, err
		}
		newest, own, verr := readInventory(ctx, t.b, path.Join(at, named.Head))
		if verr != nil || !bytes.Equal(own, data) {
			return nil, err
		}
		have, err = newest, t.b.replace(ctx, path.Join(at, sidecarName), sidecar(data))
	}
	if err != nil {
		return nil, err
	}
	n, err := have.headNumber()
	if err != nil {
		return have, nil // judged by who goes on
	}
	next, data, err := readInventory(ctx, t.b, path.Join(at, "v"+strconv.Itoa(n+1)))
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.As(err, &wrong) && !t.b.traits().renames:
		return have, nil // none, or one that was not written to its end
	case err != nil:
		return nil, err
	case next.ID != have.ID || next.Head != "v"+strconv.Itoa(n+1):
		return nil, damage("v%d is another's", n+1)
	}
	if _, _, err := t.verify(ctx, at, next, next.Head, Read, nil, nil); err != nil {
		return nil, err
	}
	return next, t.describe(ctx, at, data)
}

// Replace writes the content of a version that is damaged anew; the damaged bytes stay
// aside until the new ones were read back.
func (t *ocflTarget) Replace(ctx context.Context, c layout.DepositCopy, b Bag) (none layout.DepositCopy, err error) {
	at, err := layout.DecodePath(c.Place)
	if err != nil {
		return none, err
	}
	root, err := t.open(ctx)
	if err != nil {
		return none, err
	}
	have, err := t.mendInventory(ctx, b, root, at, c.State)
	if errors.Is(err, fs.ErrNotExist) { // nothing tells of the object
		return t.Put(ctx, b)
	}
	if err != nil {
		return none, err
	}
	state, err := have.state(c.State)
	if err != nil {
		return none, err
	}
	for _, f := range state {
		sum, err := sumOf(ctx, t.b, path.Join(at, f.at), files.SHA512)
		if err == nil && hex.EncodeToString(sum) == f.digest {
			continue
		}
		var wrong *Damage
		if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.As(err, &wrong) {
			return none, err
		}
		if err := t.mendOne(ctx, b, root, at, f); err != nil {
			return none, err
		}
	}
	if err := t.mendRest(ctx, b, root, at, have, c.State); err != nil {
		return none, err
	}
	made, err := t.answer(ctx, b, at, c.State, nil)
	if err == nil {
		err = t.described(ctx, at, c.State)
	}
	if err == nil && made.Digest != c.Digest {
		err = damage("what was mended is not the bag that was written")
	}
	if err == nil { // also of a mend that was killed
		err = errors.Join(t.b.remove(ctx, asideIn(root, b)), t.b.remove(ctx, path.Join(root.stage, string(b.Item))))
	}
	return made, err
}

// mendInventory takes an inventory that is broken from the newest version that has it.
func (t *ocflTarget) mendInventory(ctx context.Context, b Bag, root *storageRoot, at, version string) (*inventory, error) {
	have, _, err := readInventory(ctx, t.b, at)
	var wrong *Damage
	if err == nil || !errors.As(err, &wrong) && !errors.Is(err, fs.ErrNotExist) {
		return have, err
	}
	n, nerr := strconv.Atoi(version[min(1, len(version)):])
	if nerr != nil {
		return nil, err
	}
	var data []byte
	for ; ; n++ { // the newest has it all
		v, own, rerr := readInventory(ctx, t.b, path.Join(at, "v"+strconv.Itoa(n)))
		if rerr != nil {
			break
		}
		have, data = v, own
	}
	if have == nil {
		return nil, err
	}
	return have, t.describeAnew(ctx, b, root, at, "", data)
}

// describeAnew writes an inventory of an object, below dir, in the place of a broken one, which is set aside.
func (t *ocflTarget) describeAnew(ctx context.Context, b Bag, root *storageRoot, at, dir string, data []byte) error {
	for _, name := range []string{inventoryName, sidecarName} {
		if err := setAside(ctx, t.b, path.Join(at, dir, name), path.Join(asideIn(root, b), dir, name)); err != nil {
			return err
		}
	}
	return t.describe(ctx, path.Join(at, dir), data)
}

// mendRest sets aside what no inventory has, and writes the object's declaration and the version's own
// inventory anew where they are broken.
func (t *ocflTarget) mendRest(ctx context.Context, b Bag, root *storageRoot, at string, have *inventory, version string) error {
	there := map[string]int64{}
	err := t.b.list(ctx, at, true, func(name string, size int64) error {
		there[name] = size
		return nil
	})
	for err == nil {
		name := have.stray(there, version)
		if name == "" {
			break
		}
		delete(there, name)
		err = setAside(ctx, t.b, path.Join(at, name), path.Join(asideIn(root, b), name))
	}
	var wrong *Damage
	if err == nil {
		err = t.described(ctx, at, version)
	}
	if !errors.As(err, &wrong) {
		return err
	}
	if err := setAside(ctx, t.b, path.Join(at, objectMark), path.Join(asideIn(root, b), objectMark)); err != nil {
		return err
	}
	if err := t.b.replace(ctx, path.Join(at, objectMark), []byte(objectText)); err != nil {
		return err
	}
	data, err := have.upTo(version).encode()
	if err != nil {
		return err
	}
	return t.describeAnew(ctx, b, root, at, version, data)
}

func (t *ocflTarget) mendOne(ctx context.Context, b Bag, root *storageRoot, at string, f logical) error {
	name, bad := path.Join(at, f.at), path.Join(asideIn(root, b), f.at)
	if !t.b.traits().renames {
		if err := setAside(ctx, t.b, name, bad); err != nil {
			return err
		}
		return t.sendOne(ctx, b, at, f, true)
	}
	stage := path.Join(root.stage, string(b.Item))
	if err := t.sendOne(ctx, b, stage, f, true); err != nil {
		return err
	}
	if err := t.b.settle(ctx, path.Join(stage, f.at)); err != nil {
		return err
	}
	if err := setAside(ctx, t.b, name, bad); err != nil {
		return err
	}
	return t.b.rename(ctx, path.Join(stage, f.at), name)
}

// asideIn is where damaged content of an object is until it is mended.
func asideIn(root *storageRoot, b Bag) string {
	return path.Join(root.stage, string(b.Item)+".damaged")
}
