package worker

import (
	"context"
	"sync"
)

// room is how many attempts a worker may have: its slots, and those claimed ahead. A pull waits only where there is
// room for what it may bring, so that no offer is pulled to be given back at once; pulls of one class count against
// each other, and not against those of other classes, which may bring nothing for long. While pulls of a class bring nothing one
// waits alone: the server looks at all that wait whenever it has delivered what there was.
type room struct {
	most int

	mu      sync.Mutex // guards the rest
	taken   int
	pulling map[string]int  // pulls under way, by class
	brings  map[string]bool // by class: the last pull that ended brought an offer
	freed   chan struct{}   // closed when there may be more room
}

func newRoom(most int) *room {
	return &room{most: most, pulling: map[string]int{}, brings: map[string]bool{}, freed: make(chan struct{})}
}

// await calls try, with r.mu held, until it answers true or ctx ends.
func (r *room) await(ctx context.Context, try func() bool) bool {
	for {
		r.mu.Lock()
		done, freed := try(), r.freed
		r.mu.Unlock()
		if done {
			return true
		}
		select {
		case <-freed:
		case <-ctx.Done():
			return false
		}
	}
}

// pull waits until there is room for one more pull of a class; pulled ends it.
func (r *room) pull(ctx context.Context, class string) bool {
	return ctx.Err() == nil && r.await(ctx, func() bool {
		if under := r.pulling[class]; r.taken+under >= r.most || under > 0 && !r.brings[class] {
			return false
		}
		r.pulling[class]++
		return true
	})
}

// pulled ends a pull, and takes room for what it brought; false where there is none.
func (r *room) pulled(class string, brought bool) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pulling[class]--
	r.brings[class] = brought
	if brought = brought && r.taken < r.most; brought {
		r.taken++
	}
	r.free()
	return brought
}

// take waits for room, and takes it.
func (r *room) take(ctx context.Context) bool {
	return r.await(ctx, func() bool {
		if r.taken >= r.most {
			return false
		}
		r.taken++
		return true
	})
}

// leave gives room back that was taken.
func (r *room) leave() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.taken--
	r.free()
}

// free wakes those that wait; r.mu is held.
func (r *room) free() {
	close(r.freed)
	r.freed = make(chan struct{})
}
