package remote

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"bagpipe/engine/remote/wire"
	"bagpipe/layout"

	"golang.org/x/sys/unix"
)

type noGuests struct{}

func (noGuests) ShowGuest(layout.EngineID, string, int) error { return nil }
func (noGuests) HideGuest(layout.EngineID) error              { return nil }

// An engine whose disk is full grants nothing: it could not commit the claim, nor take what the robot makes. The
// offer stands.
func TestNothingIsGrantedWithoutRoom(t *testing.T) {
	r, _, _ := lentOne(t)
	r.place.Broker, r.rooms.Guests, r.rooms.Report = &noBroker{}, noGuests{}, func(string) {}
	r.rooms.Room = func() error { return errors.New("paused: 3 MB are free") }
	hello := wire.Hello{Head: wire.Now(), Name: "w", Engine: "5c1e9a70", Slots: 1, Robots: []wire.Robot{{Name: "ocr"}}}
	if welcome := (gate{r}).hello("w", hello); welcome.Refused != "" {
		t.Fatal(welcome.Refused)
	}
	want := wire.Want{Robot: "ocr"}
	r.offers["1"] = &offer{id: "1", demand: demand{Want: want, class: want.Class()}}
	g := r.claim("w", wire.Claim{Head: wire.Now(), Engine: "5c1e9a70", Offer: "1", Epoch: r.epoch})
	if !strings.Contains(g.Return, "3 MB are free") || r.offers["1"] == nil || r.offers["1"].claiming {
		t.Errorf("the claim is answered %+v", g)
	}
}

// Uploads wait while the engine's disk is full, and go on where they were.
func TestUploadsWaitForRoom(t *testing.T) {
	r, l, w := lentOne(t)
	full := errors.New("paused: 3 MB are free")
	r.rooms.Room = func() error { return full }
	for _, c := range []struct {
		full error
		code int
	}{{nil, http.StatusNoContent}, {full, http.StatusInsufficientStorage}, {nil, http.StatusNoContent}} {
		size := int64(0)
		if info, err := os.Stat(filepath.Join(w.dir, "x")); err == nil {
			size = info.Size()
		}
		full = c.full
		if code := l.ask(r, http.MethodPut, fmt.Sprintf("made?p=x&offset=%d", size), strings.NewReader("half")); code != c.code {
			t.Errorf("a part, full: %v: %d", c.full, code)
		}
	}
	if data, err := os.ReadFile(filepath.Join(w.dir, "x")); err != nil || string(data) != "halfhalf" {
		t.Errorf("%q came: %v", data, err)
	}
}

// An end whose files find no place, whatever is said to be free, ends nothing: it is told again once there is room.
func TestEndsWaitForRoom(t *testing.T) {
	r, l, w := lentOne(t)
	if err := unix.Mount("tmpfs", w.dir, "tmpfs", 0, "size=4k"); err != nil {
		t.Skipf("cannot mount a small file system: %v", err)
	}
	t.Cleanup(func() { unix.Unmount(w.dir, unix.MNT_DETACH) })
	file := wire.Carried("derived/x", make([]byte, 8<<10), false)
	for range 2 {
		if code := l.tell(t, r, "w", endOf(t, file)); code != http.StatusInsufficientStorage || w.ends != 0 {
			t.Errorf("without room the end is answered %d, and %d are committed", code, w.ends)
		}
	}
	if err := unix.Mount("tmpfs", w.dir, "tmpfs", unix.MS_REMOUNT, "size=64k"); err != nil {
		t.Fatal(err)
	}
	if code := l.tell(t, r, "w", endOf(t, file)); code != http.StatusNoContent || w.ends != 1 {
		t.Errorf("with room the end is answered %d, and %d are committed", code, w.ends)
	}
}
