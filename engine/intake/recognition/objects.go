package recognition

import (
	"context"
	"errors"
	"fmt"

	"bagpipe/engine/recognise"
	"bagpipe/layout"
	"bagpipe/steps"
)

// ObjectsOf parts what a robot has before it by the rule that recognised the item: the
// robot knows no rules. A rule that is no longer there fails the step, as without it the
// objects would be taken for one.
func (re *Recogniser) ObjectsOf(m layout.Manifest) func(context.Context, string) (steps.Parted, error) {
	return func(ctx context.Context, dir string) (steps.Parted, error) {
		if m.Recognition == nil || m.Recognition.Rule == "" {
			return steps.Parted{Why: "no rule recognised the item"}, nil
		}
		rule, c := m.Recognition.Rule, re.settings.Current()
		if !c.Book.Has(rule) {
			return steps.Parted{}, steps.SystemFailure("rule %s, which recognised the item, is not in rules/ any more, and so nobody knows which files are an object; put it back, or skip the step", rule)
		}
		o, err := c.Book.Objects(ctx, re.Candidate(dir, m.Source.Name, m.Collection, ""), rule, re.Asking(c.Settings))
		var many *recognise.TooManyError
		switch {
		case errors.As(err, &many), IsRuleFile(err):
			return steps.Parted{}, steps.ContentFailure("%w", err)
		case err != nil:
			return steps.Parted{}, err
		case !o.Known:
			return steps.Parted{Why: fmt.Sprintf("rule %s tells no objects apart", rule)}, nil
		}
		p := steps.Parted{Deep: o.Deep, Why: fmt.Sprintf("it holds nothing that is an object by rule %s", rule)}
		for _, one := range o.Objects {
			p.Objects = append(p.Objects, steps.Object{Name: one.Name, Files: underTop(o.Top, one.Files), Whole: one.Whole})
		}
		p.Left = underTop(o.Top, o.Left)
		return p, nil
	}
}

func underTop(top string, names []string) []string {
	out := make([]string, len(names))
	for i, name := range names {
		out[i] = top + name
	}
	return out
}
