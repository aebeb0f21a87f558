package bags

import (
	"bytes"
	"context"
	"fmt"
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
	if err := c.put(tagfile.DeclarationFile, []byte(tagfile.LabelVersion+": 1.0\n"+tagfile.LabelEncoding+": UTF-8\n")); err != nil {
		return err
	}
	var b bytes.Buffer
	if err := tagfile.WriteInfo(&b, c.info()); err != nil {
		return err
	}
	if err := c.put(tagfile.InfoFile, b.Bytes()); err != nil {
		return err
	}
	pl := &files.Creator{Root: c.root}
	defer pl.Close()
	for _, f := range c.o.TagFiles {
		if err := c.root.MkdirAll(path.Dir(f.Path), files.FolderPerm); err != nil {
			return err
		}
		if f.Source == "" {
			if err := c.put(f.Path, f.Data); err != nil {
				return err
			}
			continue
		}
		if err := files.CopyFile(f.Source, pl, f.Path); err != nil {
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
	return c.put(prefix+string(a)+".txt", b.Bytes())
}

// writeTagManifests lists every tag file there is by now.
func (c *creator) writeTagManifests(ctx context.Context) error {
	t, err := scanTags(ctx, c.dir)
	if err != nil {
		return fmt.Errorf("make bag: %w", err)
	}
	paths := make([]string, len(t.Files))
	columns := make([][][]byte, len(c.o.Algorithms))
	for i := range columns {
		columns[i] = make([][]byte, len(t.Files))
	}
	slices.SortFunc(t.Files, func(a, b files.Entry) int { return strings.Compare(a.Path, b.Path) })
	known := map[string]*files.Sums{}
	as := slices.Clone(c.o.Algorithms)
	for i := range c.o.TagFiles {
		if k := c.o.TagFiles[i].Known; k != nil {
			known[c.o.TagFiles[i].Path] = k
			as = append(c.o.Algorithms[:len(c.o.Algorithms):len(c.o.Algorithms)], files.SHA256, files.SHA512) // what inventories have
		}
	}
	err = files.Hash(ctx, t, as, files.HashOptions{Workers: c.o.Workers}, func(h files.Hashed) error {
		paths[h.Index] = t.Files[h.Index].Path
		if err := c.compareKnown(paths[h.Index], known[paths[h.Index]], &h.Sums); err != nil {
			return err
		}
		for i, a := range c.o.Algorithms {
			columns[i][h.Index] = h.Sums.Of(a)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("make bag: %w", err)
	}
	for i, a := range c.o.Algorithms {
		if err := c.writeManifest(tagfile.TagPrefix, a, paths, columns[i]); err != nil {
			return fmt.Errorf("make bag: %w", err)
		}
	}
	return nil
}

func (c *creator) put(p string, data []byte) error {
	return c.root.WriteFile(p, data, files.FilePerm)
}

// scanTags lists a bag without its payload.
func scanTags(ctx context.Context, dir string) (*files.Tree, error) {
	return files.ScanExcept(ctx, dir, tagfile.PayloadDir)
}
