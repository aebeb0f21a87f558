package guard

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"bagpipe/engine/ledger"
	"bagpipe/engine/state"
	"bagpipe/layout"
)

// JoinRecords unites an item's records as two histories have them; base are those that both
// began from, zero where there are none. It is a function of its arguments, whichever of a
// and b comes first:
//
//   - the execution record by state.Join;
//   - the manifest by key, three-way; a key that both changed has the greater value, and a hold says
//     both; of two versions the later says what was dropped, and its values come first; of two that both
//     are the next one, that which began later says it, with all that is told of its bytes, and a hold says so;
//   - the inventory that the manifest names;
//   - of each copy in deposits.json, what the later look found;
//   - an item that one side retired stands again where the other went on.
//
// Records that cannot be used give way to those that can; where a later version of the program wrote
// them, the item is held.
func JoinRecords(id layout.ItemID, base, a, b ledger.Records, plans state.Plans) (ledger.Records, error) {
	return joinRecords(id, base, a, b, plans, joinManifests)
}

// joinRecords is JoinRecords; manifests joins those, as now or as before.
func joinRecords(id layout.ItemID, base, a, b ledger.Records, plans state.Plans, manifests func(base, a, b ledger.Records) (ledger.Records, []string, error)) (ledger.Records, error) {
	switch {
	case !b.Sound(id) && a.Sound(id):
		return beside(a, b, plans)
	case !a.Sound(id) && b.Sound(id):
		return beside(b, a, plans)
	case !a.Sound(id):
		if string(a.Manifest)+string(a.Execution) < string(b.Manifest)+string(b.Execution) {
			return b, nil
		}
		return a, nil
	}
	x, err := state.Decode(a.Execution)
	if err != nil {
		return a, err
	}
	y, err := state.Decode(b.Execution)
	if err != nil {
		return a, err
	}
	united, err := state.Join(x, y)
	if err != nil {
		return a, err
	}
	out, conflicts, err := manifests(base, a, b)
	if err != nil {
		return a, err
	}
	if len(conflicts) > 0 && tombstone(a.Manifest) == nil && tombstone(b.Manifest) == nil {
		if err := holdFor(united, string(a.Manifest), string(b.Manifest), heldFor(conflicts)); err != nil {
			return a, err
		}
	}
	united.Recompute(plans)
	out.Execution = united.Encode()
	if out.Deposits, err = joinDeposits(a.Deposits, b.Deposits); err != nil {
		return out, err
	}
	if out, _, err = joinTombstones(a, b, out); err == nil {
		out.Retired = joinRetired(base, a, b, out)
	}
	return out, err
}

// beside gives the records that can be used beside others that cannot.
func beside(a, other ledger.Records, plans state.Plans) (ledger.Records, error) {
	_, err := state.Decode(other.Execution)
	if err == nil {
		_, err = layout.DecodeManifest(other.Manifest)
	}
	var newer *layout.SchemaError
	if !errors.As(err, &newer) || a.Retired != (layout.Standing{}) {
		return a, nil
	}
	x, err := state.Decode(a.Execution)
	if err != nil {
		return a, err
	}
	if err := holdFor(x, string(a.Execution), string(other.Execution)+string(other.Manifest), heldByNewer+newer.Error()); err != nil {
		return a, err
	}
	x.Recompute(plans)
	a.Execution = x.Encode()
	return a, nil
}

// heldByNewer begins the hold of an item that a later version of the program changed on one side.
const heldByNewer = "two histories changed the item, and what one of them says is left out: "

// joinRetired says where the joined records stand: an item that one side retired stays so where
// the other left it alone, or retired it, too, and nothing came of the join besides.
func joinRetired(base, a, b, out ledger.Records) layout.Standing {
	none := layout.Standing{}
	if a.Retired == none || b.Retired != none && b.Retired.Commit < a.Retired.Commit {
		a, b = b, a
	}
	switch {
	case b.Retired == none && (base.Retired != none || !b.Same(base)):
		return none
	case out.Same(a):
		return a.Retired
	case out.Same(b):
		return b.Retired
	}
	return none
}

// joinDeposits unites what is known of an item's copies; what cannot be read gives way.
func joinDeposits(a, b []byte) ([]byte, error) {
	x, errA := layout.DecodeDeposits(a)
	y, errB := layout.DecodeDeposits(b)
	switch {
	case bytes.Equal(a, b), errA == nil && errB != nil:
		return a, nil
	case errB == nil && errA != nil:
		return b, nil
	case errA != nil:
		return slices.MaxFunc([][]byte{a, b}, bytes.Compare), nil
	}
	return x.Join(y).Encode()
}

// joinManifests gives the manifest and its inventory.
func joinManifests(base, a, b ledger.Records) (out ledger.Records, conflicts []string, err error) {
	ra, rb := versionRank(a.Manifest), versionRank(b.Manifest)
	if v := versionOf(a); v != versionOf(b) || v <= versionOf(base) || ra == rb {
		return joinManifestsBefore(base, a, b)
	}
	if ra < rb {
		a, b = b, a
	}
	united, found, err := joinTwins(base.Manifest, a.Manifest, b.Manifest)
	return kept(united, found, err, a, b, base)
}

// joinManifestsBefore is joinManifests as it was when two that were both the next version were joined key by key.
func joinManifestsBefore(base, a, b ledger.Records) (out ledger.Records, conflicts []string, err error) {
	va, vb := versionOf(a), versionOf(b)
	if va < vb {
		a, b = b, a
	}
	switch {
	case bytes.Equal(a.Manifest, b.Manifest), bytes.Equal(b.Manifest, base.Manifest):
		return ledger.Records{Manifest: a.Manifest, Inventory: inventoryOf(a.Manifest, a, b, base)}, nil, nil
	case va == vb && bytes.Equal(a.Manifest, base.Manifest):
		return ledger.Records{Manifest: b.Manifest, Inventory: inventoryOf(b.Manifest, b, a, base)}, nil, nil
	case va != vb:
		united, err := joinVersions(base.Manifest, a.Manifest, b.Manifest)
		return ledger.Records{Manifest: united, Inventory: inventoryOf(united, a, b, base)}, nil, err
	}
	united, found, err := JoinJSON(base.Manifest, a.Manifest, b.Manifest)
	return kept(united, found, err, a, b, base)
}

// kept gives a manifest that keeps what was found in conflict, and its inventory, one of some.
func kept(united []byte, found []Conflict, err error, of ...ledger.Records) (out ledger.Records, conflicts []string, _ error) {
	if err == nil && len(found) > 0 {
		united, err = withConflicts(united, found)
	}
	if err != nil {
		return out, nil, err
	}
	for _, c := range found {
		conflicts = append(conflicts, c.text())
	}
	return ledger.Records{Manifest: united, Inventory: inventoryOf(united, of...)}, conflicts, nil
}

// versionRank orders what may be one version of an item: as state.Join chooses of their workflows, by when they began.
func versionRank(manifest []byte) string {
	var m struct{ Since, Source any }
	d := json.NewDecoder(bytes.NewReader(manifest))
	d.UseNumber()
	if err := d.Decode(&m); err != nil {
		return ""
	}
	since, _ := m.Since.(string)
	return since + "\x00" + valueText(m.Source)
}

// foundInBytes are the members of metadata that robots of this program find in the bytes.
var foundInBytes = []string{"business", "details", "entity", "formats", "signatures", "space", "time", "viruses"}

// joinTwins is the manifest of two that both are the next version of an item: what describes it is joined as ever, and all
// that is of the bytes is as first has it.
func joinTwins(base, first, other []byte) (united []byte, conflicts []Conflict, err error) {
	of, err := decodeSides(base, first, other)
	if err != nil {
		return nil, nil, err
	}
	out := joinMembers("", of[0], of[1], of[2], &conflicts)
	both := append([]string{"originals"}, described...)
	maps.DeleteFunc(out, func(k string, _ any) bool { return !slices.Contains(both, k) })
	for k, v := range of[1] {
		if !slices.Contains(both, k) {
			out[k] = v
		}
	}
	if metadata, is := out["metadata"].(map[string]any); is {
		metadata = maps.Clone(metadata)
		its, _ := of[1]["metadata"].(map[string]any)
		for _, k := range foundInBytes {
			if delete(metadata, k); its[k] != nil {
				metadata[k] = its[k]
			}
		}
		out["metadata"] = metadata
	}
	conflicts = slices.DeleteFunc(conflicts, func(c Conflict) bool {
		words := strings.SplitN(c.Key, ".", 3)
		return !slices.Contains(described, words[0]) || words[0] == "metadata" && len(words) > 1 && slices.Contains(foundInBytes, words[1])
	})
	key := "source"
	if reflect.DeepEqual(of[1][key], of[2][key]) {
		key = "since"
	}
	united, err = layout.EncodeJSON(out)
	return united, append(conflicts, Conflict{key, of[1][key], of[2][key]}), err
}

// described are the members of a manifest that people change, whatever the version.
var described = []string{"collection", "label", "lane", "metadata", "identifiers", layout.ManifestConflicts}

// joinVersions is the manifest of a later version, with what describes the item on the other side alone.
func joinVersions(base, later, other []byte) ([]byte, error) {
	of, err := decodeSides(base, later, other)
	if err != nil {
		return nil, err
	}
	out := maps.Clone(of[1])
	for _, key := range described {
		only := func(m map[string]any) map[string]any {
			if v, there := m[key]; there {
				return map[string]any{key: v}
			}
			return nil
		}
		delete(out, key)
		maps.Copy(out, joinMembers("", only(of[0]), only(of[1]), only(of[2]), nil))
	}
	if reflect.DeepEqual(out, of[1]) {
		return later, nil
	}
	return layout.EncodeJSON(out)
}

// versionOf is the version of an item by its manifest; 0: it cannot be read.
func versionOf(f ledger.Records) int {
	m, err := layout.DecodeManifest(f.Manifest)
	if err != nil {
		return 0
	}
	return m.Version
}

// inventoryOf is that of some which a manifest names; else the first.
func inventoryOf(manifest []byte, of ...ledger.Records) []byte {
	m, err := layout.DecodeManifest(manifest)
	if err == nil && m.Inventory != nil {
		for _, r := range of {
			if r.Inventory != nil && ledger.DigestOf(r.Inventory) == m.Inventory.Digest {
				return r.Inventory
			}
		}
	}
	return of[0].Inventory
}

// Conflict is a key that two histories gave values that differ; nil: it was removed.
type Conflict struct {
	Key           string // with dots between the keys of objects within one another
	Taken, Beside any
}

func (c Conflict) text() string {
	return fmt.Sprintf("%s is %s, and %s on the other side", c.Key, ledger.Clip(valueText(c.Taken), 200), ledger.Clip(valueText(c.Beside), 200))
}

// JoinJSON unites two objects key by key, three-way, also within objects; conflicts are, in
// order, the keys that both changed.
func JoinJSON(base, a, b []byte) (united []byte, conflicts []Conflict, err error) {
	of, err := decodeSides(base, a, b)
	if err != nil {
		return nil, nil, err
	}
	united, err = layout.EncodeJSON(joinMembers("", of[0], of[1], of[2], &conflicts))
	return united, conflicts, err
}

func decodeSides(sides ...[]byte) (of [3]map[string]any, err error) {
	for i, data := range sides {
		if len(data) == 0 {
			continue
		}
		d := json.NewDecoder(bytes.NewReader(data))
		d.UseNumber()
		if err := d.Decode(&of[i]); err != nil {
			return of, fmt.Errorf("join: %w", err)
		}
	}
	return of, nil
}

// joinMembers unites objects; where both changed a key, and nobody asks for the conflicts, a's value is taken.
func joinMembers(under string, base, a, b map[string]any, conflicts *[]Conflict) map[string]any {
	out := map[string]any{}
	all := maps.Clone(a)
	if all == nil {
		all = map[string]any{}
	}
	maps.Copy(all, b)
	for _, k := range slices.Sorted(maps.Keys(all)) {
		was, is, other := base[k], a[k], b[k]
		v := is
		switch {
		case reflect.DeepEqual(is, other), reflect.DeepEqual(other, was):
		case reflect.DeepEqual(is, was):
			v = other
		default:
			v = joinValues(under+k, was, is, other, conflicts)
		}
		if v != nil {
			out[k] = v
		}
	}
	return out
}

func joinValues(name string, was, a, b any, conflicts *[]Conflict) any {
	x, isX := a.(map[string]any)
	y, isY := b.(map[string]any)
	if strings.HasPrefix(name, layout.ManifestConflicts+".") {
		return uniteValues(a, b)
	}
	if isX && isY && !slices.Contains(whole, name) {
		of, _ := was.(map[string]any)
		return joinMembers(name+".", of, x, y, conflicts)
	}
	if conflicts == nil {
		return a
	}
	if rank(a) < rank(b) {
		a, b = b, a
	}
	*conflicts = append(*conflicts, Conflict{name, a, b})
	return a
}

// whole are the members of a manifest that are one value: half of each of two inventories is
// none.
var whole = []string{"inventory", "source", "recognition", "parent"}

// rank orders values: of two the greater is taken, as of two inventories the one with the
// greater digest.
func rank(v any) string {
	text := valueText(v)
	if of, is := v.(map[string]any); is {
		if digest, is := of["digest"].(string); is {
			return digest + " " + text
		}
	}
	return text
}

func valueText(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return ""
	}
	return string(text)
}

// uniteValues is the union of two lists, in a fixed order; one that was settled on one side
// comes back where the other added to it.
func uniteValues(a, b any) any {
	x, _ := a.([]any)
	y, _ := b.([]any)
	all := slices.Concat(x, y)
	slices.SortFunc(all, func(a, b any) int { return strings.Compare(valueText(a), valueText(b)) })
	return slices.CompactFunc(all, func(a, b any) bool { return valueText(a) == valueText(b) })
}

// withConflicts keeps in a manifest all values of the keys that are in conflict.
func withConflicts(manifest []byte, found []Conflict) ([]byte, error) {
	var m map[string]any
	d := json.NewDecoder(bytes.NewReader(manifest))
	d.UseNumber()
	if err := d.Decode(&m); err != nil {
		return nil, fmt.Errorf("join: %w", err)
	}
	kept, _ := m[layout.ManifestConflicts].(map[string]any)
	if kept == nil {
		kept = map[string]any{}
		m[layout.ManifestConflicts] = kept
	}
	for _, c := range found {
		kept[c.Key] = uniteValues(kept[c.Key], []any{c.Taken, c.Beside})
	}
	return layout.EncodeJSON(m)
}

// heldFor is the text of a hold for values that two histories gave.
func heldFor(conflicts []string) string {
	return state.HeldByConflict + strings.Join(conflicts, "; ") + ". Choose one of the values, or push what is right and release the item."
}

// unsettled says which values of a manifest wait for somebody to choose though nothing holds the item; "": none.
func unsettled(now ledger.Records) string {
	keys, values := layout.Conflicts(now.Manifest)
	if len(keys) == 0 || now.Retired != (layout.Standing{}) || tombstone(now.Manifest) != nil {
		return ""
	}
	if x, err := state.Decode(now.Execution); err != nil || len(x.Holds()) > 0 {
		return ""
	}
	var said []string
	for _, key := range keys {
		var of []string
		for _, v := range values[key] {
			of = append(of, ledger.Clip(string(v), 200))
		}
		said = append(said, key+" is "+strings.Join(of, " or "))
	}
	return ledger.Printable(ledger.OneLine(strings.Join(said, "; "), 1500))
}

// holdFor adds a hold that any join of two makes alike, of which a and b are what they differ in.
func holdFor(x *state.Execution, a, b, text string) error {
	pair := []string{a, b}
	slices.Sort(pair)
	sum := sha256.Sum256([]byte(strings.Join(pair, "\x00")))
	key, err := layout.NewIntentKey(lastTime(x), bytes.NewReader(sum[4:]), layout.EngineID(hex.EncodeToString(sum[:4])))
	if err != nil {
		return err
	}
	_, err = state.Apply(x, nil, state.Hold{Key: key, At: lastTime(x), By: "bagpipe join", Text: ledger.Clip(text, ledger.MaxMessage), Answers: hex.EncodeToString(sum[:20])})
	return err
}

// lastTime is the last that a record tells of.
func lastTime(x *state.Execution) (last time.Time) {
	note := func(t time.Time) {
		if t.After(last) {
			last = t
		}
	}
	for _, i := range x.Intents {
		note(i.At)
	}
	for _, w := range x.Workflows {
		note(w.Created)
		for _, s := range w.Steps {
			for _, a := range s.Attempts {
				note(a.Claimed)
				note(a.Ended)
			}
		}
	}
	return last
}
