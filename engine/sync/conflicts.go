package sync

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"bagpipe/engine/fault"
	"bagpipe/engine/gitstore"
	"bagpipe/engine/ledger"
	"bagpipe/engine/state"
	"bagpipe/layout"
)

// Conflict is one key of an item's manifest that two histories gave values that differ.
type Conflict struct {
	Item       layout.ItemID     `json:"item"`
	Collection layout.Name       `json:"collection"`
	Label      string            `json:"label"`
	Key        string            `json:"key"`
	Values     []json.RawMessage `json:"values"` // null: it was removed
	InForce    json.RawMessage   `json:"inForce"`
}

// Conflicts lists those of an item, by key.
func (s *Syncer) Conflicts(id layout.ItemID) ([]Conflict, error) {
	v, err := s.ledger.Store.Tip()
	if err != nil {
		return nil, err
	}
	data, err := ledger.ReadOptional(v, layout.ItemDir(id)+"/"+layout.ManifestJSON)
	if err != nil || data == nil {
		return nil, err
	}
	m, head, kept, err := conflictsOf(data)
	if err != nil {
		return nil, nil // such an item is held, and says why
	}
	var all []Conflict
	for _, key := range slices.Sorted(maps.Keys(kept)) {
		c := Conflict{Item: id, Collection: head.Collection, Label: head.Label, Key: key}
		values, _ := kept[key].([]any)
		for _, value := range values {
			text, err := json.Marshal(value)
			if err != nil {
				return nil, err
			}
			c.Values = append(c.Values, text)
		}
		in, last := walk(m, key)
		if c.InForce, err = json.Marshal(in[last]); err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	return all, nil
}

func conflictsOf(manifest []byte) (m map[string]any, head layout.Manifest, kept map[string]any, err error) {
	if head, err = layout.DecodeManifest(manifest); err != nil {
		return nil, head, nil, err
	}
	d := json.NewDecoder(bytes.NewReader(manifest))
	d.UseNumber()
	err = d.Decode(&m)
	kept, _ = m[layout.ManifestConflicts].(map[string]any)
	return m, head, kept, err
}

// walk finds the object that a key with dots ends in, and the last word of it; a key that has
// dots itself goes before.
func walk(m map[string]any, key string) (in map[string]any, last string) {
	for {
		if _, there := m[key]; there {
			return m, key
		}
		word, rest, deeper := strings.Cut(key, ".")
		next, is := m[word].(map[string]any)
		if !deeper || !is {
			return m, key
		}
		m, key = next, rest
	}
}

// chosen are the members of a manifest whose values a person may choose: the others say what
// the item is.
var chosen = []string{"label", "lane", "collection", "identifiers", "metadata"}

// Choose settles a conflict by its n-th value, counted from 1. With the last of an item's
// conflicts the holds of joins end, which left reports.
func (s *Syncer) Choose(ctx context.Context, id layout.ItemID, key string, n int, why string) (left int, err error) {
	who := s.ledger.ByPerson()
	if err := s.guard.LookAtFew(ctx); err != nil {
		return 0, err
	}
	err = s.ledger.Transact(ctx, id, func(r gitstore.Reader) (*gitstore.Change, error) {
		path := layout.ItemDir(id) + "/" + layout.ManifestJSON
		data, err := r.ReadFile(path)
		if err != nil {
			return nil, ledger.NoRecords(r, id)
		}
		m, head, kept, err := conflictsOf(data)
		if err != nil {
			return nil, err
		}
		values, _ := kept[key].([]any)
		in, last := walk(m, key)
		switch {
		case values == nil:
			return nil, fault.New(fault.NotFound, fmt.Sprintf("item %s has no conflict of %s", id.Short(), key))
		case n < 1 || n > len(values):
			return nil, fault.New(fault.Invalid, fmt.Sprintf("%s has %d values; give a number from 1 to %d", key, len(values), len(values)))
		case !slices.Contains(chosen, strings.Split(key, ".")[0]) && string(mustText(values[n-1])) != string(mustText(in[last])):
			return nil, notOther(id, key, head.Version)
		case values[n-1] == nil:
			delete(in, last)
		default:
			in[last] = values[n-1]
		}
		if delete(kept, key); len(kept) == 0 {
			delete(m, layout.ManifestConflicts)
		}
		left = len(kept)
		data, err = layout.EncodeJSON(m)
		message := ledger.Message("set: "+key+" "+string(id)+" ("+string(head.Collection)+"/"+ledger.Clip(head.Label, 100)+")", why,
			[]ledger.Trailer{{"Bagpipe-Item", string(id)}, {"Bagpipe-Set", key}, {"Bagpipe-Agent", who.Agent}})
		return &gitstore.Change{Files: map[string][]byte{path: data}, Author: who.Author, Message: who.Sign(message)}, err
	})
	return left, err
}

// notOther refuses a value that says what an item is, and which its bytes in force are not.
func notOther(id layout.ItemID, key string, version int) error {
	if key != "source" {
		return fault.New(fault.Refused, fmt.Sprintf("%s says what the item is; the value in force stands", key))
	}
	return fault.New(fault.Refused, fmt.Sprintf("two sites made a version %d of item %s; the source in force stands, with all that was found in its bytes. "+
		"The others are still in the item's folder of the site that took them in, and can be its next version, once that in force is chosen", version, id.Short()),
		fault.Remedy{Verb: fault.AddVersion, Item: id})
}

func mustText(v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		return nil
	}
	return text
}

// HeldByJoins reports whether an item is held, and only by joins or for what they left in conflict.
func (s *Syncer) HeldByJoins(id layout.ItemID) (bool, error) {
	_, rec, err := s.ledger.ReadTip(id, "")
	if err != nil {
		return false, err
	}
	holds := rec.Execution.Holds()
	other := slices.ContainsFunc(holds, func(k layout.IntentKey) bool {
		in := rec.Execution.Intents[k]
		return in.By != guardJoiner && !strings.HasPrefix(in.Text, state.HeldByConflict)
	})
	return len(holds) > 0 && !other, nil
}

const guardJoiner = "bagpipe join"
