package recognise

// Verdict is what a condition, a rule or all rules say of a drop. Of several that
// must all hold the least counts, of several of which one must the greatest.
type Verdict int

// The verdicts, the least first.
const (
	No Verdict = iota
	Unknown
	Maybe
	Yes
)

func (v Verdict) String() string { return [...]string{"no", "unknown", "maybe", "yes"}[v] }

// MarshalText writes the word.
func (v Verdict) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

func (v Verdict) not() Verdict {
	switch v {
	case No:
		return Yes
	case Yes:
		return No
	}
	return v
}
