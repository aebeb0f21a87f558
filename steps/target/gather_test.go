package target_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"bagpipe/steps/target"
	"bagpipe/steps/target/targettest"
)

// Of two copies that are damaged in different files, also in what vouches for others, a whole bag is made; one damaged in both is named.
func TestGather(t *testing.T) {
	for _, kind := range sweptKinds() {
		for _, form := range []string{target.LayoutBag, target.LayoutOCFL} {
			t.Run(kind.kind+"/"+form, func(t *testing.T) {
				t.Parallel()
				bag := targettest.NewBag(t, "one", targettest.Now(), map[string]string{"a": "content of a", "d/b": "content of b", "c": "content of c"})
				var from []target.Kept
				var dirs []string
				for n := range 2 {
					c, dir := kind.open(t)
					if n == 0 {
						c, dir = sweptKinds()[0].open(t)
					}
					c.Layout = form
					to := open(t, c)
					copied, err := to.Put(t.Context(), bag)
					must(t, err)
					from, dirs = append(from, target.Kept{Target: to, Copy: copied}), append(dirs, filepath.Join(dir, copied.Place))
				}
				spoil := func(n int, name string) {
					at := filepath.Join(dirs[n], name)
					if form == target.LayoutOCFL {
						at = filepath.Join(dirs[n], "v1/content", name)
					}
					must(t, os.Chmod(filepath.Dir(at), 0o755), os.RemoveAll(at), os.WriteFile(at, []byte("spoiled"), 0o644))
				}
				gather := func() (string, error) {
					to := t.TempDir()
					return to, target.Gather(t.Context(), from, from[0].Copy.Digest, to)
				}
				for n, names := range [][]string{{"data/a", "manifest-sha512.txt", "manifest-sha256.txt", "bag-info.txt"}, {"data/d/b", "tagmanifest-sha512.txt"}} {
					for _, name := range names {
						if _, err := os.Stat(filepath.Join(bag.Dir, name)); err == nil {
							spoil(n, name)
						}
					}
				}
				to, err := gather()
				must(t, err)
				if how, err := target.Compare(bag.Dir, to); err != nil || how != target.SameBagging {
					t.Errorf("it is another bag: %v, %v", how, err)
				}
				for name, want := range map[string]string{"data/a": "content of a", "data/d/b": "content of b", "data/c": "content of c"} {
					if got, err := os.ReadFile(filepath.Join(to, name)); err != nil || string(got) != want {
						t.Errorf("%s is %q: %v", name, got, err)
					}
				}
				at := filepath.Join(to, "full")
				must(t, os.Mkdir(at, 0o755), os.MkdirAll(filepath.Join(at, "data/c"), 0o755)) // what cannot be written is no damage of a copy
				if err := target.Gather(t.Context(), from, from[0].Copy.Digest, at); err == nil || errors.As(err, new(*target.Damage)) {
					t.Errorf("into a folder where a file cannot be written: %v", err)
				}
				spoil(1, "data/a")
				var wrong *target.Damage
				if _, err := gather(); !errors.As(err, &wrong) || fmt.Sprint(err) != "data/a is sound in no copy" {
					t.Errorf("of a file that both have damaged: %v", err)
				}
			})
		}
	}
}
