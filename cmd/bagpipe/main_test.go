package main

import (
	"os"
	"testing"

	"bagpipe/testdata/sample"

	"github.com/richardlehane/siegfried/pkg/static"
	"github.com/rogpeppe/go-internal/testscript"
)

// TestMain makes this test binary serve as the commands that scripts and
// processes run: bagpipe itself, and sample, which makes inputs.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"bagpipe": main,
		"signatures": func() { // writes the embedded format signatures to a file
			if err := static.New().Save(os.Args[1]); err != nil {
				panic(err)
			}
		},
		"sample": func() { os.Exit(sample.Main(os.Args[1:], os.Stdout, os.Stderr)) },
	})
}
