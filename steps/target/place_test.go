package target_test

import (
	"path"
	"testing"

	"bagpipe/layout"
	"bagpipe/steps/target"
)

const item = layout.ItemID("3fa9c0d2e1b7a49")

func TestPlaceIsReadAsWritten(t *testing.T) {
	for version := 1; version < 4; version++ {
		for n := 1; n < 4; n++ {
			at := target.Revision(target.Place(item, version), n)
			got, v, r, is := target.ParsePlace(path.Base(at))
			if !is || got != item || v != version || r != n {
				t.Errorf("%s is read as %s, version %d, revision %d, %t", at, got, v, r, is)
			}
		}
	}
	id := string(item)
	for _, base := range []string{"", "x", id + "-", id + "-v", id + "-v1", id + "-r1", id + "-v02", id + "-r2-v2", id + "-v2-v3", id + "-v+2", id + "-v2-", id + ".tar"} {
		if _, _, _, is := target.ParsePlace(base); is {
			t.Errorf("%q is taken for a place", base)
		}
	}
}
