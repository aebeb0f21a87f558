package steps

import (
	"context"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"bagpipe/bags"
	"bagpipe/bags/files"
	"bagpipe/bags/tagfile"
	"bagpipe/layout"
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
		message += fmt.Sprintf("; %s, in data/ and in no manifest, first: %s", layout.Count(n, "empty folder"), layout.EncodePath(made.EmptyFolders[0]))
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
	for i := range t.Files {
		p := t.Files[i].Path
		rel, in := strings.CutPrefix(p, prefix)
		to := receivedPrefix + rel
		switch {
		case !in:
			to = outsidePrefix + p
		case strings.HasPrefix(rel, payloadPrefix):
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
