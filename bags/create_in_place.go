package bags

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"bagpipe/bags/files"
	"bagpipe/bags/tagfile"
	"bagpipe/layout"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"
)

// CreateInPlace makes the folder o.Payload a bag where it stands: what is in it
// moves into data/, and no byte is copied. o.Dest and o.Link have no meaning.
// Interrupted at any moment, it leaves the folder as it was or a valid bag, or a
// .bagpipe-bag folder which the next call, or Recover, completes or undoes; that
// is Created.Recovered. Content that a bag cannot hold is an *Error before anything moves,
// and so is content that changes meanwhile. When it returns, the bag is on disk,
// unless o.NoSync is set.
func CreateInPlace(ctx context.Context, o CreateOptions) (Created, error) {
	return createInPlace(ctx, o, nil)
}

// createInPlace calls step before each of its writes: tests interrupt it there.
func createInPlace(ctx context.Context, o CreateOptions, step func()) (_ Created, err error) {
	r, was, err := openRewrite(o.Payload, !o.NoSync, step)
	fail := func(err error) (Created, error) {
		return Created{Recovered: was}, fmt.Errorf("make %s a bag: %w", o.Payload, err)
	}
	if err != nil {
		return fail(err)
	}
	defer func() { err = r.close(err) }()
	if was == "" && r.cleared && !o.Nest {
		// The same call had ended but for this folder; what it made is no bag to refuse.
		is, err := r.exists(tagfile.DeclarationFile)
		if err != nil {
			return fail(err)
		}
		if is {
			was = Completed
		}
	}
	if was == Completed {
		return Created{Recovered: was}, nil
	}
	tree, err := files.Scan(ctx, o.Payload)
	if err != nil {
		return fail(err)
	}
	if err := checkContent(&o, tree); err != nil {
		return Created{Recovered: was}, err
	}
	move, err := topEntries(o.Payload)
	if err != nil {
		return fail(err)
	}
	if err := r.begin(); err != nil {
		return fail(err)
	}
	c := &creator{o: o, tree: tree, dir: r.place()}
	if c.root, err = r.root.OpenRoot(newDir); err != nil {
		return fail(err)
	}
	defer c.root.Close()
	sums, err := c.look(ctx, tree.Dir)
	if err != nil {
		return Created{Recovered: was}, err
	}
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() error { return c.write(gctx, sums) })
	g.Go(func() error { return unchanged(gctx, tree) })
	if err := g.Wait(); err != nil {
		return Created{Recovered: was}, err
	}
	p := plan{Moves: true, Move: move}
	made, err := files.ScanExcept(ctx, r.place(), "")
	if err != nil {
		return fail(err)
	}
	for i := range made.Files {
		p.Put = append(p.Put, layout.EncodePath(made.Files[i].Path))
	}
	if err := r.commit(p); err != nil {
		return fail(err)
	}
	created := c.created()
	created.Recovered = was
	return created, nil
}

// topEntries are the names that will move. An entry on another file system cannot.
func topEntries(dir string) ([]string, error) {
	var own unix.Stat_t
	if err := unix.Stat(dir, &own); err != nil {
		return nil, fmt.Errorf("stat %s: %w", dir, err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	names := make([]string, 0, len(entries))
	for _, e := range entries {
		var s unix.Stat_t
		if err := unix.Lstat(filepath.Join(dir, e.Name()), &s); err != nil {
			return nil, fmt.Errorf("stat %s: %w", layout.EncodePath(e.Name()), err)
		}
		if s.Dev != own.Dev {
			return nil, fmt.Errorf("%s is on another file system and cannot be moved into data/", layout.EncodePath(e.Name()))
		}
		names = append(names, layout.EncodePath(e.Name()))
	}
	return names, nil
}

// unchanged compares the folder with its listing of before the hashing.
func unchanged(ctx context.Context, was *files.Tree) error {
	now, err := files.Scan(ctx, was.Dir)
	if err != nil {
		return err
	}
	changed := func(p, text string) error {
		return &files.Error{Archive: filepath.Base(was.Dir), Member: p, Rule: files.RuleFixity, Detail: text + " while the bag was made"}
	}
	// Both are in the order of the walk, so the first pair that differs tells.
	before := was.Files
	for i := range now.Files {
		f := &now.Files[i]
		if strings.HasPrefix(f.Path, WorkDir+"/") {
			continue
		}
		switch {
		case len(before) == 0 || before[0].Path != f.Path && !slices.ContainsFunc(before, func(e files.Entry) bool { return e.Path == f.Path }):
			return changed(f.Path, "appeared")
		case before[0].Path != f.Path:
			return changed(before[0].Path, "disappeared")
		case before[0].Size != f.Size || !before[0].Time.Equal(f.Time):
			return changed(f.Path, "changed")
		}
		before = before[1:]
	}
	if len(before) > 0 {
		return changed(before[0].Path, "disappeared")
	}
	if len(now.Others) > 0 {
		return changed(now.Others[0].Path, "a link or special file appeared")
	}
	return nil
}

// checkReserved refuses what stands in the way of a change.
func checkReserved(t *files.Tree) error {
	for _, es := range [][]files.Entry{t.Files, t.Folders} {
		for i := range es {
			if p := es[i].Path; p == WorkDir || strings.HasPrefix(p, WorkDir+"/") {
				return &files.Error{Archive: filepath.Base(t.Dir), Member: p, Rule: files.RuleReserved, Detail: "the name is kept for changes under way"}
			}
		}
	}
	return nil
}

// IsBag reports whether dir has a bagit.txt, or holds nothing but one bag.
func IsBag(dir string) (bool, error) {
	_, ok, err := FindBag(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return ok, err
}
