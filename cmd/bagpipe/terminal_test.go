package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"unicode/utf8"

	"golang.org/x/sys/unix"
)

// inTerminal runs the program with a terminal of a width as its output, and gives what it
// printed.
func (b *bench) inTerminal(width int, args ...string) string {
	b.t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		b.t.Skip(err)
	}
	defer master.Close()
	b.must(unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0))
	n, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	b.must(err)
	terminal, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	b.must(err)
	b.must(unix.IoctlSetWinsize(int(terminal.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: uint16(width)}))
	cmd := exec.Command("bagpipe", append([]string{"-C", b.dir}, args...)...)
	cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = b.env, terminal, terminal, terminal
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	b.must(cmd.Start())
	b.must(terminal.Close())
	if _, err := master.Write([]byte("\n")); err != nil { // whatever is asked
		b.t.Error(err)
	}
	out, _ := io.ReadAll(master) // ends with an error when the last user of the terminal is gone
	_ = cmd.Wait()
	return strings.ReplaceAll(string(out), "\r\n", "\n")
}

// In a terminal an approval of several items at once is asked about.
func TestApprovalsInATerminal(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.workflow("signed", "  - name: sign\n    manual: true\n")
	b.addItems("signed", 3)
	if out := b.inTerminal(80, "step", "complete", "--collection", "default", "signed/sign"); !strings.Contains(out, "change sign of 3 items? [y/N]") {
		t.Errorf("%q", out)
	}
	if out := b.ok("queue", "--people", "--count"); out != "3\n" {
		t.Errorf("%q", out)
	}
	if out := b.inTerminal(80, "step", "complete", "--yes", "--collection", "default", "signed/sign"); !strings.Contains(out, "3 items changed") {
		t.Errorf("%q", out)
	}
}

// In a terminal a run tells a line an item, with its identifier, and what is at work.
func TestARunInATerminal(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.workflow("slow", "  - name: scan\n    command: [sh, -c, 'echo \"3 of 8 pages\" >\"$BAGPIPE_PROGRESS\"; sleep 0.7']\n  - name: after\n    robot: noop\n")
	b.workflow("torn", "  - name: read\n    robot: noop\n    with: {fail: content, message: torn}\n")
	b.addItems("slow", 1)
	b.write("in/bad", "x")
	b.ok("add", "--workflow", "torn", b.top+"/in/bad")
	out := b.inTerminal(100, "run", "-j", "2")
	for _, want := range []string{"completed   ", "  slow.1  i0\n", "  torn.1/read  bad: torn\n", "steps ", "scan of i0: 3 of 8 pages"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in %q", want, out)
		}
	}
	if last := out[strings.LastIndex(out, "steps "):]; strings.Contains(last, " of i0") {
		t.Errorf("at the end a step is shown as at work: %q", last)
	}
	for _, no := range []string{"slow.1/scan", "slow.1/after"} {
		if strings.Contains(out, no) {
			t.Errorf("%q in %q", no, out)
		}
	}
	b.addItems("slow", 1)
	if out := b.inTerminal(100, "run", "-v"); !strings.Contains(out, "slow.1/after") {
		t.Errorf("with -v: %q", out)
	}
}

// In a terminal statuses are in colour, unless NO_COLOR is set; elsewhere never.
func TestColours(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.workflow("torn", "  - name: read\n    robot: noop\n    with: {fail: content, message: torn}\n")
	b.addItems("torn", 1)
	b.env = append(b.env, "TERM=xterm-256color", "NO_COLOR=")
	b.start("run", "-q").code(4)
	const red = "\x1b[31mfailed\x1b[0m"
	if out := b.inTerminal(100, "show", "i0"); !strings.Contains(out, red) {
		t.Errorf("%q", out)
	}
	if out := b.ok("show", "i0"); strings.Contains(out, "\x1b") {
		t.Errorf("%q", out)
	}
	b.env = append(b.env, "NO_COLOR=1")
	if out := b.inTerminal(100, "show", "i0"); strings.Contains(out, red) || !strings.Contains(out, "failed") {
		t.Errorf("%q", out)
	}
}

// On a terminal of 80 columns no line is longer, but one that is a single word, and what failed stands
// there whole.
func TestScreensOf80Columns(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.env = append(b.env, "NO_COLOR=1")
	const why = "the scanner of the second reading room did not answer within four minutes, as on every Monday: error 17"
	b.workflow("torn", "  - name: photograph\n    robot: noop\n    with: {fail: content, message: '"+why+"'}\n  - name: publish-in-the-reading-room\n    manual: true\n")
	b.workflow("signed", "  - name: look-through\n    robot: noop\n  - name: sign\n    manual: true\n")
	b.addItems("signed", 3)
	for _, name := range []string{"35112001-map-of-the-river-and-its-meadows-sheet-4.tif", "letters"} {
		b.write("in/"+name, name)
		b.ok("add", "--workflow", "torn", "--collection", "default", b.top+"/in/"+name)
	}
	b.write("box/the letters of the year in which the river was high.txt", "x")
	b.ok("add", "--label", "box", b.top+"/box") // by accession
	b.start("run", "-q").code(4)
	b.write("ws/inbox/default/.hidden", "x")
	for _, command := range []string{
		"items", "items --status failed", "failures", "queue", "queue --list", "status", "stats", "show box --files", "show box --rules", "workflow list", "log", "log box",
		"why i0", "rules list", "milestones", "stalled", "fixity status", "collection list", "batch list", "schedule list", "explain " + b.top + "/in/letters", "doctor", "users",
	} {
		out := b.inTerminal(80, strings.Fields(command)...)
		for line := range strings.Lines(out) {
			line = strings.TrimRight(line, "\n")
			if utf8.RuneCountInString(line) > 80 && strings.ContainsRune(strings.TrimSpace(line), ' ') {
				t.Errorf("%s, %d characters: %s", command, utf8.RuneCountInString(line), line)
			}
		}
		flat := strings.Join(strings.Fields(out), " ")
		for at, want := range map[string]string{"items --status failed": "did not answer within four minutes, as on every Monday: error 17", "failures": "as on every Monday: error #", "stats": ", day ",
			"show box --files": "not applicable, and skipped: unpack, validate, approve, shelve, publish", "log box": "deposited at "} {
			if command == at && !strings.Contains(flat, want) {
				t.Errorf("%s has no %q:\n%s", command, want, out)
			}
		}
	}
}
