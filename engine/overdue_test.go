package engine_test

import (
	"reflect"
	"testing"
	"time"

	"bagpipe/engine"
	"bagpipe/steps"
)

// What is called later is told of as overdue when it has been so for an hour, counted from
// the first of the tries.
func TestWhatIsTriedForAnHourIsOverdue(t *testing.T) {
	p := newPolicy(t, "  - name: read\n    robot: trial\n", 1)
	p.says = func(string, int) error { return &steps.Later{Reason: "the scanner is off", After: time.Minute} }
	var begun time.Time
	for minutes, overdue := range []bool{false, false, true} {
		s := p.run()
		if minutes == 0 && len(s.Tried) == 1 {
			begun = s.Tried[0].Since
		}
		if len(s.Tried) != 1 || s.Tried[0].Overdue != overdue || s.Tried[0].Reason != "the scanner is off" || !s.Tried[0].Since.Equal(begun) {
			t.Fatalf("run %d: %+v", minutes, s.Tried)
		}
		p.do(func(e *engine.Engine) {
			p.must(e.Index.Load(p.ctx))
			if rows := e.Ask.Stalled(0, 0); (len(rows) == 1 && rows[0].For >= 3600) != overdue {
				t.Errorf("run %d: stalled: %+v", minutes, rows)
			}
		})
		p.clock.seconds.Add(31 * 60)
	}
	p.says = func(string, int) error { return nil }
	if s := p.run(); len(s.Tried) != 0 {
		t.Errorf("%+v", s.Tried)
	}
}

// A run that is not watching leaves a step that asks for a later call each time, however soon.
func TestARunLeavesWhatAsksForALaterCallForEver(t *testing.T) {
	p := newPolicy(t, "  - name: read\n    robot: trial\n", 1)
	calls := 0
	p.says = func(string, int) error {
		if calls++; calls == 1000 {
			return nil
		}
		return &steps.Later{Reason: "the scanner is off", After: time.Second}
	}
	begun, o := time.Now(), p.options()
	o.Now = func() time.Time { return begun.Add(20 * time.Since(begun)) }
	e, err := engine.Open(p.ctx, p.root, o)
	p.must(err)
	defer func() { p.must(e.Close()) }()
	s, err := e.Run(p.ctx, engine.RunOptions{Parallel: 1})
	p.must(err)
	if len(s.Tried) != 1 || calls < 2 || calls == 1000 {
		t.Fatalf("%d calls: %+v", calls, s)
	}
}

// Of what has stalled, as many as are asked for are listed: those that stand longest.
func TestTheLongestStalledAreListed(t *testing.T) {
	p := newPolicy(t, "  - name: look\n    manual: true\n", 9)
	p.clock.seconds.Add(3600)
	p.do(func(e *engine.Engine) {
		p.must(e.Index.Load(p.ctx))
		all := e.Ask.Stalled(time.Minute, 0)
		if len(all) != 9 || all[0].For <= all[8].For {
			t.Fatalf("%+v", all)
		}
		for most := 1; most <= 9; most++ {
			if rows := e.Ask.Stalled(time.Minute, most); !reflect.DeepEqual(rows, all[:most]) {
				t.Errorf("the longest %d: %+v", most, rows)
			}
		}
	})
}
