package layout

import (
	"bytes"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/tidwall/gjson"
)

// ManifestHead reads of manifest.json what says which item it is and where it belongs,
// and leaves the rest out: a fraction of the work. ok is false unless DecodeManifest
// says the same; so of parents, of keys that are not known, which may be another
// spelling of one that is, and of texts with \u.
func ManifestHead(data []byte) (m Manifest, ok bool) {
	if !utf8.Valid(data) || bytes.Contains(data, []byte(`\u`)) || !gjson.ValidBytes(data) {
		return m, false
	}
	ok = members(gjson.ParseBytes(data), func(key string, v gjson.Result) bool {
		switch key {
		case "schema":
			return readInt(&m.Schema, v) && m.Schema <= manifestSchema
		case "item":
			_, err := ParseItemID(v.Str)
			m.Item = ItemID(v.Str)
			return err == nil
		case "version":
			return readInt(&m.Version, v)
		case "collection":
			return readText(&m.Collection, v)
		case "label":
			return readText(&m.Label, v)
		case "lane":
			return readText(&m.Lane, v)
		case "batch":
			return readText(&m.Batch, v)
		case "created":
			return readTime(&m.Created, v)
		case "since":
			return readTime(&m.Since, v)
		case "type":
			return readText(&m.Type, v)
		case "identifiers":
			m.Identifiers = map[string]string{}
			return members(v, func(key string, v gjson.Result) bool { m.Identifiers[key] = v.Str; return isText(v) })
		case "metadata":
			return v.IsObject()
		}
		return key == "recognition" && isRecognition(v) || (key == "source" || key == "inventory") && isSource(v)
	})
	return m, ok && m.Item != ""
}

// members asks is of each member of an object; false where one is not, or comes twice.
func members(v gjson.Result, is func(key string, v gjson.Result) bool) bool {
	ok, before := v.IsObject(), ""
	v.ForEach(func(k, v gjson.Result) bool {
		ok = ok && k.Str > before && is(k.Str, v)
		before = k.Str
		return ok
	})
	return ok
}

func isText(v gjson.Result) bool { return v.Type == gjson.String }

func readText[T ~string](to *T, v gjson.Result) bool {
	*to = T(v.Str)
	return isText(v)
}

func readInt(n *int, v gjson.Result) bool {
	var err error
	*n, err = strconv.Atoi(v.Raw)
	return err == nil
}

func readTime(t *time.Time, v gjson.Result) bool {
	return isText(v) && t.UnmarshalText([]byte(v.Str)) == nil
}

// isSource reports whether source, or inventory, can be read.
func isSource(v gjson.Result) bool {
	return members(v, func(key string, v gjson.Result) bool {
		switch key {
		case "files", "bytes":
			var n int
			return readInt(&n, v)
		case "taken":
			var t time.Time
			return readTime(&t, v)
		case "name", "kind", "digest", "by", "rule", "duplicateOf", "drop":
			return isText(v)
		}
		return false
	})
}

// isRecognition reports whether recognition can be read.
func isRecognition(v gjson.Result) bool {
	return members(v, func(key string, v gjson.Result) bool {
		switch key {
		case "verdict", "rule":
			return isText(v)
		case "tried":
			return members(v, func(_ string, v gjson.Result) bool { return isText(v) })
		case "more":
			var n int
			return readInt(&n, v)
		}
		return false
	})
}
