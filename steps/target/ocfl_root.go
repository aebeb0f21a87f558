package target

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"bagpipe/bags/files"
	"bagpipe/layout"

	"github.com/srerickson/ocfl-go/extension"
)

// A storage root (OCFL 1.1, section 4) is the target's folder itself where that is one
// already, and its sub-folder ocfl otherwise: versions are staged beside it.
const (
	rootMark   = "0=ocfl_1.1"
	rootText   = "ocfl_1.1\n"
	rootFolder = "ocfl"
	layoutFile = "ocfl_layout.json"
	hashedName = "0004-hashed-n-tuple-storage-layout"
)

// storageRoot says where objects stand.
type storageRoot struct {
	dir    string // "" is the target's own folder
	stage  string
	layout extension.Layout
}

// openRoot finds the storage root, or makes it. One that has its layout alone, of a making that died or as its declaration
// went, is declared again.
func openRoot(ctx context.Context, b backend) (*storageRoot, error) {
	for _, dir := range []string{"", rootFolder} {
		is, laidOut, err := declared(ctx, b, dir)
		if err != nil {
			return nil, err
		}
		if !is && !laidOut {
			continue
		}
		r := &storageRoot{dir: dir, stage: "staging"}
		if dir == "" {
			r.stage = "extensions/bagpipe-staging"
		}
		if r.layout, err = readLayout(ctx, b, dir); err == nil && !is {
			err = b.replace(ctx, path.Join(dir, rootMark), []byte(rootText))
		}
		return r, err
	}
	names, err := b.folders(ctx, rootFolder)
	if err != nil {
		return nil, err
	}
	if names = slices.DeleteFunc(names, func(name string) bool { return name == "extensions" }); len(names) > 0 {
		return nil, &Down{fmt.Errorf("the folder %s has folders, and neither %s nor %s: how a storage root there was laid out cannot be told. Give it these two files again", rootFolder, rootMark, layoutFile)}
	}
	r := &storageRoot{dir: rootFolder, stage: "staging", layout: extension.Ext0004().(extension.Layout)}
	config, err := json.MarshalIndent(r.layout, "", "  ")
	if err != nil {
		return nil, err
	}
	description, err := json.MarshalIndent(map[string]string{"extension": hashedName, "description": "Hashed n-tuple: the SHA-256 of the identifier, in three folders of three digits and a folder of all"}, "", "  ")
	if err != nil {
		return nil, err
	}
	for _, f := range []struct {
		name string
		text []byte
	}{{"extensions/" + hashedName + "/config.json", config}, {layoutFile, description}, {rootMark, []byte(rootText)}} {
		if err := b.replace(ctx, path.Join(r.dir, f.name), append(slices.Clip(f.text), ending(f.text)...)); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// declared reports whether a folder is a storage root that is gone on with, and whether it says how it is laid out.
// One of another version, or an object, is an error: nothing is made in it.
func declared(ctx context.Context, b backend, dir string) (is, laidOut bool, err error) {
	other := ""
	err = b.list(ctx, dir, false, func(name string, _ int64) error {
		switch {
		case name == rootMark:
			is = true
		case name == layoutFile:
			laidOut = true
		case strings.HasPrefix(name, "0=ocfl_"):
			other = name
		}
		return nil
	})
	if err == nil && other != "" {
		return false, false, fmt.Errorf("the target's folder has %s: a storage root of OCFL 1.1 alone is gone on with", layout.EncodePath(other))
	}
	return is, laidOut, err
}

// rootDeclared wants the declaration of the storage root that an object stands in.
func rootDeclared(ctx context.Context, b backend, object string) error {
	dirs := []string{""}
	if strings.HasPrefix(object, rootFolder+"/") {
		dirs = []string{rootFolder, ""}
	}
	for _, dir := range dirs {
		text, err := readAll(ctx, b, path.Join(dir, rootMark))
		if err == nil && string(text) == rootText {
			return nil
		}
		if wrong := (*Damage)(nil); err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.As(err, &wrong) {
			return err
		}
	}
	return damage("the declaration %s of its storage root is missing, or another", rootMark)
}

func ending(text []byte) string {
	if strings.HasSuffix(string(text), "\n") {
		return ""
	}
	return "\n"
}

// readLayout reads how a storage root is laid out: by any extension that the library knows.
func readLayout(ctx context.Context, b backend, dir string) (extension.Layout, error) {
	var named struct {
		Extension string `json:"extension"`
	}
	data, err := readAll(ctx, b, path.Join(dir, layoutFile))
	if err == nil {
		err = json.Unmarshal(data, &named)
	}
	if err != nil {
		return nil, fmt.Errorf("the storage root's %s: %w", layoutFile, err)
	}
	l, err := extension.DefaultRegistry().NewLayout(named.Extension)
	if err != nil {
		return nil, fmt.Errorf("the storage root's layout: %w", err)
	}
	data, err = readAll(ctx, b, path.Join(dir, "extensions", named.Extension, "config.json"))
	if err == nil {
		err = json.Unmarshal(data, l)
	} else if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	if err == nil && l.Name() != named.Extension {
		err = fmt.Errorf("its config.json is of %q", l.Name())
	}
	var tuples struct{ TupleSize, NumberOfTuples int }
	if err == nil && data != nil && (json.Unmarshal(data, &tuples) != nil || min(tuples.TupleSize, tuples.NumberOfTuples) < 0) {
		err = errors.New("its tuples are none")
	}
	if err == nil {
		err = l.Valid()
	}
	if err != nil {
		return nil, fmt.Errorf("the storage root's layout %s: %w", named.Extension, err)
	}
	return l, nil
}

// object is where an identifier's object stands.
func (r *storageRoot) object(id string) (string, error) {
	at, err := r.layout.Resolve(id)
	if err == nil && !fs.ValidPath(at) {
		err = fmt.Errorf("the storage root's layout leads nowhere: %q", at)
	}
	return path.Join(r.dir, at), err
}

// objectID is the identifier of an item's object: a URI.
func objectID(item layout.ItemID) string { return "bagpipe:" + string(item) }

// contentNames gives the files of a version their names in content/. taken are those given, and the
// folders above them, by their folded spelling.
type contentNames struct {
	fold  files.Folder
	taken map[string]string
}

// of is a file's own name where every store can hold it beside those given before, or its digest: a
// store that does not tell upper case, or composed letters, apart would put one file over another.
func (c contentNames) of(name, digest string) string {
	if layout.EncodePath(name) != name {
		return byDigest(digest)
	}
	for at := name; at != "."; at = path.Dir(at) {
		if other, is := c.taken[c.fold.Fold(at)]; is && (other != at || at == name) {
			return byDigest(digest)
		}
	}
	for at := name; at != "."; at = path.Dir(at) {
		c.taken[c.fold.Fold(at)] = at
	}
	return name
}

// byDigest is the name in content/ of what stands there by its digest.
func byDigest(digest string) string { return "~named-by-digest/" + digest }

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }
