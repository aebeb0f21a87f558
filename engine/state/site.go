package state

import (
	"maps"
	"slices"
	"strings"
	"time"

	"bagpipe/layout"
)

// Site is the workspace at hand among those that share a history; the zero Site is one
// without a name. What bears a site's name is not the nameless one's: it may be restored from
// an old copy of the site's history.
type Site struct {
	Name  layout.Name
	Clone bool // it was begun as a copy of another: what bears no site's name is not its own
}

// Mine reports whether the work of a site, as records name it, is this one's.
func (s Site) Mine(site layout.Name) bool {
	return site == s.Name && site != "" || site == "" && !s.Clone
}

const atSite = " at "

// Runner names a process of this site in attempts: HOST:PID, or HOST:PID at SITE.
func (s Site) Runner(process string) string {
	if s.Name == "" {
		return process
	}
	return process + atSite + string(s.Name)
}

// SiteOf is the site of a runner; "" where it names none.
func SiteOf(runner string) layout.Name {
	if i := strings.LastIndex(runner, atSite); i >= 0 {
		if name, err := layout.ParseName(runner[i+len(atSite):]); err == nil {
			return name
		}
	}
	return ""
}

// Owner is the site whose engines work on the item: the one that was given it last, or that
// admitted it. "" is one that had no name then.
func Owner(x *Execution) layout.Name {
	if given := x.standing("", OwnIntent, OwnIntent); len(given) > 0 {
		return x.Intents[given[len(given)-1]].Site
	}
	return Admitter(x)
}

// Admitter is the site that admitted the item.
func Admitter(x *Execution) layout.Name {
	var first *Workflow
	for _, name := range x.Names() {
		if w := x.Workflows[name]; first == nil || w.Created.Before(first.Created) {
			first = w
		}
	}
	if first == nil {
		return ""
	}
	for _, s := range first.Steps {
		for _, a := range s.Attempts {
			if a.Claimed.IsZero() && a.Started.Equal(first.Created) && a.Runner != "" { // by it the workflow was started
				return SiteOf(a.Runner)
			}
		}
	}
	return ""
}

// elsewhere says that the engines of another site are to do a step; nil: those of this one.
func elsewhere(x *Execution) *Reason {
	owner := Owner(x)
	switch {
	case x.Site.Mine(owner):
		return nil
	case owner == "":
		return &Reason{Code: "site", Text: "is done at the site that the item was admitted at"}
	}
	return &Reason{Code: "site", Text: "is done at site " + string(owner)}
}

// Own gives the item to a site, whose engines alone do its steps from then on. Its present
// owner gives it away while nothing of it runs; another takes it over, and what runs at the
// owner is taken for lost. Key is called for each owner that this one comes after, or once,
// and for each attempt that is lost.
type Own struct {
	Key      KeyFunc
	Site     layout.Name
	TakeOver bool
	At       time.Time
	By       string
	Text     string
}

func (e Own) apply(x *Execution, _ *Definition) (Transition, error) {
	illegal := &IllegalError{Event: "own", Item: x.Item}
	owner, open := Owner(x), running(x)
	switch {
	case owner == e.Site:
		illegal.Reason = "is site " + string(owner) + "'s already"
	case e.TakeOver && e.Text == "":
		illegal.Reason = "say why it is taken over"
	case !e.TakeOver && !x.Site.Mine(owner):
		illegal.Reason = "is " + ownerText(owner) + "; it is given away there, or else taken over"
	case !e.TakeOver && len(open) > 0:
		illegal.Reason = "step " + string(open[0].Step) + " is in progress; wait for its end, or take the item over"
	}
	if illegal.Reason != "" {
		return Transition{}, illegal
	}
	lost := make([]layout.IntentKey, len(open)) // all are drawn before the record changes
	for n := range lost {
		var err error
		if lost[n], err = e.Key(); err != nil {
			return Transition{}, err
		}
	}
	after := x.standing("", OwnIntent, OwnIntent)
	if len(after) == 0 {
		after = []layout.IntentKey{""} // the first comes after none
	}
	if err := x.end(after, e.Key, Intent{Kind: OwnIntent, At: e.At, By: e.By, Text: e.Text, Site: e.Site}); err != nil {
		return Transition{}, err
	}
	for n, in := range open {
		in.At, in.By = e.At, e.By
		x.intend(lost[n], in)
		x.Compute(in.Workflow, x.Workflows[in.Workflow].plan)
	}
	return Transition{}, nil
}

// running gives an intent for each attempt in progress that says it is lost, in order.
func running(x *Execution) (lost []Intent) {
	for _, name := range x.Names() {
		w := x.Workflows[name]
		for _, step := range slices.Sorted(maps.Keys(w.Steps)) {
			if k, a, ok := w.Steps[step].Current(); ok && w.plan != nil && a.State == InProgress && !x.lost(name, step, k) {
				lost = append(lost, Intent{Kind: LostIntent, Workflow: name, Step: step, Attempt: k})
			}
		}
	}
	return lost
}

func ownerText(owner layout.Name) string {
	if owner == "" {
		return "the workspace's that was no clone"
	}
	return "site " + string(owner) + "'s"
}
