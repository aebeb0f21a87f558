package query

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/tidwall/gjson"
)

// Bounds is where the item's footprint lies.
func Bounds(manifest []byte) (b Box, ok bool) {
	bounds := gjson.GetBytes(manifest, "metadata.space.wgs84.bounds").Array()
	if len(bounds) != len(b) {
		return b, false
	}
	for i, n := range bounds {
		if n.Type != gjson.Number || math.IsNaN(n.Num) {
			return b, false
		}
		b[i] = n.Num
	}
	return b, b.OnEarth()
}

// Time is when the item is from.
func Time(manifest []byte) (s Span, ok bool) {
	at := gjson.GetBytes(manifest, "metadata.time")
	start, end := text(at.Get("start")), text(at.Get("end"))
	first, whole, ok := Period(cmp.Or(start, end))
	if !ok {
		return s, false
	}
	s = Span{first, whole}
	if end != "" {
		if _, last, is := Period(end); is && !last.Before(first) {
			s.End = last
		}
	}
	return s, true
}

// text is a text, or a year that was written as a number.
func text(v gjson.Result) string {
	if v.Type == gjson.String || v.Type == gjson.Number {
		return strings.TrimSpace(v.String())
	}
	return ""
}

// Tags are the item's, sorted: TAG, or KIND:TAG of those that stand by kind.
func Tags(manifest []byte) (tags []string) {
	all := gjson.GetBytes(manifest, "metadata.tags")
	collect := func(kind string, v gjson.Result) {
		for _, tag := range v.Array() {
			if t := text(tag); t != "" {
				tags = append(tags, kind+t)
			}
		}
	}
	if !all.IsObject() {
		collect("", all)
	} else {
		all.ForEach(func(kind, v gjson.Result) bool {
			collect(kind.Str+":", v)
			return true
		})
	}
	slices.Sort(tags)
	return slices.Compact(tags)
}

// TagFits reports whether a tag that is asked for, TAG or KIND:TAG, is that of an item.
func TagFits(asked, tag string) bool {
	a, t := TagKey(asked), TagKey(tag)
	if a == t {
		return true
	}
	_, without, kinds := strings.Cut(t, ":")
	return kinds && a == without
}

// TagKey is a tag as it is compared.
func TagKey(tag string) string {
	kind, rest, kinds := strings.Cut(tag, ":")
	if !kinds {
		return strings.Join(Words(tag), " ")
	}
	return strings.Join(Words(kind), " ") + ":" + strings.Join(Words(rest), " ")
}
