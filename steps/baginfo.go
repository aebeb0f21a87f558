package steps

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"bagpipe/bags/tagfile"
)

// infoLabels are the labels of RFC 8493, 2.2.2, in its order, that describe what
// is in a bag rather than the bag. Metadata under one of these keys goes into
// bag-info.txt. single labels should stand there once.
var infoLabels = []struct {
	name   string
	single bool
}{
	{"Source-Organization", false}, {"Organization-Address", false}, {"Contact-Name", false}, {"Contact-Phone", false},
	{"Contact-Email", false}, {"External-Description", false}, {"External-Identifier", false}, {"Bag-Group-Identifier", true},
	{"Bag-Count", true}, {"Internal-Sender-Identifier", false}, {"Internal-Sender-Description", false},
}

// bagInfo is the item's identifier and label, then its metadata, then what the
// received bag said. A line that is there already is not repeated; a label that
// should stand once is the first one's.
func bagInfo(c *Call, metadata map[string]any, received []tagfile.Field) []tagfile.Field {
	fields := []tagfile.Field{
		{Label: "External-Identifier", Value: string(c.Item)},
		{Label: "Internal-Sender-Identifier", Value: c.Label},
	}
	if version, err := c.version(); err == nil && version > 1 {
		fields = append(fields, tagfile.Field{Label: "Item-Version", Value: strconv.Itoa(version)})
	}
	more := append(metadataFields(metadata), received...)
	for _, f := range more {
		if f.Check() != nil || f.Value == "" || slices.Contains(fields, f) || isSingle(f.Label) && hasLabel(fields, f.Label) {
			continue
		}
		fields = append(fields, f)
	}
	return fields
}

func metadataFields(metadata map[string]any) (fields []tagfile.Field) {
	for _, l := range infoLabels {
		for _, key := range slices.Sorted(maps.Keys(metadata)) {
			if !strings.EqualFold(key, l.name) {
				continue
			}
			for _, v := range values(metadata[key]) {
				fields = append(fields, tagfile.Field{Label: l.name, Value: v})
			}
		}
	}
	return fields
}

// values takes a text or number, or a list of them.
func values(v any) []string {
	switch v := v.(type) {
	case nil, map[string]any:
		return nil
	case string:
		return []string{v}
	case []any:
		var all []string
		for _, e := range v {
			all = append(all, values(e)...)
		}
		return all
	}
	return []string{fmt.Sprint(v)}
}

func isSingle(label string) bool {
	for _, l := range infoLabels {
		if l.single && strings.EqualFold(l.name, label) {
			return true
		}
	}
	return false
}

func hasLabel(fields []tagfile.Field, label string) bool {
	return slices.ContainsFunc(fields, func(f tagfile.Field) bool { return strings.EqualFold(f.Label, label) })
}
