package catalog

import (
	"slices"
	"strings"

	"bagpipe/engine/recognise"
	"bagpipe/layout"
)

// verdict is what recognition says of an entry.
type verdict uint8

const (
	unknown verdict = iota
	no
	maybe
	yes
	part    // of the object that a folder above is
	refused // an object that cannot be an item: its folder says why
	with    // of the object that a file beside it is: its folder says which
)

var verdictWords = [...]string{"unknown", "no", "maybe", "yes", "part", "refused", "with"}

func (v verdict) String() string { return verdictWords[v] }

// isObject reports whether an entry may be an item.
func (v verdict) isObject() bool { return v == yes || v == maybe }

// isWhole reports whether what is in a folder of this verdict belongs to one object.
func (v verdict) isWhole() bool { return v.isObject() || v == refused }

type kind uint8

const (
	file kind = iota
	folder
	link
	other
)

var kindWords = [...]string{"file", "folder", "link", "other"}

// entry is one name in a folder.
type entry struct {
	name         string
	size         int64
	mtime, ctime int64 // nanoseconds since 1970; of folders none
	inode        uint64
	item         layout.ItemID
	kind         kind
	verdict      verdict
	gone         bool
	waits        bool // it could not be looked into: its folder says why
	replaced     bool // an entry of another kind, or another object, has its name now, and stands before it

	fresh bool // it is new, or another than its record says
	moved bool // it was elsewhere
	lost  bool // it is not there, and nothing is decided yet
	back  bool // it was gone; of a replaced one: what has its name may be it, written anew
}

// States of a folder.
const (
	Present     = "present"
	Unconfirmed = "unconfirmed"
	Gone        = "gone"
	Unread      = "unread"
)

// node is one folder.
type node struct {
	path    string // below the root; "" is the root
	entries []entry
	packed  packed // entries, until all unpacks them
	mtime   int64
	inode   uint64
	rules   string
	state   string
	why     string
	device  string // of the root
	pages   int
	reasons map[string]string // by their names, of entries that are refused or wait why, and of those that are with another which

	changed bool // it is not as it was committed
	stirred bool // its time moved while it was listed
	redo    bool // not all in it says what the rules say

	ends *recognise.Endings // of the names in it and below; nil: not found out yet
}

// note keeps why an entry is refused, or waits, or with which it is.
func (n *node) note(name, why string) {
	if n.reasons == nil {
		n.reasons = map[string]string{}
	}
	n.reasons[name] = why
}

// wait notes that an entry could not be looked into, until it can be.
func (n *node) wait(e *entry, why string) {
	if !e.waits || n.reasons[e.name] != why {
		e.waits, n.changed = true, true
		n.note(e.name, why)
	}
}

// isThere reports whether an entry has its name still, and is not gone.
func (e *entry) isThere() bool { return !e.gone && !e.replaced }

// replace has an entry of another kind take the name of one, which is lost by that.
func (e *entry) replace() {
	e.lost, e.replaced, e.waits = !e.gone, true, false
	if e.verdict == refused || e.verdict == with { // the reasons are kept by names
		e.verdict = unknown
	}
}

// mayBeElsewhere reports whether an entry that had the name of another, of its kind, may have moved. A file of the same
// size and time is it, as copied back: its inode may be any other's by now.
func (e *entry) mayBeElsewhere(now *entry) bool {
	switch {
	case e.inode == now.inode || e.kind != file && e.kind != folder:
		return false
	case e.kind == folder:
		return !e.gone && !e.replaced
	}
	return e.item != "" && (e.size != now.size || e.mtime != now.mtime)
}

// reunite has what has the name of an entry that is nowhere else be that one, written anew, and reports whether there was any. only
// says of which; nil: of all.
func (n *node) reunite(only func(*entry) bool) (any bool) {
	for i := range n.all() {
		was := &n.all()[i]
		if !was.replaced || !was.back || only != nil && !only(was) {
			continue
		}
		was.back = false
		e := n.find(was.name)
		if e.fresh && !e.moved && e.item == "" {
			e.verdict, e.item, e.waits, e.back = was.verdict, was.item, was.waits, was.gone
			was.gone, was.lost, any = true, true, true
			continue
		}
		if was.waits = false; was.verdict == refused || was.verdict == with { // the reasons are kept by names
			was.verdict = unknown
		}
	}
	return any
}

// isReunited reports whether another entry is this one, which is forgotten.
func (e *entry) isReunited() bool { return e.replaced && e.gone && e.lost }

// inOrder sorts entries by their names, a replaced one behind what has its name now.
func inOrder(a, b entry) int {
	c := strings.Compare(a.name, b.name)
	switch {
	case c != 0 || a.replaced == b.replaced:
		return c
	case a.replaced:
		return 1
	}
	return -1
}

// hasReason reports whether its folder says why an entry is as it is.
func (e *entry) hasReason() bool { return e.tells() || e.verdict == with }

// tells reports whether an entry is refused, or waits.
func (e *entry) tells() bool { return e.verdict == refused || e.waits }

// tree is all folders of a catalog by their paths.
type tree map[string]*node

func join(dir, name string) string {
	if dir == "" {
		return name
	}
	return dir + "/" + name
}

func parentOf(path string) string {
	if i := strings.LastIndexByte(path, '/'); i >= 0 {
		return path[:i]
	}
	return ""
}

// find gives an entry by its name: what has it now, rather than what was replaced.
func (n *node) find(name string) *entry {
	if i := n.index(name); i < len(n.entries) && n.entries[i].name == name {
		return &n.entries[i]
	}
	return nil
}

// findOf gives an entry by its name and its kind, a replaced one, too.
func (n *node) findOf(name string, k kind) *entry {
	for i := n.index(name); i < len(n.entries) && n.entries[i].name == name; i++ {
		if n.entries[i].kind == k {
			return &n.entries[i]
		}
	}
	return nil
}

// index is where the first entry of a name is, or would be.
func (n *node) index(name string) int {
	lo, hi := 0, len(n.all())
	for lo < hi {
		mid := (lo + hi) / 2
		if n.all()[mid].name < name {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo
}

// there counts the entries that were not gone when the folder was listed.
func (n *node) there() (count int) {
	if n.packed.text != "" {
		return n.packed.there
	}
	for i := range n.all() {
		if !n.all()[i].gone && !n.all()[i].lost {
			count++
		}
	}
	return count
}

// packed are the entries of a folder as a checkpoint has them, and what is asked of all folders.
type packed struct {
	text         string // "": they are unpacked
	count, there int
	marked       bool // node.isMarked
	tells        bool // node.tells
	folders      bool // node.hasFolders
}

// all are the entries of a folder. A folder belongs to one goroutine until they are unpacked.
func (n *node) all() []entry {
	if n.packed.text == "" {
		return n.entries
	}
	r := unpacker{rest: n.packed.text}
	n.entries = make([]entry, n.packed.count)
	for i := range n.entries {
		if why := r.entry(&n.entries[i]); n.entries[i].hasReason() {
			n.note(n.entries[i].name, why)
		}
	}
	n.packed = packed{}
	return n.entries
}

// each visits the entries, which stay packed, until visit answers false.
func (n *node) each(visit func(*entry) bool) bool {
	if n.packed.text == "" {
		for i := range n.entries {
			if !visit(&n.entries[i]) {
				return false
			}
		}
		return true
	}
	r, e := unpacker{rest: n.packed.text}, entry{}
	for range n.packed.count {
		if r.entry(&e); !visit(&e) {
			return false
		}
	}
	return true
}

func (n *node) size() int {
	if n.packed.text != "" {
		return n.packed.count
	}
	return len(n.entries)
}

// isMarked reports whether a folder has, or had, rules of its own.
func (n *node) isMarked() bool {
	return n.packed.marked || n.packed.text == "" && n.find(recognise.MarkerName) != nil
}

// tells reports whether an entry in a folder is refused, or waits.
func (n *node) tells() bool {
	return n.packed.tells || slices.ContainsFunc(n.entries, func(e entry) bool { return e.tells() })
}

// hasFolders reports whether a folder has, or had, folders in it.
func (n *node) hasFolders() bool {
	return n.packed.folders || slices.ContainsFunc(n.entries, func(e entry) bool { return e.kind == folder })
}

type unpacker struct {
	rest string
	bad  bool
}

func (u *unpacker) number() (n uint64) {
	for shift := 0; shift < 64; shift += 7 {
		if u.rest == "" {
			break
		}
		c := u.rest[0]
		u.rest = u.rest[1:]
		if n |= uint64(c&0x7f) << shift; c < 0x80 {
			return n
		}
	}
	u.bad = true
	return 0
}

func (u *unpacker) signed() int64 {
	n := u.number()
	return int64(n>>1) ^ -int64(n&1)
}

func (u *unpacker) text() string {
	n := u.number()
	if n > uint64(len(u.rest)) {
		u.bad = true
		return ""
	}
	s := u.rest[:n]
	u.rest = u.rest[n:]
	return s
}

// entry reads one entry, and why it is refused, or waits.
func (u *unpacker) entry(e *entry) (why string) {
	if u.rest == "" {
		u.bad = true
		return ""
	}
	flags := u.rest[0]
	u.rest = u.rest[1:]
	*e = entry{kind: kind(flags & 3), verdict: verdict(flags >> 2 & 7), gone: flags&(1<<5) != 0, waits: flags&(1<<6) != 0, replaced: flags&(1<<7) != 0}
	if e.name, e.item = u.text(), layout.ItemID(u.text()); e.hasReason() {
		why = u.text()
	}
	e.size, e.mtime = u.signed(), u.signed()
	e.ctime, e.inode = e.mtime+u.signed(), u.number()
	return why
}
