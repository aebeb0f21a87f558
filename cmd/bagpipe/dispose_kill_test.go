package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// changing are the calls of the system that change names or make bytes durable.
const changing = "unlink,unlinkat,rename,renameat,renameat2,link,linkat,mkdir,mkdirat,fsync,fdatasync,syncfs,ftruncate"

// A disposal is killed at each call that changes something on the disk, in turn. What comes after goes on with
// it: no byte of the item is left anywhere, and the other item lost none.
func TestKilledDisposal(t *testing.T) {
	t.Parallel()
	base := disposalBase(t)
	kept := len(base.holding("the words of the kept"))
	if gone := len(base.holding("the words of the gone")); gone != kept || kept < 5 {
		t.Fatalf("%d and %d files", gone, kept)
	}
	kills := 0
	for n := 1; ; n += soak(9, 1) {
		b := base.copied(t, fmt.Sprintf("killed-%d", n))
		if !b.killedAt(changing, n, "dispose", "run") {
			break
		}
		kills++
		if left := b.holding("the words of the kept"); len(left) != kept {
			t.Fatalf("killed at call %d the other item has %d of %d files: %v", n, len(left), kept, left)
		}
		b.ok("dispose", "run")
		if left := b.holding("the words of the gone"); len(left) > 0 {
			t.Fatalf("killed at call %d and gone on with, bytes are left: %v", n, left)
		}
		if left := b.holding("the words of the kept"); len(left) != kept {
			t.Fatalf("killed at call %d and gone on with, the other item has %d of %d files", n, len(left), kept)
		}
		if list := b.ok("dispose", "list"); !strings.Contains(list, " done ") {
			t.Fatalf("killed at call %d: %s", n, list)
		}
		b.ok("fixity", "run", "-q")
		b.ok("fixity", "run", "--workspace")
		b.git("fsck", "--strict", "--no-dangling")
		b.must(os.RemoveAll(b.top))
	}
	if kills < 5 {
		t.Errorf("killed %d times", kills)
	}
}

// disposalBase is a workspace with two items on targets of each layout, of which one is approved to go.
func disposalBase(t *testing.T) *bench {
	b := newBench(t)
	b.write("ws/bagpipe.yaml", "schema: 1\ninbox: {collections: open, quiet: 10ms, rescan: 1s}\ntargets:\n  bags: {kind: folder, path: ../bags}\n  tars: {kind: folder, path: ../tars, layout: tar}\n"+
		"  ocfl: {kind: folder, path: ../ocfl, layout: ocfl}\ndefaults: {workflow: accession, targets: [store, bags, tars, ocfl]}\n")
	for _, name := range []string{"gone", "kept"} {
		for n := range 3 {
			b.write(fmt.Sprintf("in/%s/%d.txt", name, n), "the words of the "+name)
		}
		b.ok("add", filepath.Join(b.top, "in", name))
	}
	b.ok("run", "-q")
	b.must(os.RemoveAll(filepath.Join(b.top, "in")))
	key := strings.TrimSpace(strings.SplitN(b.ok("dispose", "propose", "gone", "-m", "its time is over"), "\n", 2)[0])
	env := slices.Clone(b.env)
	for _, person := range []string{"bob", "carol"} {
		b.env = append(slices.Clone(env), "GIT_AUTHOR_NAME="+person, "GIT_AUTHOR_EMAIL="+person+"@example.org")
		b.ok("dispose", "approve", key)
	}
	b.env = env
	return b
}

// holding lists the files outside of the repository whose bytes have a text.
func (b *bench) holding(text string) (paths []string) {
	b.t.Helper()
	b.must(filepath.WalkDir(b.top, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			if err == nil && d.Name() == ".git" {
				return fs.SkipDir
			}
			return err
		}
		if !d.Type().IsRegular() {
			return nil
		}
		data, err := os.ReadFile(path)
		if err == nil && bytes.Contains(data, []byte(text)) {
			paths = append(paths, path)
		}
		return err
	}))
	return paths
}
