package ask

import (
	"slices"
	"time"

	"bagpipe/engine/condition"
	"bagpipe/engine/gitstore"
	"bagpipe/engine/index"
	"bagpipe/engine/ledger"
	"bagpipe/engine/queue"

	"github.com/tidwall/gjson"
)

// ValuesOf gives what stands at paths of an item's records: from the index where it
// holds them, else from the records, which are read once.
func (li *Lists) ValuesOf(r gitstore.Reader, it *queue.Item, facets []string) condition.Values {
	var read *ledger.Records
	return func(path string) gjson.Result {
		if plain := index.PlainPaths[path]; plain != nil {
			return gjson.Result{Type: gjson.String, Str: plain(it), Raw: `""`}
		}
		if i := slices.Index(facets, path); i >= 0 && i < len(it.Facets) && it.Facets[i] != index.LongFacet {
			return gjson.Parse(it.Facets[i])
		}
		if read == nil {
			found, err := ledger.ReadRecords(r, it.ID)
			if err != nil {
				li.ledger.Log.Warn("a condition is asked of an item that cannot be read", "item", it.ID, "err", err)
			}
			read = &found
		}
		return index.LookUp(read.Manifest, read.Execution, path)
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
	lists  *Lists
	R      gitstore.Reader
	Facets []string
	Now    time.Time
	asked  *Asked
}

func (li *Lists) Asker(asked *Asked) (asker, error) {
	v, err := li.ledger.Store.Tip()
	if err != nil {
		return asker{}, err
	}
	return asker{li, v, li.index.FacetsHeld(), li.ledger.Now(), asked}, nil
}

func (a asker) holds(w *condition.Where, it *queue.Item) bool {
	if w == nil {
		return true
	}
	is, _ := w.Holds(a.asked.note(a.lists.ValuesOf(a.R, it, a.Facets)), a.Now)
	return is
}
