package engine

import (
	"slices"
	"strings"
	"time"

	"bagpipe/engine/condition"
	"bagpipe/engine/gitstore"
	"bagpipe/engine/queue"

	"github.com/tidwall/gjson"
)

// plainPaths are those that the index holds of every item.
var plainPaths = map[string]func(*queue.Item) string{
	"collection": func(it *queue.Item) string { return string(it.Collection) },
	"label":      func(it *queue.Item) string { return it.Label },
	"batch":      func(it *queue.Item) string { return it.Batch },
	"lane":       func(it *queue.Item) string { return string(it.Lane) },
	"item":       func(it *queue.Item) string { return string(it.ID) },
	"created":    func(it *queue.Item) string { return it.Created.Format(time.RFC3339Nano) },
}

// facetPaths are the paths that named queues ask for: the index holds what stands there.
func facetPaths(c *config) (paths []string) {
	for _, q := range c.queues {
		for _, p := range q.Paths() {
			if plainPaths[p] == nil {
				paths = append(paths, p)
			}
		}
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}

// maxFacet is how long a value may be that the index holds; a longer one is read
// when it is asked for.
const (
	maxFacet   = 500
	longFacet  = "\x00"
	executions = "execution." // what paths into execution.json begin with
)

// facetsHeld are the paths whose values the index holds.
func (e *Engine) facetsHeld() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.derived.facets
}

// facetsBegun are the paths whose values the newest index is being filled with.
func (e *Engine) facetsBegun() []string { return *e.facets.Load() }

func facetsOf(paths []string, f *files) []string {
	if len(paths) == 0 {
		return nil
	}
	out := make([]string, len(paths))
	for i, p := range paths {
		if out[i] = lookUp(f.manifest, f.execution, p).Raw; len(out[i]) > maxFacet {
			out[i] = longFacet
		}
	}
	return out
}

// lookUp finds what stands at a path of an item's records.
func lookUp(manifest, execution []byte, path string) gjson.Result {
	if rest, ok := strings.CutPrefix(path, executions); ok {
		return gjson.GetBytes(execution, rest)
	}
	return gjson.GetBytes(manifest, path)
}

// valuesOf gives what stands at paths of an item's records: from the index where it
// holds them, else from the records, which are read once.
func (e *Engine) valuesOf(r gitstore.Reader, it *queue.Item, facets []string) condition.Values {
	var read *records
	return func(path string) gjson.Result {
		if plain := plainPaths[path]; plain != nil {
			return gjson.Result{Type: gjson.String, Str: plain(it), Raw: `""`}
		}
		if i := slices.Index(facets, path); i >= 0 && i < len(it.Facets) && it.Facets[i] != longFacet {
			return gjson.Parse(it.Facets[i])
		}
		if read == nil {
			found, err := readRecords(r, it.ID)
			if err != nil {
				e.o.Log.Warn("a condition is asked of an item that cannot be read", "item", it.ID, "err", err)
			}
			read = &found
		}
		return lookUp(read.manifest, read.execution, path)
	}
}

// Asked notes which paths a listing asked for, and whether any item has something
// there: where none has, the path is most likely misspelt.
type Asked struct{ paths map[string]bool }

// Missing lists the paths that were asked for and that no item has.
func (q *Asked) Missing() (paths []string) {
	if q == nil {
		return nil
	}
	for p, there := range q.paths {
		if !there {
			paths = append(paths, p)
		}
	}
	slices.Sort(paths)
	return paths
}

func (q *Asked) note(v condition.Values) condition.Values {
	if q == nil {
		return v
	}
	if q.paths == nil {
		q.paths = map[string]bool{}
	}
	return func(path string) gjson.Result {
		found := v(path)
		q.paths[path] = q.paths[path] || found.Exists()
		return found
	}
}

// asker answers conditions on items.
type asker struct {
	e      *Engine
	r      gitstore.Reader
	facets []string
	now    time.Time
	asked  *Asked
}

func (e *Engine) asker(asked *Asked) (asker, error) {
	v, err := e.store.Tip()
	if err != nil {
		return asker{}, err
	}
	return asker{e, v, e.facetsHeld(), e.o.Now(), asked}, nil
}

func (a asker) holds(w *condition.Where, it *queue.Item) bool {
	if w == nil {
		return true
	}
	is, _ := w.Holds(a.asked.note(a.e.valuesOf(a.r, it, a.facets)), a.now)
	return is
}
