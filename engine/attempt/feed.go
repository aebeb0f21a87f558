package attempt

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
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
// one a line, on its file 3. Each is registered before the next line is taken, and none is
// taken while as many children as poolSize says have not come to their end. The pipe holds one
// line: a program that is further waits. While it does, others run in the step's place.
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
	ended   atomic.Bool // the program has
	journal *os.File
	partly  bool // a child is moved, and not committed
}

// perform has the robot do the step, and takes the children that it tells of meanwhile.
func (w *Work) perform(ctx context.Context, c *steps.Call) (res steps.Result, err error) {
	if w.plan.PoolSize == 0 || w.plan.Command == nil || w.plan.Persistent {
		return w.a.performer.Perform(ctx, w.plan, c)
	}
	var ends [2]int
	if err := unix.Pipe2(ends[:], unix.O_CLOEXEC|unix.O_DIRECT); err != nil {
		return res, fmt.Errorf("make a pipe for the children: %w", err)
	}
	// Each line is a packet of its own, and the pipe has room for one.
	_, err = unix.FcntlInt(uintptr(ends[0]), unix.F_SETPIPE_SZ, os.Getpagesize())
	if err = errors.Join(err, unix.SetNonblock(ends[0], true)); err != nil {
		return res, errors.Join(fmt.Errorf("make a pipe for the children: %w", err), unix.Close(ends[0]), unix.Close(ends[1]))
	}
	read, write := os.NewFile(uintptr(ends[0]), "children"), os.NewFile(uintptr(ends[1]), "children")
	defer read.Close()
	c.Children = write
	f := &feed{w: w, call: c, fence: &fence{a: w.attempt.AttemptRef},
		cs: &children{rooms: w.a.rooms, attempt: w.attempt, scratch: w.scratch}}
	performing, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	taken := make(chan error, 1)
	go func() {
		err := w.guard(func() error { return f.take(performing, read) })
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
	f.ended.Store(true)
	_ = read.SetReadDeadline(time.Now().Add(lastWords))
	if wrong := <-taken; wrong != nil && ctx.Err() == nil {
		err = wrong
	}
	res.Children = slices.DeleteFunc(res.Children, func(c steps.Child) bool { // it was still there when the program ended
		ref := w.attempt.AttemptRef
		_, gone := os.Lstat(filepath.Join(w.scratch, filepath.FromSlash(string(c.From))))
		return gone != nil && w.attempt.told[layout.ChildID(ref.Item, ref.Workflow, ref.Step, c.Name)]
	})
	return res, err
}

// take registers what lines tell of, until the last writer has closed the pipe or ctx ends.
func (f *feed) take(ctx context.Context, from *os.File) (err error) {
	defer func() { err = errors.Join(err, f.forget()) }()
	defer context.AfterFunc(ctx, func() { _ = from.SetReadDeadline(time.Unix(1, 0)) })()
	packet := make([]byte, os.Getpagesize()) // one that is read in part is lost
	var open []byte
	for {
		if err := f.await(ctx); err != nil {
			return err
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		line, rest, whole := bytes.Cut(open, []byte("\n"))
		if whole {
			open = rest
			if err := f.line(ctx, line); err != nil {
				return err
			}
			continue
		}
		if len(open) > maxChildLine {
			return steps.SystemFailure("a line on file 3 is longer than %d bytes", maxChildLine)
		}
		if f.ended.Load() && ctx.Err() == nil {
			_ = from.SetReadDeadline(time.Now().Add(lastWords))
		}
		n, err := from.Read(packet)
		open = append(open, packet[:n]...)
		switch {
		case err == nil:
		case !errors.Is(err, io.EOF) && !errors.Is(err, os.ErrDeadlineExceeded):
			return fmt.Errorf("read of children: %w", err)
		case ctx.Err() == nil && len(open) > 0:
			return steps.SystemFailure("the last line on file 3 has no end: %.80q", open)
		default:
			return nil
		}
	}
}

// line takes one line.
func (f *feed) line(ctx context.Context, line []byte) error {
	if len(bytes.TrimSpace(line)) == 0 {
		return nil
	}
	child, err := steps.ParseChild(f.call, line)
	if err != nil {
		return steps.SystemFailure("file 3: %w", err)
	}
	if err := f.register(ctx, child); err != nil {
		return fmt.Errorf("child %s: %w", layout.EncodePath(child.Name), err)
	}
	return nil
}

// await waits until one more child may be made; others run in the step's place meanwhile.
func (f *feed) await(ctx context.Context) error {
	if f.room() {
		return nil
	}
	wait := func() error {
		tick := time.NewTicker(roomLook)
		defer tick.Stop()
		for !f.room() {
			select {
			case <-tick.C:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
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
func (f *feed) register(ctx context.Context, told steps.Child) error {
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
