package roots

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"bagpipe/layout"
)

// Nothing is written in a root, however the place is named; beside it, and in a folder of which the root's name is
// the beginning, all may be.
func TestOutside(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	at := func(path string) string { return filepath.Join(dir, path) }
	for _, d := range []string{"mnt/scans/a", "mnt/scans2", "other"} {
		if err := os.MkdirAll(at(d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, to := range map[string]string{"linked": "mnt/scans", "other/in": at("mnt/scans/a"), "dangling": "mnt/scans/none", "loop": "loop", "first": "second", "second": "first"} {
		if err := os.Symlink(to, at(name)); err != nil {
			t.Fatal(err)
		}
	}
	byName := map[layout.Name]*Catalog{"scans": {Name: "scans", Root: at("mnt/scans")}}
	byLink := map[layout.Name]*Catalog{"scans": {Name: "scans", Root: at("linked")}}
	away := map[layout.Name]*Catalog{"tape": {Name: "tape", Root: at("not/mounted")}}
	for place, want := range map[string]map[string]bool{
		"mnt/scans": {"name": false, "link": false}, "mnt/scans/new/file": {"name": false, "link": false}, "mnt/other/../scans/x": {"name": false, "link": false},
		"linked/x": {"name": false, "link": false}, "other/in/x": {"name": false, "link": false}, "dangling": {"name": false, "link": false},
		"mnt/scans2/x": {"name": true, "link": true}, "mnt": {"name": true, "link": true}, "mnt/scans2": {"name": true, "link": true},
		"other/x": {"name": true, "link": true}, "loop": {"name": true, "link": true}, "first/x": {"name": true, "link": true}, "mnt/.scans": {"name": true, "link": true},
	} {
		for how, all := range map[string]map[layout.Name]*Catalog{"name": byName, "link": byLink} {
			err := Outside(all, at(place))
			if (err == nil) != want[how] {
				t.Errorf("%s, root by %s: %v", place, how, err)
			}
			if err != nil && !strings.Contains(err.Error(), "the root of catalog scans, where nothing is written") {
				t.Error(err)
			}
		}
	}
	if err := Outside(away, at("not/mounted/x")); err == nil {
		t.Error("below a root that is not there")
	}
	if err := Outside(nil, at("x")); err != nil {
		t.Error(err)
	}
}
