package recognise

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"bagpipe/layout"
)

// Outcome is what the rules said of a drop, and what becomes of it.
type Outcome struct {
	Kind    string  `json:"kind,omitempty"` // empty: no rule was asked
	Verdict Verdict `json:"verdict"`        // yes or maybe; unknown or no when no rule takes it
	Rule    string  `json:"rule,omitempty"` // that decided
	Refused string  `json:"refused,omitempty"`

	Type        string            `json:"type,omitempty"`
	Workflow    string            `json:"workflow,omitempty"`
	Collection  layout.Name       `json:"collection,omitempty"`
	Lane        string            `json:"lane,omitempty"`
	Label       string            `json:"label,omitempty"`
	Known       string            `json:"known,omitempty"` // version: of an item that has its identifier
	Identifiers map[string]string `json:"identifiers,omitempty"`
	Metadata    map[string]any    `json:"metadata,omitempty"`
	Tried       []Trial           `json:"tried"` // in the order in which they were asked

	Whole bool `json:"-"` // a survey's: it says what Book.Recognise would
}

// Trial is what one rule said.
type Trial struct {
	Rule    string  `json:"rule"`
	Verdict Verdict `json:"verdict"`
	Reason  string  `json:"reason"`
	Met     int     `json:"-"` // of a no: how much of the rule was met before the condition that did not hold
}

// NearestTrials gives the trials that did not say no, then the n of the others that came nearest to what their rules ask for,
// those asked first before others; and how many are left out.
func NearestTrials(all []Trial, n int) (near []Trial, left int) {
	var noes []Trial
	for _, t := range all {
		if t.Verdict == No {
			noes = append(noes, t)
		} else {
			near = append(near, t)
		}
	}
	slices.SortStableFunc(noes, func(a, b Trial) int { return b.Met - a.Met })
	n = min(n, len(noes))
	return append(near, noes[:n]...), len(noes) - n
}

func (o *Outcome) tell(r *Rule, t *tried) {
	trial := Trial{Rule: r.ID(), Verdict: t.verdict, Reason: cut(t.why, maxReason)}
	if t.verdict == No {
		trial.Met = t.met
	}
	o.Tried = append(o.Tried, trial)
	o.Verdict = max(o.Verdict, min(t.verdict, Unknown))
}

// cut makes one line of a text, of at most so many bytes.
func cut(text string, most int) string {
	if !isLine(text) {
		text = fold(strings.ToValidUTF8(text, "\uFFFD"))
	}
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most-len("…")], "") + "…"
}

// isLine reports whether a text is one line of plain words, with a space between two.
func isLine(text string) bool {
	before := byte(' ')
	for i := range len(text) {
		if c := text[i]; c < ' ' || c >= 0x7f || c == ' ' && before == ' ' {
			return false
		}
		before = text[i]
	}
	return before != ' ' || text == ""
}

// settle says which rule decided; false: the candidate is refused.
func (o *Outcome) settle(best *tried) bool {
	if best == nil {
		o.Refused = "no rule in rules/ fits this drop"
		return false
	}
	r := best.rule
	o.Verdict, o.Rule, o.Workflow = best.verdict, r.ID(), r.Workflow
	if r.Verdict == "no" {
		o.Verdict, o.Workflow = No, ""
		o.Refused = cut("rule "+r.ID()+" refuses it: "+strings.TrimSuffix(r.Description, ".")+" ("+best.why+")", maxLabel)
		return false
	}
	return true
}

// decide fills in what the best rule says. What it takes from side-cars and is not
// there is left out.
func (f *facts) decide(ctx context.Context, o *Outcome, best *tried, folderType string) error {
	if !o.settle(best) {
		return nil
	}
	r, v := best.rule, best.vars
	if l := f.names; l != nil && l.err == nil {
		v = v.with(map[string]string{"top": l.topName()})
	}
	o.Type = r.Type
	o.Type = cmp.Or(o.Type, folderType)
	if r.Known == KnownVersion && best.verdict == Yes { // what only looks like the object may be another
		o.Known = KnownVersion
	}
	o.Collection, o.Lane = layout.Name(r.Collection), r.Lane
	o.Label = cut(v.text(r.Label), maxLabel)
	o.Identifiers = map[string]string{}
	for key, value := range r.Identifiers {
		if text := f.text(ctx, value, v); text != "" {
			o.Identifiers[key] = cut(text, maxIdentifier)
		}
	}
	o.Metadata = map[string]any{}
	for key, value := range r.Metadata {
		if found := value.convert(f.text(ctx, value, v)); found != nil {
			o.Metadata[key] = found
		}
	}
	o.adopt(best.said)
	if n := len(best.objects); n > 0 {
		o.Metadata["objects"] = firstNames(best.objects)
		o.Metadata[ObjectCount] = n
	}
	return nil
}

// ObjectCount is the field of the metadata that says how many objects a drop holds.
const ObjectCount = "objectCount"

// firstNames gives the first of the objects' names.
func firstNames(objects []string) (out []string) {
	for _, name := range objects[:min(len(objects), maxObjects)] {
		out = append(out, layout.EncodePath(name))
	}
	return out
}

// text finds a value; "" when it is not there, or cannot be read.
func (f *facts) text(ctx context.Context, value Value, v vars) string {
	if value.Text != "" {
		return strings.TrimSpace(v.text(value.Text))
	}
	rel, missing := questions{f}.sideCar(ctx, value.File, v)
	if missing != nil {
		return ""
	}
	text, ok, err := "", false, error(nil)
	if value.xpath != nil {
		text, ok, err = f.xmlValue(rel, value.xpath)
	} else {
		text, ok, err = f.jsonValue(rel, value.JSON)
	}
	if err != nil || !ok {
		return ""
	}
	return text
}

// convert makes of a text what As asks for; a text that is none stays a text.
func (value Value) convert(text string) any {
	if text == "" {
		return nil
	}
	switch value.As {
	case asNumber:
		if n, ok := numberOf(text); ok {
			return n
		}
	case asDegrees:
		if n, ok := degreesOf(text); ok {
			return n
		}
	case asDate:
		if date, ok := dateOf(text); ok {
			return date
		}
	}
	return cut(text, maxText)
}

func numberOf(text string) (float64, bool) {
	n, err := strconv.ParseFloat(text, 64)
	return n, err == nil && !math.IsNaN(n) && !math.IsInf(n, 0) // JSON has neither
}

func degreesOf(text string) (float64, bool) {
	sign := 1.0
	switch text[0] {
	case 'W', 'w', 'S', 's':
		sign = -1
		fallthrough
	case 'E', 'e', 'N', 'n':
		text = text[1:]
	}
	n, ok := numberOf(text)
	return sign * n, ok
}

// dateOf reads the usual ways to write a day, and a moment.
func dateOf(text string) (string, bool) {
	for _, form := range []string{"20060102", "2006002", time.DateOnly, "2006/01/02"} {
		if t, err := time.Parse(form, text); err == nil {
			return t.Format(time.DateOnly), true
		}
	}
	for _, form := range []string{"20060102150405", "20060102T150405", time.DateTime, "2006-01-02T15:04:05", time.RFC3339} {
		if t, err := time.Parse(form, text); err == nil {
			return t.UTC().Format(time.RFC3339), true
		}
	}
	return "", false
}

// Manifest is what the manifest keeps of an outcome; nil when no rule decided. Of very
// many rules those are kept that did not say no, then the first.
func (o *Outcome) Manifest() *layout.Recognition {
	if o.Rule == "" {
		return nil
	}
	r := &layout.Recognition{Verdict: o.Verdict.String(), Rule: o.Rule, Tried: map[string]string{}}
	all := slices.Clone(o.Tried)
	slices.SortStableFunc(all, func(a, b Trial) int {
		if (a.Verdict == No) == (b.Verdict == No) {
			return 0
		}
		if a.Verdict == No {
			return 1
		}
		return -1
	})
	for i, t := range all {
		if i == maxTried {
			r.More = len(all) - maxTried
			break
		}
		r.Tried[t.Rule] = strings.TrimSuffix(t.Verdict.String()+": "+t.Reason, ": ")
	}
	return r
}
