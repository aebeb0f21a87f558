package target

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"

	"bagpipe/bags/files"
	"bagpipe/layout"

	"golang.org/x/sync/errgroup"
)

// add writes a version, and makes it the object's newest. Another engine may do so at the same time: it takes
// what this one staged, or has the version's folder first. What this one lost it does not make up for.
func (t *ocflTarget) add(ctx context.Context, b Bag, root *storageRoot, at string, made *inventory, fresh []logical) error {
	return t.staging(root, b.Item).lost(ctx, t.addStaged(ctx, b, root, at, made, fresh))
}

func (t *ocflTarget) addStaged(ctx context.Context, b Bag, root *storageRoot, at string, made *inventory, fresh []logical) error {
	if !t.b.traits().renames {
		return t.addInPlace(ctx, b, at, made, fresh)
	}
	data, err := made.encode()
	if err != nil {
		return err
	}
	first, own := made.Head == "v1", t.staging(root, b.Item)
	stage := own.at()
	if err := own.claim(ctx); err != nil {
		return err
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
	if first { // the whole object comes in by one rename
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
	if err := whole(ctx, t.b, stage, made.Head, first, fresh); err != nil {
		return err
	}
	if first {
		return t.b.rename(ctx, stage, at)
	}
	if err := t.b.rename(ctx, path.Join(stage, made.Head), path.Join(at, made.Head)); err != nil {
		return err
	}
	if now, _, err := readInventory(ctx, t.b, at); err == nil && now.version(made.Head) != nil {
		return fs.ErrExist // another engine has gone on with the object since
	}
	if err := t.describe(ctx, at, data); err != nil {
		return err
	}
	return own.clear(ctx)
}

// staging is where versions of an item are made, before they come into its object.
func (t *ocflTarget) staging(root *storageRoot, item layout.ItemID) staging {
	return staging{t.b, root.stage, string(item) + "." + t.token, func(name string) bool { return stagedFor(name, item) }}
}

// stagedFor reports whether a folder beside the objects is where a version of the item is made.
func stagedFor(name string, item layout.ItemID) bool {
	rest, is := strings.CutPrefix(name, string(item))
	return is && (rest == "" || rest[0] == '.' && rest != asideEnd)
}

// whole wants all of a version to stand where it was made, and nothing else.
func whole(ctx context.Context, b backend, stage, head string, first bool, fresh []logical) error {
	below := ""
	if !first {
		below = head
	}
	there, err := b.survey(ctx, path.Join(stage, below))
	if err != nil {
		return err
	}
	ours := stagedNames(head, first, fresh)
	for name := range ours {
		if _, is := there.files[strings.TrimPrefix(name, below+"/")]; !is {
			return fmt.Errorf("%s: %w", layout.EncodePath(name), fs.ErrNotExist)
		}
	}
	if len(there.files)+len(there.empty)+len(there.odd) != len(ours) {
		return &Down{errTaken}
	}
	return nil
}

// stagedNames are the files that are made of a version; of an object's first, with the object's own.
func stagedNames(head string, first bool, fresh []logical) map[string]bool {
	ours := map[string]bool{head + "/" + inventoryName: true, head + "/" + sidecarName: true}
	if first {
		ours[objectMark], ours[inventoryName], ours[sidecarName] = true, true, true
	}
	for _, f := range fresh {
		ours[f.at] = true
	}
	return ours
}

// leftovers lists what a dead put left of a version where it is staged, and removes what it left of
// another version or bag: in an object it would be content that no inventory names.
func (t *ocflTarget) leftovers(ctx context.Context, stage, head string, first bool, fresh []logical) (there map[string]bool, err error) {
	ours := stagedNames(head, first, fresh)
	found, err := t.b.survey(ctx, stage)
	strays := len(found.odd)+len(found.empty) > 0
	there = map[string]bool{}
	for name := range found.files {
		there[name] = true
		strays = strays || !ours[name]
	}
	if ctx.Err() == nil && (err != nil || strays) { // a link, too, or what else is in the way
		return nil, t.b.remove(ctx, stage)
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
// are right are kept: there names them. Where others may write at the same time, content gets another place in fresh.
func (t *ocflTarget) send(ctx context.Context, b Bag, stage string, fresh []logical, there map[string]bool) error {
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(t.b.traits().streams)
	for i := range fresh {
		g.Go(func() error {
			err := t.sendOne(gctx, b, stage, fresh[i], there[fresh[i].at])
			if errors.Is(err, errOtherBytes) {
				version, _, _ := strings.Cut(fresh[i].at, "/")
				fresh[i].at = version + "/content/" + byDigest(fresh[i].digest)
				err = t.sendOne(gctx, b, stage, fresh[i], true)
			}
			return err
		})
	}
	return g.Wait()
}

// errOtherBytes says that other bytes stand where content belongs, and may be another engine's.
var errOtherBytes = &Down{errors.New("other bytes stand in its place: another engine writes there at the same time")}

// sendOne writes and reads back one content, or keeps what may stand there if it is right. What is not is
// removed, but where files cannot be renamed and the place is not that of the digest: errOtherBytes.
func (t *ocflTarget) sendOne(ctx context.Context, b Bag, stage string, f logical, mayStand bool) error {
	name := path.Join(stage, f.at)
	want, err := hex.DecodeString(f.digest)
	if err != nil {
		return err
	}
	shared := !t.b.traits().renames && path.Base(f.at) != f.digest
	if mayStand {
		sum, err := thereSum(ctx, t.b, name)
		if err == nil && bytes.Equal(sum, want) {
			return nil
		}
		if err == nil && shared {
			return errOtherBytes
		}
		if err == nil {
			err = t.b.remove(ctx, name)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	info, err := os.Lstat(filepath.Join(b.Dir, filepath.FromSlash(f.name)))
	if errors.Is(err, fs.ErrNotExist) {
		err = damage("%s is not in the bag", layout.EncodePath(f.name))
	}
	if err != nil {
		return err
	}
	what, vouched := hashed(t.b, localFile(b, f.name, info.Size()), files.SHA512, want)
	err = t.b.write(ctx, name, what)
	stood := errors.Is(err, fs.ErrExist) // another engine's, or a dead one's that came late, is judged, too
	if err != nil && !stood {
		return err
	}
	if err == nil && vouched() {
		return nil
	}
	sum, err := sumOf(ctx, t.b, name, files.SHA512)
	if err == nil && stood && shared && !bytes.Equal(sum, want) {
		return errOtherBytes
	}
	if err == nil && !bytes.Equal(sum, want) {
		err = damage("%s was altered on its way", layout.EncodePath(f.name))
	}
	return err
}

// thereSum gives the digest of a file that a dead put may have left.
func thereSum(ctx context.Context, b backend, name string) ([]byte, error) {
	r, err := b.open(ctx, name, 0) // most are not there, and no server need be asked for their digests
	if err != nil {
		return nil, err
	}
	if err := r.Close(); err != nil {
		return nil, err
	}
	return sumOf(ctx, b, name, files.SHA512)
}

// finish reads an object's inventory, and ends what a crash left of a version: its folder is
// there and the inventory does not name it, or the sidecar is the one before.
func (t *ocflTarget) finish(ctx context.Context, at, id string) (*inventory, error) {
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
	none, n := errors.Is(err, fs.ErrNotExist), 0
	if none && t.b.traits().renames || err != nil && !none { // of an object that is made in its place v1 may be there
		return nil, err
	}
	if !none {
		if n, err = have.headNumber(); err != nil {
			return have, nil // judged by who goes on
		}
		id = have.ID
	}
	name := "v" + strconv.Itoa(n+1)
	next, data, err := claimed(ctx, t.b, at, name)
	switch {
	case errors.Is(err, fs.ErrNotExist) && none:
		return nil, err
	case errors.Is(err, fs.ErrNotExist), errors.As(err, &wrong):
		return have, t.inTheWay(ctx, at, name) // none, or one that was not written to its end
	case err != nil:
		return nil, err
	case next.ID != id || next.Head != name:
		return nil, inTheWay(at, name, "its inventory is of "+layout.EncodePath(next.ID+" "+next.Head))
	}
	if _, _, err := t.verify(ctx, at, next, next.Head, Read, nil, nil); err != nil {
		if errors.As(err, &wrong) {
			err = inTheWay(at, name, wrong.Text)
		}
		return nil, err
	}
	return next, t.describe(ctx, at, data)
}

// inTheWay refuses what stands where the next version belongs and is none, where a version comes in
// as a whole: another program writes it, or died. Empty folders go.
func (t *ocflTarget) inTheWay(ctx context.Context, at, name string) error {
	if !t.b.traits().renames {
		return nil // a put of ours that died, and is gone on with
	}
	there, err := t.b.survey(ctx, path.Join(at, name))
	if wrong := (*Damage)(nil); errors.As(err, &wrong) {
		return inTheWay(at, name, wrong.Text)
	}
	if err != nil {
		return err
	}
	if len(there.files)+len(there.odd) > 0 {
		return inTheWay(at, name, "no inventory names it")
	}
	return t.b.remove(ctx, path.Join(at, name))
}

func inTheWay(at, name, why string) error {
	return &Down{fmt.Errorf("%s stands where the item's next version belongs: %s; a check that mends sets it aside", layout.EncodePath(path.Join(at, name)), why)}
}
