package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/tidwall/gjson"
)

// The scripts are the command's regression suite; each is named for the command
// it is about. Beside testscript's own commands they have:
//
//	code N COMMAND…            runs COMMAND, which must end with exit code N
//	workspace DIR              bagpipe init DIR, with an inbox that settles at once
//	edit FILE OLD NEW          replaces OLD, which must be there, once
//	waitfor [-out RE] COMMAND… runs COMMAND until it succeeds (and prints RE)
//	json FILE PATH WANT        the value at a gjson path; FILE may be stdout
//	item VAR DIR LABEL         sets VAR to the item's identifier, VAR_DIR to its folder
//	clean DIR                  fsck is silent and nothing was left behind
//	steps DIR LABEL WANT       the item's steps: "unpack:completed validate:skipped …"
//	schema FILE                the PREMIS or METS is valid by the schemas of the fixtures
//	rdf FILE                   the Turtle file can be read
//	isomorphic TURTLE JSONLD   both files are the same graph, by rdflib
func TestScripts(t *testing.T) {
	testscript.Run(t, scripts(testscript.Params{Dir: "testdata/script", Setup: setupScript}))
}

// noEvents set in a script's environment has its workspaces take no notice of the
// system's events.
const noEvents = "NO_EVENTS"

// What is about the inbox works the same with watch: false.
func TestScriptsWithoutEvents(t *testing.T) {
	patterns := []string{"inbox-late", "inbox-writer", "watch", "batch"}
	if soak(0, 1) == 1 {
		patterns = []string{"inbox-*", "watch", "batch", "add", "run-good", "run-bad", "run-empty", "intake-junk"}
	}
	var files []string
	for _, pattern := range patterns {
		found, err := filepath.Glob("testdata/script/" + pattern + ".txtar")
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: %v, %v", pattern, found, err)
		}
		files = append(files, found...)
	}
	testscript.Run(t, scripts(testscript.Params{Files: files, Setup: func(env *testscript.Env) error {
		env.Setenv(noEvents, "yes")
		return setupScript(env)
	}}))
}

// scripts adds the commands that scripts have.
func scripts(p testscript.Params) testscript.Params {
	return testscript.Params{
		Dir: p.Dir, Files: p.Files, Setup: p.Setup,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"code": cmdCode, "workspace": cmdWorkspace, "edit": cmdEdit, "waitfor": cmdWaitfor,
			"json": cmdJSON, "item": cmdItem, "clean": cmdClean, "steps": cmdSteps, "schema": cmdSchema, "rdf": cmdRDF, "isomorphic": cmdIsomorphic,
		},
	}
}

// gitConfig is who acts in every test.
const gitConfig = `[user]
	name = Ada Keeper
	email = ada@example.org
[init]
	defaultBranch = main
[advice]
	detachedHead = false
`

// testEnv is the environment of every bagpipe and git that a test starts.
func testEnv(home string) ([]string, error) {
	config := filepath.Join(home, ".gitconfig")
	if err := os.MkdirAll(home, 0o777); err != nil {
		return nil, err
	}
	if err := os.WriteFile(config, []byte(gitConfig), 0o666); err != nil {
		return nil, err
	}
	return []string{"HOME=" + home, "GIT_CONFIG_GLOBAL=" + config, "GIT_CONFIG_NOSYSTEM=1", "GIT_TERMINAL_PROMPT=0",
		"TZ=UTC", "LC_ALL=C.UTF-8", "BAGPIPE_WORKSPACE=", "NO_COLOR=1"}, nil
}

func setupScript(env *testscript.Env) error {
	vars, err := testEnv(filepath.Join(env.WorkDir, ".home"))
	env.Vars = append(env.Vars, vars...)
	return err
}

// deadline is how long anything may take that a test waits for: longer than a busy
// machine takes for what needs seconds, as settings are looked at every six.
const deadline = 2 * time.Minute

func noNeg(ts *testscript.TestScript, neg bool, name string) {
	if neg {
		ts.Fatalf("unsupported: ! %s", name)
	}
}

func need(ts *testscript.TestScript, args []string, least int, usage string) {
	if len(args) < least {
		ts.Fatalf("usage: %s", usage)
	}
}

func cmdCode(ts *testscript.TestScript, neg bool, args []string) {
	noNeg(ts, neg, "code")
	need(ts, args, 2, "code N COMMAND…")
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	code := 0
	var exit *exec.ExitError
	if err := ts.Exec(args[1], args[2:]...); errors.As(err, &exit) {
		code = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if code != want {
		ts.Fatalf("exit code %d, want %d", code, want)
	}
}

func cmdWorkspace(ts *testscript.TestScript, neg bool, args []string) {
	noNeg(ts, neg, "workspace")
	need(ts, args, 1, "workspace DIR")
	ts.Check(ts.Exec("bagpipe", "init", args[0]))
	ts.Check(hasten(ts.MkAbs(args[0])))
	if ts.Getenv(noEvents) != "" {
		ts.Check(edit(filepath.Join(ts.MkAbs(args[0]), "bagpipe.yaml"), "watch: true ", "watch: false"))
	}
}

// hasten makes a workspace's inbox settle at once.
func hasten(dir string) error {
	return errors.Join(
		edit(filepath.Join(dir, "bagpipe.yaml"), "quiet: 30s", "quiet: 20ms"),
		edit(filepath.Join(dir, "bagpipe.yaml"), "collections: listed", "collections: open"),
		edit(filepath.Join(dir, "bagpipe.yaml"), "rescan: 10s", "rescan: 200ms"))
}

func cmdEdit(ts *testscript.TestScript, neg bool, args []string) {
	noNeg(ts, neg, "edit")
	need(ts, args, 3, "edit FILE OLD NEW")
	unescape := strings.NewReplacer(`\n`, "\n", `\t`, "\t")
	ts.Check(edit(ts.MkAbs(args[0]), unescape.Replace(args[1]), unescape.Replace(args[2])))
}

func edit(path, old, now string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if !strings.Contains(string(data), old) {
		return fmt.Errorf("%s does not hold %q", path, old)
	}
	return os.WriteFile(path, []byte(strings.Replace(string(data), old, now, 1)), 0o666)
}

func cmdWaitfor(ts *testscript.TestScript, neg bool, args []string) {
	noNeg(ts, neg, "waitfor")
	var re *regexp.Regexp
	if len(args) > 2 && args[0] == "-out" {
		re = regexp.MustCompile("(?m)" + args[1])
		args = args[2:]
	}
	need(ts, args, 1, "waitfor [-out RE] COMMAND…")
	ok := eventually(func() bool {
		err := ts.Exec(args[0], args[1:]...)
		return err == nil && (re == nil || re.MatchString(ts.ReadFile("stdout")))
	})
	if !ok {
		ts.Fatalf("waited for %s in vain", strings.Join(args, " "))
	}
}

// eventually asks until the answer is yes or the deadline has passed. It rests for twice as
// long as an answer took, so that those who ask leave the machine to those who work.
func eventually(yes func() bool) bool {
	end := time.Now().Add(deadline)
	for {
		began := time.Now()
		if yes() {
			return true
		}
		if time.Now().After(end) {
			return false
		}
		time.Sleep(max(15*time.Millisecond, min(2*time.Since(began), time.Second)))
	}
}

func cmdJSON(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, args, 3, "json FILE PATH WANT")
	data := ts.ReadFile(args[0])
	// --json of a history is one object a line; all else is one document.
	if !gjson.Valid(data) && !strings.HasPrefix(args[1], "..") {
		ts.Fatalf("%s is not JSON", args[0])
	}
	got := gjson.Get(data, args[1]).String()
	if (got == args[2]) == neg {
		ts.Fatalf("%s is %q, want %q", args[1], got, args[2])
	}
}

func cmdItem(ts *testscript.TestScript, neg bool, args []string) {
	noNeg(ts, neg, "item")
	need(ts, args, 3, "item VAR DIR LABEL")
	ts.Check(ts.Exec("bagpipe", "-C", args[1], "items", "--json"))
	id := gjson.Get(ts.ReadFile("stdout"), fmt.Sprintf(`#(label=="%s").item`, args[2])).String()
	if id == "" {
		ts.Fatalf("no item is labelled %q", args[2])
	}
	ts.Setenv(args[0], id)
	ts.Setenv(args[0]+"_DIR", filepath.Join("items", id[:1], id[1:2], id[2:3], id[3:4], id))
}

func cmdClean(ts *testscript.TestScript, neg bool, args []string) {
	noNeg(ts, neg, "clean")
	need(ts, args, 1, "clean DIR")
	ts.Check(leftBehind(ts.MkAbs(args[0])))
	err := ts.Exec("git", "-C", args[0], "fsck", "--strict", "--no-dangling")
	if out := ts.ReadFile("stdout") + ts.ReadFile("stderr"); err != nil || out != "" {
		ts.Fatalf("git fsck: %v: %s", err, out)
	}
}

// leftBehind names what should not be in a workspace at rest: drops being taken,
// scratch, claims, locks, half-written packs.
func leftBehind(dir string) error {
	var errs []error
	for _, pattern := range []string{"intake/*", "intake/.*", ".bagpipe/scratch/*/*", ".bagpipe/claims/*", ".git/*.lock",
		".git/refs/heads/*.lock", ".git/objects/pack/*tmp*", ".git/objects/tmp*", "items/*/*/*/*/*/*.tmp*", "items/*/*/*/*/*/versions/.*", "store/*/*/*/*/.*"} {
		found, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			return err
		}
		for _, f := range found {
			if base := filepath.Base(f); base != "." && base != ".." && !ofDeadEngine(dir, f) {
				errs = append(errs, fmt.Errorf("left behind: %s", f))
			}
		}
	}
	return errors.Join(errs...)
}

// ofDeadEngine tells whether a file is the claim of an engine that is gone: such
// stay, to be taken over.
func ofDeadEngine(dir, file string) bool {
	if filepath.Base(filepath.Dir(file)) != "claims" {
		return false
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return false
	}
	_, err = os.Lstat(filepath.Join(dir, ".bagpipe/engines", gjson.GetBytes(data, "engine").String()))
	return os.IsNotExist(err)
}

func cmdSteps(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, args, 3, "steps DIR LABEL WANT")
	ts.Check(ts.Exec("bagpipe", "-C", args[0], "show", args[1], "--json"))
	var got []string
	for _, s := range gjson.Get(ts.ReadFile("stdout"), "workflows.0.steps").Array() {
		got = append(got, s.Get("step").String()+":"+s.Get("status").String())
	}
	if (strings.Join(got, " ") == args[2]) == neg {
		ts.Fatalf("steps of %s:\n%s\nwant:\n%s", args[1], strings.Join(got, " "), args[2])
	}
}
