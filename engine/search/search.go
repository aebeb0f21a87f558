package search

import (
	"context"
	"errors"
	"os"
	"slices"
	"sync"

	"bagpipe/engine/gitstore"
	"bagpipe/engine/index"
	"bagpipe/engine/ledger"
	"bagpipe/engine/query"
	"bagpipe/layout"

	"github.com/tidwall/gjson"
)

// Searches answers searches of a workspace.
type Searches struct {
	ledger *ledger.Ledger
	// Building, when given, is called before an index is built anew, which may take
	// minutes. It is set before the first search.
	Building func()

	work   sync.WaitGroup // at the index; it outlives the search that began it
	taking sync.Mutex     // held while changed items are taken into their parts
	closed chan struct{}
}

// New gives the searches of a workspace.
func New(l *ledger.Ledger) *Searches {
	return &Searches{ledger: l, closed: make(chan struct{})}
}

// Close ends the work at the index; what is taken into its parts at present, a second's work, is ended well.
func (s *Searches) Close() {
	close(s.closed)
	s.work.Wait()
}

// tries is how often a search begins again, as another process brought the index to a later
// tip; then it is answered from the records.
const tries = 6

// Find tells each item that fits, those with all words in the label first, then by
// identifier, until visit answers false. limit is how many are most likely asked for; 0: all.
// q has been checked. While items change, it tells none twice, and each that fitted all the time; what is told after
// the index moved on stands behind what was told before.
func (s *Searches) Find(ctx context.Context, q query.Query, limit int, visit func(Hit) bool) error {
	var told []uint64 // identifiers; eight bytes each, as there may be millions
	look := func(v gitstore.View, each func(func(layout.ItemID) (bool, error)) error) error {
		before := make(map[uint64]bool, len(told))
		for _, n := range told {
			before[n] = true
		}
		return each(func(id layout.ItemID) (bool, error) {
			if before[id.Bits()] {
				return true, nil
			}
			r, err := ledger.ReadRecords(v, id)
			if err != nil || !s.holds(q, r) {
				return err == nil, err
			}
			d := read(id, r)
			if d == nil || !d.fitsAlso(q) { // the index has it, so that it can be read
				return true, nil
			}
			told = append(told, id.Bits())
			return visit(d.hit(q)), nil
		})
	}
	err := s.indexed(ctx, q, func(a *asked, v gitstore.View) error {
		return look(v, func(f func(layout.ItemID) (bool, error)) error { return a.each(ctx, limit, f) })
	})
	if err == nil || !s.besides(err) {
		return err
	}
	v, err := s.ledger.Store.Tip()
	if err != nil {
		return err
	}
	return look(v, func(f func(layout.ItemID) (bool, error)) error { return s.scan(ctx, v, q, f) })
}

// Alike names, for a query, the items that have the name and the total size of an item; "": its size is not known yet.
func (s *Searches) Alike(id layout.ItemID) (string, error) {
	v, err := s.ledger.Store.Tip()
	if err != nil {
		return "", err
	}
	r, err := ledger.ReadRecords(v, id)
	if err != nil {
		return "", err
	}
	if d := read(id, r); d != nil {
		return d.alike, nil
	}
	_, err = layout.DecodeManifest(r.Manifest)
	return "", err
}

// Facets counts what the items that fit have in common.
func (s *Searches) Facets(ctx context.Context, q query.Query) ([]Facet, error) {
	if q.Which == nil || isNarrow(q) {
		all, err := s.countFound(ctx, q)
		if err == nil || !errors.Is(err, errWide) && !s.besides(err) {
			return all, err
		}
	}
	return s.countEach(ctx, q)
}

// isNarrow reports whether the index may name few items, so that reading their records by themselves takes less than reading
// all in the order in which they lie.
func isNarrow(q query.Query) bool {
	terms, sums := wanted(q)
	return len(q.Words)+len(q.Tags)+len(terms)+len(sums) > 0
}

// Records that are read by themselves take some ten times as long as in the order in which they lie.
const (
	wideOf     = 16  // of so many items one may be read by itself
	alwaysRead = 100 // as many may, however few there are
)

// errWide says that so many items may fit that all records are better read.
var errWide = errors.New("the index names too many items")

// countFound counts what those items have in common that the index names.
func (s *Searches) countFound(ctx context.Context, q query.Query) (all []Facet, err error) {
	err = s.indexed(ctx, q, func(a *asked, v gitstore.View) (err error) {
		if q.Which == nil && q.Also == nil {
			all, err = a.facets(ctx)
		} else {
			all, err = s.countThose(ctx, a, v)
		}
		return err
	})
	return all, err
}

// countThose counts what items have in common of which the index says that they may fit.
func (s *Searches) countThose(ctx context.Context, a *asked, v gitstore.View) ([]Facet, error) {
	most, n := 0, 0
	if err := a.numbers(ctx, "SELECT coalesce(sum(next), 0) FROM part", nil, func(items int64) bool {
		most = max(int(items)/wideOf, alwaysRead)
		return true
	}); err != nil {
		return nil, err
	}
	counts := counts{}
	err := a.each(ctx, 0, func(id layout.ItemID) (bool, error) {
		if n++; n > most {
			return false, errWide
		}
		r, err := ledger.ReadRecords(v, id)
		if err != nil || !s.holds(a.Query, r) {
			return err == nil, err
		}
		if d := read(id, r); d != nil && d.fitsAlso(a.Query) {
			for _, t := range d.terms {
				counts[t.key()]++
			}
		}
		return true, nil
	})
	return counts.facets(), err
}

// besides reports whether a search goes on without the index.
func (s *Searches) besides(err error) bool {
	if errors.Is(err, errMoved) || errors.Is(err, gitstore.ErrReadOnly) {
		return true
	}
	if !unwritable(err) && !damaged(err) {
		return false
	}
	s.ledger.Log.Warn("the search index cannot be used; every record is read", "err", err)
	return true
}

// errMoved says that the index is not, or no more, of the tree that was asked for.
var errMoved = errors.New("the search index is kept at another tip")

// indexed lets f ask the index, brought to the tip. An index that turns out to be damaged is
// built anew.
func (s *Searches) indexed(ctx context.Context, q query.Query, f func(*asked, gitstore.View) error) error {
	for try := range tries {
		v, err := s.ledger.Store.Tip()
		if err != nil {
			return err
		}
		is, err := s.ask(ctx, v, q, try > 1, f)
		switch {
		case errors.Is(err, errMoved):
			continue
		case is && err == nil:
			return nil
		case s.ledger.ReadOnly && !is:
			return gitstore.ErrReadOnly
		case err != nil && !damaged(err) || s.ledger.ReadOnly:
			return err
		case is:
			s.ledger.Log.Warn("the search index is damaged, and built anew", "err", err)
			if err := os.RemoveAll(s.path()); err != nil {
				return err
			}
		}
		if err := s.bring(ctx, v); err != nil {
			return err
		}
	}
	return errMoved
}

// ask puts the query to the index, if it follows from the tree of v. whole: others wait with what they write
// until all is found.
func (s *Searches) ask(ctx context.Context, v gitstore.View, q query.Query, whole bool, f func(*asked, gitstore.View) error) (is bool, err error) {
	if err := s.isThere(); err != nil {
		return false, err
	}
	db, conn, err := openDB(ctx, s.path())
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, conn.Close(), db.Close()) }()
	a := newAsked(s.path(), conn, q)
	a.whole = whole
	defer func() { err = errors.Join(err, a.close()) }()
	err = a.together(ctx, func() error {
		tree, err := treeOf(ctx, conn)
		if is = tree == v.Tree(); err != nil || !is {
			return err
		}
		return a.prepare(ctx)
	})
	if err != nil || !is {
		return false, err
	}
	if err := f(a, v); err != nil {
		return true, err
	}
	if a.crowded && !s.ledger.ReadOnly {
		s.takeIn(ctx, v)
	}
	return true, nil
}

// holds reports whether the query's condition holds of an item.
func (s *Searches) holds(q query.Query, r ledger.Records) bool {
	is, _ := q.Which.Holds(func(path string) gjson.Result { return index.LookUp(r.Manifest, r.Execution, path) }, s.ledger.Now())
	return is
}

// scan gives the items that fit but for the condition, by a look at every record.
func (s *Searches) scan(ctx context.Context, v gitstore.View, q query.Query, visit func(layout.ItemID) (bool, error)) error {
	var mu sync.Mutex // guards first and rest
	var first, rest []layout.ItemID
	err := s.eachDocument(ctx, v, false, func(d *document, _ ledger.Records) {
		is, inLabel := d.fits(q)
		mu.Lock()
		defer mu.Unlock()
		switch {
		case is && inLabel:
			first = append(first, d.id)
		case is:
			rest = append(rest, d.id)
		}
	})
	if err != nil {
		return err
	}
	slices.Sort(first)
	slices.Sort(rest)
	for _, id := range slices.Concat(first, rest) {
		if more, err := visit(id); err != nil || !more {
			return err
		}
	}
	return nil
}

// eachDocument reads every item, and its execution where that is asked for; visit is called by several goroutines.
func (s *Searches) eachDocument(ctx context.Context, v gitstore.View, execution bool, visit func(*document, ledger.Records)) error {
	return v.Folders(ctx, gitstore.Hash{}, layout.ItemsDir, ledger.ItemDepth, func(folder gitstore.Folder) error {
		id, rest, ok := layout.ItemOfPath(folder.Path)
		if !ok || rest != "" {
			return nil // no item's folder
		}
		r, err := searchedOf(folder)
		if err == nil && execution {
			r.Execution, err = folder.ReadFile(layout.ExecutionJSON)
		}
		if err != nil {
			return err
		}
		if d := read(id, r); d != nil {
			visit(d, r)
		}
		return nil
	})
}

// searchedOf reads the records that a document is made of.
func searchedOf(folder gitstore.Folder) (r ledger.Records, err error) {
	if r.Manifest, err = folder.ReadFile(layout.ManifestJSON); err != nil {
		return r, err
	}
	r.Inventory, err = folder.ReadFile(layout.InventoryJSON)
	return r, err
}

// countEach counts what items have in common by a look at every record.
func (s *Searches) countEach(ctx context.Context, q query.Query) ([]Facet, error) {
	v, err := s.ledger.Store.Tip()
	if err != nil {
		return nil, err
	}
	var mu sync.Mutex // guards counts
	counts := counts{}
	err = s.eachDocument(ctx, v, q.Which != nil, func(d *document, r ledger.Records) {
		if is, _ := d.fits(q); !is || !s.holds(q, r) {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		for _, t := range d.terms {
			counts[t.key()]++
		}
	})
	return counts.facets(), err
}
