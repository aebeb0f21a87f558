package recognition

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"bagpipe/bags/archive"
	"bagpipe/engine/inbox"
	"bagpipe/engine/recognise"
	"bagpipe/layout"
)

// joined keeps which files of a folder belong together: the inbox asks at every scan,
// and the answer changes with the names, the rules and the inbox's rule file alone.
type joined struct {
	mu    sync.Mutex // guards byDir
	byDir map[string]joinedNames
}

type joinedNames struct {
	book   *recognise.Book
	marker string
	names  []string
	sets   []inbox.Set
}

// maxJoinedDirs bounds what is kept: a batch's folder comes and goes.
const maxJoinedDirs = 1000

// Together tells the inbox which files that lie side by side are one drop.
func (re *Recogniser) Together(ctx context.Context, c layout.Name, dir string, names []string) []inbox.Set {
	book, marker := re.settings.Current().Book, re.markerState(re.ledger.Path(layout.InboxDir+"/"+string(c)))+re.markerState(dir)
	re.joined.mu.Lock()
	last := re.joined.byDir[dir]
	re.joined.mu.Unlock()
	if last.book == book && last.marker == marker && slices.Equal(last.names, names) {
		return last.sets
	}
	now := joinedNames{book: book, marker: marker, names: slices.Clone(names)}
	now.sets = Sets(ctx, book, c, dir, re.ledger.Path(layout.InboxDir+"/"+string(c)), names)
	if ctx.Err() != nil {
		return now.sets
	}
	re.joined.mu.Lock()
	defer re.joined.mu.Unlock()
	if re.joined.byDir == nil || len(re.joined.byDir) >= maxJoinedDirs {
		re.joined.byDir = map[string]joinedNames{}
	}
	re.joined.byDir[dir] = now
	return now.sets
}

// Companions tells the inbox which files may be the first of several.
func (re *Recogniser) Companions(c layout.Name, name string) bool {
	return archive.IsPart(name) || re.settings.Current().Book.HasCompanions(c, name)
}

// markerState tells whether a folder's rule file is another one by now.
func (re *Recogniser) markerState(dir string) string {
	info, err := os.Lstat(filepath.Join(dir, recognise.MarkerName))
	if err != nil {
		return " "
	}
	return fmt.Sprint(info.Size(), info.ModTime().UnixNano(), " ")
}

// Sets tells which files of a folder in the inbox at home are one drop: the parts of one
// archive, and, of the others, those that a rule wants together.
func Sets(ctx context.Context, book *recognise.Book, c layout.Name, dir, home string, names []string) (sets []inbox.Set) {
	part := map[string]bool{}
	for _, p := range archive.Parts(names) {
		sets = append(sets, inbox.Set{Name: p.Name, Files: p.Files, Lacks: p.Lacks})
		for _, name := range p.Files {
			part[name] = true
		}
	}
	if len(part) > 0 {
		names = slices.DeleteFunc(slices.Clone(names), func(name string) bool { return part[name] })
	}
	for _, t := range book.Together(ctx, c, dir, home, names) {
		sets = append(sets, inbox.Set{Name: t.Name, Files: t.Files, Lacks: t.Lacks})
	}
	return sets
}
