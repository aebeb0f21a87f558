package worker

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"bagpipe/engine/remote/wire"
	"bagpipe/layout"
	"bagpipe/layout/disk"
	"bagpipe/steps"
)

// attempt is one that this worker has.
type attempt struct {
	held    wire.Held
	ref     layout.AttemptRef
	lease   time.Duration
	alone   bool
	end     context.CancelCauseFunc
	scratch string     // of the robot; "" before it is made
	call    *wire.Call // that came with the grant; nil: it is fetched
}

// givenBack is the cause with which a robot is ended whose step another is to do.
type givenBack struct{ why error }

func (g *givenBack) Error() string { return g.why.Error() }

// perform takes a granted attempt from its call to its end, and gives its room back: as soon as all that is left is to tell
// the end, so that the next attempt is claimed meanwhile.
func (w *Worker) perform(ctx context.Context, g wire.Grant) {
	leave := sync.OnceFunc(w.room.leave)
	defer leave()
	ref, err := g.Held.Ref()
	if err != nil {
		w.o.Log.Error("a grant was refused", "err", err)
		return
	}
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	a := &attempt{held: g.Held, ref: ref, lease: g.Lease, alone: g.Alone, end: end, call: g.Call}
	w.enter(ref, a)
	defer w.leave(ref)
	dir := filepath.Join(w.attempts(), fmt.Sprintf("%s.%s.%s.%s", ref.Item, ref.Workflow, ref.Step, ref.Key))
	defer func() {
		if err := disk.RemoveTree(dir); err != nil && !errors.Is(err, os.ErrNotExist) {
			w.o.Log.Warn("remove an attempt's folder", "dir", dir, "err", err)
		}
	}()
	e := &errand{w: w, a: a, dir: dir}
	answer, shared, err := e.do(ctx)
	cause := context.Cause(ctx)
	var back *givenBack
	switch {
	case errors.Is(err, errGone), errors.Is(cause, errLost), errors.Is(cause, errCancelled):
		w.o.Log.Warn("an attempt is not this worker's any more", "item", ref.Item, "step", ref.Step, "attempt", ref.Key.String(), "err", err, "cause", cause)
		return
	case errors.As(cause, &back):
		answer = wire.End{Head: wire.Now(), How: wire.Returned, Text: back.Error()}
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		answer = wire.End{Head: wire.Now(), How: wire.Returned, Text: "its disk is full"}
	case err != nil:
		answer = wire.EndOf(steps.Result{}, err)
	}
	answer.Shared = shared
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTime)
	defer cancel()
	stop := context.AfterFunc(ctx, func() {
		var ended *givenBack
		switch c := context.Cause(ctx); {
		case errors.Is(c, errLost), errors.Is(c, errCancelled):
			cancel()
		case errors.As(c, &ended) && errors.Is(ended.why, context.Canceled): // the worker is to end now
			time.AfterFunc(askTimeAtEnd, cancel)
		}
	})
	defer stop()
	select {
	case w.telling <- struct{}{}:
		leave()
		defer func() { <-w.telling }()
	default: // as many ends as there is room wait already
	}
	if err := e.tell(last, answer); err != nil {
		w.o.Log.Warn("the end of an attempt was not taken", "item", ref.Item, "step", ref.Step, "attempt", ref.Key.String(), "err", err)
	}
}

// endTime bounds how long the end of an attempt is told again; leases end it earlier.
const endTime = 24 * time.Hour

// do fetches, runs and sends. Its errors are the robot's, errGone, or of this machine.
func (e *errand) do(ctx context.Context) (answer wire.End, shared bool, err error) {
	call, err := e.call(ctx)
	if err != nil {
		return answer, false, err
	}
	begun := e.w.o.Now()
	c, err := e.prepare(ctx, call)
	if err != nil {
		return answer, call.Shared, err
	}
	e.w.mu.Lock()
	e.a.scratch = c.Scratch
	e.w.mu.Unlock()
	fetched := e.w.o.Now()
	leave, err := e.w.seat(ctx, call.Robot)
	if err != nil {
		return answer, call.Shared, err
	}
	seated := e.w.o.Now()
	cpu := time.Duration(0)
	c.Spent = func(spent time.Duration) { cpu = spent }
	res, failure := e.run(ctx, call, c)
	leave()
	ended := e.w.o.Now()
	if ctx.Err() == nil {
		e.w.ended(broken(failure))
	}
	if ctx.Err() != nil {
		return answer, call.Shared, context.Cause(ctx)
	}
	if errors.Is(failure, syscall.ENOSPC) {
		return answer, call.Shared, failure
	}
	answer = wire.EndOf(res, failure)
	answer.Times = wire.Times{Fetched: fetched.Sub(begun), Ran: ended.Sub(seated), CPU: cpu}
	defer func() { answer.Sent = e.w.o.Now().Sub(ended) }()
	if err := e.sendLog(ctx, &answer); err != nil {
		return answer, call.Shared, err
	}
	if call.Shared || failure != nil && len(res.Outputs) == 0 {
		return answer, call.Shared, nil
	}
	err = e.send(ctx, c.Scratch, res, &answer)
	return answer, false, err
}

// broken reports whether a robot failed, and not the content.
func broken(failure error) bool {
	var later *steps.Later
	return failure != nil && !errors.As(failure, &later) && steps.KindOf(failure) == steps.System
}

// seat waits for a slot, and for one of the robot's instances.
func (w *Worker) seat(ctx context.Context, robot layout.Name) (leave func(), err error) {
	rooms := []chan struct{}{w.slots}
	if each := w.each[string(robot)]; each != nil {
		rooms = []chan struct{}{each, w.slots}
	}
	taken := 0
	leave = func() {
		for _, room := range rooms[:taken] {
			<-room
		}
	}
	for _, room := range rooms {
		select {
		case room <- struct{}{}:
			taken++
		case <-ctx.Done():
			leave()
			return nil, context.Cause(ctx)
		}
	}
	return leave, nil
}

// run calls the robot.
func (e *errand) run(ctx context.Context, call wire.Call, c *steps.Call) (res steps.Result, err error) {
	offered, ok := e.w.o.Config.robot(call.Robot)
	if !ok {
		return res, &steps.Unavailable{Err: fmt.Errorf("worker %s has no robot %s", e.w.o.Config.Name, call.Robot)}
	}
	robot := e.w.o.Builtins[layout.Name(offered.Builtin)].Robot
	if offered.Builtin == "" {
		c.Environment = steps.Environment(steps.Environment(nil, offered.Env), call.Env)
		robot = steps.Command(append(append([]string{}, offered.Command...), call.Arguments...))
	}
	log := &printed{path: e.log()}
	defer func() { err = errors.Join(err, log.Close()) }()
	if c.Log = log; offered.Builtin == "" {
		if c.Log, err = log.open(); err != nil { // the program writes into the file itself
			return res, err
		}
	}
	if call.Timeout > 0 {
		limited, cancel := context.WithTimeoutCause(ctx, call.Timeout, fmt.Errorf("timed out after %s", call.Timeout))
		defer cancel()
		ctx = limited
	}
	stop := steps.TellBytes(c)
	defer stop()
	defer func() {
		if p := recover(); p != nil {
			err = steps.SystemFailure("the robot panicked: %v", p)
		}
	}()
	res, err = robot.Run(ctx, c)
	if cause := context.Cause(ctx); cause != nil && err != nil {
		err = cause
	}
	return res, err
}

// printed is the file of what a robot prints, made when it prints something. It may be used by several goroutines.
type printed struct {
	path string

	mu   sync.Mutex // guards file
	file *os.File
}

func (p *printed) open() (*os.File, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.file != nil {
		return p.file, nil
	}
	if err := os.MkdirAll(filepath.Dir(p.path), 0o700); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(p.path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err == nil {
		p.file = f
	}
	return f, err
}

func (p *printed) Write(data []byte) (int, error) {
	f, err := p.open()
	if err != nil {
		return 0, err
	}
	return f.Write(data)
}

func (p *printed) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.file == nil {
		return nil
	}
	return p.file.Close()
}

// log is the file of what the robot prints.
func (e *errand) log() string { return filepath.Join(e.dir, "log") }
