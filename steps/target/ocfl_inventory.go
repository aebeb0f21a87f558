package target

import (
	"context"
	"crypto/sha512"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"bagpipe/bags/files"
	"bagpipe/layout"
)

const (
	inventoryName = "inventory.json"
	sidecarName   = inventoryName + ".sha512"
	inventoryType = "https://ocfl.io/1.1/spec/#inventory"
	objectMark    = "0=ocfl_object_1.1"
	objectText    = "ocfl_object_1.1\n"
)

// inventory is an OCFL object's (OCFL 1.1, section 3.5). What others wrote into it stays.
type inventory struct {
	ID               string                    `json:"id"`
	Type             string                    `json:"type"`
	DigestAlgorithm  string                    `json:"digestAlgorithm"`
	Head             string                    `json:"head"`
	ContentDirectory string                    `json:"contentDirectory,omitempty"`
	Fixity           json.RawMessage           `json:"fixity,omitempty"`
	Manifest         map[string][]string       `json:"manifest"`
	Versions         map[string]*objectVersion `json:"versions"`
}

type objectVersion struct {
	Created string              `json:"created"`
	Message string              `json:"message,omitempty"`
	User    *objectUser         `json:"user,omitempty"`
	State   map[string][]string `json:"state"`
}

type objectUser struct {
	Name    string `json:"name"`
	Address string `json:"address,omitempty"`
}

// itemVersion stands at the end of a version's message: which of the item's versions it is.
var itemVersion = regexp.MustCompile(`\(version ([1-9][0-9]{0,8})\)$`)

// of gives the item's version that a version of the object is; 0: another wrote it.
func (v *objectVersion) of() int {
	m := itemVersion.FindStringSubmatch(v.Message)
	if m == nil {
		return 0
	}
	n, err := strconv.Atoi(m[1])
	if err != nil {
		return 0
	}
	return n
}

// headNumber is the newest version's; an object with zero-padded versions is not continued.
func (v *inventory) headNumber() (int, error) {
	n, err := strconv.Atoi(strings.TrimPrefix(v.Head, "v"))
	if err != nil || v.Head != "v"+strconv.Itoa(n) || n < 1 || v.Versions[v.Head] == nil {
		return 0, damage("the object's head %q is none that is gone on with", v.Head)
	}
	return n, nil
}

// paths gives the content of one version: the logical path, its digest and where it stands.
type logical struct{ name, digest, at string }

func (v *inventory) state(version string) ([]logical, error) {
	s := v.Versions[version]
	if s == nil {
		return nil, fs.ErrNotExist
	}
	var all []logical
	for digest, names := range s.State {
		at := v.Manifest[digest]
		if len(at) == 0 {
			return nil, damage("the manifest has no content for a digest of %s", version)
		}
		for _, name := range names {
			if !fs.ValidPath(name) || !fs.ValidPath(at[0]) || !strings.HasPrefix(at[0], "v") {
				return nil, damage("the inventory has a path that is none")
			}
			all = append(all, logical{name, strings.ToLower(digest), at[0]})
		}
	}
	slices.SortFunc(all, func(a, b logical) int { return strings.Compare(a.name, b.name) })
	return all, nil
}

// firstOf is what was written first of a version's own files.
func (v *inventory) firstOf(version string) string {
	state, _ := v.state(version) // what is wrong with it its reader tells
	for _, f := range state {
		if strings.HasPrefix(f.at, version+"/") {
			return f.at
		}
	}
	return path.Join(version, inventoryName)
}

// following is the folder of the version after the newest; "" of an object that is not continued.
func (v *inventory) following() string {
	n, err := v.headNumber()
	if err != nil {
		return ""
	}
	return "v" + strconv.Itoa(n+1)
}

// strays gives what stands in an object and no inventory has, in a version's folder or in no version's, in
// order. comes: the folder after the newest is a version on its way.
func (v *inventory) strays(there survey, version string, comes bool) (all []string) {
	known, next := map[string]bool{}, v.following()
	for _, paths := range v.Manifest {
		for _, p := range paths {
			known[p] = true
		}
	}
	for _, name := range slices.Concat(slices.Collect(maps.Keys(there.files)), there.odd, there.empty) {
		top, rest, below := strings.Cut(name, "/")
		switch {
		case known[name] && !slices.Contains(there.empty, name), top == "extensions", top == "logs":
		case !below && (describes(name) || strings.TrimSuffix(strings.TrimPrefix(name, "."), ".part") == objectMark):
		case below && (top == next && comes || v.Versions[top] != nil && top != version):
		case top == version && describes(rest):
		default:
			all = append(all, name)
		}
	}
	slices.Sort(all)
	return all
}

// describes reports whether a name is that of an inventory or its sidecar, or of a part of one.
func describes(name string) bool {
	name = strings.TrimSuffix(strings.TrimPrefix(name, "."), ".part")
	return name == inventoryName || name == sidecarName
}

// holds wants the copies of versions before a bag's that are on record in an object, at a place, as sound, to be there. nil is
// no object.
func (v *inventory) holds(at string, b Bag) error {
	for _, n := range sortedKeys(b.Record) {
		c := b.Record[n]
		if n >= b.Version || c.Outcome != layout.FixityPassed || c.Layout != LayoutOCFL || c.Place != layout.EncodePath(at) {
			continue
		}
		if there := v.version(c.State); there == nil || there.of() != n {
			return &Down{fmt.Errorf("version %d of the item is on record as %s of %s, and is not there: a check that mends writes it again, and then this one is added", n, c.State, c.Place)}
		}
	}
	return nil
}

// upTo is the inventory as it was when a version of it was the newest.
func (v *inventory) upTo(version string) *inventory {
	then := *v
	then.Head, then.Manifest, then.Versions = version, map[string][]string{}, map[string]*objectVersion{}
	for n := 1; ; n++ {
		name := "v" + strconv.Itoa(n)
		then.Versions[name] = v.Versions[name]
		for digest, paths := range v.Manifest {
			for _, p := range paths {
				if strings.HasPrefix(p, name+"/") {
					then.Manifest[digest] = append(then.Manifest[digest], p)
				}
			}
		}
		if name == version || v.Versions[name] == nil {
			return &then
		}
	}
}

// version is one of an object's; nil: there is none.
func (v *inventory) version(name string) *objectVersion {
	if v == nil {
		return nil
	}
	return v.Versions[name]
}

// check says why an object's inventory is not gone on with.
func (v *inventory) check() error {
	switch {
	case v.Type != inventoryType:
		return fmt.Errorf("the object is of %q: OCFL 1.1 alone is gone on with", v.Type)
	case v.DigestAlgorithm != "sha512":
		return fmt.Errorf("the object's digests are %q: sha512 alone is gone on with", v.DigestAlgorithm)
	case v.ContentDirectory != "" && v.ContentDirectory != "content":
		return fmt.Errorf("the object's content stands in %q: content alone is gone on with", v.ContentDirectory)
	}
	_, err := v.headNumber()
	return err
}

func (v *inventory) encode() ([]byte, error) {
	data, err := json.MarshalIndent(v, "", "  ")
	return append(data, '\n'), err
}

// sidecar is the text beside an inventory.
func sidecar(data []byte) []byte {
	sum := sha512.Sum512(data)
	return []byte(hex.EncodeToString(sum[:]) + " " + inventoryName + "\n")
}

// readInventory reads an inventory with its sidecar; the bytes are as they stand.
func readInventory(ctx context.Context, b backend, dir string) (v *inventory, data []byte, err error) {
	data, err = readAll(ctx, b, path.Join(dir, inventoryName))
	if err != nil {
		return nil, nil, err
	}
	side, err := readAll(ctx, b, path.Join(dir, sidecarName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, data, damage("the inventory has no sidecar")
	}
	if err != nil {
		return nil, data, err
	}
	if got, want := strings.Fields(string(side)), strings.Fields(string(sidecar(data))); len(got) != 2 || !strings.EqualFold(got[0], want[0]) {
		return nil, data, damage("the inventory is not what its sidecar says")
	}
	v = &inventory{}
	if err := json.Unmarshal(data, v); err != nil {
		return nil, data, damage("the inventory cannot be read: %v", err)
	}
	if v.ID == "" || v.Versions == nil || v.Manifest == nil {
		return nil, data, damage("the inventory is not one")
	}
	return v, data, nil
}

// next is the inventory with one more version, whose files are of the given digests, and the
// files of which the object has no content yet.
func (v *inventory) next(id string, b Bag, sums map[string]string) (made *inventory, fresh []logical, err error) {
	n := 1
	made = &inventory{ID: id, Type: inventoryType, DigestAlgorithm: "sha512", Manifest: map[string][]string{}, Versions: map[string]*objectVersion{}}
	if v != nil {
		if n, err = v.headNumber(); err != nil {
			return nil, nil, err
		}
		n++
		made.Fixity, made.ContentDirectory = v.Fixity, v.ContentDirectory
		for digest, paths := range v.Manifest {
			made.Manifest[strings.ToLower(digest)] = paths
		}
		for name, version := range v.Versions {
			made.Versions[name] = version
		}
	}
	made.Head = "v" + strconv.Itoa(n)
	version := &objectVersion{Created: b.At.UTC().Format(time.RFC3339), Message: fmt.Sprintf("%s (version %d)", b.Message, b.Version),
		User: &objectUser{Name: b.By, Address: "bagpipe:" + url.PathEscape(b.By)}, State: map[string][]string{}}
	made.Versions[made.Head] = version
	names := contentNames{fold: files.NewFolder(), taken: map[string]string{}}
	for _, name := range sortedKeys(sums) {
		digest := sums[name]
		version.State[digest] = append(version.State[digest], name)
		if len(made.Manifest[digest]) == 0 {
			at := made.Head + "/content/" + names.of(name, digest)
			made.Manifest[digest] = []string{at}
			fresh = append(fresh, logical{name, digest, at})
		}
	}
	return made, fresh, nil
}
