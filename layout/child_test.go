package layout

import "testing"

// The identifiers of children stand in records for good: they may not change.
func TestChildID(t *testing.T) {
	const parent = ItemID("3fa9c0d2e1b7a45")
	seen := map[ItemID]string{}
	for _, of := range [][3]string{
		{"w.1", "split", "a.tif"}, {"w.1", "split", "A.tif"}, {"w.1", "split", "a.tif "}, {"w.2", "split", "a.tif"},
		{"w.1", "other", "a.tif"}, {"w.1", "split", "a\xff"}, {"w.1", "split", "a\xfe"}, {"w.1", "split", "d/a.tif"},
	} {
		id := ChildID(parent, of[0], Name(of[1]), of[2])
		if _, err := ParseItemID(string(id)); err != nil {
			t.Errorf("%q: %v", of, err)
		}
		if was, there := seen[id]; there {
			t.Errorf("%q and %s are both %s", of, was, id)
		}
		seen[id] = of[2]
		if again := ChildID(parent, of[0], Name(of[1]), of[2]); again != id {
			t.Errorf("%q: %s, then %s", of, id, again)
		}
	}
	if id := ChildID(parent, "w.1", "split", "a.tif"); id != "9b21ca57e86dd0b" {
		t.Errorf("a.tif of split is %s now", id)
	}
}
