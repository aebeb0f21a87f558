package roots

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"bagpipe/layout"

	"golang.org/x/sys/unix"
)

// A root is found by whatever a mount shows of it: itself, a folder in it, or what it lies in; and so is a workspace.
func TestMounted(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	at := func(path string) string { return filepath.Join(dir, path) }
	for _, d := range []string{"up/root/sub/deep", "up/beside", "ws/inbox", "away/inbox", "ws/items", "m 1", "m2", "m3", "m4", "m5", "m6/in", "hidden"} {
		if err := os.MkdirAll(at(d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, m := range [][2]string{{"up/root", "m 1"}, {"up/root/sub", "m2"}, {"up", "m3"}, {"ws/inbox", "m4"}, {"away/inbox", "ws/inbox"},
		{"away/inbox", "m5"}, {"up/root/sub", "m6/in"}, {"hidden", "m6"}} {
		if err := unix.Mount(at(m[0]), at(m[1]), "", unix.MS_BIND, ""); err != nil {
			t.Skipf("cannot mount: %v", err)
		}
		t.Cleanup(func() { unix.Unmount(at(m[1]), unix.MNT_DETACH) })
	}
	if err := os.Mkdir(at("m6/in"), 0o755); err != nil {
		t.Fatal(err)
	}
	all := map[layout.Name]*Catalog{"scans": {Name: "scans", Root: at("up/root")}, "shown": {Name: "shown", Root: at("m2")}}
	for place, in := range map[string]string{"m 1/new/file": "scans", "m 1": "scans", "m3/root/x": "scans", "m3": "", "m3/beside/x": "", "m2/x": "scans",
		"up/beside": "", "m4/x": "", "m6/in/x": ""} {
		err := Outside(map[layout.Name]*Catalog{"scans": all["scans"]}, at(place))
		if (err != nil) != (in != "") || err != nil && !strings.Contains(err.Error(), "the root of catalog "+in) {
			t.Errorf("%s: %v", place, err)
		}
	}
	if err := Outside(map[layout.Name]*Catalog{"shown": all["shown"]}, at("up/root/sub/deep/x")); err == nil {
		t.Error("what is written into the folder that a root shows is written into the root")
	}
	for root, alone := range map[string]bool{"m2": false, "m3": false, "m4": false, "m5": false, "away": false, "m3/beside": true, "ws/items": false, "m6": true} {
		err := (&Catalog{Name: "new", Root: at(root)}).Alone(at("ws"), map[layout.Name]*Catalog{"scans": all["scans"]})
		if (err == nil) != alone {
			t.Errorf("a root %s: %v", root, err)
		}
	}
}
