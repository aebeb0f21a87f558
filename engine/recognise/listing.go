package recognise

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"bagpipe/bags/archive"
	"bagpipe/bags/files"
	"bagpipe/layout"
)

// listing is the names inside a folder or an archive, below the folder that alone
// holds all of them, sorted.
type listing struct {
	top   string // that folder, with a slash behind it; "": there is none
	files []string
	bytes int64
	cut   bool  // there are more
	err   error // why nothing is known

	folded, based []keyed // by their paths and by their names, once they are asked for
}

// maxLevels bounds how deep a folder is looked into.
const maxLevels = 64

var errEnough = errors.New("enough")

// listing gives the names inside; of a file there are none.
func (f *facts) listing(ctx context.Context) *listing {
	if f.names != nil {
		return f.names
	}
	l := &listing{}
	f.names = l
	switch {
	case f.c.Files != nil:
		f.listFiles(l)
	case f.isFolder():
		if f.listed == nil || !f.listListed(l) {
			*l = listing{}
			l.err = f.listFolder(ctx, l)
		}
	case f.kind == KindArchive:
		select {
		case f.turn <- struct{}{}:
			l.err = f.listArchive(ctx, l)
			<-f.turn
		case <-ctx.Done():
			l.err = ctx.Err()
		}
	default:
		l.err = errors.New("a file has nothing inside")
	}
	slices.Sort(l.files)
	if l.err == nil && f.kind != KindBag && !l.cut {
		l.strip()
	}
	return l
}

// listFiles lists the files that are the candidate.
func (f *facts) listFiles(l *listing) {
	for _, name := range f.c.Files {
		if f.denied(name) || !f.allowed(name) {
			continue
		}
		l.files = append(l.files, name)
		if f.namesOnly {
			continue
		}
		if info, err := os.Lstat(filepath.Join(f.c.Path, name)); err == nil {
			l.bytes += info.Size()
		}
	}
}

// listListed lists a folder by what is known of it; false: that is not all.
func (f *facts) listListed(l *listing) bool {
	var err error
	whole := f.listed.Files(func(p string, size int64) bool {
		if strings.Count(p, "/") > maxLevels || len(f.lists.Deny) > 0 && f.deniedAbove(p) {
			return true
		}
		err = l.add(f, p, func() int64 { return size })
		return err == nil
	})
	return whole || err != nil
}

// deniedAbove reports whether a folder above a path is on the black list.
func (f *facts) deniedAbove(p string) bool {
	for i := range len(p) {
		if p[i] == '/' && f.denied(p[:i]) {
			return true
		}
	}
	return false
}

// listFolder walks a folder through its own handle, so that a link that takes a
// folder's place meanwhile leads nowhere.
func (f *facts) listFolder(ctx context.Context, l *listing) error {
	root, err := os.OpenRoot(f.c.Path)
	if err != nil {
		return err
	}
	err = errors.Join(f.listBelow(ctx, root, "", l), root.Close())
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}

func (f *facts) listBelow(ctx context.Context, root *os.Root, at string, l *listing) error {
	entries, err := readDir(root, at)
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		p := path.Join(at, e.Name())
		switch {
		case !e.IsDir():
			err = l.add(f, p, func() int64 {
				if info, err := e.Info(); err == nil {
					return info.Size()
				}
				return 0
			})
		case strings.Count(p, "/") < maxLevels && !f.denied(p):
			err = f.listBelow(ctx, root, p, l)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// readDir gives what lies in a folder below root, sorted by name. Names may be any bytes, which
// io/fs refuses.
func readDir(root *os.Root, at string) (_ []fs.DirEntry, err error) {
	dir, err := root.OpenFile(path.Join(".", at), os.O_RDONLY|syscall.O_NONBLOCK, 0) // so that no poller tries to have it
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, dir.Close()) }()
	entries, err := dir.ReadDir(-1)
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return entries, err
}

// add notes one file, unless it is not to be looked at.
func (l *listing) add(f *facts, p string, size func() int64) error {
	if f.denied(p) || !f.allowed(p) {
		return nil
	}
	if len(l.files) == maxNames {
		l.cut = true
		return errEnough
	}
	l.files = append(l.files, p)
	l.bytes += size()
	return nil
}

// listArchive reads an archive's names as the unpack robot does, by all its rules.
// What is damaged or hostile is not listed at all.
func (f *facts) listArchive(ctx context.Context, l *listing) error {
	format, err := archive.Sniff(f.c.Path)
	if err != nil {
		return err
	}
	stream := strings.HasPrefix(string(format), string(archive.Tar)+".")
	if stream && f.size > listStream {
		return fmt.Errorf("a %s of %d bytes would have to be read whole (more than %d)", format, f.size, listStream)
	}
	limits := f.limits
	limits.Files, limits.Bytes, limits.Time = maxNames+1, listBytes, listTime
	in, err := archive.Inspect(ctx, f.c.Path, archive.InspectOptions{Limits: limits, Member: func(m archive.Member) {
		if !m.Folder {
			_ = l.add(f, m.Path, func() int64 { return max(m.Size, 0) })
		}
	}})
	if err != nil {
		return err
	}
	for _, p := range in.Problems {
		if p.Rule == files.RuleFiles {
			l.cut = true
			continue
		}
		return errors.New(p.Detail)
	}
	return nil
}

// denied reports whether a name, or a folder above it, is on the black list.
func (f *facts) denied(p string) bool {
	return f.lists != nil && f.lists.denies(p)
}

func (l *List) denies(p string) bool {
	return slices.ContainsFunc(l.Deny, func(glob string) bool {
		if strings.Contains(glob, "/") {
			return inside(glob, p)
		}
		return slices.ContainsFunc(strings.Split(p, "/"), func(part string) bool { return inside(glob, part) })
	})
}

// allowed reports whether a file's name is on the white list, if there is one.
func (f *facts) allowed(p string) bool {
	if f.lists == nil || len(f.lists.Allow) == 0 {
		return true
	}
	return slices.ContainsFunc(f.lists.Allow, func(glob string) bool {
		if strings.Contains(glob, "/") {
			return inside(glob, p)
		}
		return inside(glob, path.Base(p))
	})
}

// strip makes the paths relative to the folder that alone holds everything; a folder
// within a bag does not.
func (l *listing) strip() {
	for len(l.files) > 0 {
		first, _, ok := strings.Cut(l.files[0], "/")
		if !ok || slices.Contains(l.files, "bagit.txt") {
			break
		}
		prefix := first + "/"
		if slices.ContainsFunc(l.files, func(p string) bool { return !strings.HasPrefix(p, prefix) }) {
			break
		}
		for i := range l.files {
			l.files[i] = l.files[i][len(prefix):]
		}
		l.top += prefix
	}
}

// topName is the outermost of the folders that alone hold everything; "": there is none.
func (l *listing) topName() string {
	first, _, _ := strings.Cut(l.top, "/")
	return layout.EncodePath(first)
}

// onDisk is where a file of the listing stands below the candidate.
func (l *listing) onDisk(rel string) string { return l.top + rel }

// find gives the first name that fits a pattern.
func (l *listing) find(glob string) (string, bool) {
	i := slices.IndexFunc(l.files, func(p string) bool { return inside(glob, p) })
	if i < 0 {
		return "", false
	}
	return l.files[i], true
}

// absent is what to say of what is not in the listing.
func (l *listing) absent(why string) answer {
	if l.cut {
		return unknown("not among the first %d names inside", len(l.files))
	}
	return answer{verdict: No, why: why}
}
