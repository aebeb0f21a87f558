package bags

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"bagpipe/bags/files"
	"bagpipe/bags/profile"
	"bagpipe/bags/tagfile"
)

// This file writes what stands beside data/ in a bag.

func (c *creator) writeTagFiles() error {
	if err := c.tags.put(tagfile.DeclarationFile, []byte(tagfile.LabelVersion+": 1.0\n"+tagfile.LabelEncoding+": UTF-8\n")); err != nil {
		return err
	}
	var b bytes.Buffer
	if err := tagfile.WriteInfo(&b, c.info()); err != nil {
		return err
	}
	if err := c.tags.put(tagfile.InfoFile, b.Bytes()); err != nil {
		return err
	}
	for _, f := range c.o.TagFiles {
		if err := c.tags.add(f); err != nil {
			return err
		}
	}
	return nil
}

// info gives the caller's fields without the labels of the bag's maker, and then the
// maker's fields.
func (c *creator) info() []tagfile.Field {
	own := []tagfile.Field{
		{Label: tagfile.LabelBaggingDate, Value: c.o.Date.UTC().Format(time.DateOnly)},
		{Label: tagfile.LabelOxum, Value: fmt.Sprintf("%d.%d", c.tree.Bytes(), len(c.tree.Files))},
		{Label: tagfile.LabelSize, Value: tagfile.FormatSize(c.tree.Bytes())},
	}
	if c.o.Agent != "" {
		own = append(own, tagfile.Field{Label: tagfile.LabelAgent, Value: c.o.Agent})
	}
	var fields []tagfile.Field
	for _, f := range c.o.Info {
		if !tagfile.SameLabel(f.Label, tagfile.LabelBaggingDate) && !tagfile.SameLabel(f.Label, tagfile.LabelOxum) &&
			!tagfile.SameLabel(f.Label, tagfile.LabelSize) && !tagfile.SameLabel(f.Label, tagfile.LabelAgent) {
			fields = append(fields, f)
		}
	}
	for _, p := range c.o.Profiles {
		f := tagfile.Field{Label: profile.LabelProfile, Value: p.Identifier}
		if p.Identifier != "" && !slices.ContainsFunc(fields, func(o tagfile.Field) bool { return tagfile.SameLabel(o.Label, f.Label) && o.Value == f.Value }) {
			own = append([]tagfile.Field{f}, own...)
		}
	}
	return append(fields, own...)
}

func (c *creator) writeManifests(sums []files.Sums) error {
	order := make([]int, len(c.tree.Files))
	paths := make([]string, len(order))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return strings.Compare(c.tree.Files[a].Path, c.tree.Files[b].Path) })
	for i, k := range order {
		paths[i] = tagfile.PayloadPrefix + c.tree.Files[k].Path
	}
	for _, a := range c.o.Algorithms {
		column := make([][]byte, len(order))
		for i, k := range order {
			column[i] = sums[k].Of(a)
		}
		if err := c.writeManifest(tagfile.ManifestPrefix, a, paths, column); err != nil {
			return err
		}
	}
	return nil
}

func (c *creator) writeManifest(prefix string, a files.Algorithm, paths []string, column [][]byte) error {
	var b bytes.Buffer
	if err := tagfile.WriteManifest(&b, paths, column); err != nil {
		return err
	}
	return c.tags.put(prefix+string(a)+".txt", b.Bytes())
}

// writeTagManifests lists every tag file there is by now.
func (c *creator) writeTagManifests(ctx context.Context) error {
	if err := c.hashCopied(ctx); err != nil {
		return fmt.Errorf("make bag: %w", err)
	}
	paths := slices.Sorted(maps.Keys(c.tags.sums))
	columns := make([][][]byte, len(c.o.Algorithms))
	for i, a := range c.o.Algorithms {
		for _, p := range paths {
			columns[i] = append(columns[i], c.tags.sums[p].Of(a))
		}
	}
	for i, a := range c.o.Algorithms {
		if err := c.writeManifest(tagfile.TagPrefix, a, paths, columns[i]); err != nil {
			return fmt.Errorf("make bag: %w", err)
		}
	}
	return nil
}

// hashCopied hashes the tag files that are copies, as they are in the bag, and compares them
// with what is known.
func (c *creator) hashCopied(ctx context.Context) error {
	copied := &files.Tree{Dir: c.dir}
	known := map[string]*files.Sums{}
	for i := range c.o.TagFiles {
		if f := &c.o.TagFiles[i]; c.tags.copied(f.Path) {
			copied.Files = append(copied.Files, files.Entry{Path: f.Path})
			known[f.Path] = f.Known
		}
	}
	if len(copied.Files) == 0 {
		return nil
	}
	as := append(slices.Clone(c.o.Algorithms), files.SHA256, files.SHA512) // what inventories have
	return files.Hash(ctx, copied, as, files.HashOptions{Workers: c.o.Workers}, func(h files.Hashed) error {
		p := copied.Files[h.Index].Path
		c.tags.sums[p] = &h.Sums
		return c.compareKnown(p, known[p], &h.Sums)
	})
}

// tagFiles writes tag files, and has the digests of what it wrote: only copies are read
// again.
type tagFiles struct {
	root *os.Root
	to   files.Creator
	hash *files.Hasher
	made map[string]bool        // folders
	sums map[string]*files.Sums // by path; nil of a copy
}

func newTagFiles(root *os.Root, as []files.Algorithm) *tagFiles {
	return &tagFiles{root: root, to: files.Creator{Root: root}, hash: files.NewHasher(as...), made: map[string]bool{".": true}, sums: map[string]*files.Sums{}}
}

func (t *tagFiles) close() { t.to.Close() }

func (t *tagFiles) copied(p string) bool {
	sums, is := t.sums[p]
	return is && sums == nil
}

// add writes a further tag file. Of two with one path the later one counts.
func (t *tagFiles) add(f TagFile) error {
	if folder := path.Dir(f.Path); !t.made[folder] {
		if err := t.root.MkdirAll(folder, files.FolderPerm); err != nil {
			return err
		}
		t.made[folder] = true
	}
	switch {
	case f.Source != "":
		t.sums[f.Path] = nil
		return files.CopyFile(f.Source, &t.to, f.Path)
	case f.Write != nil:
		return t.write(f.Path, f.Write)
	}
	return t.put(f.Path, f.Data)
}

func (t *tagFiles) put(p string, data []byte) error {
	return t.write(p, func(to io.Writer) error {
		_, err := to.Write(data)
		return err
	})
}

func (t *tagFiles) write(p string, fill func(io.Writer) error) (err error) {
	if _, twice := t.sums[p]; twice {
		if err := t.root.Remove(p); err != nil {
			return err
		}
	}
	out, err := t.to.Create(p, files.FilePerm)
	if err != nil {
		return err
	}
	if err := errors.Join(fill(io.MultiWriter(out, t.hash)), out.Close()); err != nil {
		return err
	}
	t.sums[p] = t.hash.Take()
	return nil
}

// scanTags lists a bag without its payload.
func scanTags(ctx context.Context, dir string) (*files.Tree, error) {
	return files.ScanExcept(ctx, dir, tagfile.PayloadDir)
}
