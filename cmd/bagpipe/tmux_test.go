package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// inTmux runs the program in a tmux of 80 columns, and gives what its screen and its history then show.
func (b *bench) inTmux(args ...string) string {
	b.t.Helper()
	if _, err := exec.LookPath("tmux"); err != nil {
		b.t.Skip("no tmux; testdata/tools.sh installs it")
	}
	socket := filepath.Join(b.top, "tmux")
	tmux := func(args ...string) string {
		b.t.Helper()
		cmd := exec.Command("tmux", append([]string{"-f", "/dev/null", "-S", socket}, args...)...)
		cmd.Env = append(b.env, "TERM=xterm-256color", "LC_ALL=C.UTF-8")
		out, err := cmd.CombinedOutput()
		if err != nil {
			b.t.Fatalf("tmux %v: %v: %s", args, err, out)
		}
		return string(out)
	}
	// The wait is for the command's end; what it printed may not be on the screen yet, so its end is printed, too.
	script := filepath.Join(b.top, "in-tmux.sh")
	b.must(os.WriteFile(script, []byte("\"$@\"\nprintf 'ended\\n'\nexec sleep 600\n"), 0o755))
	tmux(append([]string{"new-session", "-d", "-x", "80", "-y", "24", "sh", script, "bagpipe", "-C", b.dir}, args...)...)
	defer tmux("kill-server")
	var screen string
	b.await("the end of "+strings.Join(args, " "), func() bool {
		screen = tmux("capture-pane", "-p", "-S", "-")
		return strings.HasSuffix(strings.TrimRight(screen, "\n"), "\nended")
	})
	return strings.TrimSuffix(strings.TrimRight(screen, "\n"), "ended")
}

// What a terminal of 80 columns shows is line for line what was printed: nothing is wrapped or overwritten.
func TestScreensInTmux(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.env = append(b.env, "NO_COLOR=1")
	b.workflow("torn", "  - name: photograph\n    robot: noop\n    with: {fail: content, message: 'the scanner of the second reading room did not answer within four minutes, as on every Monday'}\n")
	b.workflow("signed", "  - name: look-through\n    robot: noop\n  - name: sign\n    manual: true\n")
	b.addItems("signed", 3)
	b.write("in/35112001-map-of-the-river-and-its-meadows-sheet-4.tif", "x")
	b.ok("add", "--workflow", "torn", b.top+"/in/35112001-map-of-the-river-and-its-meadows-sheet-4.tif")
	b.write("box/the letters of the year in which the river was high.txt", "x")
	b.ok("add", "--label", "box", b.top+"/box")

	ran := b.inTmux("run")
	for _, want := range []string{"\ncompleted   ", "  accession.1  box\n", "  torn.1/photograph  35112001-map-", "\n0 drops taken in, 0 rejected; steps: "} {
		if !strings.Contains("\n"+ran, want) {
			t.Errorf("no %q in\n%s", want, ran)
		}
	}
	if n := strings.Count(ran, "\nsteps "); n > 1 { // the last state of the bar stays, and no other
		t.Errorf("%d bars are left:\n%s", n, ran)
	}
	for _, command := range []string{"items", "items --status failed", "queue", "queue --list", "status", "show box", "show box --files", "why i0", "workflow list", "rules list", "log box", "collection list", "explain " + b.top + "/box", "run --help"} {
		args := strings.Fields(command)
		var lines []string
		for line := range strings.SplitSeq(strings.TrimRight(b.inTerminal(80, args...), "\n"), "\n") {
			for line = strings.TrimRight(line, " "); len(line) > 80 && strings.Contains(line, b.top); line = line[80:] {
				lines = append(lines, line[:80]) // a folder's name may be longer than a line
			}
			lines = append(lines, line)
		}
		if printed, shown := strings.Trim(strings.Join(lines, "\n"), "\n"), strings.Trim(b.inTmux(args...), "\n"); printed != shown {
			t.Errorf("%s printed\n%s\n\nand tmux shows\n%s", command, printed, shown)
		}
	}
}
