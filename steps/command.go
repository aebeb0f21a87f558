package steps

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"bagpipe/layout"
)

// The robots' exit codes.
const (
	ExitContent     = 65
	ExitUnavailable = 69
	ExitLater       = 75
	ExitSkipped     = 77
)

// Lists of other items that a program finds in its scratch folder: the children that earlier
// steps made, and, of a batch's step, the items of the batch.
const (
	ChildrenJSON = "children.json"
	BatchJSON    = "batch.json"
)

const (
	resultFile = "result.json"

	// termGrace is how long a program has to end after SIGTERM before its process
	// group is killed.
	termGrace = 5 * time.Second

	maxResult = 4 << 20
)

// Command is the robot that runs a program; the package comment has its
// protocol.
func Command(argv []string) Robot {
	return Func(func(ctx context.Context, c *Call) (Result, error) { return runCommand(ctx, argv, c) })
}

func runCommand(ctx context.Context, argv []string, c *Call) (Result, error) {
	input, err := commandInput(c)
	if err != nil {
		return Result{}, err
	}
	last := &lastLine{to: c.Log}
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir = c.Scratch
	base := c.Environment
	if base == nil {
		base = os.Environ()
	}
	cmd.Env = append(slices.Clone(base), commandEnv(c)...)
	var started func(pid int)
	if c.Children != nil {
		cmd.ExtraFiles, started = []*os.File{c.Children.Pipe}, c.Children.Group
		cmd.Env = append(cmd.Env, "BAGPIPE_READY="+c.Children.Ready)
	}
	stdin, closeStdin := inputFile(input)
	defer closeStdin()
	cmd.Stdin = stdin
	cmd.Stdout, cmd.Stderr = last, last
	cmd.WaitDelay = termGrace // a grandchild that keeps the output open must not keep the step
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	err = RunLimited(ctx, cmd, 0, started)
	if c.Spent != nil && cmd.ProcessState != nil {
		c.Spent(cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime())
	}
	if ctx.Err() != nil {
		return Result{}, context.Cause(ctx)
	}
	res, err := commandResult(c, last.String(), WhyNotStarted(cmd.Path, err))
	var failed *Failure
	if full := last.full(); full != nil && errors.As(err, &failed) && failed.Kind == System {
		// What stopped the log will have stopped the program.
		return Result{}, &Later{Reason: "no space left for its log: " + full.Error()}
	}
	return res, err
}

// RunProgram runs a program in a process group of its own, which ends with ctx and with this
// process. What it prints goes to log; last is its last line.
func RunProgram(ctx context.Context, cmd *exec.Cmd, log io.Writer) (last string, err error) {
	out := &lastLine{to: log}
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = out, out, termGrace
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	err = RunGroup(ctx, cmd)
	return out.String(), WhyNotStarted(cmd.Path, err)
}

// RunGroup runs cmd and, when ctx ends, ends its whole process group: SIGTERM,
// and SIGKILL after a while.
func RunGroup(ctx context.Context, cmd *exec.Cmd) error { return RunLimited(ctx, cmd, 0, nil) }

// RunLimited is RunGroup of a program that may write to so many bytes of memory; 0: any number.
// It tells started, if there is one, of the program once it is there: its process identifier is its group's.
func RunLimited(ctx context.Context, cmd *exec.Cmd, memory int64, started func(pid int)) error {
	// Pdeathsig follows the thread that started the child, so that thread must
	// live as long as the child does.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := cmd.Start(); err != nil {
		return err
	}
	if memory > 0 {
		_ = unix.Prlimit(cmd.Process.Pid, unix.RLIMIT_DATA, &unix.Rlimit{Cur: uint64(memory), Max: uint64(memory)}, nil) // it has ended already
	}
	if started != nil {
		started(cmd.Process.Pid)
	}
	group := -cmd.Process.Pid
	ended, killed := make(chan struct{}), make(chan struct{})
	spare := context.AfterFunc(ctx, func() {
		defer close(killed)
		_ = syscall.Kill(group, syscall.SIGTERM) // gone already: nothing to end
		_ = syscall.Kill(group, syscall.SIGCONT) // a program that is held back has to go on to end
		select {
		case <-ended:
		case <-time.After(termGrace):
		}
		_ = syscall.Kill(group, syscall.SIGKILL)
	})
	err := cmd.Wait()
	close(ended)
	if !spare() {
		<-killed
	}
	// What the program left running in its group does not outlive the step.
	_ = syscall.Kill(group, syscall.SIGKILL)
	if errors.Is(err, exec.ErrWaitDelay) {
		return nil // the program itself ended well
	}
	return err
}

// commandInput is the one JSON object on standard input.
func commandInput(c *Call) ([]byte, error) {
	with := c.With
	if with == nil {
		with = map[string]any{}
	}
	rest, err := layout.EncodeJSON(map[string]any{"step": c.Step, "with": with, "workflow": c.Workflow})
	if err != nil {
		return nil, fmt.Errorf("write the program's input: %w", err)
	}
	// The records are in the form that is wanted already: decoding and encoding them
	// again would take longer than anything else before the program starts.
	var b bytes.Buffer
	fmt.Fprintf(&b, "{\n  \"execution\": %s,\n  \"item\": %q,\n  \"manifest\": %s,%s", indented(c.Execution), c.Item, indented(c.Manifest), rest[1:])
	return b.Bytes(), nil
}

func indented(record []byte) []byte {
	if len(record) == 0 {
		return []byte("null")
	}
	return bytes.ReplaceAll(bytes.TrimSpace(record), []byte("\n"), []byte("\n  "))
}

// inputFile is input as an open file: a pipe that holds it all where it is small enough,
// as then nothing has to be run beside the program.
func inputFile(input []byte) (r io.Reader, closeIt func()) {
	var ends [2]int
	if err := unix.Pipe2(ends[:], unix.O_CLOEXEC); err != nil {
		return bytes.NewReader(input), func() {}
	}
	f := os.NewFile(uintptr(ends[0]), "stdin")
	err := unix.SetNonblock(ends[1], true)
	if err == nil {
		var n int
		if n, err = unix.Write(ends[1], input); n < len(input) {
			err = cmp.Or(err, io.ErrShortWrite)
		}
	}
	if err := cmp.Or(err, unix.Close(ends[1])); err != nil {
		_ = f.Close()
		return bytes.NewReader(input), func() {}
	}
	return f, func() { _ = f.Close() }
}

func commandEnv(c *Call) []string {
	return []string{
		"BAGPIPE_ITEM=" + string(c.Item),
		"BAGPIPE_LABEL=" + c.Label,
		"BAGPIPE_COLLECTION=" + string(c.Collection),
		"BAGPIPE_WORKFLOW=" + c.Workflow,
		"BAGPIPE_STEP=" + string(c.Step),
		"BAGPIPE_ATTEMPT=" + c.Attempt.String(),
		"BAGPIPE_ITEM_DIR=" + c.Dir,
		"BAGPIPE_SOURCE=" + c.Source,
		"BAGPIPE_CONTENT=" + c.Content,
		"BAGPIPE_DERIVED=" + filepath.Join(c.Dir, layout.DerivedDir),
		"BAGPIPE_SCRATCH=" + c.Scratch,
		"BAGPIPE_INVENTORY=" + filepath.Join(c.Dir, layout.InventoryJSON),
		"BAGPIPE_CHILDREN=" + filepath.Join(c.Scratch, ChildrenJSON),
		"BAGPIPE_BATCH=" + filepath.Join(c.Scratch, BatchJSON),
		"BAGPIPE_RESULT=" + filepath.Join(c.Scratch, resultFile),
		"BAGPIPE_PROGRESS=" + filepath.Join(c.Scratch, progressFile),
	}
}

// commandResult reads the exit code and result.json.
func commandResult(c *Call, last string, runErr error) (Result, error) {
	code := 0
	var exit *exec.ExitError
	switch {
	case errors.As(runErr, &exit):
		code = exit.ExitCode()
		if code < 0 {
			return Result{}, SystemFailure("the program was ended by a signal (%s)%s", exit.ProcessState, colon(last))
		}
	case errors.Is(runErr, exec.ErrNotFound), errors.Is(runErr, fs.ErrNotExist), errors.Is(runErr, fs.ErrPermission):
		return Result{}, &Unavailable{fmt.Errorf("run the program: %w", runErr)}
	case runErr != nil:
		return Result{}, SystemFailure("run the program: %w", runErr)
	}
	res, message, err := readResult(c)
	if err != nil {
		return Result{}, SystemFailure("%s: %w", resultFile, err)
	}
	message = cmp.Or(message, last)
	switch code {
	case 0:
		if res.Message = message; res.Status == Skipped {
			res.Children = nil
		}
		return res, nil
	case ExitSkipped:
		res.Status, res.Message, res.Children = Skipped, message, nil
		return res, nil
	}
	if res.Status != "" {
		return Result{}, SystemFailure("%s says %s, but the exit code is %d", resultFile, res.Status, code)
	}
	return failed(res, code, message)
}

// failed is how a robot's exit code ends a step that it did not do.
func failed(res Result, code int, message string) (Result, error) {
	ended := fmt.Sprintf("exit code %d", code)
	message = cmp.Or(message, ended)
	switch code {
	case ExitContent:
		return Result{Milestones: res.Milestones, Checks: res.Checks}, ContentFailure("%s", message)
	case ExitUnavailable:
		return Result{}, &Unavailable{errors.New(message)}
	case ExitLater:
		return Result{}, &Later{Reason: message}
	}
	if message != ended {
		message = ended + ": " + message
	}
	return Result{}, &Failure{Kind: System, Err: &ExitError{Code: code, Text: message}}
}

func colon(s string) string {
	if s == "" {
		return ""
	}
	return ": " + s
}

// readResult reads result.json, if there is one, and finds the outputs.
func readResult(c *Call) (res Result, message string, err error) {
	data, err := readSmall(filepath.Join(c.Scratch, resultFile))
	if errors.Is(err, fs.ErrNotExist) {
		data, err = []byte("{}"), nil
	}
	if err != nil {
		return res, "", err
	}
	return parseResult(c, data)
}

// ResultOf is the result that a robot answers with, in the form of result.json.
func ResultOf(c *Call, data []byte) (Result, error) {
	res, message, err := parseResult(c, data)
	if err != nil {
		return Result{}, SystemFailure("the robot's answer: %w", err)
	}
	if res.Message = message; res.Status == Skipped {
		res.Children = nil
	}
	return res, nil
}

// AnswerOf is how a robot's exit code and message end a step.
func AnswerOf(code int, message string) (Result, error) {
	switch code {
	case ExitSkipped:
		return Result{Status: Skipped, Message: message}, nil
	case ExitContent, ExitUnavailable, ExitLater:
		return failed(Result{}, code, message)
	}
	return Result{}, &Failure{Kind: System, Err: &ExitError{Code: code, Text: fmt.Sprintf("the robot's error %d: %s", code, message)}}
}

func parseResult(c *Call, data []byte) (res Result, message string, err error) {
	var doc struct {
		Status     Status            `json:"status"`
		Message    string            `json:"message"`
		Metadata   map[string]any    `json:"metadata"`
		Milestones []string          `json:"milestones"`
		Outputs    map[string]string `json:"outputs"`

		Children map[string]childDoc `json:"children"`
		Checks   []Check             `json:"checks"`
		Choose   []layout.Name       `json:"choose"`
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&doc); err != nil {
		return res, "", notJSON(data, err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return res, "", errors.New("something follows the result")
	}
	switch doc.Status {
	case "", Completed, Skipped:
	default:
		return res, "", fmt.Errorf("status %q: expected completed or skipped; failures are exit codes", doc.Status)
	}
	res.Status, res.Metadata = doc.Status, doc.Metadata
	for _, m := range doc.Milestones {
		name, err := layout.ParseName(m)
		if err != nil {
			return res, "", fmt.Errorf("milestones: %w", err)
		}
		res.Milestones = append(res.Milestones, name)
	}
	res.Choose = doc.Choose
	if res.Checks, err = checkChecks(doc.Checks); err != nil {
		return res, doc.Message, err
	}
	if res.Outputs, err = commandOutputs(c, doc.Outputs); err != nil {
		return res, doc.Message, err
	}
	res.Children, err = commandChildren(c, doc.Children)
	return res, doc.Message, err
}

// notJSON says in plain words why data cannot be read as a result, and where.
func notJSON(data []byte, err error) error {
	at := func(offset int64) string {
		before := data[:min(max(offset-1, 0), int64(len(data)))]
		return fmt.Sprintf("line %d, character %d", 1+bytes.Count(before, []byte("\n")), 1+utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:]))
	}
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return fmt.Errorf("line %d: the JSON ends before its object does", 1+bytes.Count(bytes.TrimSpace(data), []byte("\n")))
	case errors.As(err, &syntax):
		return fmt.Errorf("%s: no JSON from here on", at(syntax.Offset))
	case errors.As(err, &kind) && kind.Field == "":
		return fmt.Errorf("%s: expected an object, not a JSON %s", at(kind.Offset), kind.Value)
	case errors.As(err, &kind):
		return fmt.Errorf("%s: %s has a JSON %s, which does not fit", at(kind.Offset), kind.Field, kind.Value)
	}
	return errors.New(strings.TrimPrefix(err.Error(), "json: ")) // of a field that is not known
}

// readSmall reads a regular file of the program's making.
func readSmall(path string) ([]byte, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxResult {
		return nil, fmt.Errorf("expected a regular file of at most %d bytes", maxResult)
	}
	return os.ReadFile(path)
}

// commandOutputs checks the outputs: below scratch, there, and free of links
// that lead anywhere else.
func commandOutputs(c *Call, named map[string]string) ([]Output, error) {
	if named == nil {
		if _, err := os.Lstat(filepath.Join(c.Scratch, layout.DerivedDir)); err == nil {
			named = map[string]string{layout.DerivedDir: layout.DerivedDir + "/" + string(c.Step)}
		}
	}
	if len(named) == 0 {
		return nil, nil
	}
	root, err := os.OpenRoot(c.Scratch)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	var outputs []Output
	for from, to := range named {
		src, err := layout.ParseRelPath(from)
		if err != nil {
			return nil, fmt.Errorf("outputs: %w", err)
		}
		dst, err := layout.ParseRelPath(to)
		if err != nil {
			return nil, fmt.Errorf("outputs: %w", err)
		}
		own := layout.DerivedDir + "/" + string(c.Step)
		if dst != layout.ContentDir && string(dst) != own && !strings.HasPrefix(string(dst), own+"/") {
			return nil, fmt.Errorf("outputs: %s: expected content, or %s and below", dst, own)
		}
		if err := checkOutput(root, string(src)); err != nil {
			return nil, fmt.Errorf("outputs: %w", err)
		}
		outputs = append(outputs, Output{From: src, To: dst})
	}
	return outputs, nil
}

// checkOutput wants files and folders only: a link would lead out of the item, or
// into scratch, which is removed.
func checkOutput(root *os.Root, name string) error {
	for dir := filepath.Dir(name); dir != "."; dir = filepath.Dir(dir) {
		if info, err := root.Lstat(dir); err != nil || !info.IsDir() {
			return errors.Join(err, fmt.Errorf("%s: expected a folder", layout.EncodePath(dir)))
		}
	}
	info, err := root.Lstat(name)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return plainOutput(name, info.Mode())
	}
	return fs.WalkDir(root.FS(), name, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		return plainOutput(p, d.Type())
	})
}

func plainOutput(name string, mode fs.FileMode) error {
	if mode.IsRegular() {
		return nil
	}
	kind := "a special file"
	if mode&fs.ModeSymlink != 0 {
		kind = "a symbolic link"
	}
	return fmt.Errorf("%s is %s; expected files and folders only", layout.EncodePath(name), kind)
}

// CheckMade checks that what a result names below scratch is there, and is files and folders
// only: a program of another machine may say anything.
func CheckMade(scratch string, res Result) error {
	if len(res.Outputs)+len(res.Children) == 0 {
		return nil
	}
	root, err := os.OpenRoot(scratch)
	if err != nil {
		return err
	}
	defer root.Close()
	for _, o := range res.Outputs {
		if err := checkOutput(root, string(o.From)); err != nil {
			return fmt.Errorf("outputs: %w", err)
		}
	}
	for _, c := range res.Children {
		if err := checkOutput(root, string(c.From)); err != nil {
			return fmt.Errorf("children: %w", err)
		}
	}
	return nil
}
