package schedule

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"bagpipe/engine/folder"
	"bagpipe/engine/ledger"
	"bagpipe/engine/settings"
	"bagpipe/engine/timetable"
	"bagpipe/layout"
	"bagpipe/steps"
)

var (
	errStopped  = errors.New("ended by a person")
	errReplaced = errors.New("ended, as it fell due again")
)

// begin notes that a firing runs here; the context it gives ends with it, or before, as a
// person asks for, or the next of overlap: replace.
func (k *Keeper) begin(performing context.Context, f *firing) context.Context {
	ctx, end := context.WithCancelCause(performing)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.running[f.Name] = end
	return ctx
}

// perform does what was claimed, and commits how it ended. What performing ended is left
// without an end: the next engine resumes it.
func (k *Keeper) perform(performing, begun context.Context, f *firing) (said string, bad bool) {
	defer func() {
		k.mu.Lock()
		k.running[f.Name](nil)
		delete(k.running, f.Name)
		k.agenda.again(f.Name)
		k.mu.Unlock()
	}()
	ctx := begun
	if most := f.Most(); most > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, most)
		defer cancel()
	}
	message, failed, err := k.do(ctx, f)
	if performing.Err() != nil {
		return fmt.Sprintf("schedule %s was interrupted; it is resumed", f.Name), false
	}
	outcome := Completed
	switch {
	case begun.Err() != nil && context.Cause(begun) == errReplaced:
		outcome, message = Replaced, errReplaced.Error()
	case begun.Err() != nil:
		outcome, message = Ended, errStopped.Error()
	case ctx.Err() != nil:
		outcome, message = TimedOut, "ended after "+f.Most().String()
	case err != nil:
		outcome, message = Failed, err.Error()
	case failed:
		outcome = Failed
	}
	message = ledger.Clip(ledger.Printable(message), ledger.MaxMessage)
	err = k.edit(context.WithoutCancel(performing), k.ledger.ByEngine(), f.Name, func(st *State) (string, time.Time, error) {
		was, there := st.Firings[f.due]
		if !there || !was.runs() || was.Engine != k.ledger.ID {
			return "", f.due, nil // another engine took it for lost
		}
		was.raw, was.Ended, was.Outcome, was.Message = nil, k.ledger.Now(), outcome, message
		st.Firings[f.due], st.Ended = was, was.Ended
		if f.Overlap != timetable.OverlapWait && outcome != Replaced && was.Ended.After(st.Through) {
			missed, _ := f.Due(st.Through, was.Ended, was.Begun)
			if f.Missed != timetable.MissedAll || len(st.notDuring(f.Schedule, missed)) == 0 {
				st.Through = was.Ended
			}
		}
		return outcome, f.due, nil
	})
	if err != nil {
		return err.Error(), true
	}
	return fmt.Sprintf("schedule %s, due %s: %s: %s", f.Name, layout.FormatTime(f.due), outcome, message), outcome != Completed && outcome != Ended && outcome != Replaced
}

// smallest is the smallest buffer there is: a longer line goes through it at once, and an error stays in it.
const smallest = 16

// do does what was claimed, with a log whose file is made with the first that it says.
func (k *Keeper) do(ctx context.Context, f *firing) (said string, failed bool, err error) {
	path := k.ledger.Path(LogPath(f.Name, f.due))
	if err := os.MkdirAll(filepath.Dir(filepath.Dir(path)), 0o750); err != nil { // programs may say what is not for all
		return "", false, err
	}
	log := folder.NewStepLog(path)
	out := bufio.NewWriterSize(log, smallest)
	defer func() {
		err = errors.Join(err, out.Flush(), log.Close(), prune(filepath.Dir(path), f.Kept(), k.ledger.Now()))
	}()
	d := f.Do
	d.Since, d.Out = f.begun, out
	switch {
	case d.Fixity != "":
		return k.deeds["fixity"](ctx, d)
	case d.Queue != "" && f.byHand != nil:
		return f.byHand(ctx, d)
	case d.Queue != "":
		return k.work(ctx, f)
	case d.Scan != "":
		return k.deeds["scan"](ctx, d)
	case d.Read != "":
		return k.deeds["read"](ctx, d)
	case d.Start != "":
		return k.deeds["start"](ctx, d)
	case d.Dispose != "":
		return k.deeds["dispose"](ctx, d)
	case d.Deliver != "":
		return k.deeds["deliver"](ctx, d)
	case d.Feeds != "":
		return k.deeds["feeds"](ctx, d)
	}
	return k.run(ctx, f, log)
}

// LogPath is where a firing's output stands, relative to the workspace. Firings by hand are due at any
// millisecond, and several in a second have a log each.
func LogPath(name string, due time.Time) string {
	return "logs/schedules/" + name + "/" + due.UTC().Format("20060102T150405.999Z") + ".log"
}

// prune removes the logs of firings that are older than is kept; 0: none.
func prune(dir string, kept time.Duration, now time.Time) error {
	if kept == 0 {
		return nil
	}
	logs, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) { // none said anything
		return nil
	}
	for _, entry := range logs {
		info, gone := entry.Info()
		if gone == nil && entry.Type().IsRegular() && strings.HasSuffix(entry.Name(), ".log") && now.Sub(info.ModTime()) > kept {
			err = errors.Join(err, os.Remove(filepath.Join(dir, entry.Name())))
		}
	}
	return err
}

// run runs the schedule's program in the workspace, in a process group of its own, with what
// stands under with: on its standard input.
func (k *Keeper) run(ctx context.Context, f *firing, log *folder.StepLog) (said string, failed bool, err error) {
	in, err := json.Marshal(f.Do.With)
	if err != nil {
		return "", false, err
	}
	cmd := exec.Command(settings.ProgramOf(k.ledger.Root, f.Do.Command), f.Do.Command[1:]...)
	cmd.Dir, cmd.Stdin = k.ledger.Root, bytes.NewReader(in)
	cmd.Env = append(os.Environ(), "BAGPIPE_DUE="+layout.FormatTime(f.due), "BAGPIPE_SCHEDULE="+f.Name, "BAGPIPE_WORKSPACE="+k.ledger.Root)
	last, err := steps.RunProgram(ctx, cmd, log)
	var ended *exec.ExitError
	if errors.As(err, &ended) {
		return strings.TrimSpace(fmt.Sprintf("%v: %s", err, last)), true, nil
	}
	return last, false, err
}
