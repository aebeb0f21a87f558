package target

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"path"
)

// addInPlace makes a version where it belongs, where nothing can be renamed (S3). The rules are:
//
//   - the version's inventory is its claim: it is written once its content is there, and only where none stands.
//     Whoever finds one has lost;
//   - until then nothing that stands there is removed, as another engine may be making it: content whose place has other
//     bytes stands by its digest;
//   - then all that the inventory does not name goes, whether a dead put or the one that lost has left it. The loser sees
//     to that, too, as it may have written later;
//   - the object's inventory may be written by several; each looks whether a further version has come meanwhile. A crash
//     between leaves the object at the version before, and the next put ends it.
func (t *ocflTarget) addInPlace(ctx context.Context, b Bag, at string, made *inventory, fresh []logical) error {
	dir := path.Join(at, made.Head)
	found, err := t.b.survey(ctx, dir)
	if err != nil {
		return err
	}
	there := map[string]bool{}
	for name := range found.files {
		there[path.Join(made.Head, name)] = true
	}
	if made.Head == "v1" {
		if err := t.b.replace(ctx, path.Join(at, objectMark), []byte(objectText)); err != nil {
			return err
		}
	}
	if err := t.send(ctx, b, at, fresh, there); err != nil {
		return errors.Join(err, sweepVersion(ctx, t.b, at, made.Head))
	}
	var stood []string
	for _, f := range fresh {
		made.Manifest[f.digest] = []string{f.at}
		if there[f.at] {
			stood = append(stood, f.at)
		}
	}
	if err := prolong(ctx, t.b, at, stood, t.now()); err != nil {
		return err
	}
	data, err := made.encode()
	if err != nil {
		return err
	}
	err = t.b.write(ctx, path.Join(dir, inventoryName), fileOf(data))
	if errors.Is(err, fs.ErrExist) { // also of a write of ours whose answer was lost
		if there, rerr := readAll(ctx, t.b, path.Join(dir, inventoryName)); rerr == nil && bytes.Equal(there, data) {
			err = nil
		}
	}
	if err != nil {
		return errors.Join(err, sweepVersion(ctx, t.b, at, made.Head))
	}
	if err := t.b.replace(ctx, path.Join(dir, sidecarName), sidecar(data)); err != nil {
		return err
	}
	if err := sweepVersion(ctx, t.b, at, made.Head); err != nil {
		return err
	}
	if now, _, err := readInventory(ctx, t.b, at); err != nil || now.version(made.Head) == nil { // no other engine did so
		if err := t.describe(ctx, at, data); err != nil {
			return err
		}
	}
	_, err = t.finish(ctx, at, made.ID)
	return err
}

// fileOf is what is written of bytes.
func fileOf(data []byte) file {
	return file{size: int64(len(data)), open: func(offset int64) (reader, error) {
		return io.NopCloser(bytes.NewReader(data[offset:])), nil
	}}
}

// sweepVersion removes what stands in a version's folder and its inventory does not name. Without an inventory all stays.
func sweepVersion(ctx context.Context, b backend, at, version string) error {
	data, err := readAll(ctx, b, path.Join(at, version, inventoryName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var v inventory
	if err != nil || json.Unmarshal(data, &v) != nil || v.Head != version {
		return err
	}
	named := map[string]bool{path.Join(version, inventoryName): true, path.Join(version, sidecarName): true}
	for _, paths := range v.Manifest {
		for _, p := range paths {
			named[p] = true
		}
	}
	there, err := b.survey(ctx, path.Join(at, version))
	for _, name := range sortedKeys(there.files) {
		if name = path.Join(version, name); err == nil && !named[name] {
			err = b.remove(ctx, path.Join(at, name))
		}
	}
	return err
}

// claimed reads the inventory of a version that the object's does not name. Where versions are made in their place,
// what a dead put left to do is done: the sidecar is written, and content that no inventory names removed; an inventory
// that is none goes.
func claimed(ctx context.Context, b backend, at, version string) (*inventory, []byte, error) {
	dir := path.Join(at, version)
	v, data, err := readInventory(ctx, b, dir)
	var wrong *Damage
	if b.traits().renames || err != nil && !errors.As(err, &wrong) {
		return v, data, err
	}
	if err != nil {
		_, none := readAll(ctx, b, path.Join(dir, sidecarName))
		if !errors.Is(none, fs.ErrNotExist) || !json.Valid(data) {
			return nil, nil, errors.Join(b.remove(ctx, path.Join(dir, inventoryName)), b.remove(ctx, path.Join(dir, sidecarName)), fs.ErrNotExist)
		}
		if err := b.replace(ctx, path.Join(dir, sidecarName), sidecar(data)); err != nil {
			return nil, nil, err
		}
		if v, data, err = readInventory(ctx, b, dir); err != nil {
			return v, data, err
		}
	}
	return v, data, sweepVersion(ctx, b, at, version)
}
