package target

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"bagpipe/layout"
)

// A storage root (OCFL 1.1, section 4) is the target's folder itself where that is one
// already, and its sub-folder ocfl otherwise: versions are staged beside it.
const (
	rootMark   = "0=ocfl_1.1"
	rootText   = "ocfl_1.1\n"
	rootFolder = "ocfl"
	layoutFile = "ocfl_layout.json"
	hashedName = "0004-hashed-n-tuple-storage-layout"
	hashAndID  = "0003-hash-and-id-n-tuple-storage-layout"
)

// storageRoot says where objects stand.
type storageRoot struct {
	dir   string // "" is the target's own folder
	stage string
	tuple tuples
}

// tuples are the parameters of the two layouts.
type tuples struct {
	Extension string `json:"extensionName"`
	Digest    string `json:"digestAlgorithm"`
	Size      int    `json:"tupleSize"`
	Number    int    `json:"numberOfTuples"`
	Short     *bool  `json:"shortObjectRoot,omitempty"`
}

func newTuples() tuples {
	short := false
	return tuples{hashedName, "sha256", 3, 3, &short}
}

// openRoot finds the storage root, or makes it.
func openRoot(ctx context.Context, b backend) (*storageRoot, error) {
	for _, dir := range []string{"", rootFolder} {
		_, err := readAll(ctx, b, path.Join(dir, rootMark))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		r := &storageRoot{dir: dir, stage: "staging"}
		if dir == "" {
			r.stage = "extensions/bagpipe-staging"
		}
		r.tuple, err = readLayout(ctx, b, dir)
		return r, err
	}
	r := &storageRoot{dir: rootFolder, stage: "staging", tuple: newTuples()}
	config, err := json.MarshalIndent(r.tuple, "", "  ")
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

func ending(text []byte) string {
	if strings.HasSuffix(string(text), "\n") {
		return ""
	}
	return "\n"
}

func readLayout(ctx context.Context, b backend, dir string) (t tuples, err error) {
	var named struct {
		Extension string `json:"extension"`
	}
	data, err := readAll(ctx, b, path.Join(dir, layoutFile))
	if err == nil {
		err = json.Unmarshal(data, &named)
	}
	if err != nil {
		return t, fmt.Errorf("the storage root's %s: %w", layoutFile, err)
	}
	if named.Extension != hashedName && named.Extension != hashAndID {
		return t, fmt.Errorf("the storage root's layout is %q; %s and %s are known", named.Extension, hashedName, hashAndID)
	}
	t = newTuples() // what a config leaves out
	data, err = readAll(ctx, b, path.Join(dir, "extensions", named.Extension, "config.json"))
	if err == nil {
		err = json.Unmarshal(data, &t)
	} else if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	t.Extension = named.Extension
	if err == nil && (t.Digest != "sha256" || t.Size < 0 || t.Number < 0 || t.Size*t.Number > 2*sha256.Size) {
		err = fmt.Errorf("the storage root's layout: sha256 and tuples within its digits are known")
	}
	return t, err
}

// object is where an identifier's object stands.
func (r *storageRoot) object(id string) string {
	sum := sha256.Sum256([]byte(id))
	digits := hex.EncodeToString(sum[:])
	var parts []string
	rest := digits
	for range r.tuple.Number {
		parts, rest = append(parts, rest[:r.tuple.Size]), rest[r.tuple.Size:]
	}
	switch {
	case r.tuple.Extension == hashAndID:
		parts = append(parts, encapsulated(id, digits))
	case r.tuple.Short != nil && *r.tuple.Short:
		parts = append(parts, rest)
	default:
		parts = append(parts, digits)
	}
	return path.Join(r.dir, path.Join(parts...))
}

// encapsulated is the folder of extension 0003: the identifier, percent-encoded, of at most
// 100 characters.
func encapsulated(id, digits string) string {
	var s strings.Builder
	for _, c := range []byte(id) {
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_' {
			s.WriteByte(c)
			continue
		}
		fmt.Fprintf(&s, "%%%02x", c)
	}
	if text := s.String(); len(text) <= 100 {
		return text
	}
	return s.String()[:100] + "-" + digits
}

// objectID is the identifier of an item's object: a URI.
func objectID(item layout.ItemID) string { return "bagpipe:" + string(item) }

// contentName is the name of a file in content/: its own where every store can hold it, or
// its digest.
func contentName(name, digest string) string {
	if layout.EncodePath(name) == name {
		return name
	}
	return "~named-by-digest/" + digest
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
