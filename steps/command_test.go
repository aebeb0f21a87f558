package steps

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"bagpipe/layout"
)

// A program's input is one document in the form of Bagpipe's files, whatever its length.
func TestCommandInput(t *testing.T) {
	for what, note := range map[string]string{"short": "a\nb", "longer than a pipe holds": strings.Repeat("0123456789 ", 40_000)} {
		it := newItem(t, "drop", map[string]string{"a": "1"})
		c := it.call()
		manifest, err := layout.EncodeJSON(map[string]any{"item": c.Item, "note": note, "none": map[string]any{}})
		must(t, err)
		execution, err := layout.EncodeJSON(map[string]any{"workflows": map[string]any{"w.1": []int{1, 2}}})
		must(t, err)
		c.Manifest, c.Execution, c.With = manifest, execution, map[string]any{"level": 3}
		_, err = Command([]string{"sh", "-c", "mkdir derived && cat > derived/input"}).Run(t.Context(), c)
		must(t, err)
		got, err := os.ReadFile(filepath.Join(c.Scratch, "derived", "input"))
		must(t, err)
		want, err := layout.EncodeJSON(map[string]any{
			"execution": json.RawMessage(execution), "manifest": json.RawMessage(manifest),
			"item": c.Item, "step": c.Step, "with": c.With, "workflow": c.Workflow,
		})
		must(t, err)
		if string(got) != string(want) {
			t.Errorf("%s: the program read %d bytes, want %d", what, len(got), len(want))
		}
	}
}

func TestAProgramMayLeaveItsInputUnread(t *testing.T) {
	it := newItem(t, "drop", map[string]string{"a": "1"})
	c := it.call()
	c.Manifest = []byte(`{"note": "` + strings.Repeat("x", 1<<20) + `"}`)
	if _, err := Command([]string{"true"}).Run(t.Context(), c); err != nil {
		t.Error(err)
	}
}

// fullDisk is a log for which there is space up to a size.
type fullDisk int

func (d *fullDisk) Write(p []byte) (int, error) {
	if *d -= fullDisk(len(p)); *d < 0 {
		return 0, &os.PathError{Op: "write", Path: "log", Err: syscall.ENOSPC}
	}
	return len(p), nil
}

// A log that cannot be written does not end the program that writes it.
func TestAProgramGoesOnWhereItsLogCannotBeWritten(t *testing.T) {
	const says = "seq 1 100000 && mkdir derived && echo done > derived/a"
	for script, want := range map[string]string{says: "", says + " && exit 65": "content", says + "; exit 1": "later"} {
		it := newItem(t, "drop", map[string]string{"a": "1"})
		c := it.call()
		room := fullDisk(4096)
		c.Log = &room
		r, err := Command([]string{"sh", "-c", script}).Run(t.Context(), c)
		if _, statErr := os.Stat(filepath.Join(c.Scratch, "derived", "a")); statErr != nil {
			t.Errorf("%s: it did not come to its end: %v", script, statErr)
		}
		var later *Later
		switch want {
		case "":
			if err != nil || len(r.Outputs) != 1 {
				t.Errorf("%+v, %v", r, err)
			}
		case "content":
			wantFailure(t, err, Content)
		case "later":
			if !errors.As(err, &later) || !strings.Contains(later.Reason, "no space left") {
				t.Errorf("%v", err)
			}
		}
	}
}

// A script whose interpreter is not there is not said to be missing itself.
func TestAMissingInterpreterIsNamed(t *testing.T) {
	it := newItem(t, "drop", map[string]string{"a": "1"})
	for head, want := range map[string]string{"#!/bin/sh\r\n": `"/bin/sh\r" is not; its lines end as in Windows`, "#!/no/such -x\n": `"/no/such" is not`} {
		script := filepath.Join(t.TempDir(), "robot")
		must(t, os.WriteFile(script, []byte(head), 0o755))
		_, err := Command([]string{script}).Run(t.Context(), it.call())
		var missing *Unavailable
		if !errors.As(err, &missing) || !strings.Contains(err.Error(), script+" is there, and its interpreter "+want) {
			t.Errorf("%v", err)
		}
	}
}

// Why a program could not be started is said in plain words, with what to do.
func TestAProgramThatCannotBeStarted(t *testing.T) {
	it := newItem(t, "drop", map[string]string{"a": "1"})
	script := filepath.Join(t.TempDir(), "robot")
	must(t, os.WriteFile(script, []byte("#!/bin/sh\n"), 0o644))
	for program, want := range map[string]string{
		script:          script + " is there, and is not executable: chmod +x " + script,
		script + "-2":   script + "-2 is not there",
		"no-such-robot": "no-such-robot is in no folder of the PATH",
	} {
		_, err := Command([]string{program}).Run(t.Context(), it.call())
		var missing *Unavailable
		if !errors.As(err, &missing) || err.Error() != "run the program: "+want {
			t.Errorf("%v", err)
		}
	}
}
