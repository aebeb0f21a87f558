package archive

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"bagpipe/bags/files"
	"bagpipe/layout"
)

// Archives within archives. The rules are:
//
//   - an archive is replaced by a folder of its name that holds what was in it; a
//     path in the result says where a file came from, and nothing can collide;
//   - the limits are the outermost archive's: its size is what the ratio is of, and
//     every file and byte counts that was ever written, packed ones included;
//   - below the depth asked for, archives stay as they are, with a warning; an
//     archive that holds itself therefore ends, too;
//   - one that is damaged or hostile makes the whole fail.

// nest unpacks what is packed in a folder.
type nest struct {
	root  *os.Root
	o     ExtractOptions
	outer string // the name of the whole, for errors
	input int64  // bytes of the whole, as it was delivered

	files, bytes int64 // written so far
	x            *Extracted
}

// ExtractNested unpacks the archives in a folder in place, down to the depth
// o.Nested. dir is the caller's own: it is left half done when this fails. Nothing
// is synced.
func ExtractNested(ctx context.Context, dir string, o ExtractOptions) (_ Extracted, err error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return Extracted{}, fmt.Errorf("unpack: %w", err)
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	t, err := files.Scan(ctx, dir)
	if err != nil {
		return Extracted{}, err
	}
	ctx, cancel := o.Limits.WithDefaults().clock(ctx)
	defer cancel()
	x := Extracted{Files: int64(len(t.Files)), Folders: int64(len(t.Folders)), Bytes: t.Bytes()}
	n := &nest{root: root, o: o, outer: filepath.Base(dir), input: t.Bytes(), x: &x}
	if err := n.run(ctx); err != nil {
		return Extracted{}, overTime(ctx, n.outer, err)
	}
	return x, nil
}

func (n *nest) run(ctx context.Context) error {
	level := []string{""}
	for depth := 1; ; depth++ {
		var found []string
		for _, folder := range level {
			archives, err := n.archives(ctx, folder)
			if err != nil {
				return err
			}
			found = append(found, archives...)
		}
		if len(found) == 0 {
			return nil
		}
		if depth > n.o.Nested {
			n.x.Warnings = append(n.x.Warnings, fmt.Sprintf("%d archives deeper than %d levels stay packed, the first is %s", len(found), n.o.Nested, layout.EncodePath(found[0])))
			return nil
		}
		level = level[:0]
		for _, p := range found {
			done, err := n.replace(ctx, p)
			if err != nil {
				return err
			}
			if done {
				level = append(level, p)
			}
		}
	}
}

// archives lists the archives below folder; of those in several parts the first
// part stands before the others.
func (n *nest) archives(ctx context.Context, folder string) (found []string, err error) {
	t, err := files.Scan(ctx, filepath.Join(n.root.Name(), folder))
	if err != nil {
		return nil, err
	}
	for i := range t.Files {
		p := path.Join(folder, t.Files[i].Path)
		format, err := Sniff(filepath.Join(n.root.Name(), p))
		if err != nil {
			return nil, err
		}
		if format != None {
			found = append(found, p)
		}
	}
	slices.SortStableFunc(found, func(a, b string) int {
		return cmp.Or(strings.Compare(path.Dir(a), path.Dir(b)), cmp.Compare(laterPart(a), laterPart(b)))
	})
	return found, nil
}

// laterPart is 1 for x.r00, which sorts before x.rar and is not the first part.
func laterPart(p string) int {
	if ext := strings.ToLower(path.Ext(p)); len(ext) == 4 && ext[1] >= 'r' && ext[1] <= 'z' && ext[2] >= '0' && ext[2] <= '9' {
		return 1
	}
	return 0
}

// replace puts a folder in an archive's place; done is false where it is gone by
// now.
func (n *nest) replace(ctx context.Context, p string) (done bool, err error) {
	info, err := n.root.Lstat(p)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil // a further part of an archive that is unpacked by now
	}
	if err != nil {
		return false, err
	}
	around, err := n.root.Lstat(path.Dir(p))
	if err != nil {
		return false, err
	}
	temp, err := n.tempFolder(p)
	if err != nil {
		return false, err
	}
	x, from, err := n.extract(ctx, p, temp)
	if err != nil {
		return false, err
	}
	if len(from.names) == 0 {
		from.names = []string{path.Base(p)}
	}
	for _, name := range from.names {
		if err := n.root.Remove(path.Join(path.Dir(p), name)); err != nil {
			return false, err
		}
	}
	if err := n.root.Rename(temp, p); err != nil {
		return false, err
	}
	for path, at := range map[string]time.Time{p: info.ModTime(), path.Dir(p): around.ModTime()} {
		if err := n.root.Chtimes(path, at, at); err != nil {
			return false, err
		}
	}
	n.x.Files += x.Files - int64(len(from.names))
	n.x.Folders += x.Folders + 1
	n.x.Bytes += x.Bytes - from.bytes
	n.x.Nested++
	for _, w := range x.Warnings {
		n.x.Warnings = append(n.x.Warnings, layout.EncodePath(p)+": "+w)
	}
	return true, nil
}

func (n *nest) extract(ctx context.Context, p, temp string) (Extracted, readFrom, error) {
	o := n.o
	l := n.o.Limits.WithDefaults()
	l.PathLength -= len(p) + 1
	l.Depth -= strings.Count(p, "/") + 1
	if l.PathLength <= 0 || l.Depth <= 0 {
		return Extracted{}, readFrom{}, &files.Error{Archive: n.outer, Member: p, Rule: files.RuleDepth, Detail: "the archive stands too deep to be unpacked in its place"}
	}
	o.Limits = l
	into, err := n.root.OpenRoot(temp)
	if err != nil {
		return Extracted{}, readFrom{}, err
	}
	x, from, err := extractInto(ctx, filepath.Join(n.root.Name(), p), into, o, func(s *sink) {
		s.Archive = n.outer + "/" + p
		s.input = n.input
		s.before.within = true
		s.before.files, s.before.bytes = n.files, n.bytes
		s.meter.done = files.Progress{Files: n.x.Files, Bytes: n.bytes}
	})
	if err := errors.Join(err, into.Close()); err != nil {
		return Extracted{}, readFrom{}, err
	}
	n.files, n.bytes = n.files+x.Files+x.Folders, n.bytes+x.Bytes
	return x, from, nil
}

// tempFolder makes a folder beside p that nothing else is called.
func (n *nest) tempFolder(p string) (string, error) {
	for i := range 100 {
		temp := path.Join(path.Dir(p), fmt.Sprintf(".unpacking-%d", i))
		err := n.root.Mkdir(temp, files.FolderPerm)
		if err == nil || !errors.Is(err, fs.ErrExist) {
			return temp, err
		}
	}
	return "", fmt.Errorf("unpack %s: no name is free for a folder beside it", p)
}
