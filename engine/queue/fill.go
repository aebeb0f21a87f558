package queue

import (
	"maps"
	"runtime"
	"slices"
	"sync"

	"bagpipe/engine/queue/internal/packed"
	"bagpipe/engine/queue/internal/turns"
	"bagpipe/engine/state"
	"bagpipe/layout"
)

// Filling is an index that is being filled by several goroutines; nothing else may
// be done with it until Done.
type Filling struct {
	x     *store
	locks [64]sync.Mutex // of pages
	packs sync.Pool      // of *[]byte: what items are packed in
	empty bool           // it was empty: items are put in order at the end
}

// Fill begins to fill an index that nobody uses yet. What it holds already stays, as
// the items of a checkpoint.
func (i *Index) Fill() *Filling {
	x := i.s
	return &Filling{x: x, packs: sync.Pool{New: func() any { return new([]byte) }}, empty: x.table.Empty()}
}

// Put adds an item, or replaces one.
func (f *Filling) Put(it *Item) {
	b := f.packs.Get().(*[]byte)
	defer f.packs.Put(b)
	*b = packed.Pack((*b)[:0], f.x.names, it)
	bits := packed.BitsOf(it.ID)
	p := packed.PageOf(bits)
	f.locks[p%len(f.locks)].Lock()
	defer f.locks[p%len(f.locks)].Unlock()
	if f.empty {
		f.x.table.Add(bits, *b)
		return
	}
	f.x.table.Put(bits, *b)
}

// Remove forgets an item.
func (f *Filling) Remove(id layout.ItemID) {
	if f.empty {
		return
	}
	bits := packed.BitsOf(id)
	p := packed.PageOf(bits)
	f.locks[p%len(f.locks)].Lock()
	defer f.locks[p%len(f.locks)].Unlock()
	f.x.table.Remove(bits)
}

// Broken lists the items whose records could not be read.
func (f *Filling) Broken() (ids []layout.ItemID) {
	f.x.table.Each(0, packed.Pages, func(bits uint64, b []byte) {
		if packed.TraitsOf(b)&Broken != 0 {
			ids = append(ids, layout.ItemIDOf(bits))
		}
	})
	return ids
}

// Count counts what there is, and no more: of items that were in an index already.
func (f *Filling) Count() {
	f.x.mu.Lock()
	defer f.x.mu.Unlock()
	f.x.recount()
}

// Done counts what there is and puts what is ready in its queues.
func (f *Filling) Done() {
	x := f.x
	x.mu.Lock()
	defer x.mu.Unlock()
	if f.empty {
		onAllCores(packed.Pages, func(_, from, to int) { x.table.Sort(from, to) })
	}
	x.recount()
	var gathered []layout.ItemID
	x.table.Each(0, packed.Pages, func(bits uint64, b []byte) {
		if t := packed.TraitsOf(b); t&(Gathered|Kin|Broken) != 0 {
			gathered = append(gathered, layout.ItemIDOf(bits))
		}
	})
	for _, id := range gathered {
		x.others.Change(nil, x.item(id))
	}
	for _, id := range gathered {
		x.again(id)
	}
	x.others.TellAll()
	x.signal()
}

// onAllCores divides some pages among as many goroutines as there are cores; i numbers
// them.
func onAllCores(pages int, do func(i, from, to int)) {
	n := runtime.GOMAXPROCS(0)
	var wait sync.WaitGroup
	for i := range n {
		wait.Go(func() { do(i, pages*i/n, pages*(i+1)/n) })
	}
	wait.Wait()
}

// share is what one goroutine found.
type share struct {
	counts counts
	ready  map[leafKey][]turns.Entry
	dated  []dated
	runs   []uint64
	people []aged
	off    []aged
}

type leafKey struct {
	readyKey
	turns.Place
}

// recount derives everything but the items themselves from the items, on all cores.
func (x *store) recount() {
	shares := make([]share, runtime.GOMAXPROCS(0))
	onAllCores(packed.Pages, func(i, from, to int) { x.recountPages(&shares[i], from, to) })
	x.count, x.ready, x.dated, x.accounts = newCounts(), map[readyKey]*turns.Tree{}, nil, turns.Account{}
	x.marked = newMarked()
	leaves := map[leafKey][]turns.Entry{}
	for i := range shares {
		s := &shares[i]
		x.count.merge(&s.counts)
		x.dated = append(x.dated, s.dated...)
		for _, bits := range s.runs {
			x.runs[bits] = true
		}
		for _, p := range s.people {
			x.people[p.item] = p.created
		}
		for _, o := range s.off {
			x.off[o.item] = o.created
		}
		for k, e := range s.ready {
			leaves[k] = append(leaves[k], e...)
		}
	}
	x.dated.Order()
	// The oldest first, so that who comes first does not hang on chance.
	oldest := func(k leafKey) turns.Entry { return slices.MinFunc(leaves[k], turns.Entry.Compare) }
	first := make(map[leafKey]turns.Entry, len(leaves))
	for k := range leaves {
		first[k] = oldest(k)
	}
	order := slices.SortedFunc(maps.Keys(leaves), func(a, b leafKey) int { return first[a].Compare(first[b]) })
	for _, k := range order {
		x.pushAll(leaves[k], k.readyKey, k.Place)
	}
}

func (x *store) recountPages(s *share, from, to int) {
	s.counts, s.ready = newCounts(), map[leafKey][]turns.Entry{}
	var g packed.Outline
	x.table.Each(from, to, func(bits uint64, b []byte) {
		g.Read(b)
		s.counts.add(x.names, &g, 1)
		if g.Traits&Running != 0 {
			s.runs = append(s.runs, bits)
		}
		if g.Traits&Person != 0 {
			s.people = append(s.people, aged{g.Created, bits})
		}
		if g.Traits&Off != 0 {
			s.off = append(s.off, aged{g.Created, bits})
		}
		for r := range g.Runs {
			run := &g.Runs[r]
			for i := range run.To - run.From {
				how, until := g.Standing(run, i)
				e := turns.Entry{Created: g.Created, Item: bits, Run: uint32(run.Name), Place: uint16(r), N: uint16(i)}
				switch how {
				case packed.StandsReady:
					k := leafKey{x.keyOf(&g, run, i), standsAt(&g)}
					s.ready[k] = append(s.ready[k], e)
				case packed.StandsDated:
					s.dated = append(s.dated, dated{at: until, entry: e})
				}
			}
		}
	})
}

// WithSteps gives the items of which a step that is wanted waits, and those of which
// one is out of the flow.
func (v View) WithSteps(want func(StepID) bool) (ids []layout.ItemID) {
	x := v.s
	x.mu.Lock()
	defer x.mu.Unlock()
	wanted := map[*state.Definition][]bool{}
	steps := func(plan *state.Definition) []bool {
		is, known := wanted[plan]
		if !known {
			is = make([]bool, len(plan.Steps))
			for i := range is {
				is[i] = want(StepID{Workflow: plan.Name, Step: layout.Name(plan.Steps[i].Name)})
			}
			wanted[plan] = is
		}
		return is
	}
	_, plans := x.names.All()
	any := slices.ContainsFunc(plans, func(p *state.Definition) bool { return slices.Contains(steps(p), true) })
	var g packed.Outline
	x.table.Each(0, packed.Pages, func(bits uint64, b []byte) {
		t := packed.TraitsOf(b)
		is := t&Off != 0
		if !is && any && t&Open != 0 {
			g.Read(b)
			for r := range g.Runs {
				run := &g.Runs[r]
				for i, w := range steps(x.names.Plan(run.Plan)) {
					is = is || w && g.Steps[run.From+i].Status == packed.StatusWaiting
				}
			}
		}
		if is {
			ids = append(ids, layout.ItemIDOf(bits))
		}
	})
	return ids
}
