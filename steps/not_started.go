package steps

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"bagpipe/layout"
)

// notStarted says in plain words why a program could not be started.
type notStarted struct {
	text string
	error
}

func (n notStarted) Error() string { return n.text }
func (n notStarted) Unwrap() error { return n.error }

// WhyNotStarted words the error of a start of a program; any other error it gives back as it is.
func WhyNotStarted(program string, err error) error {
	switch {
	case errors.Is(err, exec.ErrNotFound):
		for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
			if at := filepath.Join(dir, program); mayNotRun(at) {
				return notExecutable(at, err)
			}
		}
		return notStarted{program + " is in no folder of the PATH", err}
	case errors.Is(err, fs.ErrPermission):
		if mayNotRun(program) {
			return notExecutable(program, err)
		}
		return err
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	f, openErr := os.Open(program)
	if errors.Is(openErr, fs.ErrNotExist) {
		return notStarted{program + " is not there", err}
	}
	if openErr != nil {
		return err
	}
	defer f.Close()
	head := make([]byte, 256)
	n, _ := io.ReadFull(f, head) // shorter ones are fine
	line, _, _ := bytes.Cut(head[:n], []byte("\n"))
	rest, isScript := bytes.CutPrefix(line, []byte("#!"))
	if !isScript {
		return err
	}
	interpreter := strings.Trim(string(rest), " \t")
	if first, _, more := strings.Cut(interpreter, " "); more {
		interpreter = first
	}
	hint := ""
	if strings.HasSuffix(interpreter, "\r") {
		hint = "; its lines end as in Windows"
	}
	return notStarted{fmt.Sprintf("%s is there, and its interpreter %q is not%s", program, interpreter, hint), err}
}

// mayNotRun reports whether a file is there, and nobody may execute it.
func mayNotRun(at string) bool {
	info, err := os.Stat(at)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 == 0
}

func notExecutable(at string, err error) error {
	return notStarted{fmt.Sprintf("%s is there, and is not executable: chmod +x %s", at, layout.EncodePath(at)), err}
}
