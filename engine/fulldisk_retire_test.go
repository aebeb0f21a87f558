package engine_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"bagpipe/engine"
	"bagpipe/engine/act"
	"bagpipe/engine/claim"
	"bagpipe/engine/gitstore"
	"bagpipe/engine/intake"
	"bagpipe/engine/ledger"
	"bagpipe/layout"
	"bagpipe/steps"
)

// A disk that is full at some write of a retirement, or of a recall: the item is retired or it is not,
// whole either way, and once there is room it is done.
func TestFullDiskWhileRetiring(t *testing.T) {
	root := filepath.Join(t.TempDir(), "w")
	room := mountRoom(t, root, "16m")
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	o := engine.Options{Now: time.Now, Random: rand.New(rand.NewSource(1)), Robots: steps.Builtins(),
		Person: gitstore.Signature{Name: "Ada", Email: "ada@example.org"}, Host: claim.Host{Name: "host", BootID: "b", PID: os.Getpid()}}
	must(engine.Init(ctx, root, o))
	must(os.WriteFile(filepath.Join(root, "bagpipe.yaml"), fmt.Appendf(nil, fullDiskSettings, 0.0001), 0o644))
	must(os.WriteFile(filepath.Join(root, "workflows/plain.yaml"), []byte(plainWorkflow), 0o644))
	e, err := engine.Open(ctx, root, o)
	must(err)
	defer e.Close()
	var ids []layout.ItemID
	for i := range 12 {
		drop := filepath.Join(t.TempDir(), "letter.txt")
		must(os.WriteFile(drop, fmt.Appendf(nil, "letter %d\n", i), 0o644))
		got, err := e.Intake.Add(ctx, drop, intake.AddOptions{Label: fmt.Sprint("letter ", i)})
		must(err)
		ids = append(ids, got.Item)
	}
	_, err = e.Run(ctx, engine.RunOptions{Parallel: 2})
	must(err)
	must(e.Index.Load(ctx))
	retired := func(id layout.ItemID) bool {
		t.Helper()
		v, err := e.Ledger.Store.Tip()
		must(err)
		records, err := ledger.StandingOf(e.Ledger, v, id)
		must(err)
		if !records.Sound(id) {
			t.Fatalf("item %s is neither retired nor there", id)
		}
		return records.Retired != layout.Standing{}
	}
	refused := 0
	for i, id := range ids { // with each there is a little more room
		filler := fill(t, root, i*3<<10)
		err := act.Retire(ctx, e.Act, id, "nobody asked")
		if err == nil != retired(id) {
			t.Fatalf("retired %v: %v", retired(id), err)
		}
		if err != nil {
			refused++
			if !errors.Is(err, syscall.ENOSPC) {
				t.Fatal(err)
			}
		}
		must(os.Remove(filler))
		if err != nil {
			must(act.Retire(ctx, e.Act, id, "nobody asked"))
		}
		filler = fill(t, root, i*3<<10)
		err = act.Recall(ctx, e.Act, id, "somebody asked")
		if err == nil == retired(id) {
			t.Fatalf("retired %v: %v", retired(id), err)
		}
		must(os.Remove(filler))
	}
	if refused == 0 || refused == len(ids) {
		t.Errorf("%d of %d retirements found no room: some should", refused, len(ids))
	}
	room("64m")
	if out, err := exec.Command("git", "-C", root, "fsck", "--strict", "--no-dangling").CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("git fsck: %v\n%s", err, out)
	}
}

// fill takes all room of a file system but some bytes.
func fill(t *testing.T, dir string, but int) (name string) {
	t.Helper()
	name = filepath.Join(dir, "filler")
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	n := int64(0)
	for block := make([]byte, 4096); ; n += 4096 {
		if _, err := f.Write(block); err != nil {
			break
		}
	}
	if err := f.Truncate(max(n-int64(but), 0)); err != nil {
		t.Fatal(err)
	}
	return name
}
