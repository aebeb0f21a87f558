package catalog_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"bagpipe/engine"
	"bagpipe/engine/catalog"
	"bagpipe/engine/claim"
	"bagpipe/engine/gitstore"
	"bagpipe/engine/roots"
	"bagpipe/steps"
)

const (
	benchFolders = 1000
	benchFiles   = 20 // in each
)

// benchCatalog makes an object of many files, catalogued.
func benchCatalog(b *testing.B) (e *engine.Engine, root string) {
	b.Helper()
	ctx, dir := context.Background(), b.TempDir()
	root, ws := filepath.Join(dir, "root"), filepath.Join(dir, "ws")
	for i := range benchFolders {
		at := filepath.Join(root, "object", fmt.Sprint(i%30), fmt.Sprint(i))
		err := os.MkdirAll(at, 0o755)
		for k := 0; k < benchFiles && err == nil; k++ {
			err = os.WriteFile(filepath.Join(at, fmt.Sprintf("scan-%04d.dat", k)), []byte("x"), 0o644)
		}
		if err != nil {
			b.Fatal(err)
		}
	}
	o := engine.Options{Robots: steps.Builtins(), Now: time.Now, Random: rand.Reader, Host: claim.Host{Name: "host", PID: os.Getpid()},
		Person: gitstore.Signature{Name: "A", Email: "a@example.org"}}
	if err := engine.Init(ctx, ws, o); err != nil {
		b.Fatal(err)
	}
	rule := "schema: 1\nname: object\nrules:\n  - {name: whole, match: {kind: folder, name: object}}\n"
	if err := os.WriteFile(filepath.Join(ws, "rules", "object.yaml"), []byte(rule), 0o644); err != nil {
		b.Fatal(err)
	}
	e, err := engine.Open(ctx, ws, o)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = e.Close() })
	if err := e.Catalog.Add(ctx, &roots.Catalog{Name: "c", Root: root, Collection: "default"}); err != nil {
		b.Fatal(err)
	}
	if _, err := e.Catalog.Scan(ctx, "c", catalog.Options{}); err != nil {
		b.Fatal(err)
	}
	return e, root
}

// BenchmarkRescan is a rescan with nothing changed, beside find, which prints size, time and
// name of each file, and git status of the same files.
func BenchmarkRescan(b *testing.B) {
	e, root := benchCatalog(b)
	took := func(argv ...string) time.Duration {
		cmd := exec.Command(argv[0], argv[1:]...)
		cmd.Dir = root
		began := time.Now()
		if err := cmd.Run(); err != nil {
			b.Fatalf("%v: %v", argv, err)
		}
		return time.Since(began)
	}
	took("git", "init", "-q", "--separate-git-dir", filepath.Join(e.Root(), "..", "peer"))
	took("git", "add", "-A")
	if _, err := e.Catalog.Scan(context.Background(), "c", catalog.Options{}); err != nil { // that there is a .git
		b.Fatal(err)
	}
	for name, o := range map[string]catalog.Options{"deep": {}, "shallow": {Shallow: true}} {
		b.Run(name, func(b *testing.B) {
			var floor, peer, own time.Duration
			for b.Loop() {
				floor += took("find", ".", "-printf", `%s %T@ %p\n`)
				peer += took("git", "status", "--porcelain", "--untracked-files=no")
				began := time.Now()
				if _, err := e.Catalog.Scan(context.Background(), "c", o); err != nil {
					b.Fatal(err)
				}
				own += time.Since(began)
			}
			b.ReportMetric(float64(benchFolders*benchFiles)*float64(b.N)/own.Seconds(), "files/s")
			b.ReportMetric(float64(own)/float64(floor), "x-find")
			b.ReportMetric(float64(own)/float64(peer), "x-git-status")
		})
	}
}
