package odb

import (
	"bytes"
	"fmt"
	"iter"
)

// Mode is a tree entry's mode as Git writes it, without a leading zero.
type Mode string

// The modes the store writes. Others' are kept as they stand.
const (
	ModeFile Mode = "100644"
	ModeDir  Mode = "40000"
)

// IsDir reports whether the entry is a tree.
func (m Mode) IsDir() bool { return m == "40000" || m == "040000" }

// IsRegular reports whether the entry is a file's bytes, whatever its permissions.
func (m Mode) IsRegular() bool { return len(m) == 6 && m[:2] == "10" }

// Entry is one line of a tree. Raw is its bytes: MODE NAME NUL HASH.
type Entry struct {
	Mode Mode
	Name []byte
	Hash Hash
	At   int // where it begins in the tree
	Len  int
}

// Entries goes over a tree's entries in their order. A malformed tree ends with
// ok false in the last entry's place: see CheckTree for the error.
func Entries(tree []byte) iter.Seq[Entry] {
	return func(yield func(Entry) bool) {
		for at := 0; at < len(tree); {
			e, ok := entryAt(tree, at)
			if !ok || !yield(e) {
				return
			}
			at += e.Len
		}
	}
}

// EntryAt reads the entry that begins at at.
func EntryAt(tree []byte, at int) (Entry, bool) { return entryAt(tree, at) }

// entryAt reads the entry that begins at at.
func entryAt(tree []byte, at int) (Entry, bool) {
	if at < 0 || at >= len(tree) {
		return Entry{}, false
	}
	rest := tree[at:]
	space := bytes.IndexByte(rest[:min(len(rest), 8)], ' ')
	if space < 0 {
		return Entry{}, false
	}
	nul := bytes.IndexByte(rest[space:], 0)
	if nul < 0 || space+nul+21 > len(rest) {
		return Entry{}, false
	}
	nul += space
	return Entry{
		Mode: modeOf(rest[:space]),
		Name: rest[space+1 : nul],
		Hash: Hash(rest[nul+1 : nul+21]),
		At:   at,
		Len:  nul + 21,
	}, true
}

// modeOf gives the mode without allocating for the two common ones.
func modeOf(b []byte) Mode {
	switch string(b) {
	case string(ModeFile):
		return ModeFile
	case string(ModeDir):
		return ModeDir
	}
	return Mode(b)
}

// CheckTree says whether Entries will go over the whole of it.
func CheckTree(tree []byte) error {
	at := 0
	for e := range Entries(tree) {
		at += e.Len
	}
	return wholeTree(tree, at)
}

// wholeTree refuses a tree whose entries end at a byte before its end.
func wholeTree(tree []byte, at int) error {
	if at != len(tree) {
		return fmt.Errorf("%w: tree: malformed at byte %d", errCorrupt, at)
	}
	return nil
}

// FindEntry gives the entry of a name, and where one of that name and kind
// would have to be inserted when there is none.
func FindEntry(tree []byte, name string, dir bool) (e Entry, found bool, insertAt int) {
	insertAt = -1
	for e := range Entries(tree) {
		if string(e.Name) == name {
			return e, true, e.At
		}
		if insertAt < 0 && CompareNames(e.Name, e.Mode.IsDir(), name, dir) > 0 {
			insertAt = e.At // go on: "a" may still follow "a.b" when one is a folder
		}
	}
	if insertAt < 0 {
		insertAt = len(tree)
	}
	return Entry{}, false, insertAt
}

// Lookup gives the entry of a name. What stands behind it is not looked at.
func Lookup(tree []byte, name string) (Entry, bool) {
	for at := 0; at < len(tree); {
		begin, end := nameAt(tree, at)
		if end < 0 || end-begin == len(name) && string(tree[begin:end]) == name {
			return entryAt(tree, at)
		}
		at = end + 1 + len(Hash{})
	}
	return Entry{}, false
}

// SameEntries gives where two trees are no longer the same: an entry begins there in both.
func SameEntries(a, b []byte) int {
	same := commonPrefix(a, b)
	for at := 0; ; {
		_, end := nameAt(a, at)
		next := end + 1 + len(Hash{})
		if end < 0 || next > same {
			return at
		}
		at = next
	}
}

// nameAt gives where the name of the entry that begins at at does, and where it ends; -1: no entry does
// that can be read. The two modes that nearly all have are passed over without being read.
func nameAt(tree []byte, at int) (begin, end int) {
	switch rest := tree[min(at, len(tree)):]; {
	case len(rest) > len("100644 ") && string(rest[:len("100644 ")]) == "100644 ":
		begin = at + len("100644 ")
	case len(rest) > len("40000 ") && string(rest[:len("40000 ")]) == "40000 ":
		begin = at + len("40000 ")
	default:
		e, ok := entryAt(tree, at)
		if !ok {
			return at, -1
		}
		return at + len(e.Mode) + 1, at + e.Len - 1 - len(Hash{})
	}
	if begin+1 < len(tree) && tree[begin+1] == 0 && tree[begin] != 0 { // most names above the items' have one letter
		return begin, begin + 1
	}
	n := bytes.IndexByte(tree[begin:], 0)
	if n < 0 {
		return begin, -1
	}
	return begin, begin + n
}

// CompareNames orders names as Git's trees do: a folder's as if it ended in "/".
func CompareNames[A, B string | []byte](a A, aDir bool, b B, bDir bool) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return int(a[i]) - int(b[i])
		}
	}
	return nameEnd(a, n, aDir) - nameEnd(b, n, bDir)
}

func nameEnd[S string | []byte](s S, n int, dir bool) int {
	switch {
	case n < len(s):
		return int(s[n])
	case dir:
		return '/'
	}
	return 0
}

// AppendEntry appends an entry's bytes.
func AppendEntry(dst []byte, mode Mode, name string, h Hash) []byte {
	dst = append(dst, mode...)
	dst = append(dst, ' ')
	dst = append(dst, name...)
	dst = append(dst, 0)
	return append(dst, h[:]...)
}
