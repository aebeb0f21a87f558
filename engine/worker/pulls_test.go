package worker

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"bagpipe/engine/remote/wire"
)

// waiting is a link at which pulls wait until they are ended.
type waiting struct {
	said
	begun chan string
}

func (l waiting) Pull(ctx context.Context, class string, _ time.Duration) (Pulled, bool, error) {
	l.begun <- class
	<-ctx.Done()
	return nil, false, ctx.Err()
}

// A stream that is made anew is pulled from at once: pulls at the one before would wait for nothing.
func TestANewStreamIsPulledFromAtOnce(t *testing.T) {
	l := waiting{begun: make(chan string, 100)}
	w := &Worker{o: Options{Config: &Config{}, Link: l, Log: slog.New(slog.DiscardHandler), Now: time.Now}, claims: make(chan struct{}, 1)}
	w.running, w.classes = nil, map[string]context.CancelFunc{}
	ctx, stop := context.WithCancel(t.Context())
	for _, c := range []struct {
		epoch string
		pulls int
	}{{"one", 1}, {"one", 0}, {"two", 1}} {
		w.obey(ctx, wire.Orders{Head: wire.Now(), Epoch: c.epoch, Classes: []string{"ocr"}})
		for n := 0; ; n++ {
			wait := 10 * time.Second
			if n == c.pulls {
				wait = 50 * time.Millisecond
			}
			select {
			case <-l.begun:
				continue
			case <-time.After(wait):
			}
			if n != c.pulls {
				t.Errorf("epoch %s: %d pulls began, want %d", c.epoch, n, c.pulls)
			}
			break
		}
	}
	stop()
	w.wg.Wait()
}
