package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"testing"

	"bagpipe/testdata/sample"

	"github.com/richardlehane/siegfried/pkg/static"
	"github.com/rogpeppe/go-internal/testscript"
)

// TestMain puts the commands that scripts and processes run on the path: bagpipe, and those
// that this test binary serves as, of which sample makes inputs.
func TestMain(m *testing.M) {
	testscript.Main(withProgram{m}, map[string]func(){
		"signatures": func() { // writes the embedded format signatures to a file
			if err := static.New().Save(os.Args[1]); err != nil {
				panic(err)
			}
		},
		"sample": func() { os.Exit(sample.Main(os.Args[1:], os.Stdout, os.Stderr)) },
	})
}

// withProgram runs the tests with bagpipe on the path, built as they were. The test binary
// could serve as bagpipe, too; with the browser's protocol in it, it takes twice as long to
// start, and scripts start thousands.
type withProgram struct{ *testing.M }

func (m withProgram) Run() int {
	dir, err := os.MkdirTemp("", "bagpipe-program-")
	if err == nil {
		defer os.RemoveAll(dir)
		err = buildProgram(dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "build bagpipe for the tests:", err)
		return 1
	}
	return m.M.Run()
}

// buildProgram builds bagpipe and puts it into dir, and dir on the path. What is built is kept,
// so that it is linked again only when something changed; it is copied, as other accounts are
// let into dir alone.
func buildProgram(dir string) error {
	kept := filepath.Join("..", "..", ".cache", "test", "bagpipe")
	args := []string{"build", "-ldflags=-s -w"}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			switch {
			case s.Key == "-race" && s.Value == "true":
				args, kept = append(args, "-race"), kept+"-race"
			case s.Key == "-tags":
				args = append(args, "-tags="+s.Value)
			}
		}
	}
	if out, err := exec.Command("go", append(args, "-o", kept, ".")...).CombinedOutput(); err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	if out, err := exec.Command("cp", kept, filepath.Join(dir, "bagpipe")).CombinedOutput(); err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	return os.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
}
