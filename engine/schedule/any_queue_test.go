package schedule_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"bagpipe/engine/queue"
	"bagpipe/engine/schedule"
	"bagpipe/engine/state"
	"bagpipe/layout"
)

// atOnce is how many steps of a queue a schedule does side by side.
const atOnce = 2

// ending is the end of a firing, which left some steps of its queue ready.
type ending struct {
	at   time.Time
	left int
}

// crew is what the queues of the schedules have, and what is done of it. night.mu guards it.
type crew struct {
	ready, running map[string]int // steps, by schedule; those that run where it is left to a schedule
	began          map[string][]beginning
	resting        time.Time // until then no step begins, by a clock that nobody puts back
	numbers        int       // of the steps that began
}

// beginning is that of a step, with how many of its queue run then.
type beginning struct {
	at      time.Time
	running int
}

func newCrew() crew {
	return crew{ready: map[string]int{}, running: map[string]int{}, began: map[string][]beginning{}}
}

// rest keeps steps from beginning in the moment in which the keeper has not seen yet what the clock shows.
func (c *crew) rest() { c.resting = time.Now().Add(time.Second) }

// queueOf is the queue on which a schedule of the name works, and workflowOf the workflow of its steps.
func queueOf(name string) string    { return strings.Replace(name, "s", "q", 1) }
func workflowOf(name string) string { return strings.Replace(name, "s", "w", 1) }

// writeQueue writes a schedule's queue, and the workflow whose step it has.
func (n *anyNight) writeQueue(name string) error {
	workflow := workflowOf(name)
	for path, text := range map[string]string{
		"workflows/" + workflow + ".yaml":   "schema: 1\nname: " + workflow + "\nsteps:\n  - name: register\n  - {name: grind, command: ['true']}\n",
		"queues/" + queueOf(name) + ".yaml": "schema: 1\nname: " + queueOf(name) + "\nsteps: [" + workflow + "/grind]\n",
	} {
		path = filepath.Join(n.root, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			return err
		}
	}
	return nil
}

// readyOf counts the steps of a queue that are ready.
func (n *anyNight) readyOf(q *queue.Named) (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.crew.ready[strings.Replace(q.Name, "q", "s", 1)], nil
}

// work does what is ready as shifts let it, until ctx ends: then the steps that run are ready again.
func (n *anyNight) work(ctx context.Context, shifts *schedule.Shifts) {
	var steps sync.WaitGroup
	defer steps.Wait()
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(700 * time.Millisecond):
		}
		n.mu.Lock()
		for i := range len(n.all) {
			name := fmt.Sprint("s", i)
			e := queue.Entry{Step: "grind", Run: workflowOf(name) + ".1", Item: &queue.Item{Runs: []queue.Run{{Name: workflowOf(name) + ".1", Plan: &state.Definition{Name: workflowOf(name)}}}}}
			for n.crew.ready[name] > 0 && time.Now().After(n.crew.resting) && shifts.Lets(e.ID()) {
				n.crew.numbers++
				e.Item.ID = layout.ItemID(fmt.Sprintf("%015x", n.crew.numbers))
				one, item := e, *e.Item
				one.Item = &item
				shifts.Began(one)
				n.crew.ready[name]--
				kept := len(n.e.Settings.Current().KeptBy(e.ID())) > 0
				if kept {
					n.crew.running[name]++
				}
				n.crew.began[name] = append(n.crew.began[name], beginning{n.clock.now(), n.crew.running[name]})
				takes := time.Duration(n.takes.Intn(15))*time.Minute + time.Duration(5+n.takes.Intn(40))*time.Second
				steps.Go(func() { n.step(ctx, shifts, name, one, kept, takes) })
			}
		}
		n.mu.Unlock()
	}
}

func (n *anyNight) step(ctx context.Context, shifts *schedule.Shifts, name string, e queue.Entry, kept bool, takes time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(takes):
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if kept {
		n.crew.running[name]--
	}
	if ctx.Err() != nil {
		n.crew.ready[name]++
	}
	shifts.Left(e)
}

// checkWork holds the steps that began against the hours of their schedule, and how many it does at once. night.mu
// is held.
func (n *anyNight) checkWork(name string, m *anyModel) {
	for _, b := range n.crew.began[name] {
		if !m.queue || m.edited { // anybody may do them, or a firing of the file that was
			continue
		}
		if !m.open(b.at) && !m.open(b.at.Add(-time.Second)) || b.running > atOnce {
			n.t.Errorf("%s: a step began at %s, and %d ran: %s", name, b.at.UTC().Format(time.RFC3339), b.running, m.file(name))
		}
	}
	n.crew.began[name] = nil
}
