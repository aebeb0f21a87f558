package target

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"bagpipe/bags/files"
	"bagpipe/layout"
)

// A mend of a version of an OCFL object writes anew what is damaged of it. The rules are:
//
//   - an inventory that is damaged is that of the newest version that has a sound one, or has the same
//     bytes where the sidecars alone are damaged;
//   - an object without any such inventory is set aside as a whole, and the bag put as if nothing were there;
//   - so it is where another bag has taken the version's name: the bag is added as a further version, and the
//     record says which;
//   - what is damaged, or in no inventory, stands below STAGE/ITEM.damaged until the version is verified. What
//     stands aside of other versions that are on record stays until they are.

// Replace writes what is damaged of a version anew; the damaged bytes stay aside until the new ones were read back.
func (t *ocflTarget) Replace(ctx context.Context, c layout.DepositCopy, b Bag) (none layout.DepositCopy, err error) {
	defer t.alone(b.Item)()
	at, err := layout.DecodePath(c.Place)
	if err != nil {
		return none, err
	}
	root, err := t.open(ctx)
	if err != nil {
		return none, err
	}
	m := ocflMend{t, root, b, at}
	have, err := m.inventory(ctx)
	if err != nil {
		return none, err
	}
	made := none
	if v := have.version(c.State); v == nil || v.of() != 0 && v.of() != b.Version {
		made, err = m.again(ctx, have)
	} else {
		made, err = m.version(ctx, have, c.State)
	}
	if err != nil {
		return none, t.staging(root, b.Item).lost(ctx, err)
	}
	if made.Digest != c.Digest {
		return none, damage("what was mended is not the bag that was written")
	}
	return made, errors.Join(t.sweep(ctx, at, b.Item, made.State, b.Record), t.staging(root, b.Item).clear(ctx))
}

// ocflMend is a mend of one bag in one object, which stands at.
type ocflMend struct {
	*ocflTarget
	root *storageRoot
	bag  Bag
	at   string
}

// again puts a bag of which no version is there. Folders of versions that no inventory names are set aside.
func (m ocflMend) again(ctx context.Context, have *inventory) (layout.DepositCopy, error) {
	if have != nil && m.b.traits().renames {
		there, err := m.b.survey(ctx, m.at)
		if err != nil {
			return layout.DepositCopy{}, err
		}
		comes := m.comes(ctx, m.at, have, there)
		for _, name := range have.strays(there, "", comes) {
			if err := m.aside(ctx, name); err != nil {
				return layout.DepositCopy{}, err
			}
		}
		if next := have.following(); !comes && next != "" {
			if err := m.b.remove(ctx, path.Join(m.at, next)); err != nil {
				return layout.DepositCopy{}, err
			}
		}
	}
	return m.put(ctx, m.bag)
}

// version mends a version that an inventory names.
func (m ocflMend) version(ctx context.Context, have *inventory, version string) (none layout.DepositCopy, err error) {
	state, err := have.state(version)
	if err != nil {
		return none, err
	}
	if err := m.strays(ctx, have, version); err != nil {
		return none, err
	}
	begin, sent := m.now(), []logical{}
	for _, f := range state {
		sum, err := sumOf(ctx, m.b, path.Join(m.at, f.at), files.SHA512)
		if err == nil && hex.EncodeToString(sum) == f.digest {
			continue
		}
		var wrong *Damage
		if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.As(err, &wrong) {
			return none, err
		}
		if err := m.content(ctx, f); err != nil {
			return none, err
		}
		sent = append(sent, f)
	}
	if err := m.telling(ctx, have, version); err != nil {
		return none, err
	}
	if err := prolongVersion(ctx, m.ocflTarget, m.at, have, version, sent, true, begin); err != nil {
		return none, err
	}
	made, err := m.answer(ctx, m.bag, m.at, version, nil)
	made.Retention = m.b.traits().until(begin)
	if err == nil {
		err = m.described(ctx, m.at, version)
	}
	return made, err
}

// inventory gives the object's inventory, and writes it anew where it is damaged; nil: there is none, and what stood
// there is set aside.
func (m ocflMend) inventory(ctx context.Context) (*inventory, error) {
	have, data, err := readInventory(ctx, m.b, m.at)
	var wrong *Damage
	if err == nil || !errors.As(err, &wrong) && !errors.Is(err, fs.ErrNotExist) {
		return have, err
	}
	names, err := m.b.folders(ctx, m.at)
	if err != nil && !errors.As(err, &wrong) { // which is no folder
		return nil, err
	}
	for _, n := range versionNumbers(names) {
		name := "v" + strconv.Itoa(n)
		v, own, err := readInventory(ctx, m.b, path.Join(m.at, name))
		if err != nil && !errors.As(err, &wrong) && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		if v == nil && own != nil && bytes.Equal(own, data) { // the sidecars alone are damaged
			v = &inventory{}
			if json.Unmarshal(own, v) != nil {
				continue
			}
		}
		if v != nil && v.ID == objectID(m.bag.Item) && v.Head == name {
			return v, m.describeAnew(ctx, "", own)
		}
	}
	return nil, m.allAside(ctx)
}

// allAside sets an object aside, beside those that were before.
func (m ocflMend) allAside(ctx context.Context) error {
	if is, err := stands(ctx, m.b, m.at); err != nil || !is {
		return err
	}
	for n := 1; ; n++ {
		err := m.b.rename(ctx, m.at, path.Join(m.asideDir(), asideWhole+strconv.Itoa(n)))
		if !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
}

// versionNumbers are those of an object's version folders, from the newest.
func versionNumbers(names []string) (all []int) {
	for _, name := range names {
		if n, err := strconv.Atoi(strings.TrimPrefix(name, "v")); err == nil && name == "v"+strconv.Itoa(n) {
			all = append(all, n)
		}
	}
	slices.Sort(all)
	slices.Reverse(all)
	return all
}

// describeAnew writes an inventory of an object, below dir, in the place of a broken one, which is set aside.
func (m ocflMend) describeAnew(ctx context.Context, dir string, data []byte) error {
	for _, name := range []string{inventoryName, sidecarName} {
		if err := m.aside(ctx, path.Join(dir, name)); err != nil {
			return err
		}
	}
	return m.describe(ctx, path.Join(m.at, dir), data)
}

// strays sets aside what no inventory has, and what stands in the place of a file and is none.
func (m ocflMend) strays(ctx context.Context, have *inventory, version string) error {
	there, err := m.b.survey(ctx, m.at)
	if err != nil {
		return err
	}
	for _, name := range have.strays(there, version, m.comes(ctx, m.at, have, there)) {
		if slices.Contains(there.empty, name) {
			continue
		}
		if err := m.aside(ctx, name); err != nil {
			return err
		}
	}
	for { // a folder that is removed may leave the one above it empty
		there, err := m.b.survey(ctx, m.at)
		if err != nil {
			return err
		}
		there.files, there.odd = nil, nil
		empty := have.strays(there, version, false)
		if len(empty) == 0 {
			return nil
		}
		for _, name := range empty {
			if err := m.b.remove(ctx, path.Join(m.at, name)); err != nil {
				return err
			}
		}
	}
}

// telling writes the declarations and the version's own inventory anew where they are broken.
func (m ocflMend) telling(ctx context.Context, have *inventory, version string) error {
	var wrong *Damage
	err := m.described(ctx, m.at, version)
	if !errors.As(err, &wrong) {
		return err
	}
	if err := rootDeclared(ctx, m.b, m.at); errors.As(err, &wrong) {
		if err := m.b.replace(ctx, path.Join(m.root.dir, rootMark), []byte(rootText)); err != nil {
			return err
		}
	}
	if err := m.described(ctx, m.at, version); !errors.As(err, &wrong) {
		return err
	}
	if err := m.aside(ctx, objectMark); err != nil {
		return err
	}
	if err := m.b.replace(ctx, path.Join(m.at, objectMark), []byte(objectText)); err != nil {
		return err
	}
	data, err := have.upTo(version).encode()
	if err != nil {
		return err
	}
	return m.describeAnew(ctx, version, data)
}

// content writes one content anew.
func (m ocflMend) content(ctx context.Context, f logical) error {
	if !m.b.traits().renames {
		if err := m.aside(ctx, f.at); err != nil {
			return err
		}
		return m.sendOne(ctx, m.bag, m.at, f, true)
	}
	stage := m.staging(m.root, m.bag.Item).at()
	if err := m.sendOne(ctx, m.bag, stage, f, true); err != nil {
		return err
	}
	if err := m.b.settle(ctx, path.Join(stage, f.at)); err != nil {
		return err
	}
	if err := m.aside(ctx, f.at); err != nil {
		return err
	}
	return comeIn(ctx, m.b, path.Join(stage, f.at), path.Join(m.at, f.at), path.Join(m.asideDir(), f.at))
}

const (
	asideEnd   = ".damaged"
	asideWhole = "object-" // begins the name of a folder in which a whole object stands aside
)

// asideDir is where what is damaged of an object is until it is mended.
func (m ocflMend) asideDir() string { return asideIn(m.root, m.bag.Item) }

func (m ocflMend) aside(ctx context.Context, name string) error {
	return setAside(ctx, m.b, path.Join(m.at, name), path.Join(m.asideDir(), name))
}

func asideIn(root *storageRoot, item layout.ItemID) string {
	return path.Join(root.stage, string(item)+asideEnd)
}

// sweep removes what mends set aside, once a version is sound; what stood in the folder of another one that is on record
// stays, but content that this one is made of.
func (t *ocflTarget) sweep(ctx context.Context, at string, item layout.ItemID, version string, record map[int]layout.DepositCopy) error {
	root, err := t.open(ctx)
	if err != nil {
		return err
	}
	dir := asideIn(root, item)
	there, err := t.b.survey(ctx, dir)
	all := slices.Concat(sortedKeys(there.files), there.odd)
	if err != nil || len(all)+len(there.empty) == 0 {
		return err
	}
	have, _, err := readInventory(ctx, t.b, at)
	if err != nil {
		return err
	}
	state, err := have.state(version)
	if err != nil {
		return err
	}
	sound, others := map[string]bool{}, map[string]bool{}
	for _, c := range record {
		others[c.State] = c.State != version && c.Place == layout.EncodePath(at)
	}
	for _, f := range state {
		sound[f.at] = true
	}
	kept := 0
	for _, name := range all {
		of := name
		top, rest, _ := strings.Cut(of, "/")
		if strings.HasPrefix(top, asideWhole) {
			of = rest
			top, _, _ = strings.Cut(of, "/")
		}
		if others[top] && !sound[of] {
			kept++
			continue
		}
		if err := t.b.remove(ctx, path.Join(dir, name)); err != nil {
			return err
		}
	}
	if kept > 0 {
		return nil
	}
	return t.b.remove(ctx, dir)
}
