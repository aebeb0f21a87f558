package farm

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"bagpipe/cmd/bagpipe/internal/screen"
	"bagpipe/engine/remote"
	"bagpipe/engine/remote/wire"
)

// Monitor tells at intervals how workers and queues stand.
type Monitor struct {
	Every time.Duration `default:"1s" placeholder:"TIME" help:"The interval; default: 1s."`
	Times int           `placeholder:"N" help:"End after so many; default: never."`
	JSON  bool          `name:"json" help:"One JSON object a line."`
}

// monitored is one interval of a class or a worker.
type monitored struct {
	At    time.Time `json:"at"`
	Kind  string    `json:"kind"` // class or worker
	Name  string    `json:"name"`
	Depth int       `json:"depth"` // on offer, or at work
	Free  int       `json:"free"`  // slots of a worker
	wire.Took
	Idle float64 `json:"idle"` // seconds of its slots in which no robot ran
}

// Run tells until a signal comes.
func (c *Monitor) Run(ctx context.Context, on *screen.Screen, around screen.Around) error {
	before, err := read(around)
	if err != nil {
		return err
	}
	if c.Every < 100*time.Millisecond {
		return screen.WrongUse("--every: expected 100ms or more")
	}
	tick := time.NewTicker(c.Every)
	defer tick.Stop()
	for n := 0; c.Times == 0 || n < c.Times; n++ {
		select {
		case <-ctx.Done():
			return screen.ExitInterrupted
		case <-tick.C:
		}
		now, err := read(around)
		if err != nil {
			return err
		}
		if err := c.tell(on, before, now); err != nil {
			return err
		}
		before = now
	}
	return nil
}

func (c *Monitor) tell(on *screen.Screen, before, now remote.Status) error {
	span := now.At.Sub(before.At).Seconds()
	var all []monitored
	classes := map[string]bool{}
	for want := range now.Classes {
		classes[want] = true
	}
	for want := range now.Offers {
		classes[want] = true
	}
	for _, want := range slices.Sorted(maps.Keys(classes)) {
		all = append(all, monitored{At: now.At, Kind: "class", Name: want, Depth: now.Offers[want], Took: less(now.Classes[want], before.Classes[want])})
	}
	for _, w := range now.Workers {
		var was wire.Took
		if i := slices.IndexFunc(before.Workers, func(o remote.WorkerStatus) bool { return o.Name == w.Name && o.Engine == w.Engine }); i >= 0 {
			was = before.Workers[i].Took
		}
		m := monitored{At: now.At, Kind: "worker", Name: string(w.Name), Depth: len(w.Running), Free: max(0, w.Slots-len(w.Running)), Took: less(w.Took, was)}
		m.Idle = span * float64(m.Free)
		all = append(all, m)
	}
	for _, m := range all {
		if c.JSON {
			if err := on.JSONLine(m); err != nil {
				return err
			}
			continue
		}
		if _, err := fmt.Fprintf(on.Out, "%s %-6s %-30s depth %d, done %d, wait %.3f s, fetch %.3f s, run %.3f s, send %.3f s, free %d, idle %.1f s\n", m.At.Format(time.TimeOnly), m.Kind, m.Name,
			m.Depth, m.Attempts, m.Wait, m.Fetch, m.Run, m.Send, m.Free, m.Idle); err != nil {
			return err
		}
	}
	return nil
}

// less is what came since; an engine that began anew counts from nothing.
func less(now, before wire.Took) wire.Took {
	if now.Attempts < before.Attempts {
		return now
	}
	return wire.Took{Attempts: now.Attempts - before.Attempts, Wait: now.Wait - before.Wait, Fetch: now.Fetch - before.Fetch, Run: now.Run - before.Run, Send: now.Send - before.Send}
}
