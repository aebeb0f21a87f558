package fixity

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// What is read takes as long as its rate says, by several at once, and after a pause nothing is made up for; without a
// rate it is counted alone.
func TestPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const rate, readers, each, times = 1000, 4, 50, 100
		p, begun := newPace(rate), time.Now()
		var reading sync.WaitGroup
		for range readers {
			reading.Go(func() {
				for range times {
					if err := p.take(t.Context(), each); err != nil {
						t.Error(err)
					}
				}
			})
		}
		reading.Wait()
		const all = readers * each * times
		want := all * time.Second / rate
		if took := time.Since(begun); took < want*95/100 || took > want*105/100 {
			t.Errorf("%d bytes at %d a second took %s, want %s within 5 %%", all, rate, took, want)
		}
		time.Sleep(time.Hour)
		begun = time.Now()
		if err := p.take(t.Context(), 3*rate); err != nil || time.Since(begun) < 3*time.Second*95/100 {
			t.Errorf("after a pause %d bytes took %s, %v", 3*rate, time.Since(begun), err)
		}
		ended, end := context.WithCancel(t.Context())
		end()
		if err := p.take(ended, rate); err == nil {
			t.Error("whoever is ended waits")
		}
		free := newPace(0)
		begun = time.Now()
		if err := free.take(t.Context(), 1<<40); err != nil || time.Since(begun) != 0 || free.bytes != 1<<40 {
			t.Errorf("without a rate it took %s, of %d bytes, %v", time.Since(begun), free.bytes, err)
		}
	})
}
