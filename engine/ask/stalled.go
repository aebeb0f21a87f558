package ask

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"bagpipe/engine/fault"
	"bagpipe/engine/queue"
	"bagpipe/engine/remote/wire"
	"bagpipe/engine/state"
	"bagpipe/layout"
)

// The rules are: a step has stalled when it is ready, waits for a person or is in
// progress, and has been so for three times as long as nineteen of twenty attempts
// were, and for a minute at least. What has been tried fewer than five times has no
// usual time. What is tried again later has stalled once it is overdue. With a set time, everything that is not done and has not moved for so
// long is listed, whatever it waits for, but for what waits for another step of its
// item: that one has stalled.

const (
	stalledTimes = 3
	stalledLeast = time.Minute
	fewTimes     = 5
)

// Stalled is a step that has not moved for long.
type Stalled struct {
	Item  layout.ItemID `json:"item"`
	Label string        `json:"label"`
	For   float64       `json:"for"`   // seconds
	Usual float64       `json:"usual"` // seconds that 19 of 20 took at most; 0: not known
	Waiting
}

// Stalled lists what has not moved for longer than usual, or, if set is not 0, for that
// time; what stands longest comes first, and no more than most, if that is not 0.
func (re *Reasons) Stalled(set time.Duration, most int) []Stalled {
	now := re.ledger.Now()
	usual := map[queue.StepID]queue.Times{}
	for _, t := range re.index.Loaded().Times(now) {
		usual[t.StepID] = t
	}
	rows, shortest := []Stalled{}, time.Duration(0) // of those that are listed, once they are enough
	cut := func() {
		slices.SortFunc(rows, func(a, b Stalled) int { return cmp.Or(-cmp.Compare(a.For, b.For), cmp.Compare(a.Item, b.Item)) })
		if most > 0 && len(rows) >= most {
			rows = rows[:most]
			shortest = time.Duration(rows[most-1].For*float64(time.Second)) - time.Microsecond // as a float it is not exact
		}
	}
	for it := range re.index.Loaded().With(queue.Open) {
		for run, i := range it.Steps() {
			t := usual[queue.StepID{Workflow: run.Plan.Name, Step: layout.Name(run.Plan.Steps[i].Name)}]
			row, is := re.stalled(it, run, i, t, set, shortest, now)
			if is {
				rows = append(rows, row)
			}
			if most > 0 && len(rows) >= 2*most {
				cut()
			}
		}
	}
	cut()
	for i := range rows[:min(len(rows), fullyTold)] {
		re.tellFully(&rows[i].Waiting, rows[i].Item, now)
	}
	return rows
}

// fullyTold is of how many rows it is said what is before them, and which other items
// they wait for: that costs a look at all the others for each.
const fullyTold = 100

// tellFully says of a step what Why says.
func (re *Reasons) tellFully(w *Waiting, id layout.ItemID, now time.Time) {
	it := re.index.Loaded().Item(id)
	if it == nil {
		return
	}
	for run, i := range it.Steps() {
		if run.Name == w.Workflow && layout.Name(run.Plan.Steps[i].Name) == w.Step {
			if full, open := re.waiting(it, run, i, now); open {
				*w = full
			}
			return
		}
	}
}

// stalled tells of a step that has not moved for longer than usual, or than set, and no shorter than shortest.
func (re *Reasons) stalled(it *queue.Item, run *queue.Run, i int, t queue.Times, set, shortest time.Duration, now time.Time) (row Stalled, is bool) {
	s := &run.Steps[i]
	if s.Status == state.Waiting && behind(run, i) {
		return row, false // another step is to blame
	}
	spread, moves, overdue := t.Waited, false, false
	why := it.BlockedAt(run, i, now)
	switch {
	case s.Status == state.InProgress:
		spread, moves = t.Ran, true
	case s.Status != state.Waiting && s.Status != state.Failed:
		return row, false
	case why == nil || it.Waits(run, i):
		moves = true
	case why.Code == "retry" && now.Sub(triedSince(s)) >= max(set, OverdueAfter):
		overdue = true
	case set == 0:
		return row, false
	}
	stands := now.Sub(s.Since)
	least := set
	if overdue {
		stands = now.Sub(triedSince(s))
	} else if set == 0 {
		if spread.N < fewTimes || !moves {
			return row, false
		}
		least = max(stalledLeast, stalledTimes*spread.P95)
	}
	if s.Since.IsZero() || stands < least && !overdue || stands < shortest {
		return row, false
	}
	w, open := re.waitingBriefly(it, run, i, now)
	if !open {
		return row, false
	}
	row = Stalled{Item: it.ID, Label: it.Label, For: stands.Seconds(), Waiting: w}
	if spread.N >= fewTimes {
		row.Usual = spread.P95.Seconds()
	}
	return row, true
}

// behind tells whether a step waits for another of its item: for one it requires, or
// as one has failed.
func behind(run *queue.Run, i int) bool {
	done := func(k int) bool {
		s, tolerated := run.Steps[k].Status, run.Plan.Steps[k].Tolerated()
		return s == state.Completed || s == state.Skipped || s == state.Failed && tolerated
	}
	for _, p := range run.Plan.Prerequisites(i) {
		if !done(p) {
			return true
		}
	}
	if why := run.Steps[i].Blocked; why == nil || why.Code != "failed" && why.Code != "requires" {
		return false
	}
	for k := range run.Steps {
		if run.Steps[k].Status == state.Failed && !done(k) {
			return true
		}
	}
	return run.Steps[i].Blocked.Code == "requires" // of another workflow
}

// StepStats is what the items tell of one step.
type StepStats struct {
	Workflow string      `json:"workflow"`
	Step     layout.Name `json:"step"`

	StepCounts

	Attempts    int     `json:"attempts"`
	FailureRate float64 `json:"failureRate"` // of attempts
	WaitMedian  float64 `json:"waitMedian"`  // seconds, of attempts that completed or failed
	WaitP95     float64 `json:"waitP95"`
	RunMedian   float64 `json:"runMedian"`
	RunP95      float64 `json:"runP95"`
	CPU         float64 `json:"cpu"`      // seconds of processors, of the programs of all attempts
	Idle        float64 `json:"idle"`     // seconds that instances of a program that lives had nothing to do before attempts
	LastHour    int     `json:"lastHour"` // attempts that completed or skipped it
	LastDay     int     `json:"lastDay"`
	Drain       float64 `json:"drain"` // seconds until what is ready now is done, at the pace of the last hour, or day; 0: not known
}

// StepCounts counts the items by how one step of them stands.
type StepCounts struct {
	Waiting   int `json:"waiting"`
	Ready     int `json:"ready"`
	Running   int `json:"running"`
	Person    int `json:"waitsForPerson"`
	Completed int `json:"completed"`
	Skipped   int `json:"skipped"`
	Failed    int `json:"failed"`
}

// Done counts the items on which nothing of the step is left to do.
func (c StepCounts) Done() int { return c.Completed + c.Skipped }

// Stats is what the history tells of the steps, and what would help.
type Stats struct {
	Steps      []StepStats    `json:"steps"`
	Bottleneck string         `json:"bottleneck,omitempty"` // WORKFLOW/STEP
	Advice     []fault.Advice `json:"advice"`
}

// Stats sums up how the steps go.
func (fi *Figures) Stats() Stats {
	out := Stats{Steps: []StepStats{}, Advice: []fault.Advice{}}
	times := fi.index.Loaded().Times(fi.ledger.Now())
	worst := -1
	for i, t := range times {
		s := statsOf(t)
		out.Steps = append(out.Steps, s)
		if t.Ready > 0 && (worst < 0 || out.load(i, times) > out.load(worst, times)) {
			worst = i
		}
	}
	if worst >= 0 {
		if full := fi.pool(times[worst].StepID); full != "" {
			slow := slowest(times)
			out.Advice = append(out.Advice, poolAdvice(times[worst], full, slow))
			worst = slow
		}
	}
	if worst >= 0 {
		out.Bottleneck = times[worst].String()
	}
	for i, t := range times {
		out.Advice = append(out.Advice, fi.advise(t, out.Steps[i], i == worst)...)
	}
	reasons := &Reasons{ledger: fi.ledger, settings: fi.settings, index: fi.index}
	if s, served := reasons.workers(); served {
		out.Advice = append(out.Advice, adviseWorkers(s)...)
	}
	return out
}

// adviseWorkers is the tuning guide's for queues and workers (UIMA-AS 5.4): a queue that is long wants more
// slots, slots that are idle fewer, and bytes that take long want to be fetched ahead.
func adviseWorkers(s wire.Status) (advice []fault.Advice) {
	const few, often = 10, 20
	free := 0
	for _, w := range s.Workers {
		if w.State == "ready" {
			free += max(0, w.Slots-len(w.Running))
		}
	}
	tell := func(text string, args ...any) {
		advice = append(advice, fault.Advice{Text: fmt.Sprintf(text, args...)})
	}
	for _, class := range slices.Sorted(maps.Keys(s.Classes)) {
		t, depth := s.Classes[class], s.Offers[class]
		if t.Attempts < often {
			continue
		}
		n := float64(t.Attempts)
		switch wait, fetch, run := t.Wait/n, (t.Fetch+t.Send)/n, t.Run/n; {
		case depth >= few && free == 0:
			tell("%s: %d are on offer, and no slot is free: more slots or another worker would help; one waits %.1f s for its claim and runs %.1f s", class, depth, wait, run)
		case fetch > run && fetch > 0.1:
			tell("%s: bytes take %.1f s, the robot %.1f s: prefetch: 1, a cache: or a shared file system would help", class, fetch, run)
		case depth >= few && free > 0 && wait > 5*run && wait > 1:
			tell("%s: %d are on offer for %.1f s each while %d slots are free: the engine is slow to grant, or workers lack the robot", class, depth, wait, free)
		}
	}
	if len(s.Offers) == 0 {
		for _, w := range s.Workers {
			span := s.At.Sub(w.Since).Seconds() * float64(w.Slots)
			if w.State == "ready" && w.Took.Attempts >= often && span > 600 && w.Took.Run < span/10 {
				tell("worker %s: its slots were idle %.0f %% of the time: fewer would do", w.Name, 100*(1-w.Took.Run/span))
			}
		}
	}
	return advice
}

// pool says which limit on the items under way keeps what is ready at a step from
// starting; empty: none.
func (fi *Figures) pool(step queue.StepID) string {
	now := fi.ledger.Now()
	ready, _ := fi.index.Loaded().Queue(now, queue.Question{Step: func(id queue.StepID) bool { return id == step }, Limit: 1})
	if len(ready) == 0 {
		return ""
	}
	p, ok := fi.index.Loaded().Place(ready[0].Item.ID, ready[0].Run, ready[0].N, now, 0)
	if !ok || p.OneStep {
		return ""
	}
	return p.Limit
}

// slowest is the step at work that takes longest; -1: none is at work.
func slowest(times []queue.Times) int {
	slow := -1
	for i, t := range times {
		if t.Running > 0 && (slow < 0 || t.Ran.Median > times[slow].Ran.Median) {
			slow = i
		}
	}
	return slow
}

// poolAdvice is the tuning guide's for a pool without a free place (UIMA-AS 5.4.1): enlarge
// it, and look at the slow consumer.
func poolAdvice(t queue.Times, full string, slow int) fault.Advice {
	text := fmt.Sprintf("%d are ready at %s, and the pool is full: %s; raise it while there is memory and space for more", t.Ready, t.String(), full)
	if slow >= 0 {
		text += ", or make what is at work faster, the bottleneck first"
	}
	return fault.Advice{Text: text}
}

func statsOf(t queue.Times) StepStats {
	s := StepStats{Workflow: t.Workflow, Step: t.Step, Attempts: t.Attempts,
		StepCounts: StepCounts{Waiting: t.Waiting, Ready: t.Ready, Running: t.Running, Person: t.Person, Completed: t.Completed, Skipped: t.Skipped, Failed: t.Failed},
		WaitMedian: t.Waited.Median.Seconds(), WaitP95: t.Waited.P95.Seconds(), RunMedian: t.Ran.Median.Seconds(), RunP95: t.Ran.P95.Seconds(),
		CPU: t.CPU.Seconds(), Idle: t.Idle.Seconds(), LastHour: t.LastHour, LastDay: t.LastDay}
	if t.Attempts > 0 {
		s.FailureRate = float64(t.FailedAttempts) / float64(t.Attempts)
	}
	switch {
	case t.LastHour > 0:
		s.Drain = float64(t.Ready) / float64(t.LastHour) * time.Hour.Seconds()
	case t.LastDay > 0:
		s.Drain = float64(t.Ready) / float64(t.LastDay) * (24 * time.Hour).Seconds()
	}
	return s
}

// load is the work that lies before a step: what is ready, as long as it usually
// runs. UIMA's main metric, the depth of the queue, weighted with the time of one.
func (s *Stats) load(i int, times []queue.Times) float64 {
	return float64(times[i].Ready) * max(times[i].Ran.Median.Seconds(), 0.001)
}

// advise turns the figures into advice, in the order of UIMA's tuning guide: a deep
// queue asks for instances, an idle one for a look before it.
func (fi *Figures) advise(t queue.Times, s StepStats, worst bool) (advice []fault.Advice) {
	const many, often, long = 0.2, 10, 4
	name := t.String()
	step := fi.stepInForce(t.StepID)
	if worst && t.Ready >= often {
		var remedies []Remedy
		text := fmt.Sprintf("%s is the bottleneck: %d are ready, %d run, and one takes %s (median)", name, t.Ready, t.Running, short(t.Ran.Median))
		switch {
		case step != nil && step.Limit > 0 && t.Running >= step.Limit:
			text += fmt.Sprintf("; its limit: %d is reached: raise it", step.Limit)
		case step != nil && step.Instances > 0:
			text += fmt.Sprintf("; instances: %d of it run in one engine: raise that while there are idle cores, or start another engine", step.Instances)
		case t.Running == 0:
			text, remedies = text+"; no engine works on it", []Remedy{{Verb: fault.Run}}
		default:
			text, remedies = text+"; start another engine, or let this one run more steps at once", []Remedy{{Verb: fault.MoreSteps}}
		}
		if s.Drain > 0 {
			text += fmt.Sprintf("; at the pace of the last %s this takes %s", map[bool]string{true: "hour", false: "day"}[t.LastHour > 0], short(time.Duration(s.Drain*float64(time.Second))))
		}
		advice = append(advice, fault.Advice{Text: text, Remedies: remedies})
	}
	if t.Attempts >= often && s.FailureRate >= many {
		advice = append(advice, fault.Advice{Text: fmt.Sprintf("%s fails often: %d of %d attempts (%.0f %%)", name, t.FailedAttempts, t.Attempts, 100*s.FailureRate), Remedies: []Remedy{{Verb: fault.ShowFailures, Step: t.Step}}})
	}
	if t.Person >= often {
		text := fmt.Sprintf("%s waits for people: %d items", name, t.Person)
		if t.Waited.N > 0 {
			text += fmt.Sprintf(", and one waits %s until somebody acts (median)", short(t.Waited.Median))
		}
		advice = append(advice, fault.Advice{Text: text, Remedies: []Remedy{{Verb: fault.ShowQueue, Run: t.Workflow, Step: t.Step}}})
	}
	if t.Ran.N >= often && t.Ran.Median > 0 && t.Ran.P95 > 10*t.Ran.Median && t.Ran.P95 >= stalledLeast && step != nil && step.Timeout == 0 && !t.Manual {
		advice = append(advice, fault.Advice{Text: fmt.Sprintf("%s takes %s (median), but one in twenty over %s; a timeout: in its definition would bound that", name, short(t.Ran.Median), short(t.Ran.P95))})
	}
	if !worst && t.Ready == 0 && t.Running == 0 && t.Completed > 0 && t.Waiting >= often && t.Person == 0 {
		advice = append(advice, fault.Advice{Text: fmt.Sprintf("%s is idle though %d items are yet to come to it: the step before it holds them up", name, t.Waiting)})
	}
	if t.Waited.N >= often && t.Ran.Median > 0 && t.Waited.Median > long*t.Ran.Median && !worst && t.Ready >= often && !t.Manual {
		advice = append(advice, fault.Advice{Text: fmt.Sprintf("%s: items wait %s and run %s (medians): there are more of them than it keeps up with", name, short(t.Waited.Median), short(t.Ran.Median))})
	}
	return advice
}

// stepInForce is a step by its definition in force, as it is deployed; nil when there is none.
func (fi *Figures) stepInForce(id queue.StepID) *state.Step {
	if w := fi.settings.Current().Workflows[id.Workflow]; w != nil {
		return fi.settings.Deployed(id.Workflow, w.Def.Step(id.Step))
	}
	return nil
}

// short words a duration to two figures or so.
func short(d time.Duration) string {
	switch {
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < time.Minute:
		return d.Round(100 * time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}
