package delivery

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"os"
	"slices"
	"time"

	"bagpipe/engine/gitstore"
	"bagpipe/engine/index"
	"bagpipe/engine/ledger"
	"bagpipe/engine/recognise"
	"bagpipe/engine/settings"
	"bagpipe/engine/state"
	"bagpipe/layout"
	"bagpipe/steps/target"

	"github.com/tidwall/gjson"
)

// rule is a delivery rule and its name.
type rule struct {
	recognise.Delivery
	name string // FILE/N
}

// book is what objects are held against.
type book struct {
	rules   []rule
	targets map[string]goal
	digest  string
	only    map[layout.Name]bool // the targets that are looked at; nil: all
	all     bool                 // all objects are held against it, and what is under way when it has ended
	mistake error                // of a rule file without a sound version: what it wants nobody knows, and nothing is held against the book
}

// goal is a target as settings have it, its path not resolved, and what its template says.
type goal struct {
	target.Config
	template string // its digest; "": it has none, or one that cannot be read, of which check tells
}

func goalOf(root string, s *settings.Settings, name string) goal {
	g := goal{Config: s.Targets[name]}
	if g.Template != "" {
		if text, err := os.ReadFile(settings.Below(root, g.Template)); err == nil {
			g.template = ledger.DigestOf(text)
		}
	}
	return g
}

// bookOf puts the delivery rules in order: those of a file with a lower order first.
func bookOf(root string, s *settings.Snapshot) book {
	b := book{targets: map[string]goal{}}
	for name := range s.Settings.Targets {
		b.targets[name] = goalOf(root, s.Settings, name)
	}
	files := slices.Clone(s.Rules)
	slices.SortFunc(files, func(x, y *settings.RuleFile) int {
		if x.Order != y.Order {
			return x.Order - y.Order
		}
		return cmp.Compare(x.Name, y.Name)
	})
	h := sha256.New()
	for _, f := range files {
		for i, d := range f.Delivery {
			b.rules = append(b.rules, rule{d, fmt.Sprintf("%s/%d", f.Name, i+1)})
			fmt.Fprintf(h, "%s %q %q %q %+v\n", f.Name, d.To, d.For, d.Approve, b.targets[d.To])
		}
	}
	b.digest = "sha256:" + hex.EncodeToString(h.Sum(nil))
	return b
}

// bookInForce is the book by the rules that are committed now, whoever committed them.
func bookInForce(ctx context.Context, k *Keeper) (book, error) {
	_, err := k.settings.CatchUp(ctx)
	now := k.settings.Current()
	b := bookOf(k.ledger.Root, now)
	if len(now.Book.Broken) > 0 {
		b.mistake = refusedf("%v; until that is put right, nobody knows what is to go where", now.Book.Broken[0])
	}
	return b, err
}

// object is an item's records as they are held against the rules.
type object struct {
	id        layout.ItemID
	manifest  []byte
	execution []byte
	delivery  layout.Deliveries
	at        gitstore.Reader // where it was read, of one that is to be changed
	bad       error           // its delivery.json cannot be read, and is left as it is; delivery has one that is unreadable
}

func (o *object) version() int { return max(int(gjson.GetBytes(o.manifest, "version").Int()), 1) }

// digest is that of what goes to a target: of the inventory where the files alone do, else of what describes the object.
// Of a text the template is part of it. Builds before took the whole manifest, also for bags: what they recorded stands while the
// manifest is the same.
func (o *object) digest(to layout.Name, g goal) string {
	inventory, format := gjson.GetBytes(o.manifest, "inventory.digest").Str, formatOf(g.Config)
	if inventory != "" && format == target.FormatFiles {
		return inventory
	}
	if was := o.delivery.Targets[to]; was != nil {
		if whole := ledger.DigestOf(o.manifest); was.Digest == whole {
			return whole
		}
	}
	if inventory != "" && format == target.FormatBag {
		return inventory
	}
	described := describing(o.manifest)
	if g.template == "" {
		return described
	}
	return ledger.DigestOf([]byte(described + g.template))
}

// undescribing are members of a manifest that do not describe the object, and change without it: how it was recognised, its lane, its
// originals, and when, by which rule and with which stamp it was found.
var undescribing = map[string]bool{"lane": true, "originals": true, "recognition": true, "source.rule": true, "source.taken": true, "source.place.stamp": true}

// describing is the digest of what describes the object in a manifest.
func describing(manifest []byte) string {
	h := sha256.New()
	var add func(at string, members gjson.Result)
	add = func(at string, members gjson.Result) {
		members.ForEach(func(key, value gjson.Result) bool {
			switch path := at + key.Str; {
			case undescribing[path]:
			case path == "source", path == "source.place":
				add(path+".", value)
			default:
				fmt.Fprintf(h, "%s\x00%s\n", path, value.Raw)
			}
			return true
		})
	}
	add("", gjson.ParseBytes(manifest))
	return "sha256:" + hex.EncodeToString(h.Sum(nil))
}

// first is the rule that decides of a target; nil: none fits, or there is no such target. approve: it
// wants a person's word.
func (b book) first(to string, o *object, now time.Time) (found *rule, approve bool) {
	if _, there := b.targets[to]; !there {
		return nil, false
	}
	if gjson.GetBytes(o.execution, "milestones."+string(state.Disposed)).Exists() { // its bytes are gone, or about to go
		return nil, false
	}
	values := func(path string) gjson.Result { return index.LookUp(o.manifest, o.execution, path) }
	for i := range b.rules {
		r := &b.rules[i]
		if r.To != to {
			continue
		}
		if is, _ := r.Which.Holds(values, now); !is {
			continue
		}
		switch r.Approve {
		case "", recognise.ApproveNever:
			return r, false
		case recognise.ApproveAlways:
			return r, true
		}
		asked, _ := r.Asked.Holds(values, now)
		return r, asked
	}
	return nil, false
}

// weigh brings an object's deliveries to what the rules say, and reports whether that
// changed anything.
func (b book) weigh(o *object, now time.Time, by string) (changed bool) {
	if o.bad != nil {
		return false
	}
	names := map[layout.Name]bool{}
	for _, r := range b.rules {
		names[layout.Name(r.To)] = true
	}
	for name := range o.delivery.Targets {
		names[name] = true
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if b.only != nil && !b.only[name] {
			continue
		}
		was := o.delivery.Targets[name]
		is := b.weighed(o, name, now)
		switch {
		case is == nil && was == nil || is != nil && was != nil && same(*is, *was):
			continue
		case is == nil:
			delete(o.delivery.Targets, name)
		default:
			if is.By == "" || was == nil || is.State != was.State {
				is.By, is.At = by, now
			}
			if o.delivery.Targets == nil {
				o.delivery.Targets = map[layout.Name]*layout.Delivery{}
			}
			o.delivery.Targets[name] = is
		}
		changed = true
	}
	return changed
}

// same compares what weighing may change.
func same(a, b layout.Delivery) bool {
	return a.State == b.State && a.Version == b.Version && a.Digest == b.Digest && a.Rule == b.Rule && a.Attempts == b.Attempts && a.After.Equal(b.After) && a.Due == b.Due
}

// weighed is what becomes of an object at a target; nil: nothing.
func (b book) weighed(o *object, name layout.Name, now time.Time) *layout.Delivery {
	was := o.delivery.Targets[name]
	if was != nil && (was.State == layout.DeliverySending || was.Engine != "") {
		is := *was // who sends it, or takes it back, ends that, and it is looked at again
		is.Due = is.Due || b.all && is.State == layout.DeliverySending
		return &is
	}
	r, approve := b.first(string(name), o, now)
	if r == nil {
		return unwanted(was)
	}
	is := layout.Delivery{Version: o.version(), Digest: o.digest(name, b.targets[string(name)]), Rule: r.name}
	if was != nil {
		next := *was
		next.Version, next.Digest, next.Rule = is.Version, is.Digest, is.Rule
		if was.Digest != is.Digest && was.State != layout.DeliveryUnconfirmed { // a new try
			next.Attempts, next.After, next.Message = 0, time.Time{}, ""
		}
		is = next
	}
	is.State = stateOf(was, &is, approve, b.targets[string(name)])
	if was != nil && is.State == layout.DeliveryWithdrawn {
		is.Version, is.Digest = was.Version, was.Digest // what was taken back
	}
	if was != nil && was.State == layout.DeliveryUnconfirmed && is.State != was.State { // tried was to take it back
		is.Attempts, is.After, is.Message = 0, time.Time{}, ""
	}
	is.Due = is.Due && is.State == layout.DeliveryUnconfirmed
	return &is
}

// stateOf is the state of a delivery that a rule wants.
func stateOf(was, is *layout.Delivery, approve bool, g goal) string {
	decided := ""
	if is.Decision != nil {
		decided = is.Decision.What
	}
	held := is.Sent != nil && !is.Sent.Maybe && (was.State == layout.DeliveryDelivered || was.State == layout.DeliveryUnconfirmed)
	switch {
	case decided == layout.DeliveryTakeBack && is.Sent == nil:
		return layout.DeliveryWithdrawn
	case decided == layout.DeliveryTakeBack:
		return layout.DeliveryUnconfirmed // the next pass takes it back
	case held && is.Sent.Digest == is.Digest && !g.moved(is.Sent) && !g.reshaped(is.Sent):
		return layout.DeliveryDelivered
	case decided == layout.DeliveryRefused:
		return layout.DeliveryForbidden
	case approve && !(decided == layout.DeliveryApproved && is.Decision.Version == is.Version):
		return layout.DeliveryWaits
	case was != nil && was.State == layout.DeliveryFailed && was.Digest == is.Digest:
		return layout.DeliveryFailed
	}
	return layout.DeliveryReady
}

// fitsAgain reports whether a rule wants what a target holds unconfirmed, just as it was sent: as when a target comes back into
// the settings. Where a try to take it back failed, the target is asked whether it holds it still.
func (b book) fitsAgain(o *object, to layout.Name, d *layout.Delivery, now time.Time) bool {
	if d.State != layout.DeliveryUnconfirmed || d.Sent == nil || d.Engine != "" || wantedBack(d) {
		return false
	}
	is, g := b.weighed(o, to, now), b.targets[string(to)]
	return is != nil && (is.State == layout.DeliveryDelivered || is.State == layout.DeliveryReady) && d.Sent.Digest == is.Digest && !g.moved(d.Sent) && !g.reshaped(d.Sent)
}

// moved reports whether a target is at another place than when it was sent something.
func (g goal) moved(s *layout.DeliverySent) bool { return s.Place != "" && s.Place != g.Where() }

// reshaped reports whether a target has what is sent in another form than then.
func (g goal) reshaped(s *layout.DeliverySent) bool { return s.Format != "" && s.Format != g.Form() }

// unwanted is what becomes of a delivery that no rule wants: what the target holds stays
// there until it is republished, what a person decided stands.
func unwanted(was *layout.Delivery) *layout.Delivery {
	if was == nil {
		return nil
	}
	is := *was
	switch was.State {
	case layout.DeliveryReady, layout.DeliveryWaits, layout.DeliveryFailed, layout.DeliveryForbidden:
		switch {
		case was.Sent != nil:
			is.State, is.Attempts, is.After, is.Message = layout.DeliveryUnconfirmed, 0, time.Time{}, ""
		case was.Decision == nil:
			return nil
		case was.Decision.What == layout.DeliveryRefused:
			is.State = layout.DeliveryForbidden
		default:
			is.State = layout.DeliveryWithdrawn
		}
	case layout.DeliveryDelivered:
		is.State = layout.DeliveryUnconfirmed
	}
	return &is
}

// readDeliveries reads an item's delivery.json.
func readDeliveries(id layout.ItemID, data []byte) (layout.Deliveries, error) {
	if data == nil {
		return layout.Deliveries{Item: id}, nil
	}
	d, err := layout.DecodeDeliveries(data)
	if err != nil {
		return d, fmt.Errorf("item %s: %w", id.Short(), err)
	}
	d.Item = id
	return d, nil
}

// readObject reads an item at r; nil: there is none that can be held against rules.
func readObject(r interface{ ReadFile(string) ([]byte, error) }, id layout.ItemID) (*object, error) {
	o := &object{id: id}
	dir := layout.ItemDir(id) + "/"
	var delivery []byte
	for name, to := range map[string]*[]byte{layout.ManifestJSON: &o.manifest, layout.ExecutionJSON: &o.execution, layout.DeliveryJSON: &delivery} {
		data, err := ledger.ReadOptional(r, dir+name)
		if err != nil {
			return nil, err
		}
		*to = data
	}
	if o.manifest == nil || o.execution == nil || !gjson.ValidBytes(o.manifest) {
		return nil, nil
	}
	var err error
	if o.delivery, err = readDeliveries(id, delivery); err != nil {
		o = o.unreadable(err)
	}
	return o, nil
}

// lookAt reads an item at r for those who look at all of them, whom one that is damaged does not stop.
func lookAt(r interface{ ReadFile(string) ([]byte, error) }, id layout.ItemID) *object {
	o, err := readObject(r, id)
	if err != nil {
		return (&object{id: id}).unreadable(err)
	}
	return o
}

func (o *object) unreadable(why error) *object {
	o.bad = why
	o.delivery = layout.Deliveries{Item: o.id, Targets: map[layout.Name]*layout.Delivery{
		"": {State: layout.DeliveryUnreadable, Version: o.version(), Message: ledger.Clip(ledger.Printable(why.Error()), 1000)}}}
	return o
}
