package live

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"bagpipe/steps"
)

// goneError says that a program ended, or was ended, before it answered.
type goneError struct{ why error }

func (g *goneError) Error() string { return g.why.Error() }

// asked is one request that waits for its answer.
type asked struct {
	id     int64
	call   *steps.Call // of a process; nil: of another request
	take   func(json.RawMessage) error
	answer chan struct{} // closed with the rest set
	m      message
	gone   error
}

// instance is one program that runs.
type instance struct {
	grace time.Duration // to answer what was cancelled, and to end
	in    io.WriteCloser
	log   *os.File // standard error, our end
	kill  context.CancelCauseFunc
	ended chan struct{} // closed when the program has ended
	pid   atomic.Int64  // 0: it has not started

	ends []bool // of its last items, which failed; the lock of Instances guards this
	sick bool   // so many that it is not asked again; likewise

	mu      sync.Mutex // guards the rest
	last    int64
	pending map[int64]*asked
	with    string // the parameters it has, encoded
	dead    error
	said    []byte    // the end of what it printed on standard error
	since   time.Time // idle since
}

// launch starts the program of spec; it is not initialized.
func launch(spec *Spec, dir string) (_ *instance, err error) {
	cmd := exec.Command(spec.Argv[0], spec.Argv[1:]...)
	cmd.Dir, cmd.Env = dir, spec.Environment
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, outEnd, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, in.Close())
	}
	log, logEnd, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, in.Close(), out.Close(), outEnd.Close())
	}
	cmd.Stdout, cmd.Stderr = outEnd, logEnd
	ctx, kill := context.WithCancelCause(context.Background())
	i := &instance{grace: cmp.Or(spec.Grace, 5*time.Second), in: in, log: log, kill: kill, ended: make(chan struct{}), pending: map[int64]*asked{}}
	var readers sync.WaitGroup
	readers.Go(func() { _, _ = io.Copy(&lines{each: i.heard, broken: i.fail}, out) }) // it ends with the program
	readers.Go(i.follow)
	go func() {
		defer close(i.ended)
		err := steps.RunLimited(ctx, cmd, spec.Memory, func(pid int) { i.pid.Store(int64(pid)) })
		_, _ = outEnd.Close(), logEnd.Close()
		i.readLog() // what it said last
		// A program that left its group may hold the pipes open: it is not waited for.
		_, _ = out.SetReadDeadline(time.Now().Add(time.Second)), log.Close()
		readers.Wait()
		_ = out.Close()
		if cmd.Process == nil {
			i.fail(fmt.Errorf("the robot was not started: %w", steps.WhyNotStarted(cmd.Path, err)))
			return
		}
		i.fail(fmt.Errorf("the robot ended: %w", cmp.Or(err, errors.New("exit code 0"))))
	}()
	return i, nil
}

// heard takes one line of the program's.
func (i *instance) heard(line []byte) error {
	m, err := parseMessage(line)
	if err != nil {
		return err
	}
	i.readLog() // what it said before it answered belongs to what it answers
	i.mu.Lock()
	defer i.mu.Unlock()
	if m.Method == "progress" {
		var p struct {
			ID      int64    `json:"id"`
			Percent *float64 `json:"percent"`
			Note    string   `json:"note"`
		}
		if err := json.Unmarshal(m.Params, &p); err != nil {
			return fmt.Errorf("tells no progress: %w", err)
		}
		told := steps.Progress{Note: p.Note, Percent: -1}
		if p.Percent != nil && *p.Percent >= 0 && *p.Percent <= 100 {
			told.Percent = int(*p.Percent)
		}
		if a := i.pending[p.ID]; a != nil && a.call != nil {
			_ = steps.TellProgress(a.call.Scratch, told) // told or not, the step goes on
		}
		return nil
	}
	if m.Method != "" {
		return nil // a notification of a later protocol
	}
	a := i.pending[*m.ID]
	if a == nil {
		return fmt.Errorf("answers %d, which it was not asked or has answered", *m.ID)
	}
	delete(i.pending, a.id)
	a.m = m
	close(a.answer)
	return nil
}

// fail ends the program, and everything it was asked is answered by why.
func (i *instance) fail(why error) {
	i.kill(why)
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.dead == nil {
		i.dead = why
		if len(i.said) > 0 {
			i.dead = fmt.Errorf("%w: %s", why, lastOf(i.said))
		}
	}
	for id, a := range i.pending {
		delete(i.pending, id)
		a.gone = &goneError{i.dead}
		close(a.answer)
	}
}

// send asks for what is given, in one line: as an array if batch says so. Calls are those
// of processes.
func (i *instance) send(ctx context.Context, method string, batch bool, params []any, calls []*steps.Call) []*asked {
	i.mu.Lock()
	all, out := make([]*asked, len(params)), make([]request, len(params))
	for n, p := range params {
		i.last++
		all[n] = &asked{id: i.last, call: calls[n], answer: make(chan struct{})}
		out[n] = request{Version: version, ID: i.last, Method: method, Params: p}
		if i.pending[i.last] = all[n]; i.dead != nil {
			all[n].gone = &goneError{i.dead}
			delete(i.pending, i.last)
			close(all[n].answer)
		}
	}
	i.mu.Unlock()
	if batch {
		i.write(ctx, out)
	} else {
		i.write(ctx, out[0])
	}
	return all
}

// process asks for what was gathered.
func (i *instance) process(these []*waiter) []*asked {
	params, calls := make([]any, len(these)), make([]*steps.Call, len(these))
	for n, w := range these {
		it := itemOf(w.call, w.deadline)
		it.Sample = it.Sample && w.spec.Take == nil // a rule's program is asked about what is no item yet
		params[n], calls[n] = it, w.call
	}
	if len(these) == 1 { // of several nobody knows which took what
		these[0].spent, these[0].alone = i.spent()
	}
	spec := these[0].spec
	ctx, cancel := context.WithTimeoutCause(context.Background(), spec.initMost(), errors.New("it did not take what it was asked"))
	defer cancel()
	all := i.send(ctx, "process", spec.Batch > 1, params, calls)
	for n, w := range these {
		all[n].take = w.spec.Take
	}
	return all
}

// write writes one line; a program that does not read is ended with ctx.
func (i *instance) write(ctx context.Context, v any) {
	line, err := json.Marshal(v)
	if err == nil {
		stop := context.AfterFunc(ctx, func() { i.fail(fmt.Errorf("the robot reads no more: %w", context.Cause(ctx))) })
		_, err = i.in.Write(append(line, '\n'))
		stop()
	}
	if err != nil {
		i.fail(fmt.Errorf("ask the robot: %w", err)) // those who wait are told
	}
}

// ask asks for one thing and waits for the answer, at most for limit.
func (i *instance) ask(ctx context.Context, limit time.Duration, method string, params any) (message, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("the robot has not answered %s within %s", method, limit))
	defer cancel()
	a := i.send(ctx, method, false, []any{params}, []*steps.Call{nil})[0]
	select {
	case <-a.answer:
	case <-ctx.Done():
		i.fail(context.Cause(ctx))
		<-a.answer
	}
	return a.m, a.gone
}

// await waits for the answer to a process, and gives it up when ctx ends.
func (i *instance) await(ctx context.Context, a *asked) (steps.Result, error) {
	select {
	case <-a.answer:
	case <-ctx.Done():
		late, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), i.grace, errors.New("the robot went on with what was cancelled"))
		defer cancel()
		i.write(late, request{Version: version, Method: "cancel", Params: map[string]int64{"id": a.id}})
		select {
		case <-a.answer:
		case <-late.Done():
			i.fail(context.Cause(late))
			<-i.ended
		}
		return steps.Result{}, context.Cause(ctx)
	}
	if a.gone != nil {
		<-i.ended // it may not write into the folders that another one is given now
		return steps.Result{}, a.gone
	}
	if a.m.Error != nil {
		return steps.AnswerOf(a.m.Error.Code, a.m.Error.Message)
	}
	if a.take != nil {
		return steps.Result{}, a.take(a.m.Result)
	}
	return steps.ResultOf(a.call, a.m.Result)
}

// shutdown asks the program to end, and waits until it has.
func (i *instance) shutdown() {
	_, _ = i.ask(context.Background(), i.grace, "shutdown", nil) // answered or not, it ends
	_ = i.in.Close()
	select {
	case <-i.ended:
	case <-time.After(i.grace):
		i.fail(errors.New("the robot went on after shutdown"))
		<-i.ended
	}
}

// spent is the processor time that the program has taken since its start.
func (i *instance) spent() (cpu time.Duration, ok bool) {
	const whole = 2 // CPUCLOCK_SCHED, of a process: clock_getcpuclockid(3)
	pid := i.pid.Load()
	var t unix.Timespec
	if pid == 0 || unix.ClockGettime(int32(^pid<<3|whole), &t) != nil {
		return 0, false // it has ended
	}
	return time.Duration(t.Nano()), true
}

func (i *instance) alive() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.dead == nil
}

// The log is read when there is something, and before each answer counts: what a program
// prints on standard error before it answers stands in that step's log, and in no other.

const keptOfLog = 500

// follow reads the log until it is closed.
func (i *instance) follow() {
	raw, err := i.log.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Read(func(fd uintptr) bool { return i.pull(fd) }) // it ends with the file
}

// readLog reads what there is of the log.
func (i *instance) readLog() {
	if raw, err := i.log.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { i.pull(fd) }) // closed: there is nothing to read
	}
}

// pull reads what there is at fd, and passes it on; it reports whether that is all for good.
func (i *instance) pull(fd uintptr) (ended bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	buf := make([]byte, 4096)
	for {
		n, err := syscall.Read(int(fd), buf)
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		if n <= 0 {
			return !errors.Is(err, syscall.EAGAIN)
		}
		for _, a := range i.pending {
			if a.call != nil && a.call.Log != nil {
				_, _ = a.call.Log.Write(buf[:n]) // a log that cannot be written ends no program
			}
		}
		i.said = append(i.said, buf[:n]...)
		if cut := len(i.said) - keptOfLog; cut > 0 {
			i.said = slices.Clone(i.said[cut:])
		}
	}
}

// count takes an item's end into account, and says how many failed once they are too many; the
// lock of Instances is held.
func (i *instance) count(spec *Spec, err error) (text string) {
	var later *steps.Later
	var gone *goneError
	if spec.Failures == 0 || i.sick || errors.As(err, &later) || errors.As(err, &gone) {
		return ""
	}
	if i.ends = append(i.ends, err != nil); spec.Window > 0 && len(i.ends) > spec.Window {
		i.ends = i.ends[len(i.ends)-spec.Window:]
	}
	failed := 0
	for _, was := range i.ends {
		if was {
			failed++
		}
	}
	if failed < spec.Failures {
		return ""
	}
	return fmt.Sprintf("%d of the last %d items of an instance failed", failed, len(i.ends))
}
