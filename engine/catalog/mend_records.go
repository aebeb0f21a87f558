package catalog

import (
	"bytes"
	"context"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"bagpipe/engine/gitstore"
	"bagpipe/engine/ledger"
	"bagpipe/engine/recognise"
	"bagpipe/layout"
)

// The rules are: a folder's record says which item an entry is, and the item's manifest says where the object lies. After a
// move they differ while a scan that was killed is not gone on with, or a version waits: the record is right. Where others
// changed the record, the manifest is right: no two entries are one item, none is an item of elsewhere, and an object
// that has an item gets no second one.

// claims are what the items of a catalog say of their objects, and what the records say of the items.
type claims struct {
	of      map[layout.ItemID]claim
	foreign map[layout.ItemID]bool   // named by a record, and no objects of this catalog
	named   map[layout.ItemID]spot   // by a record
	twice   []spot                   // entries that name an item which another entry names, too
	free    map[string]layout.ItemID // items that no record names, by their places; nil: not asked for yet
}

// claim is what one item says.
type claim struct {
	place string // as placeKey has it
	since time.Time
}

// spot is an entry in a record.
type spot struct {
	in *node
	at int
}

func (s spot) entry() *entry { return &s.in.all()[s.at] }

func (s spot) path() string { return join(s.in.path, s.entry().name) }

func (s spot) place() string { return placeKey(s.path(), s.entry().kind) }

// placeKey is an object's path, and of a folder another than of a file.
func placeKey(path string, k kind) string {
	if k == folder {
		return path + "/"
	}
	return path
}

// placeOf is where an object lies below its root.
func placeOf(p layout.Place) (string, error) {
	rel, err := layout.DecodePath(p.Path)
	return filepath.ToSlash(rel), err
}

// readClaims reads all items that are objects of a catalog, and those that its records name.
func readClaims(ctx context.Context, v gitstore.View, catalog layout.Name, t tree) (*claims, error) {
	c := &claims{of: map[layout.ItemID]claim{}, foreign: map[layout.ItemID]bool{}, named: map[layout.ItemID]spot{}}
	for _, n := range t {
		i := -1
		n.each(func(e *entry) bool {
			i++
			if _, twice := c.named[e.item]; twice {
				c.twice = append(c.twice, spot{n, i})
			} else if e.item != "" {
				c.named[e.item] = spot{n, i}
			}
			return true
		})
	}
	var turn sync.Mutex // guards of and foreign
	return c, v.Folders(ctx, gitstore.Hash{}, layout.ItemsDir, ledger.ItemDepth, func(f gitstore.Folder) error {
		id, rest, is := layout.ItemOfPath(f.Path)
		if !is || rest != "" {
			return nil
		}
		_, named := c.named[id]
		data, err := f.ReadFile(layout.ManifestJSON)
		if err != nil || !named && !bytes.Contains(data, []byte(`"place"`)) { // most are no objects in place
			return err
		}
		m, err := layout.DecodeManifest(data)
		if err != nil || m.Disposed != nil {
			return nil // a damaged one is told of by itself
		}
		p := m.Source.Place
		turn.Lock()
		defer turn.Unlock()
		if p == nil || p.Catalog != catalog {
			// One whose version was dropped is in no place, and the catalog makes the next.
			c.foreign[id] = named && (p != nil || m.Version == 1)
			return nil
		}
		k := file
		if len(p.With) == 0 && (m.Source.Kind == recognise.KindFolder || m.Source.Kind == recognise.KindBag) {
			k = folder
		}
		if path, err := placeOf(*p); err == nil {
			c.of[id] = claim{placeKey(path, k), m.Created}
		}
		return nil
	})
}

// wrong gives the entries that cannot be the items that they name, and forgets that they name them. there reports whether
// something lies at a path.
func (c *claims) wrong(there func(path string) bool) (all []spot) {
	for _, s := range c.twice {
		if best := c.named[s.entry().item]; c.likelier(s, best, there) {
			c.named[s.entry().item], s = s, best
		}
		all = append(all, s)
	}
	for id := range c.foreign {
		if c.foreign[id] {
			all = append(all, c.named[id])
			delete(c.named, id)
		}
	}
	for id := range c.misplaced(there) {
		all = append(all, c.named[id])
		delete(c.named, id)
	}
	return all
}

// likelier reports whether of two entries that name one item a is that, rather than b: what is there has come to where it
// is, else the item says where it lies.
func (c *claims) likelier(a, b spot, there func(path string) bool) bool {
	if x, y := there(a.path()), there(b.path()); x != y {
		return x
	}
	place := c.of[a.entry().item].place
	if x, y := a.place() == place, b.place() == place; x != y {
		return x
	}
	return a.path() < b.path()
}

// misplaced gives the items that an entry names whose own item is another: that one says so, and no other entry is it. The
// item that is named lies elsewhere still, as its object has not moved.
func (c *claims) misplaced(there func(path string) bool) map[layout.ItemID]layout.ItemID {
	at, own := c.places(func(layout.ItemID) bool { return true }), map[layout.ItemID]layout.ItemID{}
	for id, s := range c.named {
		of, is := c.of[id]
		if other := at[s.place()]; other != "" && (!is || of.place != s.place() && there(strings.TrimSuffix(of.place, "/"))) {
			own[id] = other
		}
	}
	for settled := false; !settled; {
		settled = true
		for id, other := range own {
			if _, named := c.named[other]; named && own[other] == "" {
				delete(own, id)
				settled = false
			}
		}
	}
	return own
}

// places gives items by where they lie; of two at one place the younger.
func (c *claims) places(only func(layout.ItemID) bool) map[string]layout.ItemID {
	all := map[string]layout.ItemID{}
	for id, is := range c.of {
		if !only(id) {
			continue
		}
		if other := c.of[all[is.place]]; other.place == "" || other.since.Before(is.since) {
			all[is.place] = id
		}
	}
	return all
}

// at is the item that lies at a place and that no record names; "": there is none.
func (c *claims) at(place string) layout.ItemID {
	if c.free == nil {
		c.free = c.places(func(id layout.ItemID) bool { _, named := c.named[id]; return !named })
	}
	return c.free[place]
}

// take gives what at does, once.
func (c *claims) take(place string) layout.ItemID {
	item := c.at(place)
	delete(c.free, place)
	return item
}
