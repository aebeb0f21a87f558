package attempt

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"bagpipe/layout"
	"bagpipe/layout/disk"
	"bagpipe/steps"
)

// The rules are: the program of a step with poolSize may tell of its children while it runs,
// one a line, on its file 3, or by renaming them into the folder children.ready of its scratch
// folder. Each is registered before the next is taken, and none is taken while as many
// children as poolSize says have not come to their end. The pipe holds one line: a program
// that is further waits. A program that renames is stopped (SIGSTOP, its process group)
// while a child lies in the folder. Meanwhile others run in the step's place.
//
// A child's identifier follows from its name, as of those that are registered at the end: run
// again, the program tells of the same ones, and what is an item already is not made again.

const (
	maxChildLine = 64 << 10
	roomLook     = 50 * time.Millisecond
	lastWords    = time.Second // for what left the program's group and holds the pipe
)

// feed is the children that a program tells of while it runs.
type feed struct {
	w       *Work
	cs      *children
	call    *steps.Call
	fence   *fence
	pipe    int    // read end of its file 3
	open    []byte // what came of it, and is not taken
	ready   *ready
	ended   atomic.Int64 // when the program did, in nanoseconds since 1970; 0: it runs
	journal *os.File
	partly  bool // a child is moved, and not committed
}

// perform has the robot do the step, and takes the children that it tells of meanwhile.
func (w *Work) perform(ctx context.Context, c *steps.Call) (res steps.Result, err error) {
	if w.plan.PoolSize == 0 || w.plan.Command == nil || w.plan.Persistent {
		return w.a.performer.Perform(ctx, w.plan, c)
	}
	f, write, err := openFeed(w, c)
	if err != nil {
		return res, fmt.Errorf("make a way for the children: %w", err)
	}
	defer func() { err = errors.Join(err, unix.Close(f.pipe), f.ready.close()) }()
	performing, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	taken := make(chan error, 1)
	go func() {
		err := w.guard(func() error { return f.take(performing) })
		if err != nil {
			stop(err) // it need not go on
		}
		taken <- err
	}()
	res, err = w.a.performer.Perform(performing, w.plan, c)
	if err != nil {
		stop(err)
	}
	_ = write.Close()
	f.ended.Store(time.Now().UnixNano())
	wrong := <-taken
	if ended := err != nil && errors.Is(wrong, context.Canceled); wrong != nil && ctx.Err() == nil && !ended {
		err = wrong // else what ended the program ended the taking, too
	}
	if err == nil {
		err = f.ready.left()
	}
	res.Children = slices.DeleteFunc(res.Children, func(c steps.Child) bool { // it was still there when the program ended
		ref := w.attempt.AttemptRef
		_, gone := os.Lstat(filepath.Join(w.scratch, filepath.FromSlash(string(c.From))))
		return gone != nil && w.attempt.told[layout.ChildID(ref.Item, ref.Workflow, ref.Step, c.Name)]
	})
	return res, err
}

// openFeed makes the pipe and the folder, and tells the call of them. The write end is the caller's to close.
func openFeed(w *Work, c *steps.Call) (_ *feed, write *os.File, err error) {
	var ends [2]int
	if err := unix.Pipe2(ends[:], unix.O_CLOEXEC|unix.O_DIRECT); err != nil {
		return nil, nil, err
	}
	// Each line is a packet of its own, and the pipe has room for one.
	_, err = unix.FcntlInt(uintptr(ends[0]), unix.F_SETPIPE_SZ, os.Getpagesize())
	err = errors.Join(err, unix.SetNonblock(ends[0], true))
	r, readyErr := openReady(w.scratch)
	if err = errors.Join(err, readyErr); err != nil {
		return nil, nil, errors.Join(err, unix.Close(ends[0]), unix.Close(ends[1]))
	}
	write = os.NewFile(uintptr(ends[1]), "children")
	c.Children = &steps.Telling{Pipe: write, Ready: r.dir, Group: func(pid int) { r.group.Store(int64(pid)) }}
	return &feed{w: w, call: c, pipe: ends[0], ready: r, fence: &fence{a: w.attempt.AttemptRef},
		cs: &children{rooms: w.a.rooms, attempt: w.attempt, scratch: w.scratch}}, write, nil
}

// take registers what the program tells of, until it has ended and told all, or ctx ends.
func (f *feed) take(ctx context.Context) (err error) {
	defer func() { err = errors.Join(err, f.forget()) }()
	for {
		if err := f.await(ctx); err != nil {
			return err
		}
		child, err := f.next(ctx)
		if err != nil || child == nil {
			return err
		}
		if err := f.register(ctx, *child); err != nil {
			return fmt.Errorf("child %s: %w", layout.EncodePath(child.Name), err)
		}
	}
}

// next waits for the next child that the program tells of; nil: there are no more.
func (f *feed) next(ctx context.Context) (*steps.Child, error) {
	for {
		ended := f.ended.Load() // before the last look
		child, err := f.renamed()
		if child != nil || err != nil {
			return child, err
		}
		more, err := f.read()
		if err != nil {
			return nil, err
		}
		child, err = f.line()
		if child != nil || err != nil {
			return child, err
		}
		over := ended != 0 && (!more || time.Now().UnixNano()-ended > int64(lastWords))
		switch {
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case over && len(f.open) > 0:
			return nil, steps.SystemFailure("the last line on file 3 has no end: %.80q", f.open)
		case over:
			return nil, nil
		case more: // else the pipe is closed, and would not be waited for
			f.sleep(f.pipe, f.ready.watch)
		default:
			f.sleep(f.ready.watch)
		}
	}
}

// sleep waits for one of the files to have something, not for long.
func (f *feed) sleep(fds ...int) {
	polled := make([]unix.PollFd, len(fds))
	for i, fd := range fds {
		polled[i] = unix.PollFd{Fd: int32(fd), Events: unix.POLLIN} // one below 0 is passed over
	}
	_, _ = unix.Poll(polled, int(roomLook.Milliseconds())) // whatever it says, both are looked at
}

// renamed gives a child of the folder, and holds the program back while there is one.
func (f *feed) renamed() (*steps.Child, error) {
	name, err := f.ready.first()
	f.ready.hold(name != "")
	if name == "" || err != nil {
		return nil, err
	}
	child, err := steps.ReadyChild(f.call, name)
	if err != nil {
		return nil, steps.SystemFailure("%s: %w", layout.ReadyDir, err)
	}
	return &child, nil
}

// read takes a packet of the pipe, if one is there and no whole line is; more is false once
// nobody can write any more.
func (f *feed) read() (more bool, err error) {
	if bytes.Contains(f.open, []byte("\n")) {
		return true, nil
	}
	packet := make([]byte, os.Getpagesize()) // one that is read in part is lost
	n, err := unix.Read(f.pipe, packet)
	switch {
	case n > 0:
		f.open = append(f.open, packet[:n]...)
		return true, nil
	case errors.Is(err, unix.EAGAIN), errors.Is(err, unix.EINTR):
		return true, nil
	case err != nil:
		return false, fmt.Errorf("read of children: %w", err)
	}
	return false, nil
}

// line takes one whole line of what came.
func (f *feed) line() (*steps.Child, error) {
	for {
		line, rest, whole := bytes.Cut(f.open, []byte("\n"))
		if !whole && len(f.open) > maxChildLine {
			return nil, steps.SystemFailure("a line on file 3 is longer than %d bytes", maxChildLine)
		}
		if !whole {
			return nil, nil
		}
		f.open = rest
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		child, err := steps.ParseChild(f.call, line)
		if err != nil {
			return nil, steps.SystemFailure("file 3: %w", err)
		}
		return &child, nil
	}
}

// await waits until one more child may be made; others run in the step's place meanwhile.
func (f *feed) await(ctx context.Context) error {
	if f.room() {
		return nil
	}
	wait := func() error {
		for !f.room() {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			name, err := f.ready.first()
			if err != nil {
				return err
			}
			f.ready.hold(name != "")
			f.sleep(f.ready.watch)
		}
		return nil
	}
	if f.call.Aside == nil {
		return wait()
	}
	return f.call.Aside(wait)
}

// room reports whether fewer children than poolSize are without an end.
func (f *feed) room() bool {
	ref, all, ended := f.w.attempt.AttemptRef, f.w.attempt.Children, 0
	for _, of := range f.w.a.index.Loaded().Families(ref.Item) {
		if of.Run == ref.Workflow && of.Step == ref.Step {
			all, ended = max(all, of.All), of.Done+of.Failed
		}
	}
	return all-ended < f.w.plan.PoolSize
}

// register makes an item of one child; one that is there from an attempt before is let go.
func (f *feed) register(ctx context.Context, told steps.Child) (err error) {
	if f.journal == nil {
		if err := f.begin(ctx); err != nil {
			return err
		}
	}
	cs := f.cs
	planned, err := cs.plan(ctx, []steps.Child{told})
	if err != nil {
		return err
	}
	c := &planned[0]
	if f.w.attempt.told[c.id] {
		return steps.SystemFailure("the robot made it twice")
	}
	if len(f.w.attempt.told) >= maxChildren {
		return steps.ContentFailure("more than %d children; a step makes at most that many", maxChildren)
	}
	f.w.attempt.told[c.id] = true
	if path.Dir(string(told.From)) == layout.ReadyDir {
		defer func() { err = errors.Join(err, f.ready.forget(told.Name)) }()
	}
	if c.there {
		f.w.attempt.Children++
		return disk.RemoveTree(c.taken.Path)
	}
	if err := cs.folder.Space.Low(); err != nil {
		return &steps.Later{Reason: err.Error()}
	}
	f.partly = true
	if _, err := f.journal.WriteString(string(c.id) + "\n"); err != nil {
		return fmt.Errorf("note the child: %w", err)
	}
	if err := f.journal.Sync(); err != nil {
		return fmt.Errorf("note the child: %w", err)
	}
	if err := cs.move([]*child{c}); err != nil {
		return err
	}
	if err := cs.commit(ctx, c, f.fence); err != nil {
		return err
	}
	f.partly = false
	f.w.attempt.Children++
	return nil
}

// begin clears what an attempt before left, and begins the list of what is moved.
func (f *feed) begin(ctx context.Context) (err error) {
	cs := f.cs
	if err := errors.Join(cs.sweep(ctx), cs.readParent()); err != nil {
		return err
	}
	f.w.attempt.told = map[layout.ItemID]bool{}
	name := cs.journal()
	if f.journal, err = os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o666); err != nil {
		return fmt.Errorf("note the children: %w", err)
	}
	return disk.SyncDir(filepath.Dir(name))
}

// forget removes the list of what was moved; where it is not all committed, the next attempt
// reads it.
func (f *feed) forget() error {
	if f.journal == nil {
		return nil
	}
	err := f.journal.Close()
	if err == nil && !f.partly {
		err = removeJournal(f.cs.journal())
	}
	return err
}
