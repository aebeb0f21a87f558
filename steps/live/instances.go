package live

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"bagpipe/layout"
	"bagpipe/steps"
)

const (
	idleMost   = 10 * time.Minute // then an instance that nothing was asked of is ended
	mostDeaths = 3                // of instances at one item, in one attempt

	mostRenewed  = 3         // instances that reached their threshold,
	renewedSince = time.Hour // in that time; the next one is told of
)

// Spec is how the robot of a step is run.
type Spec struct {
	Name        string // for people: WORKFLOW/STEP
	Step        layout.Name
	Argv        []string
	Environment []string
	Samples     []string // folders that a new instance is given before it takes work
	Batch       int      // items in one line; 0, 1: one
	Most        int      // instances at once, of a step with Batch; others are bounded by who calls
	With        map[string]any

	Memory int64                              // bytes that each instance may write to; 0: any number
	Take   func(result json.RawMessage) error // reads a result of another form than result.json; nil: it has that

	Failures int               // of the last Window items of an instance: then it is ended, and another is started; 0: it stays
	Window   int               // 0: of all its items
	Sick     func(text string) // told when instances reached that again and again; may be nil

	Grace    time.Duration // to answer what was cancelled, and to end; 0: 5 s
	InitMost time.Duration // to answer initialize and reconfigure; 0: a minute
}

func (s *Spec) initMost() time.Duration { return cmp.Or(s.InitMost, time.Minute) }

func (s *Spec) key() string {
	return strings.Join(slices.Concat([]string{s.Name}, s.Argv, []string{""}, s.Environment, []string{""}, s.Samples), "\x00")
}

// Instances are the programs of one engine.
type Instances struct {
	Dir     string // in which programs are started, and samples have their scratch; removed by Close
	Now     func() time.Time
	Backoff func(failures int) time.Duration

	mu     sync.Mutex // guards the rest
	groups map[string]*group
	wg     sync.WaitGroup // of programs that are served or ended
}

// group is the instances of one step's program, and what waits for one.
type group struct {
	idle    []*instance
	busy    int
	waiting []*waiter
	aside   int         // of those waiting or served, in nobody's place
	broken  int         // starts that failed in a row
	renewed []time.Time // when instances reached their threshold
}

// waiter is one item that waits for an instance.
type waiter struct {
	call     *steps.Call
	spec     *Spec
	with     string
	deadline time.Time
	idle     time.Duration // how long its instance had nothing to do
	spent    time.Duration // processor time of its instance before it
	alone    bool          // that is known, and it has its instance to itself
	left     bool          // it waits no more
	sent     bool          // it is being asked for, and cannot leave any more

	given chan struct{} // closed with the rest set
	line  *line
	asked *asked
	err   error
}

// line is the items that an instance was given in one line.
type line struct {
	inst *instance
	open int // that are not answered
}

// startError says that a program could not be started, or did not get ready.
type startError struct {
	why   error
	again time.Duration
}

func (s *startError) Error() string { return s.why.Error() }

// Run does one step of one item. An instance that ends meanwhile is no failure of the
// item's: it is given to another one.
func (p *Instances) Run(ctx context.Context, spec *Spec, c *steps.Call) (steps.Result, error) {
	for died := 1; ; died++ {
		res, err := p.once(ctx, spec, c)
		var gone *goneError
		var start *startError
		switch {
		case ctx.Err() != nil:
			return steps.Result{}, context.Cause(ctx)
		case errors.As(err, &start):
			return res, &steps.Later{After: start.again, Reason: "its robot does not start: " + start.Error()}
		case !errors.As(err, &gone):
			return res, err
		case died >= mostDeaths:
			return res, steps.SystemFailure("the robot ended %d times at this item: %w", died, gone.why)
		}
		if c.Log != nil {
			fmt.Fprintf(c.Log, "bagpipe: %v; another instance is given the item\n", gone)
		}
		if err := refill(c.Scratch); err != nil {
			return res, err
		}
		select {
		case <-ctx.Done():
		case <-time.After(p.Backoff(died)):
		}
	}
}

// refill empties the scratch folder for another try.
func refill(scratch string) error {
	entries, err := os.ReadDir(scratch)
	for _, e := range entries {
		err = errors.Join(err, os.RemoveAll(filepath.Join(scratch, e.Name())))
	}
	return err
}

// once waits for an instance and its answer. The caller's place is given to others
// meanwhile where a line takes several items, or there would never be several.
func (p *Instances) once(ctx context.Context, spec *Spec, c *steps.Call) (res steps.Result, err error) {
	with, err := json.Marshal(c.With)
	if err != nil {
		return res, err
	}
	w := &waiter{call: c, spec: spec, with: string(with), given: make(chan struct{})}
	w.deadline, _ = ctx.Deadline()
	p.mu.Lock()
	g := p.group(spec)
	g.waiting = append(g.waiting, w)
	stepAside := c.Aside != nil && spec.Batch > 1 && g.aside < spec.Batch*max(1, spec.Most)
	if stepAside {
		g.aside++
	}
	p.feed(g)
	p.mu.Unlock()
	if !stepAside {
		return p.answer(ctx, g, w)
	}
	_ = c.Aside(func() error { res, err = p.answer(ctx, g, w); return nil })
	p.mu.Lock()
	defer p.mu.Unlock()
	g.aside--
	return res, err
}

// answer waits for the answer to w, or until ctx ends.
func (p *Instances) answer(ctx context.Context, g *group, w *waiter) (steps.Result, error) {
	select {
	case <-w.given:
	case <-ctx.Done():
		p.mu.Lock()
		g.waiting = slices.DeleteFunc(g.waiting, func(o *waiter) bool { return o == w })
		w.left = true
		sent := w.sent
		p.mu.Unlock()
		if !sent {
			return steps.Result{}, context.Cause(ctx)
		}
		<-w.given
	}
	if w.err != nil {
		return steps.Result{}, w.err
	}
	if w.call.Idled != nil && w.idle > 0 {
		w.call.Idled(w.idle)
	}
	res, err := w.line.inst.await(ctx, w.asked)
	if cpu, ok := w.line.inst.spent(); ok && w.alone && w.call.Spent != nil {
		w.call.Spent(cpu - w.spent)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if ctx.Err() == nil {
		if text := w.line.inst.count(w.spec, err); text != "" {
			p.renew(g, w, text)
		}
	}
	if w.line.open--; w.line.open == 0 {
		p.free(g, w.line.inst)
	}
	return res, err
}

// renew takes an instance out that failed too often; another one is started in its place. p.mu
// is held.
func (p *Instances) renew(g *group, w *waiter, text string) {
	w.line.inst.sick = true
	if w.call.Log != nil {
		fmt.Fprintf(w.call.Log, "bagpipe: %s: this instance of the robot is ended, and another started\n", text)
	}
	g.renewed = append(g.renewed, p.Now()) // reap forgets the old ones
	if len(g.renewed) > mostRenewed && w.spec.Sick != nil {
		told := fmt.Sprintf("%s, and so with the %d before it", text, mostRenewed)
		p.wg.Go(func() { w.spec.Sick(told) })
	}
}

func (p *Instances) group(spec *Spec) *group {
	key := spec.key()
	if p.groups == nil {
		p.groups = map[string]*group{}
	}
	if p.groups[key] == nil {
		p.groups[key] = &group{}
	}
	return p.groups[key]
}

// feed gives those that wait to instances; p.mu is held.
func (p *Instances) feed(g *group) {
	for len(g.waiting) > 0 {
		spec := g.waiting[0].spec
		if spec.Batch > 1 && g.busy >= max(1, spec.Most) {
			return
		}
		n := 1
		for n < len(g.waiting) && n < spec.Batch && g.waiting[n].with == g.waiting[0].with {
			n++
		}
		these := slices.Clone(g.waiting[:n])
		g.waiting = slices.Delete(g.waiting, 0, n)
		var inst *instance
		if k := len(g.idle) - 1; k >= 0 {
			inst, g.idle = g.idle[k], g.idle[:k]
			these[0].idle = p.Now().Sub(inst.since)
		}
		g.busy++
		p.wg.Go(func() { p.serve(g, inst, these) })
	}
}

// serve gives a line of items to an instance, a new one where there is none.
func (p *Instances) serve(g *group, inst *instance, these []*waiter) {
	inst, err := p.ready(g, inst, these[0])
	p.mu.Lock()
	these = slices.DeleteFunc(these, func(w *waiter) bool { return w.left })
	for _, w := range these {
		w.sent = true
	}
	if err != nil || len(these) == 0 {
		p.free(g, inst)
	}
	p.mu.Unlock()
	l := &line{inst: inst, open: len(these)}
	var all []*asked
	if err == nil && len(these) > 0 {
		all = inst.process(these)
	}
	for n, w := range these {
		if w.line, w.err = l, err; err == nil {
			w.asked = all[n]
		}
		close(w.given)
	}
}

// free takes an instance back, nil if there is none; p.mu is held.
func (p *Instances) free(g *group, inst *instance) {
	g.busy--
	switch {
	case inst == nil || !inst.alive():
	case inst.sick:
		p.wg.Go(inst.shutdown)
	default:
		inst.since = p.Now()
		g.idle = append(g.idle, inst)
	}
	p.reap()
	p.feed(g)
}

// reap ends the instances that nothing was asked of for long; p.mu is held.
func (p *Instances) reap() {
	for key, g := range p.groups {
		g.idle = slices.DeleteFunc(g.idle, func(i *instance) bool {
			old := p.Now().Sub(i.since) > idleMost
			if old {
				p.wg.Go(i.shutdown)
			}
			return old
		})
		g.renewed = slices.DeleteFunc(g.renewed, func(t time.Time) bool { return p.Now().Sub(t) > renewedSince })
		if len(g.idle)+g.busy+len(g.waiting)+g.aside+g.broken+len(g.renewed) == 0 {
			delete(p.groups, key)
		}
	}
}

// ready gives an instance that has the parameters of w: the one that is there, or a new one.
func (p *Instances) ready(g *group, inst *instance, w *waiter) (*instance, error) {
	if inst != nil && inst.alive() && inst.with != w.with {
		m, err := inst.ask(context.Background(), w.spec.initMost(), "reconfigure", map[string]any{"with": json.RawMessage(w.with)})
		switch {
		case err != nil: // it is gone
		case m.Error == nil:
			inst.with = w.with
		case m.Error.Code == noSuchMethod:
			inst.shutdown()
		default:
			return inst, steps.SystemFailure("the robot refuses its parameters: %s", m.Error.Message)
		}
	}
	if inst != nil && inst.alive() {
		return inst, nil
	}
	return p.start(context.Background(), g, w.spec, w.with)
}

// start starts an instance, and lets it get ready.
func (p *Instances) start(ctx context.Context, g *group, spec *Spec, with string) (*instance, error) {
	inst, err := p.begin(ctx, spec, with)
	p.mu.Lock()
	defer p.mu.Unlock()
	if err == nil {
		g.broken = 0
		return inst, nil
	}
	g.broken++
	return nil, &startError{why: err, again: p.Backoff(g.broken)}
}

func (p *Instances) begin(ctx context.Context, spec *Spec, with string) (*instance, error) {
	if err := os.MkdirAll(p.Dir, 0o777); err != nil {
		return nil, err
	}
	inst, err := launch(spec, p.Dir)
	if err != nil {
		return nil, err
	}
	m, err := inst.ask(ctx, spec.initMost(), "initialize", map[string]any{"protocol": protocol, "step": spec.Step, "with": json.RawMessage(with)})
	if err == nil && m.Error != nil {
		err = fmt.Errorf("initialize: %s", m.Error.Message)
	}
	inst.with = with
	for n := 0; err == nil && n < len(spec.Samples); n++ {
		err = p.try(ctx, inst, spec, spec.Samples[n])
	}
	if err != nil {
		inst.fail(err)
		<-inst.ended
		return nil, err
	}
	return inst, nil
}

// try gives a new instance a sample, or the kept inputs of an attempt.
func (p *Instances) try(ctx context.Context, i *instance, spec *Spec, sample string) (err error) {
	if _, err := os.Stat(sample); err != nil {
		return fmt.Errorf("warm-up: %w", err)
	}
	scratch, err := os.MkdirTemp(p.Dir, "sample-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(scratch)) }()
	c := &steps.Call{Step: spec.Step, Label: filepath.Base(sample), Folders: steps.Folders{Dir: sample, Source: below(sample, layout.SourceDir), Scratch: scratch}}
	c.Content = below(sample, layout.ContentDir)
	if c.Content == sample {
		c.Content = c.Source
	}
	c.Manifest, _ = os.ReadFile(filepath.Join(sample, layout.ManifestJSON)) // of kept inputs alone
	all := i.process([]*waiter{{call: c, spec: spec}})
	if _, err = i.await(ctx, all[0]); err != nil {
		return fmt.Errorf("warm-up with %s: %w", sample, err)
	}
	return nil
}

// below is a folder of dir, or dir itself where it has none of that name.
func below(dir, name string) string {
	if info, err := os.Stat(filepath.Join(dir, name)); err == nil && info.IsDir() {
		return filepath.Join(dir, name)
	}
	return dir
}

// Warm makes sure that one instance is ready.
func (p *Instances) Warm(ctx context.Context, spec *Spec) error {
	with, err := json.Marshal(spec.With)
	if err != nil {
		return err
	}
	p.mu.Lock()
	g := p.group(spec)
	there := len(g.idle)+g.busy > 0
	p.mu.Unlock()
	if there {
		return nil
	}
	inst, err := p.start(ctx, g, spec, string(with))
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	inst.since = p.Now()
	g.idle = append(g.idle, inst)
	p.feed(g)
	return nil
}

// Close ends all programs; nothing may run. More may be asked afterwards.
func (p *Instances) Close() {
	p.mu.Lock()
	for _, g := range slices.Collect(maps.Values(p.groups)) {
		for _, i := range g.idle {
			p.wg.Go(i.shutdown)
		}
	}
	used := p.groups != nil
	p.groups = nil
	p.mu.Unlock()
	p.wg.Wait()
	if used {
		_ = os.RemoveAll(p.Dir) // scratch: the next run's upkeep removes what is left
	}
}

// lastOf is the last line of a log's end.
func lastOf(said []byte) string {
	all := bytes.Split(bytes.TrimSpace(said), []byte("\n"))
	return string(bytes.ToValidUTF8(all[len(all)-1], []byte("\uFFFD")))
}
