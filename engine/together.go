package engine

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"

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

// together tells the inbox which files that lie side by side are one drop.
func (e *Engine) together(ctx context.Context, c layout.Name, dir string, names []string) []inbox.Set {
	book, marker := e.current().book, e.markerState(e.path(layout.InboxDir+"/"+string(c)))+e.markerState(dir)
	e.joined.mu.Lock()
	last := e.joined.byDir[dir]
	e.joined.mu.Unlock()
	if last.book == book && last.marker == marker && slices.Equal(last.names, names) {
		return last.sets
	}
	now := joinedNames{book: book, marker: marker, names: slices.Clone(names)}
	now.sets = setsOf(book.Together(ctx, c, dir, e.path(layout.InboxDir+"/"+string(c)), names))
	if ctx.Err() != nil {
		return now.sets
	}
	e.joined.mu.Lock()
	defer e.joined.mu.Unlock()
	if e.joined.byDir == nil || len(e.joined.byDir) >= maxJoinedDirs {
		e.joined.byDir = map[string]joinedNames{}
	}
	e.joined.byDir[dir] = now
	return now.sets
}

// companions tells the inbox which files may be the first of several.
func (e *Engine) companions(c layout.Name, name string) bool {
	return e.current().book.HasCompanions(c, name)
}

// markerState tells whether a folder's rule file is another one by now.
func (e *Engine) markerState(dir string) string {
	info, err := os.Lstat(filepath.Join(dir, recognise.MarkerName))
	if err != nil {
		return " "
	}
	return fmt.Sprint(info.Size(), info.ModTime().UnixNano(), " ")
}

// looseSet is the set that a file lying in an inbox belongs to by the rules of book; nil:
// it is a drop of its own, or lies elsewhere.
func (e *Engine) looseSet(ctx context.Context, book *recognise.Book, path string, c layout.Name) (*inbox.Set, error) {
	dir, home := filepath.Dir(path), e.path(layout.InboxDir+"/"+string(c))
	if batches := e.current().settings.drops(c).Batches == batchFolders; !batches && dir != home || batches && filepath.Dir(dir) != home {
		return nil, nil
	}
	opt := e.boxOptions(false)
	opt.Together = func(ctx context.Context, c layout.Name, dir string, names []string) []inbox.Set {
		return setsOf(book.Together(ctx, c, dir, home, names))
	}
	box, err := inbox.New(opt)
	if err != nil {
		return nil, err
	}
	return box.SetOf(ctx, c, path)
}

func setsOf(all []recognise.Together) (sets []inbox.Set) {
	for _, t := range all {
		sets = append(sets, inbox.Set{Name: t.Name, Files: t.Files, Lacks: t.Lacks})
	}
	return sets
}
