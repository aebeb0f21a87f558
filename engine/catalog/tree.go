package catalog

import (
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
)

var verdictWords = [...]string{"unknown", "no", "maybe", "yes", "part", "refused"}

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

	fresh bool // it is new, or another than its record says
	moved bool // it was elsewhere
	lost  bool // it is not there, and nothing is decided yet
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
	mtime   int64
	inode   uint64
	rules   string
	state   string
	why     string
	device  string // of the root
	pages   int
	refused map[string]string // why, of entries whose verdict is so, by their names

	changed bool // it is not as it was committed
	stirred bool // its time moved while it was listed

	ends *recognise.Endings // of the names in it and below; nil: not found out yet
}

// refuse notes why an entry is refused.
func (n *node) refuse(name, why string) {
	if n.refused == nil {
		n.refused = map[string]string{}
	}
	n.refused[name] = why
}

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

// find gives an entry by its name.
func (n *node) find(name string) *entry {
	lo, hi := 0, len(n.entries)
	for lo < hi {
		mid := (lo + hi) / 2
		if n.entries[mid].name < name {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	if lo < len(n.entries) && n.entries[lo].name == name {
		return &n.entries[lo]
	}
	return nil
}

// there counts the entries that were not gone when the folder was listed.
func (n *node) there() (count int) {
	for i := range n.entries {
		if !n.entries[i].gone && !n.entries[i].lost {
			count++
		}
	}
	return count
}

// below visits a folder and the folders below it that have records.
func (t tree) below(path string, visit func(*node)) {
	n := t[path]
	if n == nil {
		return
	}
	visit(n)
	for i := range n.entries {
		if n.entries[i].kind == folder {
			t.below(join(path, n.entries[i].name), visit)
		}
	}
}
