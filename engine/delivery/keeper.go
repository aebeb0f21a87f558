package delivery

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"sync"

	"bagpipe/engine/folder"
	"bagpipe/engine/gitstore"
	"bagpipe/engine/ledger"
	"bagpipe/engine/settings"
	"bagpipe/layout"
	"bagpipe/layout/disk"
	"bagpipe/steps/target"
)

// Keeper keeps account of deliveries, and makes them.
type Keeper struct {
	ledger   *ledger.Ledger
	settings *settings.Source
	folders  *folder.Folders
	targets  *target.Pool

	listing sync.Mutex // held by a list of all items, of which one is made at a time

	used sync.Map // the names of targets that hold something, as was seen once

	senders senders

	turn sync.Mutex // held by Pass and Republish; guards the rest
	seen bool       // at and open are read
	at   gitstore.Hash
	open map[layout.ItemID]bool // items that have something to send; false: kept from it as they were last seen
	asks map[layout.ItemID]bool // items of which a delivery waits for a person, or is unconfirmed
	held map[layout.Name]bool   // the targets that were sent something

	rules string // the digest of those that all that is ready was held against
}

// New gives the deliveries of a workspace.
func New(l *ledger.Ledger, s *settings.Source, fo *folder.Folders, targets *target.Pool) *Keeper {
	return &Keeper{ledger: l, settings: s, folders: fo, targets: targets,
		senders: senders{moved: make(chan struct{}, 1), busy: map[layout.Name]bool{}}}
}

// look is .bagpipe/delivery/look.json: the tree of the last look, and the items that have
// something to send, or of which a delivery waits for a person or is unconfirmed.
type look struct {
	Tree string           `json:"tree"`
	Open []layout.ItemID  `json:"open"`
	Asks *[]layout.ItemID `json:"asks"` // nil in files of earlier programs: all is looked at anew
	Held []layout.Name    `json:"held"` // the targets that were sent something
}

func lookFile(root string) string { return filepath.Join(root, layout.DeliveryDir, "look.json") }

// lookAnew forgets the last look: all items are to be looked at.
func lookAnew(k *Keeper) {
	k.seen, k.at, k.open, k.asks, k.held = true, gitstore.Hash{}, map[layout.ItemID]bool{}, map[layout.ItemID]bool{}, map[layout.Name]bool{}
}

// readLook reads where the last look ended; one that cannot be used begins anew.
func (k *Keeper) readLook() {
	lookAnew(k)
	l, err := lastLook(k.ledger)
	if err != nil || l == nil {
		return
	}
	tree, err := gitstore.ParseHash(l.Tree)
	if err != nil {
		return
	}
	if there, err := k.ledger.Store.HasTree(tree); err != nil || !there {
		return
	}
	k.at = tree
	for _, id := range l.Open {
		k.open[id] = true
	}
	for _, id := range *l.Asks {
		k.asks[id] = true
	}
	for _, to := range l.Held {
		k.held[to] = true
	}
}

func (k *Keeper) writeLook() error {
	asks := append([]layout.ItemID{}, slices.Sorted(maps.Keys(k.asks))...)
	data, err := json.Marshal(look{k.at.String(), slices.Sorted(maps.Keys(k.open)), &asks, slices.Sorted(maps.Keys(k.held))})
	if err != nil {
		return err
	}
	if err := disk.MkdirAll(filepath.Dir(lookFile(k.ledger.Root)), 0o777); err != nil {
		return err
	}
	return disk.WriteFile(lookFile(k.ledger.Root), append(data, '\n'), 0o666)
}

// atOnce is how many items change in one commit.
const atOnce = 200

// catchUp holds what changed since the last look against the rules.
func (k *Keeper) catchUp(ctx context.Context, b book) error {
	if !k.seen {
		k.readLook()
	}
	for {
		v, err := k.ledger.Store.Tip()
		if err != nil || v.Tree() == k.at {
			return err
		}
		var changed []layout.ItemID
		first := k.at.IsZero()
		if first {
			err = lookFirst(ctx, k, v, b)
		} else if changed, err = k.weighSince(ctx, v, k.at, b); err == nil {
			err = k.commit(ctx, changed, "weighed", b.weigher(k.ledger))
		}
		if err != nil {
			return err
		}
		k.at = v.Tree()
		if err := k.writeLook(); err != nil || len(changed) == 0 && !first {
			return err
		}
	}
}

// weigher brings objects to what the rules say.
func (b book) weigher(l *ledger.Ledger) func(*object) bool {
	return func(o *object) bool { return b.weigh(o, l.Now(), l.ByEngine().Agent) }
}

// weighSince finds the items whose deliveries are not what the rules say, and those that have
// something to send, among those that are not as in the tree since.
func (k *Keeper) weighSince(ctx context.Context, v gitstore.View, since gitstore.Hash, b book) (changed []layout.ItemID, err error) {
	var mu sync.Mutex // guards changed, k.open and k.asks
	err = each(ctx, k.ledger, v, since, func(o *object) {
		is := b.weigh(o, k.ledger.Now(), "")
		mu.Lock()
		defer mu.Unlock()
		if is {
			changed = append(changed, o.id)
		}
		noteOpen(k, o)
	})
	slices.Sort(changed)
	return changed, err
}

// noteOpen notes whether an item has something to send, or waits for a person, and which targets may hold it.
func noteOpen(k *Keeper, o *object) {
	for to, d := range o.delivery.Targets {
		if d.Sent != nil {
			k.held[to] = true
		}
	}
	if delete(k.open, o.id); toSend(o) {
		k.open[o.id] = true
	}
	delete(k.asks, o.id)
	for _, d := range o.delivery.Targets {
		if asksPerson(d) || d.State == layout.DeliveryUnconfirmed { // which may be confirmed by other rules or settings
			k.asks[o.id] = true
		}
	}
}

// toSend reports whether a pass has something to do at a target.
func toSend(o *object) bool {
	for _, d := range o.delivery.Targets {
		if goesOn(d) {
			return true
		}
	}
	return false
}

func goesOn(d *layout.Delivery) bool {
	return d.State == layout.DeliveryReady || d.State == layout.DeliverySending || d.Engine != "" || toTakeBack(d)
}

// toTakeBack reports whether a run is to take back what the target holds.
func toTakeBack(d *layout.Delivery) bool {
	return d.State == layout.DeliveryUnconfirmed && d.Sent != nil && (d.Due || wantedBack(d) && !d.Decision.Kept)
}

// wantedBack reports whether a person wants back what the target holds.
func wantedBack(d *layout.Delivery) bool {
	return d.Decision != nil && d.Decision.What == layout.DeliveryTakeBack
}

// each reads the objects that are not as in the tree since; visit is called by several
// goroutines. An item that cannot be read is told of.
func each(ctx context.Context, l *ledger.Ledger, v gitstore.View, since gitstore.Hash, visit func(*object)) error {
	return v.Folders(ctx, since, layout.ItemsDir, ledger.ItemDepth, func(folder gitstore.Folder) error {
		id, rest, ok := layout.ItemOfPath(folder.Path)
		if !ok || rest != "" {
			return nil // no item's folder
		}
		o := lookAt(below{folder}, id)
		if o == nil {
			return nil
		}
		if o.bad != nil {
			l.Warn(o.bad.Error() + "; it is delivered nowhere until that is put right")
		}
		visit(o)
		return nil
	})
}

// below reads files of a folder by their paths in the workspace.
type below struct{ gitstore.Folder }

func (b below) ReadFile(name string) ([]byte, error) {
	return b.Folder.ReadFile(filepath.Base(name))
}

// commit changes items' deliveries, many in a commit. change is asked again of each as it is
// then, and reports whether it changed anything.
func (k *Keeper) commit(ctx context.Context, items []layout.ItemID, what string, change func(*object) bool) error {
	if len(items) > 0 && k.ledger.ReadOnly {
		return gitstore.ErrReadOnly
	}
	for some := range slices.Chunk(items, atOnce) {
		_, err := k.ledger.Store.Commit(ctx, func(r gitstore.Reader) (*gitstore.Change, error) {
			files := map[string][]byte{}
			for _, id := range some {
				if err := changeItem(r, id, change, files); err != nil {
					return nil, err
				}
			}
			if len(files) == 0 {
				return nil, nil
			}
			who := k.ledger.ByEngine()
			return &gitstore.Change{Files: files, Author: who.Author,
				Message: ledger.Message(fmt.Sprintf("delivery: %s %s", what, layout.Count(len(files), "item")), "", []ledger.Trailer{{"Bagpipe-Agent", who.Agent}})}, nil
		})
		if err != nil {
			return fmt.Errorf("note deliveries: %w", err)
		}
	}
	return nil
}

func changeItem(r gitstore.Reader, id layout.ItemID, change func(*object) bool, files map[string][]byte) error {
	o, err := readObject(r, id)
	if err != nil || o == nil || o.bad != nil || !change(o) {
		return err
	}
	data, err := o.delivery.Encode()
	if err != nil {
		return err
	}
	if len(o.delivery.Targets) == 0 {
		data = nil
	}
	files[layout.ItemDir(id)+"/"+layout.DeliveryJSON] = data
	return nil
}

// setOne changes one item's delivery to one target. change may refuse; was is nil where there
// is none yet.
func (k *Keeper) setOne(ctx context.Context, id layout.ItemID, to layout.Name, who ledger.Actor, change func(o *object, d *layout.Delivery) error) error {
	if k.ledger.ReadOnly {
		return gitstore.ErrReadOnly
	}
	return k.ledger.Transact(ctx, id, func(r gitstore.Reader) (*gitstore.Change, error) {
		o, err := readObject(r, id)
		if err == nil && o == nil {
			err = ledger.NoRecords(r, id)
		}
		if err == nil {
			err = o.bad
		}
		if err != nil {
			return nil, err
		}
		o.at = r
		d := o.delivery.Targets[to]
		if d == nil {
			if err := unknown(k, to); err != nil {
				return nil, refusedf("%v", err)
			}
			return nil, notListed(id, to)
		}
		if err := change(o, d); err != nil {
			if errors.Is(err, errNothing) {
				return nil, nil
			}
			return nil, err
		}
		d.By, d.At = who.Agent, k.ledger.Now()
		data, err := o.delivery.Encode()
		if err != nil {
			return nil, err
		}
		m, err := layout.DecodeManifest(o.manifest)
		if err != nil {
			return nil, err
		}
		message := ledger.Message(fmt.Sprintf("delivery: %s %s to %s (%s/%s)", d.State, id, to, m.Collection, ledger.Clip(m.Label, 100)), d.Message,
			[]ledger.Trailer{{"Bagpipe-Item", string(id)}, {"Bagpipe-Delivery", keyOf(id, d.Version, to)}, {"Bagpipe-To", d.State}, {"Bagpipe-Agent", who.Agent}})
		return &gitstore.Change{Files: map[string][]byte{layout.ItemDir(id) + "/" + layout.DeliveryJSON: data}, Author: who.Author, Message: who.Sign(message)}, nil
	})
}

// errNothing says that there is nothing to change.
var errNothing = errors.New("nothing to change")
