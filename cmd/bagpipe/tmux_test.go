package main

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// screenOf runs commands one after the other in a real terminal of a width, tmux, and gives
// the lines as they stand there, and as they were written.
func (b *bench) screenOf(width string, commands ...string) (shown, written []string) {
	b.t.Helper()
	if _, err := exec.LookPath("tmux"); err != nil {
		b.t.Skip("no tmux")
	}
	socket := filepath.Join(b.t.TempDir(), "tmux")
	tmux := func(args ...string) string {
		b.t.Helper()
		cmd := exec.Command("tmux", append([]string{"-f", "/dev/null", "-S", socket}, args...)...)
		cmd.Env = append(b.env, "TERM=screen", "LC_ALL=C.UTF-8", "NO_COLOR=1")
		out, err := cmd.CombinedOutput()
		if err != nil {
			b.t.Fatalf("tmux %v: %v: %s", args, err, out)
		}
		return string(out)
	}
	const end = "- end -"
	tmux("new-session", "-d", "-x", width, "-y", "400", strings.Join(commands, "; ")+"; echo '"+end+"'; cat")
	defer tmux("kill-server")
	lines := func(args ...string) []string {
		text, _, _ := strings.Cut(tmux(append([]string{"capture-pane", "-p"}, args...)...), end)
		return strings.Split(strings.TrimSpace(text), "\n")
	}
	b.await("the commands' end", func() bool { return strings.Contains(tmux("capture-pane", "-p"), end) })
	return lines(), lines("-J")
}

// On a terminal of 80 columns no line wraps, and what failed stands there whole.
func TestScreensOf80Columns(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	const why = "the scanner of the second reading room did not answer within four minutes, as on every Monday: error 17"
	b.workflow("torn", "  - name: photograph\n    robot: noop\n    with: {fail: content, message: '"+why+"'}\n  - name: publish-in-the-reading-room\n    manual: true\n")
	b.workflow("signed", "  - name: look-through\n    robot: noop\n  - name: sign\n    manual: true\n")
	b.addItems("signed", 3)
	for _, name := range []string{"35112001-map-of-the-river-and-its-meadows-sheet-4.tif", "letters"} {
		b.write("in/"+name, name)
		b.ok("add", "--workflow", "torn", "--collection", "default", b.top+"/in/"+name)
	}
	b.ok("add", "--label", "box", b.top+"/in/letters") // by accession
	b.start("run", "-q").code(4)
	b.write("ws/inbox/default/.hidden", "x")
	for _, command := range []string{
		"items", "items --status failed", "failures", "queue", "queue --list", "status", "stats", "show box --files", "workflow list",
		"why i0", "rules list", "milestones", "stalled", "fixity status", "collection list", "batch list", "schedule list", "explain " + b.top + "/in/letters",
	} {
		shown, written := b.screenOf("80", "bagpipe -C "+b.dir+" "+command)
		if len(shown) != len(written) {
			t.Errorf("%s wraps at 80 columns:\n%s", command, strings.Join(shown, "\n"))
		}
		if strings.HasPrefix(command, "show box") && !strings.Contains(strings.Join(written, " "), "    not applicable, and skipped: unpack, validate, approve, shelve, publish") {
			t.Errorf("%s:\n%s", command, strings.Join(shown, "\n"))
		}
		if flat := strings.Join(strings.Fields(strings.Join(written, " ")), " "); (strings.HasPrefix(command, "items --status") || command == "failures") && !strings.Contains(flat, "did not answer within four minutes, as on every Monday: error ") {
			t.Errorf("%s does not say why:\n%s", command, strings.Join(shown, "\n"))
		}
	}
}
