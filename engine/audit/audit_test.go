package audit_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"bagpipe/engine"
	"bagpipe/engine/audit"
	"bagpipe/engine/claim"
	"bagpipe/engine/gitstore"
	"bagpipe/engine/intake"
	"bagpipe/engine/ledger"
	"bagpipe/steps"
)

func options() engine.Options {
	return engine.Options{Now: time.Now, Random: rand.New(rand.NewSource(1)), Person: gitstore.Signature{Name: "Ada", Email: "ada@example.org"},
		Robots: steps.Builtins(), Host: claim.Host{Name: "host", BootID: "boot", PID: os.Getpid()}}
}

func git(t *testing.T, dir string, in []byte, args ...string) []byte {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-C", dir}, args...)...)
	var errOut bytes.Buffer
	cmd.Stdin, cmd.Stderr = bytes.NewReader(in), &errOut
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, errOut.String())
	}
	return out
}

// worked makes a workspace with a few items that were worked on by an engine and a person.
func worked(t *testing.T) (root string) {
	t.Helper()
	ctx := context.Background()
	root = filepath.Join(t.TempDir(), "w")
	if err := engine.Init(ctx, root, options()); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"workflows/checked.yaml": "schema: 1\nname: checked\nsteps:\n  - name: register\n  - name: check\n    robot: quality\n",
		"rules/named.yaml":       "schema: 1\nname: named\nquality:\n  - checks:\n      - {id: named, level: total.named, regexp: '^[a-z]'}\n",
	} {
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	e, err := engine.Open(ctx, root, options())
	if err != nil {
		t.Fatal(err)
	}
	checked := filepath.Join(t.TempDir(), "map.txt")
	if err := os.WriteFile(checked, []byte("a map\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := e.Intake.Add(ctx, checked, intake.AddOptions{Workflow: "checked"}); err != nil {
		t.Fatal(err)
	}
	var got intake.Admitted
	for i := range 3 {
		drop := filepath.Join(t.TempDir(), "letter.txt")
		if err := os.WriteFile(drop, fmt.Appendf(nil, "letter %d\n", i), 0o644); err != nil {
			t.Fatal(err)
		}
		if got, err = e.Intake.Add(ctx, drop, intake.AddOptions{Label: fmt.Sprint("letter ", i)}); err != nil {
			t.Fatal(err)
		}
	}
	unpack := ledger.StepRef{Item: got.Item, Step: "unpack"}
	_, errDecide := e.Act.Decide(ctx, unpack, "failed", "a reason")
	_, errRetry := e.Act.Retry(ctx, unpack, "again")
	for _, err := range []error{e.Act.Hold(ctx, got.Item, "rights"), e.Act.Release(ctx, got.Item, "cleared"), errDecide, errRetry} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if _, err := e.Run(ctx, engine.RunOptions{Parallel: 2}); err != nil {
		t.Fatal(err)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	return root
}

// audited gives the findings on the history at root.
func audited(t *testing.T, root string) (audit.Report, []audit.Finding) {
	t.Helper()
	o := options()
	o.ReadOnly = true
	e, err := engine.Open(context.Background(), root, o)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	var found []audit.Finding
	report, err := audit.New(e.Ledger, e.Guard).Run(context.Background(), audit.Options{}, func(f audit.Finding) { found = append(found, f) })
	if err != nil {
		t.Fatal(err)
	}
	return report, found
}

// rewritten makes a workspace of a history as git fast-export told it.
func rewritten(t *testing.T, stream []byte) (root string) {
	t.Helper()
	root = filepath.Join(t.TempDir(), "r")
	if err := os.MkdirAll(filepath.Join(root, "items"), 0o755); err != nil {
		t.Fatal(err)
	}
	git(t, root, nil, "init", "-q", "--bare", "-b", "main", ".git")
	git(t, root, stream, "--git-dir=.git", "fast-import", "--quiet")
	if err := os.WriteFile(filepath.Join(root, "bagpipe.yaml"), git(t, root, nil, "--git-dir=.git", "show", "main:bagpipe.yaml"), 0o644); err != nil {
		t.Fatal(err)
	}
	return root
}

// change alters one commit, or the file that came with it, of a told history.
type change struct {
	name, subject string // of the commit that is altered: how its subject begins
	from, to      string // in its message, or in its file
	file          string // "": the message is altered
}

// A history in which one thing is wrong is told of at the commit that is wrong; the honest one is not.
func TestARewrittenHistoryIsFound(t *testing.T) {
	root := worked(t)
	report, found := audited(t, root)
	if len(found) > 0 || report.Events < 10 {
		t.Fatalf("an honest history: %+v, %v", report, found)
	}
	stream := git(t, root, nil, "fast-export", "--reencode=no", "main")
	again := rewritten(t, stream)
	if _, found := audited(t, again); len(found) > 0 {
		t.Fatalf("an honest history, told again: %v", found)
	}
	for _, c := range []change{
		{"another step", "inventory: completed", "Bagpipe-Step: inventory", "Bagpipe-Step: validate", ""},
		{"another item's subject", "inventory: completed", "inventory: completed ", "inventory: completed 0", ""},
		{"no item", "unpack: waiting", "Bagpipe-Item: ", "Bagpipe-Iten: ", ""},
		{"another agent", "hold: held", "Bagpipe-Agent: Ada", "Bagpipe-Agent: Eve", ""},
		{"an attempt longer", "inventory: completed", `"state": "completed"`, `"state": "failed"`, "execution.json"},
		{"another time", "inventory: in-progress", `"claimed": "20`, `"claimed": "19`, "execution.json"},
		{"another author of a hold", "hold: held", `"by": "Ada`, `"by": "Eve`, "execution.json"},
		{"another status", "inventory: completed", `"status": "in-progress"`, `"status": "completed"`, "execution.json"},
		{"a milestone", "register: completed", `"registered"`, `"approved"`, "execution.json"},
		{"another file's digest", "inventory: completed", `"sha256": "`, `"sha256": "0`, "inventory.json"},
		{"another source", "inventory: completed", `"digest": "sha256:`, `"digest": "sha256:0`, "manifest.json"},
		{"another label", "inventory: completed", `"label": "letter`, `"label": "latter`, "manifest.json"},
		{"another quality", "check: completed", `"result": "pass"`, `"result": "warn"`, "manifest.json"},
		{"another lane, with a quality", "check: completed", `"lane": "`, `"lane": "x`, "manifest.json"},
		{"a definition", "register: completed", "schema: 1", "schema: 1 ", "workflows/pinned/"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			root := rewritten(t, c.apply(t, stream))
			wrong := strings.TrimSpace(string(git(t, root, nil, "log", "--reverse", "--format=%H", "--grep=^"+c.subject, "main")))
			wrong, _, _ = strings.Cut(wrong, "\n")
			_, found := audited(t, root)
			for _, f := range found {
				if f.Commit == wrong {
					return
				}
			}
			t.Errorf("commit %s is not among %v", wrong, found)
		})
	}
}

// apply alters the first commit whose subject begins so.
func (c change) apply(t *testing.T, stream []byte) []byte {
	t.Helper()
	blobs, commits := told(stream)
	for _, commit := range commits {
		if !strings.HasPrefix(commit.message, c.subject) {
			continue
		}
		if c.file == "" {
			altered := strings.Replace(commit.message, c.from, c.to, 1)
			if altered == commit.message {
				t.Fatalf("%q is not in %q", c.from, commit.message)
			}
			old := fmt.Sprintf("data %d\n%s", len(commit.message), commit.message)
			return bytes.Replace(stream, []byte(old), fmt.Appendf(nil, "data %d\n%s", len(altered), altered), 1)
		}
		for path, mark := range commit.files {
			if !strings.Contains(path, c.file) || !strings.Contains(blobs[mark], c.from) {
				continue
			}
			altered := strings.Replace(blobs[mark], c.from, c.to, 1)
			return bytes.Replace(stream, fmt.Appendf(nil, "data %d\n%s", len(blobs[mark]), blobs[mark]), fmt.Appendf(nil, "data %d\n%s", len(altered), altered), 1)
		}
		t.Fatalf("%q is in no %s of %q", c.from, c.file, commit.message)
	}
	t.Fatalf("no commit %q", c.subject)
	return nil
}

type toldCommit struct {
	message string
	files   map[string]string // marks by path
}

// told reads a stream of git fast-export.
func told(stream []byte) (blobs map[string]string, commits []toldCommit) {
	blobs = map[string]string{}
	mark, inCommit := "", false
	for len(stream) > 0 {
		line, rest, _ := bytes.Cut(stream, []byte("\n"))
		stream = rest
		word, value, _ := strings.Cut(string(line), " ")
		switch word {
		case "blob":
			inCommit = false
		case "commit":
			inCommit = true
			commits = append(commits, toldCommit{files: map[string]string{}})
		case "mark":
			mark = value
		case "data":
			var n int
			fmt.Sscan(value, &n)
			if data := string(stream[:n]); inCommit {
				commits[len(commits)-1].message = data
			} else {
				blobs[mark] = data
			}
			stream = stream[n:]
		case "M":
			if fields := strings.SplitN(value, " ", 3); inCommit && len(fields) == 3 {
				commits[len(commits)-1].files[fields[2]] = fields[1]
			}
		}
	}
	return blobs, commits
}
