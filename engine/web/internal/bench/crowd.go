package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// look measures what many viewers cost.
func (b *bench) look() error {
	rate := func() (perSecond float64, each time.Duration, note string, err error) {
		stop, err := b.load(1_000_000) // as many as can be
		if err != nil {
			return 0, 0, "", err
		}
		const lasts = 5 * time.Second
		s := b.spend()
		time.Sleep(lasts)
		perSecond = stop()
		each, note = s.each(perSecond * lasts.Seconds())
		return perSecond, each, note, nil
	}
	if _, _, err := b.ask("GET", "/", ""); err != nil { // what is found once, before anybody looks
		return err
	}
	const rounds = 3 // in turn, as the history grows meanwhile
	var alone, beside, each, eachBeside [rounds]float64
	var noteAlone, note string
	var still, held, shown int64
	for n := range rounds {
		var took time.Duration
		var err error
		if alone[n], took, noteAlone, err = rate(); err != nil {
			return err
		}
		each[n] = took.Seconds()
		before := b.memory(b.pid)
		parts, end := b.crowd()
		time.Sleep(2 * time.Second)
		still = max(still, b.memory(b.pid)-before)
		beside[n], took, note, err = rate()
		held = max(held, b.memory(b.pid)-before)
		end()
		if err != nil {
			return err
		}
		eachBeside[n], shown = took.Seconds(), shown+parts.Load()
	}
	row(fmt.Sprintf("%d viewers: memory", b.viewers), fmt.Sprintf("%d MiB", still>>20), fmt.Sprintf("at most 32; %d MiB after as many transitions as can be", held>>20))
	row("without viewers: transitions", fmt.Sprintf("%.0f/s", middle(alone)), noteAlone)
	row(fmt.Sprintf("%d viewers: transitions", b.viewers), fmt.Sprintf("%.0f/s", middle(beside)), fmt.Sprintf("%.2f of those without, at least 0.9; by processor time %.2f; %s; %d parts were shown; the medians of %d rounds in turn",
		middle(beside)/middle(alone), middle(each)/middle(eachBeside), note, shown, rounds))
	return nil
}

func middle(of [3]float64) float64 {
	slices.Sort(of[:])
	return of[1]
}

// crowd lets many look at the overview until end is called; parts counts what they are shown.
func (b *bench) crowd() (parts *atomic.Int64, end func()) {
	ctx, cancel := context.WithCancel(context.Background())
	parts = new(atomic.Int64)
	var viewers sync.WaitGroup
	for range b.viewers {
		viewers.Go(func() { _ = b.watch(ctx, "", func() { parts.Add(1) }) }) // one that ends early is seen in the parts
	}
	return parts, func() {
		cancel()
		viewers.Wait()
	}
}

// soak lets viewers look for a long time while transitions are committed, and prints what the server holds.
func (b *bench) soak() error {
	if b.lasts == 0 {
		return nil
	}
	stop, err := b.load(b.rate)
	if err != nil {
		return err
	}
	parts, end := b.crowd()
	defer end()
	const prints, warm = 20, 4
	each := b.lasts / prints
	s := b.spend()
	var held [prints]int64
	for n := range held {
		time.Sleep(each)
		held[n] = b.memory(b.pid)
		row(fmt.Sprintf("%d viewers for %v: memory", b.viewers, each*time.Duration(n+1)), fmt.Sprintf("%d MiB", held[n]>>20), fmt.Sprintf("%d parts were shown", parts.Load()))
	}
	perSecond := stop()
	before, behind := slices.Max(held[warm:prints/2]), slices.Max(held[prints/2:])
	row("memory, flat", fmt.Sprintf("%.2f", float64(behind)/float64(before)), "the most of the second half, of that of the first; at most 1.1")
	_, note := s.each(perSecond * b.lasts.Seconds())
	row("transitions committed meanwhile", fmt.Sprintf("%.0f/s", perSecond), note)
	return nil
}

// completions measures manual steps completed by many callers.
func (b *bench) completions() error {
	const n = 4000
	ids, err := b.some(n)
	if err != nil {
		return err
	}
	do := func(body string) (perSecond float64, note string, err error) {
		turns := make(chan []byte, len(ids))
		for _, id := range ids {
			turns <- b.call(id, body)
		}
		close(turns)
		var working sync.WaitGroup
		var failed atomic.Pointer[error]
		var done atomic.Int64
		s := b.spend()
		for range callers {
			working.Go(func() {
				c := caller{b: b}
				defer c.close()
				for request := range turns {
					if err := c.do(request); err != nil {
						failed.Store(&err)
					} else {
						done.Add(1)
					}
				}
			})
		}
		working.Wait()
		if done.Load() == 0 && failed.Load() != nil {
			return 0, "", *failed.Load()
		}
		perSecond = float64(done.Load()) / time.Since(s.began).Seconds()
		_, note = s.each(float64(done.Load()))
		return perSecond, note, nil
	}
	if _, _, err := do(`{"act":"start","workflow":"people"}`); err != nil {
		return err
	}
	perSecond, note, err := do(`{"act":"complete","workflow":"people","step":"look"}`)
	if err != nil {
		return err
	}
	row(fmt.Sprintf("completions of manual steps, %d callers", callers), fmt.Sprintf("%.0f/s", perSecond), "at least 1000/s; "+note)
	return nil
}

// beyond compares what the server holds with run --watch beside it, which takes in the same commits. Its queue is
// for people: what moves is what the load moves.
func (b *bench) beyond() (err error) {
	cmd := b.command(b.program, "-C", b.root, "run", "-q", "--watch", "--queue", "people/look")
	if err := cmd.Start(); err != nil {
		return err
	}
	defer func() { // what it says of its end is not what is measured
		err = errors.Join(err, cmd.Process.Signal(os.Interrupt))
		_ = cmd.Wait()
	}()
	time.Sleep(5 * time.Second)
	stop, err := b.load(b.rate)
	if err != nil {
		return err
	}
	time.Sleep(15 * time.Second)
	stop()
	time.Sleep(3 * time.Second)
	ours, theirs := b.memory(b.pid), b.memory(cmd.Process.Pid)
	row("memory of the server", fmt.Sprintf("%d MiB", ours>>20), fmt.Sprintf("run --watch, which took in the last of these commits, %d MiB: %d MiB more; at most 100", theirs>>20, (ours-theirs)>>20))
	return nil
}
