package fixity_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"bagpipe/engine/fixity"
	"bagpipe/layout"
	"bagpipe/testdata/sample"
)

// A file that is not given is neither changed nor missing, and is on its item's record. Root may read all, so as root
// this test runs itself again as nobody.
func TestACopyThatCannotBeRead(t *testing.T) {
	if os.Getuid() == 0 {
		sample.AsNobody(t)
		return
	}
	b := newBench(t, 2)
	sources, err := filepath.Glob(filepath.Join(b.dir, "ws", layout.ItemDir(b.item[0]), "source/*/*"))
	if b.must(err); len(sources) != 1 {
		t.Fatal(sources)
	}
	b.must(os.Chmod(sources[0], 0))
	s, found, err := b.sweep(time.Hour, fixity.Sweep{})
	b.must(err)
	if how := found[b.item[0]].Copies[fixity.Source].How; s.Unreadable != 1 || s.OK != 1 || s.Changed+s.Missing > 0 || how != fixity.HowUnreadable {
		t.Errorf("the source is %q: %+v", how, s)
	}
	_, rec, err := b.e.Ledger.ReadTip(b.item[0], "")
	if b.must(err); len(rec.Execution.Holds()) != 1 {
		t.Error("its item is not held")
	}
	b.must(os.Chmod(sources[0], 0o444))
	if s, _, err = b.sweep(time.Hour, fixity.Sweep{}); err != nil || s.OK != 2 {
		t.Errorf("once it can be read again: %+v, %v", s, err)
	}
}
