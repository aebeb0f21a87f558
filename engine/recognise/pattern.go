package recognise

import (
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"
	"sync"

	where "bagpipe/engine/condition"
	"bagpipe/layout"
)

// pattern is a regular expression that is small enough.
type pattern struct {
	re     func() *regexp.Regexp // compiled with the first use: most commands ask no rule
	groups []string              // names, in their order; "" for those without
}

// compilePattern refuses what would be slow. Go's expressions take time linear in
// the text, but in the size of the compiled expression, too: (x{1000}){3} is short
// and large.
func compilePattern(text string) (*pattern, error) {
	if len(text) > maxRegexp {
		return nil, fmt.Errorf("the regular expression is %d bytes long; at most %d", len(text), maxRegexp)
	}
	tree, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return nil, badRegexp(err)
	}
	prog, err := syntax.Compile(tree.Simplify())
	if err != nil {
		return nil, badRegexp(err)
	}
	if n := len(prog.Inst); n > maxProgram {
		return nil, fmt.Errorf("the regular expression stands for %d steps; at most %d: repeat less", n, maxProgram)
	}
	return &pattern{re: sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(text) }), groups: tree.CapNames()}, nil
}

func badRegexp(err error) error {
	return fmt.Errorf("expected a regular expression: %s", strings.TrimPrefix(err.Error(), "error parsing regexp: "))
}

// match gives what the named groups hold; ok is false when text does not fit.
func (p *pattern) match(text string) (groups map[string]string, ok bool) {
	found := p.re().FindStringSubmatch(text)
	if found == nil {
		return nil, false
	}
	groups = map[string]string{}
	for i, name := range p.groups {
		if name != "" {
			groups[name] = found[i]
		}
	}
	return groups, true
}

// checkGlob refuses a pattern that cannot be read.
func checkGlob(glob string) error {
	if len(glob) > maxGlob {
		return fmt.Errorf("the pattern is %d bytes long; at most %d", len(glob), maxGlob)
	}
	for one := range strings.SplitSeq(glob, "|") {
		if !layout.ValidPattern(one) || one == "" {
			return fmt.Errorf("expected a pattern such as *.zip, not %q", glob)
		}
	}
	return nil
}

// inside reports whether a path below the top fits a pattern, or one of several with |
// between them; case does not count, as it does not where most of such files come from.
func inside(glob, p string) bool {
	p = strings.ToLower(p)
	for one := range strings.SplitSeq(strings.ToLower(glob), "|") {
		if layout.MatchPattern(one, p) {
			return true
		}
	}
	return false
}

// quoteGlob makes a value stand for itself in a pattern. Values are encoded as paths
// are, names are compared as they are; and no | of a value parts patterns.
func quoteGlob(text string) string {
	if plain, err := layout.DecodePath(text); err == nil {
		text = plain
	}
	return quoted.Replace(text)
}

var quoted = strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `|`, `?`, `{`, `\{`, `}`, `\}`)

// parseCondition reads a condition on an item, of whose paths each may lead into its records; nil: "".
func parseCondition(text string) (*where.Where, error) {
	if text == "" {
		return nil, nil
	}
	return where.ParseOnRecords(text)
}
