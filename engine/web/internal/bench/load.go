package main

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tidwall/gjson"
)

// some gives identifiers of items, from all over the list.
func (b *bench) some(n int, query string) (ids []string, err error) {
	step := max(1, b.items/max(1, n))
	for at := 0; len(ids) < n && at < b.items; at += step * 100 {
		data, _, err := b.ask("GET", fmt.Sprintf("/api/v1/items?limit=100&skip=%d%s", at, query), "")
		if err != nil {
			return nil, err
		}
		found := gjson.GetBytes(data, "#.item").Array()
		if len(found) == 0 {
			break
		}
		for _, id := range found {
			ids = append(ids, id.String())
		}
	}
	return ids, nil
}

// load commits transitions at a rate until stop is called: items are held and released. It gives how
// many a second there were.
func (b *bench) load(rate int) (stop func() float64, err error) {
	ids, err := b.some(2000, "")
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
