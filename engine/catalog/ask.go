package catalog

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"sync"
	"time"

	"bagpipe/engine/fault"
	"bagpipe/engine/ledger"
	"bagpipe/layout"
)

// Row is how one catalog stands.
type Row struct {
	Name       layout.Name    `json:"name"`
	Root       string         `json:"root"`
	Collection layout.Name    `json:"collection"`
	Workflow   string         `json:"workflow,omitempty"`
	Away       string         `json:"away,omitempty"`
	Scanned    time.Time      `json:"scanned,omitzero"` // the end of the last scan here
	Folders    int            `json:"folders"`
	Files      int            `json:"files"`
	Bytes      int64          `json:"bytes"`
	Items      int            `json:"items"`
	Verdicts   map[string]int `json:"verdicts"`         // of entries that are there
	Gone       int            `json:"gone"`             // entries, and what was below them
	States     map[string]int `json:"states"`           // of folders
	Failed     string         `json:"failed,omitempty"` // why the last scan here failed
	Ahead
}

// Ahead is what the next scan has to come to.
type Ahead struct {
	Unlisted int `json:"unlisted"` // folders that no scan has come to yet; unconfirmed, too
	Waiting  int `json:"waiting"`  // entries that could not be looked into
}

// Rows tells how all catalogs stand.
func (k *Keeper) Rows() (rows []Row, err error) {
	for _, name := range slices.Sorted(maps.Keys(k.settings.Current().Catalogs)) {
		r, err := k.Row(name)
		if err != nil {
			return nil, err
		}
		rows = append(rows, r)
	}
	return rows, nil
}

// Row tells how a catalog stands.
func (k *Keeper) Row(name layout.Name) (r Row, err error) {
	c, err := k.Catalog(name)
	if err != nil {
		return r, err
	}
	known, err := k.counts.of(k, name)
	if err != nil {
		return r, err
	}
	r = known.Row
	r.Name, r.Root, r.Collection, r.Workflow = name, c.Root, c.Collection, c.Workflow
	_, r.Away = (&scan{cat: c, old: known.root}).away()
	if info, err := os.Stat(k.checkpointPath(name)); err == nil {
		r.Scanned = info.ModTime()
	}
	r.Failed = k.failure(name)
	return r, nil
}

// Trouble is what a catalog wants of a person.
type Trouble struct {
	Catalog     layout.Name `json:"catalog"`
	Root        string      `json:"root"`
	Away        string      `json:"away,omitempty"`   // why its root is not looked at
	Unconfirmed int         `json:"unconfirmed"`      // folders with entries that are not there
	Unlisted    int         `json:"unlisted"`         // folders that no scan has come to yet
	Unread      int         `json:"unread"`           // folders that could not be read
	Waiting     int         `json:"waiting"`          // entries that could not be looked into
	Failed      string      `json:"failed,omitempty"` // why the last scan failed
}

// Trouble is what the catalog wants of a person.
func (r Row) Trouble() Trouble {
	return Trouble{r.Name, r.Root, r.Away, r.States[Unconfirmed] - r.Unlisted, r.Unlisted, r.States[Unread], r.Waiting, r.Failed}
}

func (k *Keeper) failurePath(name layout.Name) string {
	return k.ledger.Path(stateDir + "/" + string(name) + ".failed")
}

// noteFailure keeps why the last scan of a catalog failed, for who asks how it stands; nil: it did not.
func (k *Keeper) noteFailure(name layout.Name, cause error) error {
	if cause != nil {
		return os.WriteFile(k.failurePath(name), []byte(ledger.Clip(ledger.Printable(cause.Error()), ledger.MaxMessage)), 0o666)
	}
	if err := os.Remove(k.failurePath(name)); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// failure says why the last scan of a catalog failed; "": it did not.
func (k *Keeper) failure(name layout.Name) string {
	why, _ := os.ReadFile(k.failurePath(name)) // most have none
	return string(why)
}

// Troubled tells of the catalogs that want something of a person; a root that does not answer is away.
func Troubled(k *Keeper) ([]Trouble, error) {
	troubled := []Trouble{}
	catalogs := k.settings.Current().Catalogs
	for _, name := range slices.Sorted(maps.Keys(catalogs)) {
		c := catalogs[name]
		t, _, err := k.load(name)
		if err != nil {
			return nil, err
		}
		r := Row{Name: name, Root: c.Root, States: map[string]int{}}
		if len(t) > 0 {
			r.stand(t, "")
		}
		r.Failed = k.failure(name)
		if !k.ledger.Clone { // roots are where the workspace is
			_, r.Away = (&scan{cat: c, old: t}).awayWithin(answerTime)
		}
		if is := r.Trouble(); is != (Trouble{Catalog: name, Root: c.Root}) {
			troubled = append(troubled, is)
		}
	}
	return troubled, nil
}

// counts remembers what was counted in catalogs: to count, all of a catalog's records are read.
// The lock guards the map, and is held while one is counted.
type counts struct {
	mu sync.Mutex
	by map[layout.Name]counted
}

type counted struct {
	Row
	root tree // the root's own record alone
	hash string
}

// of gives what a catalog's tree at the tip holds.
func (c *counts) of(k *Keeper, name layout.Name) (counted, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	v, err := k.ledger.Store.Tip()
	if err != nil {
		return counted{}, err
	}
	hash, err := treeHash(v, name)
	if err != nil || hash != "" && c.by[name].hash == hash {
		return c.by[name], err
	}
	t, complete, err := k.load(name)
	if err != nil {
		return counted{}, err
	}
	if !complete { // items are registered, and its records stay as they are
		hash = ""
	}
	now := counted{Row{Verdicts: map[string]int{}, States: map[string]int{}}, tree{}, hash}
	if root := t[""]; root != nil {
		now.root[""] = root
	}
	if len(t) > 0 {
		err = now.count(t, "", func(n *node, e *entry) (bool, error) {
			return registered(k.ledger, e.item, complete && e.mtime != 0 && !e.waits && n.state != Unread)
		})
		now.stand(t, "")
	}
	if err != nil {
		return counted{}, err
	}
	c.by[name] = now
	return now, nil
}

// registered reports whether an entry's item is there. Where the last scan ended, it may be wanting of what is to be looked at
// again alone: sure says that it is not.
func registered(l *ledger.Ledger, item layout.ItemID, sure bool) (bool, error) {
	if item == "" || sure {
		return item != "", nil
	}
	return l.Exists(item)
}

// stand counts the folders by their states, and the entries that wait.
func (r *Row) stand(t tree, at string) {
	n := t[at]
	if n == nil {
		r.States[Unconfirmed]++
		r.Unlisted++
		return
	}
	r.States[n.state]++
	if n.tells() {
		n.each(func(e *entry) bool {
			r.Waiting += int(b2i(e.waits))
			return true
		})
	}
	if !n.hasFolders() {
		return
	}
	n.each(func(e *entry) bool {
		if e.kind == folder && !e.gone {
			r.stand(t, join(at, e.name))
		}
		return true
	})
}

// below is how many entries a folder and those in it have, whatever became of them.
func (t tree) below(at string) (entries int) {
	n := t[at]
	if n == nil {
		return 0
	}
	entries = len(n.all())
	n.each(func(e *entry) bool {
		if e.kind == folder {
			entries += t.below(join(at, e.name))
		}
		return true
	})
	return entries
}

func (r *Row) count(t tree, at string, registered func(*node, *entry) (bool, error)) error {
	n := t[at]
	if n == nil {
		return nil
	}
	r.Folders++
	for i := range n.all() {
		e := &n.all()[i]
		if e.gone {
			r.Gone += 1 + t.below(join(at, e.name))
			continue
		}
		r.Verdicts[e.verdict.String()]++
		is, err := registered(n, e)
		if err != nil {
			return err
		}
		r.Items += int(b2i(is))
		if e.kind == folder {
			if err := r.count(t, join(at, e.name), registered); err != nil {
				return err
			}
			continue
		}
		r.Files++
		r.Bytes += e.size
	}
	return nil
}

// Entry is what a listing tells of an entry.
type Entry struct {
	Path     string        `json:"path"` // percent-encoded
	Kind     string        `json:"kind"`
	Verdict  string        `json:"verdict"`
	State    string        `json:"state"`
	Why      string        `json:"why,omitempty"`
	Item     layout.ItemID `json:"item,omitempty"` // "": it is none, or its scan has not registered it
	Size     int64         `json:"size,omitempty"`
	Modified time.Time     `json:"modified,omitzero"`
}

// Which says what is listed.
type Which struct {
	Below string // a path below the root, percent-encoded; "": the root
	All   bool   // parts and what is nothing, too
	Gone  bool   // only what is gone
}

// Gone gives the items of a catalog whose object a scan found gone.
func (k *Keeper) Gone(name layout.Name) (map[layout.ItemID]bool, error) {
	gone := map[layout.ItemID]bool{}
	err := k.Entries(name, Which{Gone: true}, func(e Entry) {
		if e.Item != "" {
			gone[e.Item] = true
		}
	})
	return gone, err
}

// IsGone reports whether a scan found the object of an item gone from where the item says that it lies. The records answer
// also of a catalog that was removed.
func (k *Keeper) IsGone(id layout.ItemID, p layout.Place) (bool, error) {
	v, err := k.ledger.Store.Tip()
	if err != nil {
		return false, err
	}
	object, err := placeOf(p)
	if err != nil {
		return false, err
	}
	found := false
	for at := object; at != ""; at = parentOf(at) {
		n, err := readNode(v, p.Catalog, parentOf(at))
		if err != nil || n == nil {
			return false, err
		}
		for _, e := range n.entries {
			switch {
			case e.name != path.Base(at):
			case at == object && e.item == id, at != object && e.kind == folder && !e.replaced:
				if found = true; e.gone {
					return true, nil
				}
			}
		}
		if !found {
			return false, nil // it moved, and its item does not say so yet
		}
	}
	return false, nil
}

// Entries lists what a catalog knows, each folder before what is below it.
func (k *Keeper) Entries(name layout.Name, w Which, each func(Entry)) error {
	if _, err := k.Catalog(name); err != nil {
		return err
	}
	t, complete, err := k.load(name)
	if err != nil {
		return err
	}
	below, err := layout.DecodePath(w.Below)
	if err != nil {
		return err
	}
	if below = path.Clean("/" + below)[1:]; t[below] == nil && len(t) > 0 {
		return fault.New(fault.NotFound, fmt.Sprintf("no folder %s in catalog %s", w.Below, name))
	}
	var failed error
	t.list(below, t.stateAbove(below), w, func(e Entry) {
		is, err := registered(k.ledger, e.Item, complete && !e.Modified.IsZero() && e.State != Unread)
		if failed = errors.Join(failed, err); !is {
			e.Item = ""
		}
		each(e)
	})
	return failed
}

// stateAbove is Gone where a folder, or one that it lies in, is gone; else the topmost state above it that is not Present.
func (t tree) stateAbove(dir string) string {
	state := Present
	for at := dir; at != ""; at = parentOf(at) {
		in := t[parentOf(at)]
		if in == nil {
			continue
		}
		if e := in.findOf(path.Base(at), folder); e != nil && e.gone {
			return Gone
		}
		if in.state != Present {
			state = in.state
		}
	}
	return state
}

func (t tree) list(at, state string, w Which, each func(Entry)) {
	n := t[at]
	if n == nil {
		return
	}
	if state == Present {
		state = n.state
	}
	for i := range n.all() {
		e := &n.all()[i]
		out := Entry{Path: layout.EncodePath(join(at, e.name)), Kind: kindWords[e.kind], Verdict: e.verdict.String(), State: state, Item: e.item, Size: e.size}
		if e.mtime != 0 {
			out.Modified = time.Unix(0, e.mtime).UTC()
		}
		below := state
		if e.gone {
			out.State, below = Gone, Gone
		}
		c := t[join(at, e.name)]
		if e.kind == folder && c != nil && out.State == Present {
			out.State, out.Why = c.state, c.why
		}
		if e.waits && out.State == Present {
			out.State = Unread
		}
		switch {
		case e.verdict == with:
			out.Why = partOf(at, n.reasons[e.name])
		case e.hasReason():
			out.Why = n.reasons[e.name]
		}
		if w.Gone && out.State == Gone || !w.Gone && (w.All || e.item != "" || e.verdict == refused || out.State == Unread || e.kind == folder && c != nil && c.state == Unconfirmed) {
			each(out)
		}
		if e.kind == folder {
			t.list(join(at, e.name), below, w, each)
		}
	}
}
