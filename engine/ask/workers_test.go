package ask

import (
	"strings"
	"testing"
	"time"

	"bagpipe/engine/remote/wire"
)

// What stats advises of workers follows from depth, idle slots, waiting for claims, and how long bytes and robots took.
func TestAdviceOfWorkers(t *testing.T) {
	now := time.Now()
	busy := wire.WorkerStatus{Name: "w1", State: "ready", Slots: 2, Running: make([]wire.RunningStatus, 2), Since: now.Add(-time.Hour), Took: wire.Took{Attempts: 100, Run: 7000}}
	free := busy
	free.Running = nil
	idle := free
	idle.Took.Run = 72
	for name, c := range map[string]struct {
		worker wire.WorkerStatus
		depth  int
		took   wire.Took
		want   string
	}{
		"a long queue":      {busy, 40, wire.Took{Attempts: 100, Wait: 900, Run: 300}, "40 are on offer, and no slot is free: more slots or another worker would help; one waits 9.0 s for its claim and runs 3.0 s"},
		"bytes take long":   {free, 0, wire.Took{Attempts: 100, Fetch: 400, Send: 100, Run: 300}, "bytes take 5.0 s, the robot 3.0 s: prefetch: 1, a cache: or a shared file system"},
		"grants are slow":   {free, 40, wire.Took{Attempts: 100, Wait: 900, Run: 100}, "40 are on offer for 9.0 s each while 2 slots are free"},
		"slots are idle":    {idle, 0, wire.Took{Attempts: 100, Run: 72}, "worker w1: its slots were idle 99 % of the time: fewer would do"},
		"too few to tell":   {busy, 40, wire.Took{Attempts: 19, Wait: 900, Run: 1}, ""},
		"a short queue":     {busy, 9, wire.Took{Attempts: 100, Wait: 900, Run: 300}, ""},
		"all is as it was":  {free, 0, wire.Took{Attempts: 100, Wait: 1, Fetch: 1, Run: 300}, ""},
		"small bytes, fast": {free, 0, wire.Took{Attempts: 100, Fetch: 5, Run: 1}, ""},
	} {
		s := wire.Status{At: now, Offers: map[string]int{}, Classes: map[string]wire.Took{"ocr": c.took}, Workers: []wire.WorkerStatus{c.worker, {Name: "gone", State: "silent", Slots: 8}}}
		if c.depth > 0 {
			s.Offers["ocr"] = c.depth
		}
		got := adviseWorkers(s)
		if c.want == "" && len(got) > 0 || c.want != "" && (len(got) != 1 || !strings.Contains(got[0].Text, c.want)) {
			t.Errorf("%s: %+v, want %q", name, got, c.want)
		}
	}
}
