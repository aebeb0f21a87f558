package identity

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"sync"

	"bagpipe/engine/gitstore"
	"bagpipe/engine/ledger"
	"bagpipe/layout"
)

// The rules are: known leads from the digest of a drop's content, and from each
// identifier, to the items that have them, finished ones too. It is derived from the
// manifests and loaded when an admission asks. An entry is sixteen bytes: 64 bits of
// the key and the item's number, so different keys can meet, and entries of what is
// gone or changed stay. It only names candidates; what counts is their manifest at
// the tip, or where it last stood, read within the transaction that asks.

// known is the index of what items are known by.
type Keys struct {
	ledger *ledger.Ledger // nil: retired items are not known

	mu     sync.Mutex // guards the rest
	sorted []entry
	fresh  map[uint64][]uint64 // entries that are not among the sorted yet
	extra  int                 // how many those are
}

// entry is one key and one item that has it.
type entry struct{ key, item uint64 }

func (a entry) compare(b entry) int {
	return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.item, b.item))
}

// digestKey is the key of a drop's digest.
func digestKey(digest string) uint64 {
	raw, err := hex.DecodeString(strings.TrimPrefix(digest, "sha256:"))
	if err != nil || len(raw) < 8 {
		sum := sha256.Sum256([]byte(digest))
		raw = sum[:]
	}
	return binary.BigEndian.Uint64(raw)
}

// identifierKey is the key of one identifier.
func identifierKey(kind, value string) uint64 {
	sum := sha256.Sum256([]byte(kind + "\x00" + value))
	return binary.BigEndian.Uint64(sum[:])
}

// KeysOf are the keys an item is known by. A child has no drop of its own.
func KeysOf(m *layout.Manifest) []uint64 {
	var keys []uint64
	if m.Source.Digest != "" && m.Parent == nil {
		keys = append(keys, digestKey(m.Source.Digest))
	}
	for kind, value := range m.Identifiers {
		keys = append(keys, identifierKey(kind, value))
	}
	for path := range m.Originals {
		keys = append(keys, originalKey(path))
	}
	return keys
}

// maxFresh is how many entries are kept unsorted before they are merged: a map
// takes some eighty bytes for each.
const maxFresh = 16384

func (k *Keys) Add(item layout.ItemID, keys []uint64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	bits := item.Bits()
	for _, key := range keys {
		if k.has(key, bits) {
			continue
		}
		if k.fresh == nil {
			k.fresh = map[uint64][]uint64{}
		}
		k.fresh[key] = append(k.fresh[key], bits)
		k.extra++
	}
	if k.extra > max(maxFresh, len(k.sorted)/16) {
		k.merge()
	}
}

func (k *Keys) has(key, item uint64) bool {
	_, ok := slices.BinarySearchFunc(k.sorted, entry{key, item}, entry.compare)
	return ok || slices.Contains(k.fresh[key], item)
}

// merge puts the fresh entries in their places.
func (k *Keys) merge() {
	all := slices.Grow(k.sorted, k.extra)
	for key, items := range k.fresh {
		for _, item := range items {
			all = append(all, entry{key, item})
		}
	}
	slices.SortFunc(all, entry.compare)
	k.sorted, k.fresh, k.extra = slices.Clip(slices.Compact(all)), nil, 0
}

// candidates are the items that may have a key.
func (k *Keys) candidates(key uint64) (ids []layout.ItemID) {
	k.mu.Lock()
	defer k.mu.Unlock()
	i, _ := slices.BinarySearchFunc(k.sorted, entry{key, 0}, entry.compare)
	for ; i < len(k.sorted) && k.sorted[i].key == key; i++ {
		ids = append(ids, layout.ItemIDOf(k.sorted[i].item))
	}
	for _, bits := range k.fresh[key] {
		ids = append(ids, layout.ItemIDOf(bits))
	}
	return ids
}

// holders reads the manifests of the items that have a key and fit, the oldest
// first, as they are at r.
func (k *Keys) holders(r gitstore.Reader, key uint64, but layout.ItemID, fits func(*layout.Manifest) bool) ([]layout.Manifest, error) {
	var found []layout.Manifest
	for _, id := range k.candidates(key) {
		if id == but {
			continue
		}
		data, err := ledger.ReadOptional(r, layout.ItemDir(id)+"/"+layout.ManifestJSON)
		if err == nil && data == nil && k.ledger != nil {
			var last ledger.Records
			last, err = ledger.StandingOf(k.ledger, r, id)
			data = last.Manifest
		}
		if err != nil {
			return nil, fmt.Errorf("look for the same content: %w", err)
		}
		if data == nil {
			continue
		}
		m, err := layout.DecodeManifest(data)
		if err == nil && fits(&m) {
			found = append(found, m)
		}
	}
	slices.SortFunc(found, func(a, b layout.Manifest) int {
		return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.Item, b.Item))
	})
	return found, nil
}
