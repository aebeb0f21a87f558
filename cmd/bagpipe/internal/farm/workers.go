package farm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"time"

	"bagpipe/cmd/bagpipe/internal/screen"
	"bagpipe/engine"
	"bagpipe/engine/attempt"
	"bagpipe/engine/remote"
	"bagpipe/engine/remote/wire"
	"bagpipe/layout"
)

// Workers tells of the workers, and gives them orders.
type Workers struct {
	List   workersList   `cmd:"" default:"withargs" help:"List the workers: state, slots, steps at work, last beat."`
	Show   workersShow   `cmd:"" help:"Show one worker: its robots, labels, attempts."`
	Meta   workersMeta   `cmd:"" help:"Have the workers describe themselves anew: build, machine, robots with versions, digests and parameters."`
	Test   workersTest   `cmd:"" help:"Have a worker run a step again on inputs that it kept; nothing is committed."`
	Drain  workersDrain  `cmd:"" help:"Have a worker begin nothing more, and end when nothing runs there."`
	Stop   workersStop   `cmd:"" help:"Have a worker begin nothing more, and stay."`
	Resume workersResume `cmd:"" help:"Let a stopped worker go on."`
	Forget workersForget `cmd:"" help:"Forget a worker that is silent."`
}

// read reads how the workers stand; what is older than oldest is an engine's that is gone.
func read(around screen.Around) (s remote.Status, err error) {
	root, err := engine.Find(string(around))
	if err != nil {
		return s, err
	}
	s, err = remote.ReadStatus(root)
	if errors.Is(err, fs.ErrNotExist) {
		return s, errNoWorkers
	}
	return s, err
}

type workersList struct {
	JSON bool `name:"json" help:"Print JSON."`
}

// Run lists.
func (c *workersList) Run(on *screen.Screen, around screen.Around) error {
	s, err := read(around)
	if err != nil {
		return err
	}
	if c.JSON {
		return on.JSON(s)
	}
	if age := time.Since(s.At); age > 10*time.Second {
		on.Talk("warning: this is how the workers stood %s ago; the engine that served them is gone or hangs", age.Round(time.Second))
	}
	for _, w := range s.Workers {
		rate := ""
		if hours := s.At.Sub(w.Since).Hours(); w.Done > 0 && hours > 0 {
			rate = fmt.Sprintf(", %.0f an hour", float64(w.Done)/hours)
		}
		fmt.Fprintf(on.Out, "%-20s %-10s %d of %d at work, %d done%s, %d failed; %s:%d, beat %s ago\n", w.Name, w.State, len(w.Running), w.Slots, w.Done, rate, w.Failed,
			w.Host, w.PID, max(0, s.At.Sub(w.Beat)).Round(time.Second))
		if w.Suspect != "" {
			fmt.Fprintf(on.Out, "%-20s suspended: %s\n", "", w.Suspect)
		}
		if w.Refused > 0 {
			fmt.Fprintf(on.Out, "%-20s %s refused\n", "", screen.Count(w.Refused, "message"))
		}
	}
	for _, want := range slices.Sorted(maps.Keys(s.Offers)) {
		fmt.Fprintf(on.Out, "on offer: %d of %s\n", s.Offers[want], want)
	}
	if s.Refused > 0 {
		fmt.Fprintf(on.Out, "%s refused since the engine began\n", screen.Count(s.Refused, "message"))
	}
	if s.Unheard > 0 {
		fmt.Fprintf(on.Out, "%s of workers that have not come back\n", screen.Count(s.Unheard, "attempt"))
	}
	if len(s.Workers) == 0 {
		on.Talk("no workers are connected")
	}
	return nil
}

type workersShow struct {
	Name string `arg:"" help:"The worker's name."`
	JSON bool   `name:"json" help:"Print JSON."`
}

// Run shows.
func (c *workersShow) Run(on *screen.Screen, around screen.Around) error {
	s, err := read(around)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(s.Workers, func(w remote.WorkerStatus) bool { return string(w.Name) == c.Name })
	if i < 0 {
		return fmt.Errorf("no worker %s is connected", c.Name)
	}
	w := s.Workers[i]
	if c.JSON {
		return on.JSON(w)
	}
	bytes := "over HTTPS"
	if w.Shared {
		bytes = "on the shared file system"
	}
	fmt.Fprintf(on.Out, "%s: %s, %s, on %s:%d since %s, bagpipe %s\nMachine: %s, %s of memory, %s free\nBytes: %s\n", w.Name, w.State, screen.Count(w.Slots, "slot"), w.Host, w.PID,
		screen.When(w.Since), w.Build, screen.Count(w.CPUs, "core"), layout.FormatSize(uint64(w.Memory)), layout.FormatSize(uint64(w.Scratch)), bytes)
	for _, o := range w.Robots {
		fmt.Fprintln(on.Out, "Robot: "+robotText(o))
	}
	for _, key := range slices.Sorted(maps.Keys(w.Labels)) {
		fmt.Fprintf(on.Out, "Label: %s=%s\n", key, w.Labels[key])
	}
	var running []string
	for _, a := range w.Running {
		running = append(running, fmt.Sprintf("%s  %s/%s  attempt %s", a.Item.Short(), a.Workflow, a.Step, a.Attempt))
	}
	on.List("At work", running)
	return nil
}

type workersMeta struct {
	Name string `arg:"" optional:"" help:"The worker's name; default: all."`
	JSON bool   `name:"json" help:"Print JSON."`
}

// Run asks, and prints what they said.
func (c *workersMeta) Run(ctx context.Context, on *screen.Screen, around screen.Around) error {
	if _, err := asked(ctx, around, wire.Control{Head: wire.Now(), Verb: wire.Meta, Worker: layout.Name(c.Name)}); err != nil {
		return err
	}
	s, err := read(around)
	if err != nil {
		return err
	}
	told := []remote.WorkerStatus{}
	for _, w := range s.Workers {
		if w.State != "silent" && (c.Name == "" || string(w.Name) == c.Name) {
			told = append(told, w)
		}
	}
	if c.JSON {
		return on.JSON(told)
	}
	for _, w := range told {
		fmt.Fprintf(on.Out, "%s: bagpipe %s, %s:%d, %s, %s of memory, %s free, %s\n", w.Name, w.Build, w.Host, w.PID, screen.Count(w.CPUs, "core"),
			layout.FormatSize(uint64(w.Memory)), layout.FormatSize(uint64(w.Scratch)), screen.Count(w.Slots, "slot"))
		for _, o := range w.Robots {
			fmt.Fprintln(on.Out, "  "+robotText(o))
		}
	}
	return nil
}

type workersTest struct {
	Name    string `arg:"" help:"The worker's name."`
	Item    string `arg:"" help:"Identifier, the beginning of one, or label."`
	Step    string `arg:"" help:"STEP or WORKFLOW/STEP; one with keepInputs: true."`
	Attempt string `placeholder:"N" help:"The attempt whose inputs are used; default: the last one kept."`
	JSON    bool   `name:"json" help:"Print JSON."`
}

// Run has the step run there, and prints how it went.
func (c *workersTest) Run(ctx context.Context, on *screen.Screen, around screen.Around, b Bench) error {
	id, err := b.Resolve(ctx, c.Item)
	if err != nil {
		return err
	}
	told, err := asked(ctx, around, wire.Control{Head: wire.Now(), Verb: wire.Test, Worker: layout.Name(c.Name), Item: id, Step: c.Step, Attempt: c.Attempt})
	if err != nil {
		return err
	}
	var r attempt.Replayed
	if err := json.Unmarshal([]byte(told), &r); err != nil {
		return err
	}
	if c.JSON {
		err = on.JSON(r)
	} else {
		t := screen.NewTable()
		t.Row("step", fmt.Sprintf("%s/%s of %s, attempt %s, at worker %s", r.Workflow, r.Step, r.Item.Short(), r.Attempt, c.Name))
		t.Row("result", fmt.Sprintf("%s (exit code %d)", r.Status, r.ExitCode))
		t.Row("message", r.Message)
		for _, from := range slices.Sorted(maps.Keys(r.Outputs)) {
			t.Row("output", from+" → "+r.Outputs[from])
		}
		t.Row("folder", r.Dir)
		err = t.Print(on.Out)
	}
	if err == nil && r.Status != "completed" && r.Status != "skipped" {
		err = screen.ExitSomeFailed
	}
	return err
}

type (
	workersDrain  struct{ named }
	workersStop   struct{ named }
	workersResume struct{ named }
	workersForget struct{ named }
)

type named struct {
	Name string `arg:"" help:"The worker's name."`
}

func (n named) order(ctx context.Context, on *screen.Screen, around screen.Around, verb string) error {
	return order(ctx, on, around, wire.Control{Head: wire.Now(), Verb: verb, Worker: layout.Name(n.Name)})
}

// Run drains.
func (c *workersDrain) Run(ctx context.Context, on *screen.Screen, around screen.Around) error {
	return c.order(ctx, on, around, wire.Drain)
}

// Run stops.
func (c *workersStop) Run(ctx context.Context, on *screen.Screen, around screen.Around) error {
	return c.order(ctx, on, around, wire.Stop)
}

// Run resumes.
func (c *workersResume) Run(ctx context.Context, on *screen.Screen, around screen.Around) error {
	return c.order(ctx, on, around, wire.Resume)
}

// Run forgets.
func (c *workersForget) Run(ctx context.Context, on *screen.Screen, around screen.Around) error {
	return c.order(ctx, on, around, wire.Forget)
}

// robotText is a robot with its version, its program's digest, and its parameters.
func robotText(o wire.Robot) string {
	words := []string{strings.TrimSuffix(string(o.Name)+" "+o.Version, " "), "program " + o.Digest}
	if o.Builtin {
		words[1] = "built-in"
	}
	if len(o.Takes) > 0 {
		words = append(words, "takes "+strings.Join(o.Takes, " "))
	}
	for _, key := range slices.Sorted(maps.Keys(o.Parameters)) {
		words = append(words, fmt.Sprintf("%s=%v", key, o.Parameters[key]))
	}
	return strings.Join(words, ", ")
}
