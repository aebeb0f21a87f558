package inbox

import (
	"os"
	"strings"
	"testing"
	"time"
)

// A pause file keeps everything where it is, of the inbox or of a collection.
func TestPauseFile(t *testing.T) {
	w := newBench(t)
	w.drop("letters")
	w.write("inbox/default/nothing", "")
	w.write("inbox/maps/map.tif", "x")
	w.later(time.Hour)
	w.write("inbox/default/.pause", "the scanner\x1b[31m is being moved\nmore")
	w.wantScan([]string{"map.tif"}, []string{"letters", "nothing"}, nil)
	want := "paused by inbox/default/.pause: the scanner [31m is being moved; remove that file to go on"
	if r := w.reason("letters"); r != want {
		t.Errorf("%q", r)
	}
	if w.Paused("default") != want || w.Paused("maps") != "" {
		t.Errorf("%q, %q", w.Paused("default"), w.Paused("maps"))
	}
	w.mkdir("inbox/.pause") // whatever it is
	w.wantScan(nil, []string{"letters", "map.tif", "nothing"}, nil)
	if r := w.reason("map.tif"); !strings.HasPrefix(r, "paused by inbox/.pause;") || w.Paused("maps") != r {
		t.Errorf("%q, %q", r, w.Paused("maps"))
	}
	for _, p := range []string{"inbox/.pause", "inbox/default/.pause"} {
		if err := os.Remove(w.path(p)); err != nil {
			t.Fatal(err)
		}
	}
	w.wantScan([]string{"letters", "map.tif"}, nil, []string{"nothing"})
}
