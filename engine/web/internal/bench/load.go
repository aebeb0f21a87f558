package main

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tidwall/gjson"
)

// some gives identifiers of items, the oldest first.
func (b *bench) some(n int) (ids []string, err error) {
	for next := "/api/v1/items?limit=1000"; next != "" && len(ids) < n; {
		data, behind, err := b.page(next)
		if err != nil {
			return nil, err
		}
		for _, id := range gjson.GetBytes(data, "#.item").Array() {
			ids = append(ids, id.String())
		}
		next = behind
	}
	return ids[:min(n, len(ids))], nil
}

// load commits transitions at a rate until stop is called: items are held and released. It gives how
// many a second there were.
func (b *bench) load(rate int) (stop func() float64, err error) {
	ids, err := b.some(2000)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	var done atomic.Int64
	var working sync.WaitGroup
	turns := make(chan int)
	began := time.Now()
	working.Go(func() {
		defer close(turns)
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for n := 0; ; {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			for due := int(time.Since(began).Seconds() * float64(rate)); n < due; n++ {
				select {
				case turns <- n:
				case <-ctx.Done():
					return
				}
			}
		}
	})
	for range 64 {
		working.Go(func() {
			for n := range turns {
				act := []string{"hold", "release"}[n/len(ids)%2]
				if _, _, err := b.ask("POST", "/api/v1/items/"+ids[n%len(ids)]+"/acts", `{"act":"`+act+`"}`); err == nil { // one that is refused is none
					done.Add(1)
				}
			}
		})
	}
	return func() float64 {
		cancel()
		took := time.Since(began)
		working.Wait()
		return float64(done.Load()) / took.Seconds()
	}, nil
}
