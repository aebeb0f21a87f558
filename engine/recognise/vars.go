package recognise

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// vars are the variables of a trial: what is known of the drop, and what named
// groups held.
type vars map[string]string

// builtinVars are those that every rule has.
func builtinVars() []string {
	return []string{"collection", "extension", "kind", "name", "sets", "stem", "top"}
}

func (v vars) with(groups map[string]string) vars {
	if len(groups) == 0 {
		return v
	}
	out := maps.Clone(v)
	maps.Copy(out, groups)
	return out
}

// variablesOf lists the variables that a text uses; one without its end is an error.
func variablesOf(text string) (names []string, err error) {
	for rest := text; ; {
		_, after, found := strings.Cut(rest, "${")
		if !found {
			return names, nil
		}
		name, more, closed := strings.Cut(after, "}")
		if !closed {
			return nil, fmt.Errorf("expected } after ${ in %q", text)
		}
		names, rest = append(names, name), more
	}
}

// checkVariables refuses variables that nothing gives a value.
func checkVariables(text string, known map[string]bool) error {
	names, err := variablesOf(text)
	if err != nil {
		return err
	}
	for _, n := range names {
		if !known[n] {
			return fmt.Errorf("no variable %q; there are %s", n, strings.Join(slices.Sorted(maps.Keys(known)), ", "))
		}
	}
	return nil
}

// expand puts values in the place of variables; each goes through quote first.
func (v vars) expand(text string, quote func(string) string) string {
	if !strings.Contains(text, "${") {
		return text
	}
	var b strings.Builder
	for {
		before, after, found := strings.Cut(text, "${")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		name, rest, _ := strings.Cut(after, "}")
		value := v[name]
		if quote != nil {
			value = quote(value)
		}
		b.WriteString(value)
		text = rest
	}
}

// glob is a pattern with its variables filled in, each standing for itself.
func (v vars) glob(text string) string { return v.expand(text, quoteGlob) }

func (v vars) text(text string) string { return v.expand(text, nil) }
