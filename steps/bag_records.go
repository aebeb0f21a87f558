package steps

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"bagpipe/bags"
	"bagpipe/bags/tagfile"
	"bagpipe/layout"
	"bagpipe/steps/target"
)

// addMapped puts what the collection's mapping says into a bag that is to be made.
func addMapped(c *Call, o *bags.CreateOptions) error {
	if c.Bag == nil {
		return nil
	}
	info := c.Bag.InfoOf(c.Manifest)
	o.Info = slices.DeleteFunc(o.Info, func(f tagfile.Field) bool { return hasLabel(info, f.Label) })
	o.Info = append(o.Info, info...)
	more, err := c.Bag.TagFilesOf(c.Manifest)
	o.TagFiles = append(o.TagFiles, more...)
	return err
}

// addRecords makes the item's records, as they are before the deposit, tag files of its bag:
// from them a workspace is filled again by the bag alone. without reports whether a profile
// does not allow them.
func addRecords(c *Call, o *bags.CreateOptions) (without bool) {
	for _, p := range o.Profiles {
		without = without || !p.AllowsTagFile(target.RecordsPrefix+layout.ManifestJSON)
	}
	if without {
		return true
	}
	add := func(name string, data []byte) {
		if data != nil {
			o.TagFiles = append(o.TagFiles, bags.TagFile{Path: target.RecordsPrefix + name, Data: data})
		}
	}
	add(layout.ManifestJSON, c.Manifest)
	add(layout.InventoryJSON, c.Inventory)
	add(layout.ExecutionJSON, c.Execution)
	for digest, plan := range c.Plans {
		add(layout.PinnedPath(digest), plan)
	}
	if c.Premis != nil { // a large inventory makes it too large for memory
		o.TagFiles = append(o.TagFiles, bags.TagFile{Path: target.RecordsPrefix + target.PremisFile, Write: c.Premis})
	}
	return false
}

// WhereInBag gives where the files of an object stand in its bag: below data/ or, of an object
// that is a bag itself or holds one, as arrange put them; false where they are not all there.
func WhereInBag(bag string, names []string) (at func(string) string, is bool) {
	ways := []func(string) string{func(name string) string { return payloadPrefix + name }}
	if _, err := os.Lstat(filepath.Join(bag, filepath.FromSlash(receivedPrefix), tagfile.DeclarationFile)); err == nil {
		ways = nil
		var prefixes []string
		for _, name := range names {
			if prefix, is := strings.CutSuffix(name, tagfile.DeclarationFile); is && (prefix == "" || strings.HasSuffix(prefix, "/")) {
				prefixes = append(prefixes, prefix)
			}
		}
		slices.SortStableFunc(prefixes, func(a, b string) int { return cmp.Compare(len(a), len(b)) })
		for _, prefix := range prefixes {
			ways = append(ways, received(prefix))
		}
	}
	for _, way := range ways {
		if !slices.ContainsFunc(names, func(name string) bool {
			_, err := os.Lstat(filepath.Join(bag, filepath.FromSlash(way(name))))
			return err != nil
		}) {
			return way, true
		}
	}
	return nil, false
}

// received is where files stand of an object whose bag lay at prefix.
func received(prefix string) func(string) string {
	return func(name string) string {
		rel, in := strings.CutPrefix(name, prefix)
		switch {
		case !in:
			return outsidePrefix + name
		case strings.HasPrefix(rel, payloadPrefix):
			return rel
		}
		return receivedPrefix + rel
	}
}
