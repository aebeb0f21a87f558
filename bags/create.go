package bags

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"bagpipe/bags/files"
	"bagpipe/bags/finding"
	"bagpipe/bags/profile"
	"bagpipe/bags/tagfile"
	"bagpipe/layout/disk"
)

// CreateOptions describe a bag to make.
type CreateOptions struct {
	Payload string // the folder whose contents become data/
	Dest    string // the bag's folder; must not exist, its parent must

	Algorithms []files.Algorithm // default sha256 and sha512
	Info       []tagfile.Field   // in this order; Bagpipe's own labels replace theirs
	TagFiles   []TagFile
	Date       time.Time // Bagging-Date
	Agent      string    // Bag-Software-Agent

	// Link makes hard links of the payload where the file system can, instead of
	// copies. The two then share their bytes: neither may be changed in place.
	Link bool

	// Known gives digests that a payload file is known by; nil where there are
	// none. The file is hashed all the same, and a difference is an *Error with
	// RuleFixity.
	Known func(path string) *files.Sums

	// Nest allows a payload that is a bag, or holds nothing but one. Without it
	// that is an *Error with RuleBag.
	Nest bool

	// Profiles must be satisfied by the bag before it gets its name; a constraint
	// that is not met is an *Error with RuleProfile. Serialization is not asked of a
	// folder. Their identifiers go into bag-info.txt.
	Profiles []*profile.Profile

	// Sync puts the bag on disk before Create returns. CreateInPlace does so
	// unless NoSync is set.
	Sync, NoSync bool

	Workers  int
	Progress func(files.Progress)
}

// TagFile is a further tag file: a copy of Source, what Write writes, or Data.
type TagFile struct {
	Path   string // relative to the bag
	Source string
	Write  func(to io.Writer) error
	Data   []byte
	Known  *files.Sums // of a Source, as CreateOptions.Known gives for a payload file
}

// Created says what was made.
type Created struct {
	Files        int64    `json:"files"`
	Bytes        int64    `json:"bytes"`
	EmptyFolders []string `json:"emptyFolders,omitempty"` // in data/, but in no manifest

	// Findings are warnings about names: those that differ only by case or
	// normalisation, those that Windows cannot hold.
	Findings []finding.Finding `json:"findings,omitempty"`

	// Recovered says what became of an interrupted CreateInPlace. When it is
	// Completed, that bag is the folder's, and nothing else was done.
	Recovered Outcome `json:"recovered,omitempty"`
}

// Create makes a BagIt 1.0 bag. It is built in a hidden folder beside Dest and
// renamed when it is whole (files.Scratch), so Dest is a valid bag or is not there;
// what a crash left, the next Create of the same Dest takes away. Without Sync the caller syncs the tree and publishes it. Content
// that a bag cannot hold (links, special files, names that are not UTF-8) is an
// *Error before anything is written.
func Create(ctx context.Context, o CreateOptions) (_ Created, err error) {
	tree, err := files.Scan(ctx, o.Payload)
	if err != nil {
		return Created{}, fmt.Errorf("make bag: %w", err)
	}
	if err := checkCreate(&o, tree); err != nil {
		return Created{}, err
	}
	s, err := files.NewScratch(o.Dest)
	if err != nil {
		return Created{}, fmt.Errorf("make bag: %w", err)
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	made, err := createAt(ctx, o, tree, s.Made())
	if err != nil {
		return Created{}, err
	}
	var sync func(string) error
	if o.Sync {
		sync = disk.SyncFS
	}
	if err := s.Publish(sync); err != nil {
		return Created{}, fmt.Errorf("make bag: %w", err)
	}
	return made, nil
}

// CreatePrivate is Create where the parent of Dest is the caller's alone: the bag is built
// under its name, and what an error or a crash leaves there the caller takes away.
func CreatePrivate(ctx context.Context, o CreateOptions) (Created, error) {
	tree, err := files.Scan(ctx, o.Payload)
	if err != nil {
		return Created{}, fmt.Errorf("make bag: %w", err)
	}
	if err := checkContent(&o, tree); err != nil {
		return Created{}, err
	}
	return createAt(ctx, o, tree, o.Dest)
}

// createAt makes the bag as the folder dir.
func createAt(ctx context.Context, o CreateOptions, tree *files.Tree, dir string) (_ Created, err error) {
	if err := os.Mkdir(dir, files.FolderPerm); err != nil {
		return Created{}, fmt.Errorf("make bag: %w", err)
	}
	c := &creator{o: o, tree: tree, dir: dir}
	if c.root, err = os.OpenRoot(dir); err != nil {
		return Created{}, fmt.Errorf("make bag: %w", err)
	}
	defer c.root.Close()
	if err := c.build(ctx); err != nil {
		return Created{}, err
	}
	return c.created(), nil
}

func (c *creator) created() Created {
	return Created{
		Files: int64(len(c.tree.Files)), Bytes: c.tree.Bytes(), EmptyFolders: c.tree.EmptyFolders(),
		Findings: c.names,
	}
}

// checkCreate looks at everything before anything is written.
func checkCreate(o *CreateOptions, t *files.Tree) error {
	if _, err := os.Lstat(o.Dest); !os.IsNotExist(err) {
		return fmt.Errorf("make bag: %s is there already", o.Dest)
	}
	within, err := isWithin(o.Dest, t.Dir)
	if err != nil {
		return fmt.Errorf("make bag: %w", err)
	}
	if within {
		return fmt.Errorf("make bag: %s is inside %s, which would then hold its own bag; name a folder elsewhere", o.Dest, o.Payload)
	}
	return checkContent(o, t)
}

// isWithin reports whether a new name would stand at or below the folder dir, through
// whatever links lead there.
func isWithin(name, dir string) (bool, error) {
	dir, err := realPath(dir)
	if err != nil {
		return false, err
	}
	parent, err := realPath(filepath.Dir(name))
	if err != nil {
		return false, err
	}
	rel, err := filepath.Rel(dir, parent)
	return err == nil && filepath.IsLocal(rel), err
}

func realPath(p string) (string, error) {
	abs, err := filepath.Abs(p)
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(abs)
}

// checkContent looks at what is to become a bag.
func checkContent(o *CreateOptions, t *files.Tree) error {
	if !o.Nest {
		if is, err := IsBag(t.Dir); err != nil {
			return err
		} else if is {
			return &files.Error{Archive: filepath.Base(t.Dir), Rule: files.RuleBag, Detail: "it is a bag already, or holds one; it is not put into another without being asked"}
		}
	}
	if err := checkReserved(t); err != nil {
		return err
	}
	if len(o.Algorithms) == 0 {
		o.Algorithms = []files.Algorithm{files.SHA256, files.SHA512}
	}
	for _, a := range o.Algorithms {
		if !a.Known() {
			return fmt.Errorf("make bag: algorithm %q is not known", a)
		}
	}
	for _, f := range o.Info {
		if err := f.Check(); err != nil {
			return fmt.Errorf("make bag: %w", err)
		}
	}
	for _, f := range o.TagFiles {
		if err := checkTagPath(f.Path); err != nil {
			return err
		}
	}
	if err := t.CheckRegular(); err != nil {
		return err
	}
	for _, es := range [][]files.Entry{t.Files, t.Folders} {
		for i := range es {
			if !utf8.ValidString(es[i].Path) {
				return &files.Error{Archive: filepath.Base(t.Dir), Member: es[i].Path, Rule: files.RuleNotUTF8,
					Detail: "a bag's manifests are UTF-8 and cannot list this name"}
			}
		}
	}
	return nil
}

func checkTagPath(p string) error {
	bad := func(rule files.Rule, detail string) error {
		return &files.Error{Archive: "bag", Member: p, Rule: rule, Detail: detail}
	}
	_, isManifest := tagfile.ManifestAlgorithm(p, tagfile.ManifestPrefix)
	_, isTag := tagfile.ManifestAlgorithm(p, tagfile.TagPrefix)
	switch {
	case p == "" || p[0] == '/' || path.Clean(p) != p || hasParent(p):
		return bad(files.RuleParent, "not a plain path below the bag")
	case !utf8.ValidString(p):
		return bad(files.RuleNotUTF8, "a bag's manifests are UTF-8 and cannot list this name")
	case p == tagfile.PayloadDir || strings.HasPrefix(p, tagfile.PayloadPrefix) || isManifest || isTag ||
		p == tagfile.DeclarationFile || p == tagfile.InfoFile || p == tagfile.FetchName:
		return bad(files.RuleReserved, "the bag has a file of its own there")
	}
	return nil
}

// creator builds one bag in dir. It writes through root: what becomes a link meanwhile
// leads nowhere outside.
type creator struct {
	o     CreateOptions
	tree  *files.Tree
	dir   string
	root  *os.Root
	tags  *tagFiles
	names []finding.Finding // about the payload's names
}

func (c *creator) build(ctx context.Context) error {
	if err := c.root.Mkdir(tagfile.PayloadDir, files.FolderPerm); err != nil {
		return fmt.Errorf("make bag: %w", err)
	}
	into, err := c.root.OpenRoot(tagfile.PayloadDir)
	if err != nil {
		return fmt.Errorf("make bag: %w", err)
	}
	defer into.Close()
	if err := files.PlaceTree(ctx, c.tree, into, c.o.Link, c.o.Workers); err != nil {
		return fmt.Errorf("make bag: %w", err)
	}
	return c.describe(ctx, filepath.Join(c.dir, tagfile.PayloadDir))
}

// describe writes everything beside the payload, which stands in data.
func (c *creator) describe(ctx context.Context, data string) error {
	sums, err := c.look(ctx, data)
	if err != nil {
		return err
	}
	return c.write(ctx, sums)
}

// look takes the payload's digests, and looks at its names meanwhile.
func (c *creator) look(ctx context.Context, data string) ([]files.Sums, error) {
	sums := make([]files.Sums, len(c.tree.Files))
	var names sync.WaitGroup
	names.Go(func() { c.names = nameFindings(c.tree, tagfile.PayloadPrefix) })
	err := c.hashPayload(ctx, data, sums)
	names.Wait()
	return sums, err
}

// write makes the tag files.
func (c *creator) write(ctx context.Context, sums []files.Sums) error {
	c.tags = newTagFiles(c.root, c.o.Algorithms)
	defer c.tags.close()
	if err := c.writeTagFiles(); err != nil {
		return fmt.Errorf("make bag: %w", err)
	}
	if err := c.writeManifests(sums); err != nil {
		return fmt.Errorf("make bag: %w", err)
	}
	if err := c.writeTagManifests(ctx); err != nil {
		return err
	}
	return c.satisfy(ctx)
}

// satisfy holds the bag, as it will be, to the profiles.
func (c *creator) satisfy(ctx context.Context) error {
	if len(c.o.Profiles) == 0 {
		return nil
	}
	root, err := os.OpenRoot(c.dir)
	if err != nil {
		return fmt.Errorf("make bag: %w", err)
	}
	defer root.Close()
	t, err := scanTags(ctx, c.dir)
	if err != nil {
		return fmt.Errorf("make bag: %w", err)
	}
	t.Folders = append(t.Folders, files.Entry{Path: tagfile.PayloadDir})
	for _, e := range c.tree.Files {
		e.Path = tagfile.PayloadPrefix + e.Path
		t.Files = append(t.Files, e)
	}
	for _, e := range c.tree.Folders {
		e.Path = tagfile.PayloadPrefix + e.Path
		t.Folders = append(t.Folders, e)
	}
	o := ValidateOptions{Level: Complete, Profiles: c.o.Profiles, unserialized: true}
	r, err := newValidator(t, newFolderBag(root, c.dir), o).run(ctx)
	if err != nil {
		return fmt.Errorf("make bag: %w", err)
	}
	first, bad := r.FirstError()
	if !bad {
		return nil
	}
	more := ""
	if r.Errors > 1 {
		more = fmt.Sprintf(" (and %d more)", r.Errors-1)
	}
	return &files.Error{Archive: filepath.Base(c.o.Payload), Member: first.Path, Rule: files.RuleProfile,
		Detail: fmt.Sprintf("%s: %s%s", first.Constraint, first.Text, more)}
}

// hashPayload hashes what is in the bag, not what it was made from, and compares
// it with what is known.
func (c *creator) hashPayload(ctx context.Context, data string, sums []files.Sums) error {
	placed := *c.tree
	placed.Dir = data
	o := files.HashOptions{Workers: c.o.Workers, Progress: c.o.Progress}
	as := slices.Clone(c.o.Algorithms)
	if c.o.Known != nil {
		as = append(as, files.SHA256, files.SHA512) // what inventories have
	}
	return files.Hash(ctx, &placed, as, o, func(h files.Hashed) error {
		f := &c.tree.Files[h.Index]
		if h.Size != f.Size {
			return &files.Error{Archive: filepath.Base(c.o.Payload), Member: f.Path, Rule: files.RuleFixity,
				Detail: fmt.Sprintf("%d bytes where %d were listed", h.Size, f.Size)}
		}
		sums[h.Index] = h.Sums
		if c.o.Known == nil {
			return nil
		}
		return c.compareKnown(f.Path, c.o.Known(f.Path), &h.Sums)
	})
}

func (c *creator) compareKnown(p string, known, sums *files.Sums) error {
	if known == nil {
		return nil
	}
	for _, a := range known.Algorithms() {
		if want, got := known.Of(a), sums.Of(a); got != nil && !bytes.Equal(want, got) {
			return &files.Error{Archive: filepath.Base(c.o.Payload), Member: p, Rule: files.RuleFixity,
				Detail: fmt.Sprintf("%s is %s…, known as %s…", a, files.Short(got), files.Short(want))}
		}
	}
	return nil
}
