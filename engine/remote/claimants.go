package remote

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"bagpipe/engine/attempt"
	"bagpipe/engine/fault"
	"bagpipe/engine/queue"
	"bagpipe/engine/remote/wire"
	"bagpipe/engine/settings"
	"bagpipe/engine/state"
	"bagpipe/layout"
	"bagpipe/steps"
)

// The rules are: a program that comes over HTTP asks for a step, and waits. The dispatcher
// takes a step from the queue only while somebody waits for it, so that steps are handed out
// in the engine's own order, within its limits. The attempt is a loan as that of a worker: with
// an engine identifier that is the program's own in its key, a lease, and the same end. The
// account that claimed it is its fence.

// Claimants lends steps to programs that come over HTTP.
type Claimants struct{ *Remote }

// claimant is a program that came; its attempts bear its engine identifier.
type claimant struct {
	name layout.Name
	id   layout.EngineID
}

// ask is one claim that waits for a step.
type ask struct {
	want func(queue.StepID) bool
	got  chan *attempt.Away // one place: whoever hands a step over does not wait
}

// claimed is what a loan has besides, of a program that came over HTTP.
type claimed struct {
	call  *steps.Call
	until time.Time // the step's timeout; zero: none
	limit time.Duration
}

// externalLease is how long a program may be silent where the settings say nothing.
const externalLease = 10 * time.Minute

// mostAsks bounds the claims that wait.
const mostAsks = 10_000

// errNotCurrent is the answer to whoever comes too late, or was never granted the attempt.
func errNotCurrent() error {
	return fault.New(fault.Refused, "this attempt is not the current one: it has ended, or its lease ran out")
}

// ClaimantName is the name of an account as a worker's.
func ClaimantName(account string) layout.Name {
	clean := strings.Map(func(c rune) rune {
		if c < 0x80 && (c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '.' || c == '_') {
			return c
		}
		return '-'
	}, account)
	clean = "x" + clean // whatever it begins with
	return layout.Name(clean[:min(len(clean), 64)])
}

// wanted reports whether a claim waits for a step that nobody but a program can do.
func (r *table) wanted(id queue.StepID) Where {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.closing {
		for _, a := range r.asks {
			if a.want(id) {
				return Away
			}
		}
	}
	return NotNow
}

// Hand gives a step that May let through to the claim that waits longest.
func (r *table) Hand(w *attempt.Away, id queue.StepID) {
	r.mu.Lock()
	var to *ask
	for i, a := range r.asks {
		if !r.closing && a.want(id) {
			to = a
			r.asks = append(r.asks[:i:i], r.asks[i+1:]...)
			break
		}
	}
	if to != nil {
		to.got <- w
	}
	r.mu.Unlock()
	if to == nil {
		w.Withdraw()
	}
}

// Claim waits for a step until ctx ends, and lends it. ok is false where there was none. The commit names the
// request that it answers.
func (r Claimants) Claim(ctx context.Context, account, request string, want func(queue.StepID) bool) (out wire.Leased, ok bool, err error) {
	a := &ask{want: want, got: make(chan *attempt.Away, 1)}
	r.mu.Lock()
	full := r.closing || len(r.asks) >= mostAsks
	if !full {
		r.asks = append(r.asks, a)
	}
	r.mu.Unlock()
	if full {
		return out, false, fault.New(fault.Busy, "the engine is stopping, or too many claims wait")
	}
	r.rooms.Nudge()
	var w *attempt.Away
	select {
	case w = <-a.got:
	case <-ctx.Done():
		if w = r.giveUp(a); w == nil {
			return out, false, nil
		}
	}
	if err := ctx.Err(); err != nil && !errors.Is(err, context.DeadlineExceeded) { // who asked is gone
		w.Withdraw()
		return out, false, nil
	}
	l, err := r.lendTo(account, request, w)
	if err != nil || l == nil {
		return out, false, err
	}
	return leased(l.held, l.lease), true, nil
}

func leased(h wire.Held, lease time.Duration) wire.Leased {
	return wire.Leased{Item: h.Item, Workflow: h.Workflow, Step: h.Step, Attempt: h.Attempt, Lease: lease.String(), Seconds: lease.Seconds()}
}

// Leased words again how an attempt was granted that the history knows.
func (r Claimants) Leased(h wire.Held) wire.Leased {
	workflow, _ := state.Instance(h.Workflow)
	p, _ := r.rooms.Settings.Current().Settings.Workers.Placed(workflow, string(h.Step))
	return leased(h, leaseOf(p))
}

// giveUp takes a claim back; it gives the step that was handed over meanwhile, if one was.
func (r Claimants) giveUp(a *ask) *attempt.Away {
	r.mu.Lock()
	for i, other := range r.asks {
		if other == a {
			r.asks = append(r.asks[:i:i], r.asks[i+1:]...)
			break
		}
	}
	r.mu.Unlock()
	select {
	case w := <-a.got:
		return w
	default:
		return nil
	}
}

// lendTo commits a claim.
func (r Claimants) lendTo(account, request string, w *attempt.Away) (*loan, error) {
	c, err := r.claimant(account)
	if err != nil {
		w.Withdraw()
		return nil, err
	}
	r.showOne(c.id, string(c.name)+overHTTP, 0)
	id := w.Entry.ID()
	p, _ := r.rooms.Settings.Current().Settings.Workers.Placed(id.Workflow, string(id.Step))
	got := make(chan struct{})
	var ref layout.AttemptRef
	defer close(got)
	ref, ok := w.Lend(context.Background(), attempt.Worker{Engine: c.id, Runner: r.rooms.Attempts.RunnerOf(string(c.name) + "@http"), Request: request}, func(why error) {
		<-got
		r.cancel(ref, why)
	})
	if !ok {
		return nil, w.Err
	}
	now := r.rooms.Now()
	l := &loan{ref: ref, held: wire.HeldOf(ref, r.nonce(ref)), worker: c.name, work: w, lease: leaseOf(p), send: p.Send, http: bounded(w, now)}
	l.expires = now.Add(l.lease)
	r.mu.Lock()
	takeUp(r.Remote, l)
	return l, nil
}

// bounded begins the time that a step may take.
func bounded(w *attempt.Away, now time.Time) *claimed {
	limit := w.Timeout()
	if limit <= 0 {
		return &claimed{}
	}
	return &claimed{until: now.Add(limit), limit: limit}
}

// leaseOf is the lease of a step that programs claim over HTTP.
func leaseOf(p settings.Placement) time.Duration {
	if lease := time.Duration(p.Lease); p.Leased && lease > 0 {
		return lease
	}
	return externalLease
}

// claimant finds the program of an account, and draws its identifier when it comes first.
func (r Claimants) claimant(account string) (*claimant, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if c := r.claimants[account]; c != nil {
		return c, nil
	}
	id, err := layout.NewEngineID(rand.Reader)
	if err != nil {
		return nil, err
	}
	c := &claimant{ClaimantName(account), id}
	r.claimants[account] = c
	return c, nil
}

// held finds the loan that an account names.
func (r Claimants) held(account string, h wire.Held) (*loan, error) {
	ref, err := h.Ref()
	if err != nil {
		return nil, fault.New(fault.Invalid, err.Error())
	}
	if _, n := state.Instance(h.Workflow); n == 0 {
		return nil, fault.New(fault.Invalid, fmt.Sprintf("workflow %q: expected the run that the claim answered with, as %s.1", h.Workflow, h.Workflow))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	l := r.loans[ref]
	if l == nil && r.resuming { // it may be one of those
		return nil, fault.New(fault.Busy, "the attempts of an engine before are being taken up; ask again")
	}
	if l == nil || l.http == nil || l.worker != ClaimantName(account) {
		return nil, errNotCurrent()
	}
	if l.ending {
		return nil, fault.New(fault.Busy, "the attempt is being ended")
	}
	return l, nil
}

// Keep gives an attempt a whole lease, and notes how far it has come.
func (r Claimants) Keep(account string, t wire.Told) (lease time.Duration, err error) {
	l, err := r.held(account, t.Held)
	if err != nil {
		return 0, err
	}
	r.mu.Lock()
	l.expires = r.rooms.Now().Add(l.lease)
	r.mu.Unlock()
	if t.Note != "" || t.Percent >= 0 {
		if _, err := r.prepared(context.Background(), l); err != nil {
			return 0, err
		}
		tellProgress(l, t)
	}
	return l.lease, nil
}

// prepared gives what the robot is given. An error in preparing it ends the attempt.
func (r Claimants) prepared(ctx context.Context, l *loan) (*steps.Call, error) {
	l.prepare.Lock()
	defer l.prepare.Unlock()
	if l.http.call != nil {
		return l.http.call, nil
	}
	prepare := l.work.Prepare
	if l.prepared {
		prepare = l.work.Again
	}
	l.prepared = true
	c, _, err := prepare(context.WithoutCancel(ctx))
	if err == nil && c.Place != "" { // its folders are not sent
		err = steps.SystemFailure("the object stays where it is, in its catalog, and program %s, which came over HTTP, does not share its file system", l.worker)
	}
	if err == nil {
		l.http.call = c
		return c, nil
	}
	if l := r.close(l.ref); l != nil {
		r.over(l, l.work.End(context.WithoutCancel(ctx), noResult, err, ""))
	}
	return nil, fault.New(fault.Refused, "the attempt has ended: "+err.Error())
}

// Given words what the robot is given.
func (r Claimants) Given(ctx context.Context, account string, h wire.Held) (g wire.Given, err error) {
	l, err := r.held(account, h)
	if err != nil {
		return g, err
	}
	c, err := r.prepared(ctx, l)
	if err != nil {
		return g, err
	}
	g = wire.Given{Item: c.Item, Collection: c.Collection, Label: layout.EncodePath(c.Label), Workflow: c.Workflow, Step: c.Step, Attempt: c.Attempt.String(),
		With: c.With, Lease: l.lease.String(), Manifest: c.Manifest, Execution: c.Execution, Files: []wire.File{}}
	below, err := filepath.Rel(c.Dir, c.Content)
	if err != nil || !filepath.IsLocal(below) {
		return g, nil
	}
	g.Source, g.Content = layout.SourceDir, layout.EncodePath(filepath.ToSlash(below))
	var call wire.Call
	err = transfer(r).list(ctx, c.Dir, l.send, &call, false)
	g.Files = append(g.Files, call.Files...)
	return g, err
}

// End ends an attempt as its program says. The commit names the request that it answers.
func (r Claimants) End(ctx context.Context, account, request string, h wire.Held, e wire.Ended) error {
	if r.endedBy(account, h) { // the answer was lost on its way
		return nil
	}
	l, err := r.held(account, h)
	if err != nil {
		return err
	}
	c, err := r.prepared(ctx, l)
	if err != nil {
		return err
	}
	res, failure := resultOf(c, e)
	if l = r.close(l.ref); l == nil {
		return errNotCurrent()
	}
	l.settled()
	if e.Log != "" {
		if err := os.WriteFile(l.logFile(), []byte(e.Log), 0o600); err != nil {
			r.reopen(l)
			return err
		}
	}
	if w, is := l.work.(*attempt.Away); is {
		w.Answers(request)
	}
	if failure == nil {
		failure = sound(c.Scratch, res)
	}
	err = r.end(l, res, failure)
	if err != nil && !fault.Is(err, fault.Refused) {
		return fault.New(fault.Busy, "the end could not be committed, and is to be told again: "+err.Error())
	}
	return err
}

// endedBy reports whether an end that this account sent was taken.
func (r Claimants) endedBy(account string, h wire.Held) bool {
	ref, err := h.Ref()
	if err != nil {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.claimants[account]
	_, ended := r.ended[ref]
	return ended && c != nil && c.id == ref.Key.Engine
}

// sound refuses outputs that are not there as files and folders.
func sound(scratch string, res steps.Result) error {
	if err := steps.CheckMade(scratch, res); err != nil {
		return steps.SystemFailure("%w", err)
	}
	return nil
}

// resultOf reads an end: an exit code, and what a program of this machine writes to
// result.json.
func resultOf(c *steps.Call, e wire.Ended) (steps.Result, error) {
	if e.Return {
		return steps.Result{Message: e.Message}, context.Canceled
	}
	if e.Exit != 0 {
		return steps.AnswerOf(e.Exit, e.Message)
	}
	data := []byte(e.Result)
	if len(data) == 0 {
		data = []byte("{}")
	}
	res, err := steps.ResultOf(c, data)
	if err == nil && res.Message == "" {
		res.Message = e.Message
	}
	return res, err
}

// late takes the attempts that programs have for longer than their steps' timeout.
func (r Claimants) late(now time.Time) (over []*loan) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, l := range r.loans {
		if h := l.http; h != nil && !l.ending && !h.until.IsZero() && now.After(h.until) {
			r.conclude(l)
			over = append(over, l)
		}
	}
	return over
}

// timeOut ends an attempt that took too long.
func (r Claimants) timeOut(l *loan) {
	l.prepare.Lock()
	defer l.prepare.Unlock()
	r.over(l, l.work.End(context.Background(), noResult, steps.SystemFailure("timed out after %s", l.http.limit), ""))
}

// who words whose attempt a loan is.
func (l *loan) who() string {
	if l.http != nil {
		return fmt.Sprintf("program %s", l.worker)
	}
	return fmt.Sprintf("worker %s", l.worker)
}

// logFile is what the robot printed.
func (l *loan) logFile() string { return filepath.Join(l.work.Scratch(), wire.LogFile) }
