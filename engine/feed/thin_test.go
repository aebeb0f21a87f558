package feed

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// What would be dropped as soon as it has its texts is dropped before: the feeds end up the same, and
// have texts of no other posts.
func TestPostsThatWouldBeDroppedGetNoTexts(t *testing.T) {
	now := time.Unix(1_800_000_000, 0).UTC()
	posts := some(mostEach*slack + 200)
	for n, p := range posts {
		p.To, p.Date = []string{"person/ada"}, now.Add(-time.Duration(len(posts)-n)*time.Minute)
		if n%50 == 0 {
			p.To = []string{"collection/rare"}
		}
	}
	made := func(f *Feeds, some []*Post) int {
		t.Helper()
		put(t, f, some...)
		thinned := false
		err := f.locked(func() (err error) {
			thinned, err = f.cleanAt(now, keep, func(*record) bool { return false })
			return err
		})
		waits := 0
		for i := range f.shelf.records {
			if f.shelf.waits(&f.shelf.records[i]) {
				waits++
			}
		}
		if err != nil || !thinned && waits != len(some) {
			t.Fatalf("%d of %d posts wait: %v", waits, len(some), err)
		}
		enter(t, f, testRenderer(t), 7, now)
		if err := f.locked(func() error { return cleanedAt(f, now, keep) }); err != nil {
			t.Fatal(err)
		}
		return waits
	}
	atOnce, inTurn := testFeeds(t.TempDir()), testFeeds(t.TempDir())
	if n, want := made(atOnce, posts), mostEach+12; n != want {
		t.Errorf("%d posts get texts, want %d", n, want)
	}
	if n := made(inTurn, posts[:250]); n != 250 {
		t.Errorf("of few posts %d get texts", n)
	}
	made(inTurn, posts[250:])
	for _, feed := range []string{"person/ada", "collection/rare"} {
		got, want := showFeed(t, testFeeds(atOnce.dir), feed), showFeed(t, testFeeds(inTurn.dir), feed)
		if diff := cmp.Diff(want[:min(len(want), mostEach)], got); diff != "" {
			t.Errorf("%s (-in turn +at once):\n%s", feed, diff)
		}
	}
}
