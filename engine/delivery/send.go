package delivery

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"bagpipe/engine/fault"
	"bagpipe/engine/folder"
	"bagpipe/engine/gitstore"
	"bagpipe/engine/ledger"
	"bagpipe/engine/settings"
	"bagpipe/engine/state"
	"bagpipe/layout"
	"bagpipe/steps/target"
)

// Told is what became of one delivery.
type Told struct {
	Item   layout.ItemID
	Target layout.Name
	State  string
	Text   string
}

// mostTries is how many failures in a row wait for a person.
const mostTries = 3

// Pass holds what changed against the rules, goes on with a republication whose engine is
// gone, and sends what is ready. All of it waits while a rule file has no sound version, of which the settings
// warn. told is called by one goroutine at a time.
//
// What no target has answered for patience is left to itself, and told later, until Wait; 0: all of it is waited for.
func (k *Keeper) Pass(ctx context.Context, patience time.Duration, told func(Told)) error {
	b, err := bookInForce(ctx, k)
	if err != nil || b.mistake != nil {
		return err
	}
	if len(b.rules) == 0 {
		if _, err := os.Stat(lookFile(k.ledger.Root)); err != nil {
			return nil // it never had any
		}
	}
	k.turn.Lock()
	defer k.turn.Unlock()
	if _, err := k.ledger.Seat.Engine(); err != nil {
		return err
	}
	if err := k.catchUp(ctx, b); err != nil {
		return err
	}
	if err := k.resumeRepublication(ctx); err != nil {
		return err
	}
	if err := holdReady(ctx, k, b); err != nil {
		return err
	}
	if err := k.sendAll(ctx, b, patience, told); err != nil {
		return err
	}
	if b, err = bookInForce(ctx, k); err != nil || b.mistake != nil { // a republication may have found some of it under way
		return err
	}
	return k.catchUp(ctx, b)
}

// holdReady holds what is ready, and may be kept from being sent for long, against rules that changed. What waits for a person
// leaves the list where no rule wants it any more, and what was unconfirmed and fits as it was sent is confirmed.
func holdReady(ctx context.Context, k *Keeper, b book) error {
	if k.rules == b.digest {
		return nil
	}
	v, err := k.ledger.Store.Tip()
	if err != nil {
		return err
	}
	weigh := func(o *object) bool {
		b.only = map[layout.Name]bool{}
		for to, d := range o.delivery.Targets {
			b.only[to] = d.State == layout.DeliveryReady || d.State == layout.DeliveryWaits && b.weighed(o, to, k.ledger.Now()) == nil || b.fitsAgain(o, to, d, k.ledger.Now())
		}
		return b.weigher(k.ledger)(o)
	}
	var changed []layout.ItemID
	items := maps.Clone(k.open)
	maps.Copy(items, k.asks)
	for _, id := range slices.Sorted(maps.Keys(items)) {
		if o, err := readObject(v, id); err == nil && o != nil && weigh(o) {
			changed = append(changed, id)
		}
	}
	if err := k.commit(ctx, changed, "weighed", weigh); err != nil {
		return err
	}
	k.rules = b.digest
	return nil
}

// sendAll sends what is ready, and takes back what is due.
func (k *Keeper) sendAll(ctx context.Context, b book, patience time.Duration, told func(Told)) error {
	due := map[layout.Name][]layout.ItemID{}
	for _, id := range slices.Sorted(maps.Keys(k.open)) {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if !k.open[id] {
			continue
		}
		o, kept, err := sendable(k, id)
		if err != nil {
			return err
		}
		stays := kept && o != nil
		if o != nil {
			for to, d := range o.delivery.Targets {
				if actAt(k, id, to, d, kept) != nil {
					due[to] = append(due[to], id)
				}
				stays = stays && (d.State == layout.DeliveryReady || !goesOn(d))
			}
		}
		k.open[id] = !stays
	}
	tell := func(t Told) {
		k.senders.telling.Lock()
		defer k.senders.telling.Unlock()
		told(t)
	}
	return k.senders.send(ctx, due, patience, func(ctx context.Context, id layout.ItemID, to layout.Name) error {
		o, kept, err := sendable(k, id)
		if err != nil || o == nil || o.delivery.Targets[to] == nil {
			return err
		}
		act := actAt(k, id, to, o.delivery.Targets[to], kept) // as both stand by now
		if act == nil {
			return nil
		}
		return act(ctx, b, tell)
	})
}

// Wait waits for what passes have left to itself.
func (k *Keeper) Wait() { k.senders.all.Wait() }

// sendable reads an item, and whether something keeps it from being sent; nil: it is gone, or cannot be read, of which others tell.
func sendable(k *Keeper, id layout.ItemID) (o *object, kept bool, err error) {
	v, rec, err := k.ledger.ReadTip(id, "")
	if err != nil {
		return nil, false, nil
	}
	o, err = readObject(v, id)
	return o, state.Unsettled(rec.Execution, k.ledger.Now()) != "", err
}

// actAt is what is due of an item at a target; nil: nothing.
func actAt(k *Keeper, id layout.ItemID, to layout.Name, d *layout.Delivery, kept bool) func(ctx context.Context, b book, told func(Told)) error {
	due := !d.After.After(k.ledger.Now()) || markedSince(k, to, d)
	switch {
	case leftBack(k, d) || toTakeBack(d) && due:
		return func(ctx context.Context, b book, _ func(Told)) error {
			return k.withdrawOne(ctx, b, id, to, &Republished{}, k.ledger.Warn)
		}
	case d.State == layout.DeliverySending && !k.ledger.Seat.MayBeAlive(d.Engine):
		return func(ctx context.Context, b book, told func(Told)) error {
			return errors.Join(takeUp(ctx, k, b, id, to), k.send(ctx, b, id, to, told))
		}
	case d.State == layout.DeliveryReady && due && !kept:
		return func(ctx context.Context, b book, told func(Told)) error { return k.send(ctx, b, id, to, told) }
	}
	return nil
}

// waitsFor says what an item waits for before it is sent, as it stands at r: the end of a hold, or of a workflow that
// is under way or failed; "": nothing.
func waitsFor(l *ledger.Ledger, r gitstore.Reader, id layout.ItemID) (string, error) {
	rec, err := l.Read(r, id, "")
	if err != nil {
		return "", err
	}
	return state.Unsettled(rec.Execution, l.Now()), nil
}

// takeUp holds anew against the rules what an engine that is gone was sending: the item may have
// changed since. What that engine sent may be there.
func takeUp(ctx context.Context, k *Keeper, b book, id layout.ItemID, to layout.Name) error {
	return k.commit(ctx, []layout.ItemID{id}, "taken up", func(o *object) bool {
		if d := o.delivery.Targets[to]; d == nil || !orphaned(k, d) {
			return false // another engine was faster
		}
		b.weigh(o, k.ledger.Now(), k.ledger.ByEngine().Agent)
		return true
	})
}

// orphaned makes ready again what an engine that is gone was sending, and reports whether it was.
func orphaned(k *Keeper, d *layout.Delivery) bool {
	if d.State != layout.DeliverySending || k.ledger.Seat.MayBeAlive(d.Engine) {
		return false
	}
	d.State, d.Engine, d.Attempts = layout.DeliveryReady, "", max(d.Attempts, 1)
	return true
}

// send makes one delivery that is ready: committed before it begins, and when the target has it. A
// crash between leaves sending, which another engine takes up, and asks the target.
func (k *Keeper) send(ctx context.Context, b book, id layout.ItemID, to layout.Name, told func(Told)) error {
	var mine *object
	var before *layout.DeliverySent // what the target holds or may hold
	asked := false
	err := k.setOne(ctx, id, to, k.ledger.ByEngine(), func(o *object, d *layout.Delivery) error {
		if mine = nil; d.State != layout.DeliveryReady {
			return errNothing // another engine was faster, or a person
		}
		if why, err := waitsFor(k.ledger, o.at, id); err != nil || why != "" {
			return cmp.Or(err, errNothing)
		}
		is := b.weighed(o, to, k.ledger.Now())
		if is == nil || is.State != layout.DeliveryReady {
			return errNothing // the item has changed since it was held against the rules
		}
		*d = *is
		g := b.targets[string(to)]
		asked = d.Attempts > 0 || d.Sent != nil && (d.Sent.Maybe || g.moved(d.Sent)) // it may have come there
		d.State, d.Engine, mine = layout.DeliverySending, k.ledger.ID, o
		before = d.Sent
		sent := layout.DeliverySent{Version: d.Version, Digest: d.Digest, At: k.ledger.Now(), Maybe: true, Place: g.Where()}
		if was := d.Sent; was != nil {
			sent.Receipt, sent.Format = was.Receipt, was.Format // of what is there until then
			sent.Earlier = otherVersions(was, d.Version)
			sent.Left = leftAt(was, sent.Place)
			asked = asked && !g.reshaped(was)
		}
		d.Sent = &sent
		return nil
	})
	if mine == nil && fault.Is(err, fault.Refused) {
		return nil // it was taken off the list
	}
	if err != nil || mine == nil {
		return err
	}
	receipt, found, err := k.perform(ctx, mine, to, asked)
	if ctx.Err() != nil {
		return ctx.Err() // it is taken up again
	}
	if sent := mine.delivery.Targets[to].Sent; found && before != nil && !slices.Contains(before.Left, sent.Place) {
		// What was not sent to this place, and is there, has moved along with the target.
		sent.Left = slices.DeleteFunc(sent.Left, func(place string) bool { return place == before.Place })
	}
	return k.end(context.WithoutCancel(ctx), b, mine, to, before, receipt, err, told)
}

// leftAt are the places but one where a target was when it was sent something, and may hold it.
func leftAt(s *layout.DeliverySent, but string) (places []string) {
	for _, place := range append(slices.Clone(s.Left), s.Place) {
		if place != "" && place != but {
			places = append(places, place)
		}
	}
	return places
}

// otherVersions are the versions but one that a target was sent and may hold, with their digests.
func otherVersions(s *layout.DeliverySent, but int) map[int]string {
	all := map[int]string{s.Version: s.Digest}
	maps.Copy(all, s.Earlier)
	delete(all, but)
	return all
}

// unsent is a failure before anything of a delivery was sent, or taken back.
type unsent struct{ error }

func (u unsent) Unwrap() error { return u.error }

// end notes what became of a delivery. before is what the target had been sent until then.
func (k *Keeper) end(ctx context.Context, b book, sent *object, to layout.Name, before *layout.DeliverySent, receipt string, failure error, told func(Told)) error {
	was := sent.delivery.Targets[to]
	t := Told{Item: sent.id, Target: to}
	err := k.setOne(ctx, sent.id, to, k.ledger.ByEngine(), func(_ *object, d *layout.Delivery) error {
		if d.State != layout.DeliverySending || d.Engine != k.ledger.ID {
			return errNothing // another engine took this one for dead, and sends it
		}
		now := k.ledger.Now()
		d.Engine = ""
		if failure == nil {
			d.State, d.Attempts, d.After, d.Message = layout.DeliveryDelivered, 0, time.Time{}, ""
			d.Sent = &layout.DeliverySent{Version: was.Version, Digest: was.Digest, Receipt: ledger.Clip(ledger.Printable(receipt), 1000), At: now, Earlier: was.Sent.Earlier,
				Place: was.Sent.Place, Left: was.Sent.Left, Format: b.targets[string(to)].Form()}
		} else {
			if failed(k.settings.Current().Settings, d, failure, now); errors.As(failure, new(unsent)) {
				d.Sent = before
			}
		}
		t.State, t.Text = d.State, d.Message
		return nil
	})
	if err == nil && t.State != "" {
		told(t)
	}
	return err
}

// failed has a delivery tried again by and by, or wait for a person.
func failed(s *settings.Settings, d *layout.Delivery, failure error, now time.Time) {
	d.Attempts++
	d.Message = ledger.Clip(ledger.Printable(failure.Error()), 1000)
	d.State = layout.DeliveryFailed
	if Away(failure) && d.Attempts < mostTries {
		d.State, d.After = layout.DeliveryReady, now.Add(backoff(s, d.Attempts))
	}
}

// Away reports whether it was the target, away or overloaded, that kept a delivery or a withdrawal.
func Away(failure error) bool {
	var down *target.Down
	return errors.As(failure, &down)
}

func backoff(s *settings.Settings, n int) time.Duration {
	b := s.Backoff()
	return min(b.First<<n, b.Most)
}

// perform brings an item to a target. found: it was there already.
func (k *Keeper) perform(ctx context.Context, o *object, to layout.Name, ask bool) (receipt string, found bool, err error) {
	content, done, err := contentOf(ctx, k, o, to)
	if err != nil {
		return "", false, unsent{err}
	}
	defer func() { err = errors.Join(err, done()) }()
	p, out, err := k.parcelFor(o, to, content)
	if err != nil {
		return "", false, unsent{err}
	}
	if ask {
		receipt, has, err := out.ask(ctx, p)
		if err != nil || has {
			return receipt, has, err
		}
	}
	receipt, err = out.put(ctx, p)
	return receipt, false, err
}

// contentOf is the folder that an item's files are in, or the file that it is, in its place; done clears away what was made for it. A
// packed object that stays in its place is opened, one that is not as it was catalogued waits.
func contentOf(ctx context.Context, k *Keeper, o *object, to layout.Name) (dir string, done func() error, err error) {
	done = func() error { return nil }
	m, err := layout.DecodeManifest(o.manifest)
	if err != nil || m.Source.Place == nil {
		return folder.ContentOf(k.ledger.Path(layout.ItemDir(o.id))), done, err
	}
	why, err := k.folders.PlaceChanged(ctx, m)
	if err == nil && why != "" {
		err = errors.New(why)
	}
	if err != nil {
		return "", done, &target.Down{Err: fmt.Errorf("%s in catalog %s: %w", m.Source.Place.Path, m.Source.Place.Catalog, err)}
	}
	opened, err := k.folders.OpenPlace(ctx, m, scratchFor(k.ledger, o.id, to), k.settings.Current().Settings.ArchiveLimits())
	if err != nil {
		if barred := k.folders.Barred(m); barred != "" {
			err = &target.Down{Err: errors.New(barred)}
		}
		return "", done, errors.Join(err, opened.Close())
	}
	if len(opened.Beside) > 0 { // the inventory says which files of the folder these are
		return filepath.Dir(opened.Place), opened.Close, nil
	}
	return opened.Content, opened.Close, nil
}

// scratchFor is where a delivery is packed.
func scratchFor(l *ledger.Ledger, id layout.ItemID, to layout.Name) string {
	return filepath.Join(l.Path(layout.ScratchDir), string(l.ID), "delivery-"+string(id)+"-"+string(to))
}

// parcelFor packs an item for a target.
func (k *Keeper) parcelFor(o *object, to layout.Name, content string) (p parcel, out outlet, err error) {
	config, out, err := k.outletFor(o, to)
	if err != nil {
		return p, nil, err
	}
	v, err := k.ledger.Store.Tip()
	if err != nil {
		return p, nil, err
	}
	inventory, err := ledger.ReadOptional(v, layout.ItemDir(o.id)+"/"+layout.InventoryJSON)
	if err != nil {
		return p, nil, err
	}
	p, err = pack(o, inventory, content, to, goalOf(k.ledger.Root, k.settings.Current().Settings, string(to)), config.Template)
	return p, out, err
}

// outletFor opens a target.
func (k *Keeper) outletFor(o *object, to layout.Name) (target.Config, outlet, error) {
	now := k.settings.Current()
	s := now.Settings
	config, there := s.Target(k.ledger.Root, string(to), s.StoreDir(k.ledger.Root))
	if !there {
		return config, nil, unsent{fmt.Errorf("no target %q below targets: in %s", to, layout.SettingsFile)}
	}
	if config.Kind == target.KindFolder {
		dir, err := now.Keeping(config.Path, k.ledger.Root, k.ledger.Path(layout.InboxDir))
		if err == nil && dir != "" { // it would be taken in anew, or be written over
			err = refusedf("the folder of target %s, %s, lies in %s, where nothing is delivered", to, layout.EncodePath(config.Path), layout.EncodePath(dir))
		}
		if err != nil {
			return config, nil, err
		}
	}
	scratch := scratchFor(k.ledger, o.id, to)
	switch {
	case config.Kind == target.KindURL:
		token, err := config.ReadToken(to)
		return config, urlOutlet{config.URL, token, config.Verify != "status"}, err
	case config.Kind == target.KindCommand:
		return config, commandOutlet{config.Command.List(), k.ledger.Root, scratch, cmp.Or(time.Duration(config.Timeout), target.DefaultTimeout)}, nil
	case config.Kind == target.KindFolder && config.Layout == "":
		return config, folderOutlet{config.Path, func(ctx context.Context) (bool, error) { return delivered(ctx, k, to) }}, nil
	}
	t, err := k.targets.Take(to, config)
	return config, depositOutlet{t, scratch, k.ledger.Now(), k.ledger.ByEngine().Agent}, err
}

// notListed is the error of an item that is not on the list of a target.
func notListed(id layout.ItemID, to layout.Name) error {
	return refusedf("item %s is not on the list of target %s: no rule says so", id.Short(), to)
}
