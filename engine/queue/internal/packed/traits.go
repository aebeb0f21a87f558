package packed

import (
	"bagpipe/engine/state"
)

// TraitsOf reads the traits of a packed item, which are its first bytes.
func TraitsOf(b []byte) Trait { return Trait((&unpacker{b: b}).num()) }

// NamesOf reads the numbers of the names that follow its traits.
func NamesOf(b []byte) (collection, batch, lane uint64) {
	u := &unpacker{b: b}
	u.num()
	return u.num(), u.num(), u.num()
}

// CreatedOf reads the creation of a packed item, in ms.
func CreatedOf(b []byte) int64 {
	u := &unpacker{b: b}
	for range 4 {
		u.num()
	}
	ms, _, _ := u.millis()
	return ms
}

// Traits tells what is to be known of the item at a glance.
func (it *Item) Traits() (t Trait) {
	set := func(bit Trait, is bool) {
		if is {
			t |= bit
		}
	}
	set(Held, it.Held)
	set(Broken, it.Broken != "")
	set(Removed, it.Gone)
	set(Kin, it.Parent != nil)
	for r := range it.Runs {
		run := &it.Runs[r]
		set(Failed, run.Status == state.Failed)
		set(Open, run.Status != state.Completed && run.Status != state.Inactive)
		for i := range run.Steps {
			s := &run.Steps[i]
			set(Failed, s.Status == state.Failed)
			set(Running, s.Status == state.InProgress)
			set(Person, it.Waits(run, i))
			set(Ending, len(s.Ends) > 0)
			set(Gathered, it.Batch != "" && run.Plan.Steps[i].OnBatchComplete)
			set(Off, s.own.control != nil)
			set(Kin, s.Children > 0)
			set(Startable, s.own.control != nil || s.Status == state.Waiting && (s.Blocked == nil || !s.Blocked.Until.IsZero()))
		}
	}
	return t
}

// The rules are: an item is kept as some hundred bytes, as a million of them as
// structs takes a gigabyte and longer to collect than to ask. What items have in
// common is a number (names); a reason that follows from the rest is its code alone;
// times are milliseconds from the item's creation. The package comment has the
// format; unpack(pack(x)) is x, but for the messages of completed steps.

// Trait is what a look at an item's first bytes tells of it.
type Trait uint16

// Traits of items.
const (
	Held      Trait = 1 << iota
	Broken          // its record cannot be read
	Failed          // a step or a workflow of it failed
	Person          // a step waits for a person
	Startable       // a step is ready, or is once its time has come
	Open            // a workflow is neither completed nor inactive
	Running         // a step is in progress
	Ending          // it has ends that thresholds look at
	Gathered        // it has a step that is done once for its batch
	Off             // a step only waits as it is disabled
	Kin             // it is a child, or has made children
	Removed         // it is shown though its records were removed
)
