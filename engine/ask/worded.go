package ask

import (
	"context"
	"errors"
	"slices"

	"bagpipe/engine/gitstore"
)

// Words puts remedies into the words of whoever asks.
type Words interface {
	// Command is what to type for a remedy; "": there is none.
	Command(Remedy) string
	// With appends remedies to a text.
	With(text string, remedies ...Remedy) string
}

// WaitingSaid is a step that is not done, with the command that lets it go on.
type WaitingSaid struct {
	Waiting
	Command string `json:"command,omitempty"`
	Again   string `json:"again,omitempty"`
	Instead string `json:"instead,omitempty"`
}

// ExplainedSaid is Explained in words.
type ExplainedSaid struct {
	Explained
	Steps []WaitingSaid `json:"steps"`
}

// Said puts the remedies of an explanation into words.
func (x Explained) Said(w Words) ExplainedSaid {
	x.Why = w.With(x.Why, x.Remedy)
	out := ExplainedSaid{Explained: x, Steps: []WaitingSaid{}}
	for _, s := range x.Steps {
		out.Steps = append(out.Steps, WaitingSaid{s, w.Command(s.Remedy), w.Command(s.Again), w.Command(s.Instead)})
	}
	return out
}

// StalledSaid is a step that has stalled, with the command that lets it go on.
type StalledSaid struct {
	Stalled
	Command string `json:"command,omitempty"`
}

// StalledIn puts the remedies of rows into words.
func StalledIn(w Words, rows []Stalled) []StalledSaid {
	out := []StalledSaid{}
	for _, r := range rows {
		out = append(out, StalledSaid{r, w.Command(r.Remedy)})
	}
	return out
}

// StatsSaid is Stats in words.
type StatsSaid struct {
	Stats
	Advice []string `json:"advice"`
}

// Said puts the advice into words.
func (s Stats) Said(w Words) StatsSaid {
	out := StatsSaid{Stats: s, Advice: []string{}}
	for _, a := range s.Advice {
		out.Advice = append(out.Advice, w.With(a.Text, a.Remedies...))
	}
	return out
}

// Said puts the remedies of what lies in the inbox into words.
func (s Status) Said(w Words) Status {
	for i := range s.Inbox {
		s.Inbox[i].Reason = w.With(s.Inbox[i].Reason, s.Inbox[i].Remedies...)
	}
	return s
}

// ErrUnknownCommit is the answer about what came after a commit that the history does not have.
var ErrUnknownCommit = errors.New("the history does not have this commit")

// Since gives the commits that came after one, the oldest first.
func (de *Details) Since(ctx context.Context, commit string) ([]gitstore.Commit, error) {
	from, err := gitstore.ParseHash(commit)
	if err != nil {
		return nil, ErrUnknownCommit
	}
	if _, err := de.ledger.Store.At(from); err != nil {
		return nil, ErrUnknownCommit
	}
	var all []gitstore.Commit
	for c, err := range de.ledger.Store.History(ctx, gitstore.HistoryOptions{}) {
		if err != nil {
			return nil, err
		}
		if c.Hash == from {
			slices.Reverse(all)
			return all, nil
		}
		all = append(all, c)
	}
	return nil, ErrUnknownCommit
}
