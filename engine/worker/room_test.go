package worker

import (
	"context"
	"testing"
	"testing/synctest"
)

// There are never more pulls of a class than there is room for what they bring, and those of other classes do not count.
func TestPullsWaitForRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRoom(2)
		r.brings["ocr"] = true
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		if !r.pull(ctx, "ocr") || !r.pull(ctx, "scan") || !r.pull(ctx, "ocr") {
			t.Fatal("there is room for two pulls of a class")
		}
		third := make(chan bool, 1)
		go func() { third <- r.pull(ctx, "ocr") }()
		synctest.Wait()
		if len(third) != 0 {
			t.Fatal("a third pull of a class waits where two may be brought")
		}
		if !r.pulled("ocr", true) || !r.pulled("scan", true) {
			t.Fatal("there is room for what two pulls brought")
		}
		if r.pulled("ocr", true) {
			t.Fatal("there is no room for what a third brought")
		}
		synctest.Wait()
		if len(third) != 0 {
			t.Fatal("a pull waits where all room is taken")
		}
		r.leave()
		if !<-third {
			t.Fatal("room that is given back is pulled for")
		}
		if took := make(chan bool, 1); true {
			go func() { took <- r.take(ctx) }()
			if !<-took {
				t.Fatal("there is room for one")
			}
			go func() { took <- r.take(ctx) }()
			synctest.Wait()
			stop()
			if <-took || r.pull(ctx, "scan") {
				t.Fatal("who is ended waits no longer")
			}
		}
	})
}

// While the pulls of a class bring nothing, one waits alone; once it brings something, others wait beside it.
func TestOnePullWaitsWhereNothingComes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRoom(10)
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		pulls := make(chan bool, 3)
		for range 3 {
			go func() { pulls <- r.pull(ctx, "ocr") }()
		}
		for n, c := range []struct {
			brought bool
			more    int // pulls that begin
		}{{false, 1}, {true, 2}} {
			synctest.Wait()
			if len(pulls) != 1 {
				t.Fatalf("%d: %d pulls wait where nothing has come", n, len(pulls))
			}
			<-pulls
			r.pulled("ocr", c.brought)
			synctest.Wait()
			if len(pulls) != c.more {
				t.Fatalf("%d: %d pulls follow, want %d", n, len(pulls), c.more)
			}
			if !c.brought {
				go func() { pulls <- r.pull(ctx, "ocr") }()
			}
		}
	})
}
