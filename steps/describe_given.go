package steps

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"reflect"

	"bagpipe/steps/describe"
)

// describedKey is the member of the metadata that notes which values below business, time and space the robot wrote:
// of each a digest, as a footprint is long.
const describedKey = "described"

// keepGiven joins what the files say with the business, time and space that people and side-cars gave: those stay. What the
// robot noted in metadata.described is its own, so that it goes where the files say it no more.
func keepGiven(c *Call, o *describe.Object, now map[string]any) error {
	var m struct {
		Metadata map[string]any `json:"metadata"`
	}
	if err := json.Unmarshal(c.Manifest, &m); err != nil {
		return fmt.Errorf("read the manifest: %w", err)
	}
	noted, _ := m.Metadata[describedKey].(map[string]any)
	marks := map[string]any{}
	for _, key := range []string{"time", "space"} {
		now[key], marks[key] = settle(o, key, m.Metadata[key], noted[key], now[key])
	}
	was, isMap := m.Metadata["business"].(map[string]any)
	if said, _ := now["business"].(map[string]any); isMap || m.Metadata["business"] == nil {
		marked, _ := noted["business"].(map[string]any)
		business, mark := map[string]any{}, map[string]any{}
		for _, of := range []map[string]any{was, said} {
			for key := range of {
				if _, done := business[key]; !done {
					business[key], mark[key] = settle(o, "business."+key, was[key], marked[key], said[key])
				}
			}
		}
		now["business"], marks["business"] = withoutNil(business), withoutNil(mark)
	} else {
		now["business"], marks["business"] = settle(o, "business", m.Metadata["business"], nil, now["business"])
	}
	now[describedKey] = withoutNil(marks)
	return nil
}

// settle gives the value of one member, and the digests of what of it the files alone say. What others gave counts as a
// whole: half a footprint of theirs and half of the files' would be neither.
func settle(o *describe.Object, key string, was, noted, said any) (now, marks any) {
	given := notOf(was, noted, func(v, mark any) bool { return mark == digestOfValue(v) })
	switch {
	case given == nil:
		return said, marksOf(said)
	case said == nil:
		return given, nil
	case notOf(given, said, reflect.DeepEqual) == nil:
		return said, marksOf(notOf(said, given, reflect.DeepEqual))
	}
	o.Warnings = append(o.Warnings, fmt.Sprintf("metadata.%s was given as %s and stays, though the files say %s", key, inShort(given), inShort(said)))
	return given, nil
}

// notOf gives what of a value is not the other, member by member; nil: nothing.
func notOf(v, other any, same func(v, other any) bool) any {
	m, isMap := v.(map[string]any)
	if !isMap {
		if v == nil || same(v, other) {
			return nil
		}
		return v
	}
	others, _ := other.(map[string]any)
	out := map[string]any{}
	for key, one := range m {
		out[key] = notOf(one, others[key], same)
	}
	return withoutNil(out)
}

// marksOf gives the digests of a value's members.
func marksOf(v any) any {
	m, isMap := v.(map[string]any)
	if !isMap {
		if v == nil {
			return nil
		}
		return digestOfValue(v)
	}
	out := map[string]any{}
	for key, one := range m {
		out[key] = marksOf(one)
	}
	return withoutNil(out)
}

// digestOfValue tells two values of the same member apart.
func digestOfValue(v any) string {
	data, _ := json.Marshal(v) // it came out of JSON
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:6])
}

// withoutNil is a map without its empty members; nil where none is left.
func withoutNil(m map[string]any) any {
	out := map[string]any{}
	for key, v := range m {
		if v != nil {
			out[key] = v
		}
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

func inShort(v any) string {
	if m, ok := v.(map[string]any); ok {
		if wgs84, ok := m["wgs84"].(map[string]any); ok && wgs84["bounds"] != nil {
			v = map[string]any{"bounds": wgs84["bounds"]} // the outline is long
		}
	}
	data, _ := json.Marshal(v) // it came out of JSON
	return clip(string(data), 200)
}
