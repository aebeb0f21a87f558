package catalog

import (
	"testing"

	"golang.org/x/sys/unix"
)

// An entry that cannot be looked at, as a disk fails or forbids it, is not there in the listing:
// nothing is lost by that, and the folder is listed again by the next scan.
func TestEntriesThatCannotBeLookedAt(t *testing.T) {
	old := &node{state: Present, entries: []entry{{name: "a", item: "3fa9c0d2e1b7a45", inode: 1}, {name: "b", inode: 2}}}
	n := (&walk{}).compare(old, &node{state: Present, entries: []entry{{name: "b", inode: 2}}}).partly(unix.EIO)
	if a := n.find("a"); a == nil || a.lost || a.gone || a.item == "" {
		t.Errorf("a is %+v", a)
	}
	if n.state != Unread || n.why != "an entry could not be looked at: input/output error" {
		t.Errorf("the folder is %s: %s", n.state, n.why)
	}
	if again := (&walk{}).compare(n, &node{state: Present, entries: []entry{{name: "a", inode: 1}, {name: "b", inode: 2}}}); again.state != Present || !again.changed {
		t.Errorf("listed again it is %+v", again)
	}
}
