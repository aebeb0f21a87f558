package steps

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"bagpipe/layout"
)

// tagObject brings metadata.tags up to date: the tags that vocabularies, time and places give,
// and those that stood there which it did not give itself. What it gave is metadata.tagged, so
// that a tag goes that holds no more, and one that a person wrote stays.
func tagObject(ctx context.Context, c *Call) (Result, error) {
	var given map[string][]string
	if c.Tags != nil {
		var err error
		if given, err = c.Tags(ctx); err != nil {
			return Result{}, err
		}
	}
	var m struct {
		Metadata struct {
			Tags   any                 `json:"tags"`
			Tagged map[string][]string `json:"tagged"`
		} `json:"metadata"`
	}
	if err := json.Unmarshal(c.Manifest, &m); err != nil {
		return Result{}, fmt.Errorf("read the manifest: %w", err)
	}
	all := map[string]any{}
	for kind, tags := range tagsByKind(m.Metadata.Tags) {
		if all[kind] = any(nil); len(without(tags, m.Metadata.Tagged[kind])) > 0 {
			all[kind] = without(tags, m.Metadata.Tagged[kind])
		}
	}
	said, n := map[string]any{}, 0
	for kind := range m.Metadata.Tagged {
		said[kind] = nil
	}
	for kind, tags := range given {
		n += len(tags)
		said[kind] = tags
		kept, _ := all[kind].([]string)
		kept = append(slices.Clone(kept), tags...)
		slices.Sort(kept)
		all[kind] = slices.Compact(kept)
	}
	return Result{Message: layout.Count(n, "tag"), Metadata: map[string]any{"tags": someOf(all), "tagged": someOf(said)}}, nil
}

// someOf is nil where every value is, so that the whole member goes.
func someOf(m map[string]any) any {
	for _, v := range m {
		if v != nil {
			return m
		}
	}
	return nil
}

// otherTags is the kind of tags that stand in a list, by no kind.
const otherTags = "other"

// tagsByKind are the tags of a manifest: a list of them, or lists by kind.
func tagsByKind(v any) map[string][]string {
	by := map[string][]string{}
	switch v := v.(type) {
	case map[string]any:
		for kind, some := range v {
			by[kind] = texts(some)
		}
	case nil:
	default:
		by[otherTags] = texts(v)
	}
	return by
}

func texts(v any) (all []string) {
	switch v := v.(type) {
	case nil:
	case []any:
		for _, one := range v {
			all = append(all, texts(one)...)
		}
	default:
		if text := strings.TrimSpace(fmt.Sprint(v)); text != "" {
			all = append(all, text)
		}
	}
	return all
}

func without(some, these []string) []string {
	return slices.DeleteFunc(slices.Clone(some), func(tag string) bool { return slices.Contains(these, tag) })
}
