package state

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"bagpipe/layout"
)

// fixed are the members of manifest.json that say what an item is. They are as
// the engine wrote them; the rest describes it, and is anybody's to change.
var fixed = []string{"schema", "item", "version", "batch", "created", "since", "parent", "source", "recognition"}

// MendManifest is Mend for manifest.json. The inventory's summary may change when
// newInventory says that the inventory did so by a step, and that of its quality where newQuality does. What cannot be read is
// replaced by before as a whole; now nil is a removed one.
func MendManifest(before, now []byte, newInventory, newQuality bool) (mended []byte, breaches []string) {
	if now == nil {
		return before, []string{"removed " + layout.ManifestJSON}
	}
	if _, err := layout.DecodeManifest(now); err != nil {
		return before, []string{"left a record that cannot be used: " + err.Error()}
	}
	a, errA := members(before)
	b, errB := members(now)
	if errA != nil || errB != nil {
		return before, []string{"left a " + layout.ManifestJSON + " that is more than JSON"}
	}
	keys := fixed
	if !newInventory {
		keys = append(keys[:len(keys):len(keys)], "inventory")
	}
	if !newQuality {
		keys = append(keys[:len(keys):len(keys)], "quality")
	}
	letMove(a, b, before, now)
	for _, k := range keys {
		breaches = append(breaches, restore(a, b, k)...)
	}
	for _, k := range []string{"collection", "lane"} {
		name, _ := b[k].(string)
		if _, err := layout.ParseName(name); err != nil {
			breaches = append(breaches, restore(a, b, k)...)
		}
	}
	if len(breaches) == 0 && sameItem(before, now, newInventory, newQuality) {
		return now, nil
	}
	if len(breaches) == 0 { // by a second spelling, such as Source beside source
		return before, []string{"changed what the item is, in " + layout.ManifestJSON}
	}
	mended, err := layout.EncodeJSON(b)
	if err != nil || !sameItem(before, mended, newInventory, newQuality) {
		return before, breaches
	}
	return mended, breaches
}

// letMove has the members a of before name the place in a catalog that now names, where the object
// may have moved there, and what it was recognised as since, as b says.
func letMove(a, b map[string]any, before, now []byte) {
	was, errA := layout.DecodeManifest(before)
	is, errB := layout.DecodeManifest(now)
	source, ok := a["source"].(map[string]any)
	if errA != nil || errB != nil || !ok || !samePlaces(was.Source, is.Source) {
		return
	}
	moved := maps.Clone(source)
	moved["name"] = is.Source.Name
	place := map[string]any{"catalog": string(is.Source.Place.Catalog), "path": is.Source.Place.Path, "stamp": is.Source.Place.Stamp}
	if with := is.Source.Place.With; len(with) > 0 {
		names := make([]any, len(with))
		for i, name := range with {
			names[i] = name
		}
		place["with"] = names
	}
	moved["place"] = place
	if delete(moved, "rule"); is.Source.Rule != "" {
		moved["rule"] = is.Source.Rule
	}
	a["source"] = moved
	if delete(a, "recognition"); is.Recognition != nil {
		a["recognition"] = b["recognition"]
	}
}

// sameItem compares what is read from the two.
func sameItem(before, now []byte, newInventory, newQuality bool) bool {
	a, errA := layout.DecodeManifest(before)
	b, errB := layout.DecodeManifest(now)
	return errA == nil && errB == nil && a.Item == b.Item && a.Version == b.Version && a.Since.Equal(b.Since) && a.Batch == b.Batch &&
		a.Created.Equal(b.Created) && reflect.DeepEqual(a.Parent, b.Parent) && sameSource(a.Source, b.Source) &&
		(samePlaces(a.Source, b.Source) || reflect.DeepEqual(a.Recognition, b.Recognition)) &&
		(newInventory || reflect.DeepEqual(a.Inventory, b.Inventory)) && (newQuality || reflect.DeepEqual(a.Quality, b.Quality))
}

func members(data []byte) (m map[string]any, err error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	return m, d.Decode(&m)
}

// restore makes b[k] what a[k] is, and says what differed.
func restore(a, b map[string]any, k string) []string {
	was, had := a[k]
	is, has := b[k]
	if had == has && reflect.DeepEqual(was, is) {
		return nil
	}
	if delete(b, k); had {
		b[k] = was
	}
	return []string{fmt.Sprintf("changed %s in %s", difference(k, was, is), layout.ManifestJSON)}
}

// difference names the members that differ, one level down.
func difference(k string, was, is any) string {
	a, ok1 := was.(map[string]any)
	b, ok2 := is.(map[string]any)
	if !ok1 || !ok2 {
		return k
	}
	all := maps.Clone(a)
	maps.Copy(all, b)
	for _, sub := range slices.Sorted(maps.Keys(all)) {
		if !reflect.DeepEqual(a[sub], b[sub]) {
			return k + "." + sub
		}
	}
	return k
}
