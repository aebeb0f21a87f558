package attempt

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"runtime/debug"

	"bagpipe/engine/folder"
	"bagpipe/engine/settings"
	"bagpipe/engine/state"
	"bagpipe/layout"
	"bagpipe/steps"
	"bagpipe/steps/live"
)

// Performer performs the robot's part of an attempt: on this machine (local), or on
// another one.
type Performer interface {
	// Perform runs the robot or the command of s on c. The caller has claimed the step,
	// filled c's folders, and publishes the result; it calls Perform once per attempt, many
	// attempts side by side. A robot may have done the same work before and been
	// interrupted. The errors are those of steps.Robot; *steps.Unavailable says that this
	// performer has no such robot. A robot's panic is a system failure of its step. When
	// ctx ends, Perform returns after the robot has stopped.
	Perform(ctx context.Context, s *state.Step, c *steps.Call) (steps.Result, error)
}

// local performs attempts in this process, or in a program started by it.
type local struct {
	robots map[layout.Name]steps.Builtin
	folder *folder.Folders
	live   *live.Instances
	root   string                                         // the workspace
	sick   func(ref state.Ref, s *state.Step, why string) // instances reached the step's threshold again and again
}

func (l local) Perform(ctx context.Context, s *state.Step, c *steps.Call) (res steps.Result, err error) {
	robot := l.robots[layout.Name(s.Robot)].Robot
	if s.Command != nil {
		robot = steps.Command(l.folder.ProgramPath(s.Command))
		c.Environment = steps.Environment(c.Environment, s.Env)
	}
	if s.Persistent {
		spec := l.spec(s, c.Environment, c.Workflow)
		robot = steps.Func(func(ctx context.Context, c *steps.Call) (steps.Result, error) { return l.live.Run(ctx, spec, c) })
	}
	if robot == nil {
		return res, &steps.Unavailable{Err: fmt.Errorf("this version of bagpipe has no robot %q", s.Robot)}
	}
	defer func() {
		if p := recover(); p != nil {
			res, err = steps.Result{}, steps.SystemFailure("the robot panicked: %v", p)
			logPanic(c.Slog, c.Log, c.Item, c.Step, p)
		}
	}()
	return robot.Run(ctx, c)
}

// spec is how the program of a persistent step is run.
func (l local) spec(s *state.Step, environment []string, workflow string) *live.Spec {
	base, _ := state.Numbered(workflow)
	samples := make([]string, len(s.WarmUp))
	for n, dir := range s.WarmUp {
		samples[n] = settings.Below(l.root, dir)
	}
	spec := &live.Spec{Name: base + "/" + s.Name, Step: layout.Name(s.Name), Argv: l.folder.ProgramPath(s.Command), Environment: environment,
		Samples: samples, Batch: s.Batch, Most: s.Instances, With: s.With}
	if s.CountsPer() == state.PerInstance {
		spec.Failures, spec.Window = s.Threshold.Count, s.Threshold.Window
		spec.Sick = func(why string) { l.sick(state.Ref{Workflow: base, Step: spec.Step}, s, why) }
	}
	return spec
}

// InternalError is a panic in Bagpipe itself. It fails the item's workflow and no
// step: the step's robot is not to blame.
type InternalError struct{ Cause any }

func (e *InternalError) Error() string { return fmt.Sprintf("internal error: %v", e.Cause) }

func logPanic(diary *slog.Logger, log io.Writer, item layout.ItemID, step layout.Name, p any) {
	stack := debug.Stack()
	diary.Error("panic", "item", item, "step", step, "cause", p, "stack", string(stack))
	fmt.Fprintf(log, "panic: %v\n%s", p, stack)
}
