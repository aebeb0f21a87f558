package screen

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// Metadata reads what --metadata KEY=VALUE gives. KEY is a path, as conditions have it: names with dots between them, \. for
// a dot in a name. A VALUE that is JSON is taken as such, and empty for one that is not there.
func Metadata(given map[string]string, empty any) map[string]any {
	all := map[string]any{}
	for _, key := range slices.Sorted(maps.Keys(given)) {
		value := empty
		if text := given[key]; text != "" && json.Unmarshal([]byte(text), &value) != nil {
			value = text
		}
		names := strings.Split(strings.ReplaceAll(key, `\.`, "\x00"), ".")
		at := all
		for i, name := range names {
			name = strings.ReplaceAll(name, "\x00", ".")
			if i == len(names)-1 {
				at[name] = value
				break
			}
			below, is := at[name].(map[string]any)
			if !is {
				below = map[string]any{}
				at[name] = below
			}
			at = below
		}
	}
	return all
}
