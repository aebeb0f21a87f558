package engine

import (
	"context"
	"time"

	"bagpipe/engine/audit"
	"bagpipe/engine/sync"
)

// settingsLook is how often a run looks whether it is to sync, and how often.
const settingsLook = time.Second

// keepSynced joins the history with those of other sites while the run watches. A failure is told,
// once, and the next try comes at its time: sites work apart for as long as it takes.
func (e *Engine) keepSynced(ctx context.Context, tell func(string)) {
	tick := time.NewTicker(settingsLook)
	defer tick.Stop()
	var last time.Time
	anchors := anchoring{e: e}
	for {
		anchors.whenDue(ctx, tell)
		if every := e.syncsEvery(); every > 0 && e.Ledger.Clock().Sub(last) >= every {
			e.syncOnce(ctx, tell)
			last = e.Ledger.Clock()
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (e *Engine) syncsEvery() time.Duration {
	return time.Duration(e.Settings.Current().Settings.Sync.Every)
}

// lastSync tells other sites what the run did.
func (e *Engine) lastSync(ctx context.Context, tell func(string)) {
	if ctx.Err() == nil {
		(&anchoring{e: e}).whenDue(ctx, tell)
	}
	if e.syncsEvery() > 0 && ctx.Err() == nil {
		e.syncOnce(ctx, tell)
	}
}

func (e *Engine) syncOnce(ctx context.Context, tell func(string)) {
	if _, err := sync.New(e.Ledger, e.Guard).Sync(ctx, false); err != nil && ctx.Err() == nil {
		tell(err.Error())
	}
}

// Anchor signs the history as it stands, and has an authority say when, where the settings
// name one. With an error beside a name the anchor is made, and has no time stamp.
func (e *Engine) Anchor(ctx context.Context, key string) (name, stamp string, err error) {
	a := audit.New(e.Ledger, e.Guard)
	if name, err = a.Anchor(ctx, key); err != nil {
		return "", "", err
	}
	if url := e.Settings.Current().Settings.Anchor.Timestamp; url != "" {
		stamp, err = a.Timestamp(ctx, name, url)
	}
	return name, stamp, err
}

// anchoring makes anchors at their times; one loop uses it.
type anchoring struct {
	e    *Engine
	next time.Time // zero: it is not known yet
}

// whenDue makes an anchor where the last one of this site is older than the settings say.
// A failure is told, and tried again an hour later.
func (a *anchoring) whenDue(ctx context.Context, tell func(string)) {
	e := a.e
	every := time.Duration(e.Settings.Current().Settings.Anchor.Every)
	if every <= 0 || e.Ledger.Clock().Before(a.next) {
		return
	}
	last, err := audit.New(e.Ledger, e.Guard).LastOwn(ctx)
	if err == nil && e.Ledger.Now().Sub(last) >= every {
		_, _, err = e.Anchor(ctx, "")
		last = e.Ledger.Now()
	}
	a.next = last.Add(every)
	if err != nil {
		tell("the history is not anchored: " + err.Error())
		a.next = e.Ledger.Clock().Add(time.Hour)
	}
}

// keepTaking joins what people push as for/NAME while the run watches: what comes is looked at once,
// and that it could not be joined is told. took is told how many were looked at.
func (e *Engine) keepTaking(ctx context.Context, tell func(string), took func(int)) {
	sync.New(e.Ledger, e.Guard).KeepTaking(ctx, func(looked []sync.Offered, err error) {
		tellTaken(tell, looked, err)
		took(len(looked))
	})
}

// standing is how long a run begins no step for branches for/NAME that stand there: somebody may have pushed a hundred thousand.
const standing = time.Minute

// takeStanding joins the branches for/NAME that stand there at the start of a run, where no hook took them: what they
// say of an item counts before a step of it is done. Where they are very many the next run goes on.
func (e *Engine) takeStanding(ctx context.Context, tell func(string)) {
	s, begin := sync.New(e.Ledger, e.Guard), e.Ledger.Clock()
	for ctx.Err() == nil && e.Ledger.Clock().Sub(begin) < standing {
		looked, err := s.TakeOffers(ctx, false)
		tellTaken(tell, looked, err)
		if len(looked) == 0 || err != nil {
			return
		}
	}
}

func tellTaken(tell func(string), looked []sync.Offered, err error) {
	for _, o := range looked {
		if o.Refused != "" {
			tell(o.Branch + " is not joined: " + o.Refused)
		}
	}
	if err != nil {
		tell(err.Error())
	}
}
