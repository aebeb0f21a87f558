package worker

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"bagpipe/engine/remote/wire"
	"bagpipe/layout"
)

// beaten is a link that counts what the engine is told.
type beaten struct {
	said
	beats atomic.Int32
}

func (l *beaten) Ask(context.Context, string, []byte) ([]byte, error) {
	l.beats.Add(1)
	return wire.Encode(wire.Orders{Head: wire.Now()})
}

// A lease that is shorter than those before is kept from the moment it is known: it comes with a grant, or with orders, while the
// worker waits for the beat of the longer one.
func TestAShorterLeaseIsKept(t *testing.T) {
	for name, come := range map[string]func(*Worker){
		"granted": func(w *Worker) { w.enter(layout.AttemptRef{}, &attempt{lease: 3 * time.Second}) },
		"ordered": func(w *Worker) { w.obey(t.Context(), wire.Orders{Epoch: "1", Lease: 3 * time.Second}) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				link := &beaten{}
				w := &Worker{o: Options{Config: &Config{}, Link: link, Log: slog.New(slog.DiscardHandler), Now: time.Now}}
				w.running, w.classes, w.lease, w.sooner = map[layout.AttemptRef]*attempt{}, map[string]context.CancelFunc{}, 30*time.Second, make(chan struct{}, 1)
				go w.beating(t.Context())
				for range 2 { // the second time it is no shorter
					before := link.beats.Load()
					time.Sleep(5 * time.Second)
					come(w)
					time.Sleep(2 * time.Second)
					if n := link.beats.Load() - before; n == 0 || before == 0 && n > 3 {
						t.Errorf("%d beats within 2 s of a lease of 3 s", n)
					}
				}
			})
		})
	}
}
