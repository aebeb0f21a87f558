package intake

import (
	"fmt"

	"bagpipe/engine/inbox"
	"bagpipe/engine/settings"
	"bagpipe/layout"
)

// The rules of admission under limits: inFlight: are:
//
//   - as many items again as the limit lets be under way may stand ready behind them; the
//     rest waits in the inbox;
//   - of a collection with a limit of its own the same holds by that, and no more of it than
//     its own limit lets be under way take places of the others;
//   - a place goes to the collection that has the fewest items under way or ready, those of
//     a lane weighed as the lane's steps are: one urgent drop beside a hundred others is
//     next, and so is one of a collection that has none yet;
//   - of one collection the oldest drop is next.

// places are what admission has to give.
type places struct {
	settings *settings.Settings
	ahead    map[layout.Name]int // by collection: under way or ready
	left     int                 // of all
}

// Admit chooses the drops that may be taken in now. more tells that others are left for
// want of a place, why what to say when none may be.
func (in *Intake) Admit(settled []inbox.Drop) (now []inbox.Drop, more bool, why string) {
	s := in.settings.Current().Settings
	limit := s.Limits.InFlight
	if limit == 0 {
		return settled, false, ""
	}
	p := in.places(s)
	now = p.choose(settled)
	if more = len(now) < len(settled); more && len(now) == 0 {
		why = p.full()
	}
	return now, more, why
}

// choose gives places to drops, which come with the oldest first.
func (p *places) choose(settled []inbox.Drop) (now []inbox.Drop) {
	waiting := map[layout.Name][]inbox.Drop{}
	var order []layout.Name // as their oldest drops came
	for _, d := range settled {
		if waiting[d.Collection] == nil {
			order = append(order, d.Collection)
		}
		waiting[d.Collection] = append(waiting[d.Collection], d)
	}
	for {
		next, found := layout.Name(""), false
		for _, c := range order {
			if len(waiting[c]) > 0 && p.hasRoom(c) && (!found || p.score(c) < p.score(next)) {
				next, found = c, true
			}
		}
		if !found {
			return now
		}
		now, waiting[next] = append(now, waiting[next][0]), waiting[next][1:]
		p.take(next)
	}
}

// Full says why no drop may be taken in; empty: some may.
func (in *Intake) Full() string {
	s := in.settings.Current().Settings
	if s.Limits.InFlight == 0 {
		return ""
	}
	if p := in.places(s); p.left <= 0 {
		return p.full()
	}
	return ""
}

func (in *Intake) places(s *settings.Settings) *places {
	p := &places{settings: s, ahead: in.index.Loaded().Ahead(), left: 2 * s.Limits.InFlight}
	for c, n := range p.ahead {
		if own := s.OwnInFlight(c); own > 0 {
			n = min(n, own)
		}
		p.left -= n
	}
	return p
}

// hasRoom tells whether a drop of a collection may be taken in.
func (p *places) hasRoom(c layout.Name) bool {
	own := p.settings.OwnInFlight(c)
	if own == 0 || p.ahead[c] < own {
		return p.left > 0
	}
	return p.ahead[c] < 2*own // stands behind its own, and takes no place of others
}

func (p *places) take(c layout.Name) {
	if own := p.settings.OwnInFlight(c); own == 0 || p.ahead[c] < own {
		p.left--
	}
	p.ahead[c]++
}

// score is the lower the sooner a collection is next.
func (p *places) score(c layout.Name) float64 {
	return float64(p.ahead[c]+1) / p.settings.LaneShare(p.settings.Collection(c).Lane)
}

func (p *places) full() string {
	limit := p.settings.Limits.InFlight
	return fmt.Sprintf("%d items are under way or ready, and limits: inFlight: lets %d be under way; drops wait in the inbox until some are done", 2*limit-p.left, limit)
}
