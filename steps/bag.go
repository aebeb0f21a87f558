package steps

import (
	"cmp"
	"context"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"bagpipe/bags"
	"bagpipe/bags/files"
	"bagpipe/bags/tagfile"
	"bagpipe/layout"
	"bagpipe/steps/target"
)

const (
	bagOut = "bag" // a folder in scratch that holds the bag's folder

	// A received bag's own tag files, and what stood beside that bag, are kept as
	// tag files under these.
	receivedPrefix = "received/"
	outsidePrefix  = "outside/"
	payloadPrefix  = "data/"
)

// bag makes the object a BagIt 1.0 bag. Its payload is the content; when that is
// a bag itself, its payload stays the payload (a bag is not bagged again), and
// its tag files and bag-info labels are kept. Every byte is compared with the
// inventory, and the bag must satisfy the collection's BagIt profiles.
func bag(ctx context.Context, c *Call) (Result, error) {
	o, err := bagOptions(c)
	if err != nil {
		return Result{}, err
	}
	tree, err := object(ctx, c)
	if err != nil {
		return Result{}, failure(err)
	}
	if err := tree.CheckRegular(); err != nil {
		return Result{}, failure(err)
	}
	known, err := inventoryOf(c, tree)
	if err != nil {
		return Result{}, err
	}
	received, err := arrange(ctx, c, tree, known, &o)
	if err != nil {
		return Result{}, failure(err)
	}
	m, err := c.manifest()
	if err != nil {
		return Result{}, err
	}
	o.Info = bagInfo(c, m.Metadata, received)
	if err := addMapped(c, &o); err != nil {
		return Result{}, failure(err)
	}
	without := addRecords(c, &o)
	if err := os.Mkdir(filepath.Join(c.Scratch, bagOut), 0o755); err != nil {
		return Result{}, failure(err)
	}
	o.Dest = filepath.Join(c.Scratch, bagOut, string(c.Item))
	made, err := bags.CreatePrivate(ctx, o)
	if err != nil {
		return Result{}, failure(err)
	}
	for _, p := range made.EmptyFolders {
		c.logf("warning: %s: an empty folder: it is in data/, and in no manifest", layout.EncodePath(p))
	}
	message := fmt.Sprintf("BagIt 1.0: %s, %s", layout.Count(made.Files, "file"), layout.Count(made.Bytes, "byte"))
	if n := len(made.EmptyFolders); n > 0 {
		message += fmt.Sprintf("; with a warning: %s in data/ and in no manifest, first: %s", layout.Count(n, "empty folder"), layout.EncodePath(made.EmptyFolders[0]))
	}
	if without {
		message += "; without Bagpipe's records, which a profile does not allow"
	}
	return Result{
		Message: message,
		Outputs: []Output{{From: bagOut, To: layout.DerivedDir + "/bag"}},
	}, nil
}

func algorithmsParam(with map[string]any) (all []files.Algorithm, err error) {
	names, err := stringsParam(with, "algorithms")
	for _, n := range names {
		a := files.Algorithm(n)
		if !a.Known() {
			return nil, wrongParam("algorithms", "%q is not known; want md5, sha1, sha224, sha256, sha384 or sha512", n)
		}
		all = append(all, a)
	}
	return all, err
}

func bagOptions(c *Call) (bags.CreateOptions, error) {
	o := bags.CreateOptions{Date: c.Now(), Agent: strings.TrimSpace("Bagpipe " + c.Version), Link: c.mayLink(), Nest: true, Progress: c.progress()}
	var err error
	if o.Algorithms, err = algorithmsParam(c.With); err != nil {
		return o, err
	}
	if o.Profiles, err = c.profiles(); err != nil {
		return o, err
	}
	if len(o.Algorithms) == 0 && len(o.Profiles) > 0 {
		o.Algorithms = o.Profiles[0].Algorithms([]files.Algorithm{files.SHA256, files.SHA512})
	}
	return o, nil
}

// inventoryOf gives the committed inventory, after comparing its list of files
// with what is there. Without an inventory step there is none.
func inventoryOf(c *Call, t *files.Tree) (map[string]*files.Sums, error) {
	if c.Inventory == nil {
		return nil, nil
	}
	v, err := layout.DecodeInventory(c.Inventory)
	if err != nil {
		return nil, err
	}
	known := make(map[string]*files.Sums, len(v.Files))
	for i := range t.Files {
		p := layout.EncodePath(t.Files[i].Path)
		f, ok := v.Files[p]
		if !ok {
			return nil, ContentFailure("%s: fixity: in the content and not in the inventory", p)
		}
		if known[t.Files[i].Path], err = sumsOf(f); err != nil {
			return nil, SystemFailure("inventory of %s: %w", p, err)
		}
	}
	if len(known) == len(v.Files) {
		return known, nil
	}
	for p := range v.Files {
		raw, err := layout.DecodePath(p)
		if err != nil || known[raw] == nil {
			return nil, ContentFailure("%s: fixity: in the inventory and not in the content", p)
		}
	}
	return known, nil
}

func sumsOf(f layout.InventoryFile) (*files.Sums, error) {
	var s files.Sums
	for a, text := range map[files.Algorithm]string{files.SHA256: f.SHA256, files.SHA512: f.SHA512} {
		sum, err := hex.DecodeString(text)
		if err != nil || len(sum) != a.Size() {
			return nil, fmt.Errorf("%s %q is no digest", a, text)
		}
		s.Set(a, sum)
	}
	return &s, nil
}

// arrange says what becomes payload and what becomes tag files, and gives the
// received bag-info.
func arrange(ctx context.Context, c *Call, t *files.Tree, known map[string]*files.Sums, o *bags.CreateOptions) ([]tagfile.Field, error) {
	dir, isBag, err := findBag(c)
	if err != nil {
		return nil, err
	}
	if !isBag {
		o.Payload = t.Dir
		o.Known = func(p string) *files.Sums { return known[p] }
		if t.Dir != c.Content { // a loose file that was never unpacked
			return nil, looseFile(ctx, c, t, o)
		}
		return nil, nil
	}
	inside, err := filepath.Rel(c.Content, dir)
	if err != nil {
		return nil, err
	}
	prefix := ""
	if inside != "." {
		prefix = filepath.ToSlash(inside) + "/"
	}
	o.Payload = filepath.Join(dir, "data")
	o.Known = func(p string) *files.Sums { return known[prefix+payloadPrefix+p] }
	place := received(prefix)
	for i := range t.Files {
		p := t.Files[i].Path
		to := place(p)
		if strings.HasPrefix(to, payloadPrefix) {
			continue
		}
		o.TagFiles = append(o.TagFiles, bags.TagFile{
			Path: to, Source: filepath.Join(t.Dir, filepath.FromSlash(p)), Known: known[p],
		})
	}
	return tagfile.BagInfo(dir)
}

// looseFile gives the file a folder of its own to be the payload of.
func looseFile(ctx context.Context, c *Call, t *files.Tree, o *bags.CreateOptions) error {
	o.Payload = filepath.Join(c.Scratch, "payload")
	if err := os.Mkdir(o.Payload, 0o755); err != nil {
		return err
	}
	return files.Place(ctx, t, o.Payload, c.mayLink())
}

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
