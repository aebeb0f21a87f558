package state

import (
	"errors"
	"maps"
	"strings"
	"time"

	"bagpipe/layout"
)

// Join unites two copies of one item's record that were written apart; the
// package comment has the rules. Statuses are left to Compute. Neither argument
// is changed.
func Join(a, b *Execution) (*Execution, error) {
	if a.Item != b.Item {
		return nil, errors.New("join: the records are of two items, " + string(a.Item) + " and " + string(b.Item))
	}
	out := &Execution{
		Item:       a.Item,
		Intents:    unite(a.Intents, b.Intents, greaterIntent),
		Milestones: unite(a.Milestones, b.Milestones, earlier),
		Workflows:  uniteDeep(a.Workflows, b.Workflows, joinWorkflow),
		unknown:    unite(a.unknown, b.unknown, greater),
		Manifest:   a.Manifest,
		Since:      later(a.Since, b.Since),
		Bare:       a.Bare && b.Bare,
	}
	for name := range out.Workflows {
		out.settleDigest(name)
	}
	return out, nil
}

// unite is the union of two maps; pick chooses, or joins, where both have a key.
func unite[M ~map[K]V, K comparable, V any](a, b M, pick func(V, V) V) M {
	out := make(M, len(a)+len(b))
	maps.Copy(out, a)
	for k, v := range b {
		if old, there := out[k]; there {
			v = pick(old, v)
		}
		out[k] = v
	}
	return out
}

// uniteDeep is unite for values that would be shared: what stands on one side
// alone is joined with itself, which copies it.
func uniteDeep[M ~map[K]V, K comparable, V any](a, b M, join func(V, V) V) M {
	out := make(M, len(a)+len(b))
	for k, v := range a {
		if w, both := b[k]; both {
			out[k] = join(v, w)
		} else {
			out[k] = join(v, v)
		}
	}
	for k, v := range b {
		if _, both := a[k]; !both {
			out[k] = join(v, v)
		}
	}
	return out
}

func greater(a, b string) string { return max(a, b) }

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

func greaterIntent(a, b Intent) Intent {
	if string(a.encode(nil)) < string(b.encode(nil)) {
		return b
	}
	return a
}

func joinWorkflow(a, b *Workflow) *Workflow {
	// The heads of two copies are equal unless two engines started the same
	// instance apart: then one of them is chosen, the same on both sides.
	head := a
	if b.head() > a.head() {
		head = b
	}
	return &Workflow{
		Name: head.Name, StartedWith: head.StartedWith, StartedBy: head.StartedBy, Created: head.Created, NotBefore: head.NotBefore,
		Skip:    unite(a.Skip, b.Skip, greater),
		Steps:   uniteDeep(a.Steps, b.Steps, joinStep),
		unknown: unite(a.unknown, b.unknown, greater),

		unknownOfDefinition: unite(a.unknownOfDefinition, b.unknownOfDefinition, greater),
	}
}

func (w *Workflow) head() string {
	return strings.Join([]string{layout.FormatTime(w.Created), w.Name, w.StartedWith, layout.FormatTime(w.NotBefore), w.StartedBy}, "\n")
}

func joinStep(a, b *StepRecord) *StepRecord {
	return &StepRecord{
		Attempts: unite(a.Attempts, b.Attempts, further),
		unknown:  unite(a.unknown, b.unknown, greater),
	}
}

// further chooses the copy of an attempt whose writer had come further: ended
// over in progress, completed over any other end.
func further(a, b Attempt) Attempt {
	rank := func(x Attempt) int {
		switch x.State {
		case Completed:
			return 3
		case Skipped, Failed:
			return 2
		case Deferred:
			return 1
		}
		return 0
	}
	ra, rb := rank(a), rank(b)
	if ra < rb || ra == rb && string(a.encode(nil)) < string(b.encode(nil)) {
		return b
	}
	return a
}
