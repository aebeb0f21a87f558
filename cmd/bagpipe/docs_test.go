package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The rules are:
//
//   - Every fenced console or sh block in README.md and docs/*.md is run, file by
//     file, block by block, in one shell that begins in an empty home folder.
//   - A console block holds commands after "$ ", their further lines after "> ",
//     and between them what is printed. A sh block is one script.
//   - Every command must end with exit code 0; one that fails on purpose is
//     shown with || echo "exit code $?".
//   - What is shown must be printed, line for line, in that order; lines may be
//     left out. Identifiers, digests, times and spacing are not compared, and a
//     line may end with … for any rest.
//   - A block that cannot run here has <!-- not run: REASON --> on the line
//     above; all of them are listed in notRun.

// notRun lists the blocks that are shown and not run, in the order of files.
var notRun = []string{
	"README.md: builds and runs the whole project",
	"README.md: installs into folders of the machine",
	"README.md: installs into a folder of the machine",
	"README.md: stays until it is stopped",
	"docs/api.md: needs the pages that stay until they are stopped",
	"docs/operations.md: needs systemd",
	"docs/operations.md: needs several accounts",
	"docs/operations.md: needs several accounts",
	"docs/operations.md: needs another host",
	"docs/operations.md: needs another host",
	"docs/web.md: stays until it is stopped",
	"docs/web.md: needs a certificate",
	"docs/web.md: needs a proxy",
}

const docsTimeout = 2 * time.Minute

// docFiles finds README.md and docs/*.md from this package's folder.
func docFiles(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("../../docs/*.md")
	if err != nil || len(files) == 0 {
		t.Fatalf("docs/*.md: %v, %d files", err, len(files))
	}
	return append([]string{"../../README.md"}, files...)
}

func docName(file string) string { return strings.TrimPrefix(filepath.ToSlash(file), "../../") }

func TestDocsRun(t *testing.T) {
	if testing.Short() {
		t.Skip("runs every command of the documentation")
	}
	var skipped []string
	for _, file := range docFiles(t) {
		blocks := docBlocks(t, file)
		for _, b := range blocks {
			if b.notRun != "" {
				skipped = append(skipped, docName(file)+": "+b.notRun)
			}
		}
		t.Run(docName(file), func(t *testing.T) {
			t.Parallel()
			runBlocks(t, file, blocks)
		})
	}
	if !slices.Equal(skipped, notRun) {
		t.Errorf("blocks marked as not run:\n  %s\nexpected:\n  %s", strings.Join(skipped, "\n  "), strings.Join(notRun, "\n  "))
	}
}

// block is one fenced console or sh block.
type block struct {
	notRun string
	steps  []docStep
}

// docStep is one command and what is shown below it.
type docStep struct {
	line    int
	command string
	shown   []string
}

var (
	notRunMark = regexp.MustCompile(`^<!-- not run: (.+) -->$`)
	fenceLine  = regexp.MustCompile("^( *)```([a-z]*)$")
)

// docBlocks reads the blocks of a file that are to be run.
func docBlocks(t *testing.T, file string) (blocks []block) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(data), "\n")
	for i := 0; i < len(lines); i++ {
		fence := fenceLine.FindStringSubmatch(lines[i])
		if fence == nil {
			continue
		}
		mark := ""
		if i > 0 {
			if m := notRunMark.FindStringSubmatch(strings.TrimSpace(lines[i-1])); m != nil {
				mark = m[1]
			}
		}
		indent, kind, from := fence[1], fence[2], i+1
		for i++; i < len(lines) && lines[i] != indent+"```"; i++ {
		}
		if i == len(lines) {
			t.Fatalf("%s:%d: a block without its end", docName(file), from)
		}
		body := make([]string, i-from)
		for n, l := range lines[from:i] {
			body[n] = strings.TrimPrefix(l, indent)
		}
		switch kind {
		case "console":
			blocks = append(blocks, block{notRun: mark, steps: consoleSteps(t, file, from+1, body)})
		case "sh":
			blocks = append(blocks, block{notRun: mark, steps: []docStep{{line: from + 1, command: strings.Join(body, "\n")}}})
		}
	}
	return blocks
}

func consoleSteps(t *testing.T, file string, line int, body []string) (steps []docStep) {
	t.Helper()
	for i, l := range body {
		command, isCommand := strings.CutPrefix(l, "$ ")
		more, isMore := strings.CutPrefix(l, "> ")
		switch {
		case isCommand:
			steps = append(steps, docStep{line: line + i, command: command})
		case len(steps) == 0:
			t.Fatalf("%s:%d: output before the first command of a console block", docName(file), line+i)
		case isMore && len(steps[len(steps)-1].shown) == 0:
			steps[len(steps)-1].command += "\n" + more
		case strings.TrimSpace(l) != "" && l != "…":
			last := &steps[len(steps)-1]
			last.shown = append(last.shown, l)
		}
	}
	return steps
}

func runBlocks(t *testing.T, file string, blocks []block) {
	sh := startShell(t)
	for _, b := range blocks {
		if b.notRun != "" {
			continue
		}
		for _, s := range b.steps {
			out, code, err := sh.run(s.command)
			at := fmt.Sprintf("%s:%d: $ %s", docName(file), s.line, s.command)
			if err != nil {
				t.Fatalf("%s\n%v\n%s", at, err, out)
			}
			if code != 0 {
				t.Errorf("%s\nexit code %d:\n%s", at, code, out)
			}
			if missing, ok := sh.firstMissing(s.shown, out); ok {
				t.Errorf("%s\nthis line is shown, and was not printed (or not in this order):\n%s\nprinted:\n%s", at, missing, out)
			}
		}
	}
}

// shell is one sh that keeps its folder and variables from command to command.
type shell struct {
	dir   string // holds the scripts
	home  string
	in    io.WriteCloser
	out   *bufio.Reader
	count int
	plain *strings.Replacer
}

// docsHome is what the pages call the reader's home folder.
const docsHome = "/home/archivist"

func startShell(t *testing.T) *shell {
	t.Helper()
	s := &shell{dir: t.TempDir(), home: t.TempDir()}
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	s.plain = strings.NewReplacer(s.home, docsHome, "robot@"+host, "robot@host", "bagpipe@"+host, "bagpipe@host",
		" "+host+":", " host:")
	gitConfig := "[user]\n\tname = A. Archivist\n\temail = archivist@example.org\n[init]\n\tdefaultBranch = main\n"
	if err := os.WriteFile(filepath.Join(s.home, ".gitconfig"), []byte(gitConfig), 0o666); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), docsTimeout)
	cmd := exec.CommandContext(ctx, "sh")
	cmd.Dir = s.home
	cmd.Env = docsEnv(t, s.home)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr, s.out = w, w, bufio.NewReader(r)
	if s.in, err = cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = w.Close() // the shell has its own
	t.Cleanup(func() {
		_ = s.in.Close()
		if err := cmd.Wait(); err != nil {
			t.Errorf("the shell: %v", err)
		}
		for range 500 { // what it left in the background writes into folders that are to go
			if syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) != nil {
				break
			}
			time.Sleep(10 * time.Millisecond)
		}
		cancel()
		_ = r.Close()
	})
	return s
}

// docsEnv is a person's environment: their own home and Git configuration, bagpipe
// on the path (TestMain puts it there), and Go's caches, for the page that builds a
// robot.
func docsEnv(t *testing.T, home string) []string {
	t.Helper()
	env := []string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "LC_ALL=C.UTF-8", "GIT_CONFIG_NOSYSTEM=1", "GIT_PAGER=cat"}
	out, err := exec.Command("go", "env", "GOCACHE", "GOMODCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	dirs := strings.Fields(string(out))
	return append(env, "GOCACHE="+dirs[0], "GOMODCACHE="+dirs[1], "GOFLAGS=-mod=mod", "GOTOOLCHAIN=local")
}

// endMark begins the line that ends a command's output, with its exit code.
const endMark = "\x01end "

func (s *shell) run(command string) (out string, code int, err error) {
	s.count++
	script := filepath.Join(s.dir, strconv.Itoa(s.count)+".sh")
	if err := os.WriteFile(script, []byte(command+"\n"), 0o666); err != nil {
		return "", 0, err
	}
	if _, err := fmt.Fprintf(s.in, ". %s </dev/null\nprintf '\\n\\001end %%d\\n' \"$?\"\n", script); err != nil {
		return "", 0, err
	}
	var b strings.Builder
	for {
		line, err := s.out.ReadString('\n')
		if end, ok := strings.CutPrefix(line, endMark); ok {
			code, err = strconv.Atoi(strings.TrimSpace(end))
			return strings.TrimSpace(b.String()), code, err
		}
		b.WriteString(line)
		if err != nil {
			return b.String(), 0, errors.Join(errors.New("the shell ended"), err)
		}
	}
}

// firstMissing gives the first shown line that was not printed.
func (s *shell) firstMissing(shown []string, out string) (string, bool) {
	printed := strings.Split(s.plain.Replace(out), "\n")
	for i := range printed {
		printed[i] = placeholders(printed[i])
	}
	at := 0
	for _, want := range shown {
		line := placeholders(want)
		begin, open := strings.CutSuffix(line, "…")
		found := slices.IndexFunc(printed[at:], func(p string) bool {
			return p == line || open && strings.HasPrefix(p, begin)
		})
		if found < 0 {
			return want, true
		}
		at += found + 1
	}
	return "", false
}

var (
	docPath  = regexp.MustCompile(`(/[0-9a-f]){4}/[0-9a-f]{15}`)
	docHex   = regexp.MustCompile(`\b[0-9a-f]{7,128}\b`)
	docTime  = regexp.MustCompile(`\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?Z?`)
	docStamp = regexp.MustCompile(`\b\d{8}T\d{6}Z`)
	docSecs  = regexp.MustCompile(`\b\d+\.\d{3}\b`)
	docPid   = regexp.MustCompile(`\bhost:\d+`)
	docBytes = regexp.MustCompile(`\b\d{4,} bytes`) // of a bag, whose records name processes
	docSize  = regexp.MustCompile(`\b\d+\.\d [KMGTP]iB`)
	docAge   = regexp.MustCompile(`\b\d{1,2}s\b`)
)

// placeholders takes out of a line what differs from run to run.
func placeholders(line string) string {
	line = docStamp.ReplaceAllString(docTime.ReplaceAllString(line, "TIME"), "STAMP")
	line = docHex.ReplaceAllString(docPath.ReplaceAllString(line, "/ID"), "HEX")
	line = docPid.ReplaceAllString(docSecs.ReplaceAllString(line, "SECONDS"), "host:PID")
	line = docBytes.ReplaceAllString(line, "MANY bytes")
	line = docSize.ReplaceAllString(line, "SIZE")
	line = docAge.ReplaceAllString(line, "AGE")
	return strings.Join(strings.Fields(line), " ")
}

// The changelog has the headings of its form under each version, and no entry twice.
func TestChangelog(t *testing.T) {
	data, err := os.ReadFile("../../CHANGELOG.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, version := range strings.Split(string(data), "\n## ")[1:] {
		if name, text, _ := strings.Cut(version, "\n\n"); !strings.HasPrefix(text, "**Upgrading.** ") {
			t.Errorf("%s does not begin with **Upgrading.**, and what has to be done", name)
		}
	}
	seen := map[string]bool{}
	for line := range strings.Lines(string(data)) {
		switch heading, is := strings.CutPrefix(strings.TrimSpace(line), "### "); {
		case is && !strings.Contains(" Added Changed Deprecated Removed Fixed Security ", " "+heading+" "):
			t.Errorf("no heading of a changelog: %s", heading)
		case strings.HasPrefix(line, "- ") && seen[line]:
			t.Errorf("twice: %s", line)
		}
		seen[line] = strings.HasPrefix(line, "- ")
	}
}
