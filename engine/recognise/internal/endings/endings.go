package endings

import (
	"regexp/syntax"
	"slices"
	"strings"
)

// The rules are: what is given is necessary, not sufficient: a text that an expression fits has one
// of its endings, in lower case. One with a * behind it may stand anywhere in the text. Endings are
// ASCII and without a slash, so that the names on a path may be looked at one by one. A text that is
// not ASCII may end otherwise: letters are folded.

// Longest is how many bytes an ending has at most.
const Longest = 32

const most = 64 // endings of one expression

// OfPattern gives the endings of the paths that a pattern with variables, or one of several with |
// between them, fits; nil: any.
func OfPattern(pattern string) []string {
	var all []string
	for one := range strings.SplitSeq(strings.ToLower(pattern), "|") {
		tail := one[strings.LastIndexAny(one, `*?[]{}/\`)+1:]
		if i := len(one) - len(tail) - 1; i >= 0 && one[i] == '\\' && tail != "" {
			tail = tail[1:] // what is quoted
		}
		if tail == "" {
			tail = piece(one[strings.LastIndexByte(one, '/')+1:])
		}
		all = append(all, tail)
	}
	return tidy(all)
}

// piece gives the longest part of a name's pattern, or of a text with signs for what is not looked
// at, that stands for itself, with * behind it; "": none.
func piece(pattern string) string {
	if strings.ContainsAny(pattern, `[]{}\`) {
		return ""
	}
	longest := ""
	for _, part := range strings.FieldsFunc(pattern, func(r rune) bool { return r == '*' || r == '?' || r >= 0x7f || r < 0x20 }) {
		if len(part) > len(longest) {
			longest = part[:min(len(part), Longest-1)]
		}
	}
	if longest == "" {
		return ""
	}
	return longest + "*"
}

// OfExpression gives the endings of the texts that a regular expression fits; nil: any.
func OfExpression(text string) []string {
	tree, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return nil
	}
	if tree.Op == syntax.OpConcat && tree.Sub[len(tree.Sub)-1].Op == syntax.OpEndText {
		if all := tidy(tails(tree).texts); all != nil {
			return all
		}
	}
	all := pieces(tree)
	slices.Sort(all)
	return slices.Compact(all)
}

// pieces gives texts, with * behind them, one of which stands in all that an expression fits; nil:
// there are none.
func pieces(re *syntax.Regexp) (best []string) {
	switch re.Op {
	case syntax.OpLiteral:
		if one := piece(strings.ReplaceAll(strings.ToLower(string(re.Rune)), "/", "*")); one != "" {
			return []string{one}
		}
	case syntax.OpCapture, syntax.OpPlus:
		return pieces(re.Sub[0])
	case syntax.OpRepeat:
		if re.Min > 0 {
			return pieces(re.Sub[0])
		}
	case syntax.OpConcat:
		for _, sub := range re.Sub {
			if found := pieces(sub); shortest(found) > shortest(best) {
				best = found
			}
		}
	case syntax.OpAlternate:
		for _, sub := range re.Sub {
			found := pieces(sub)
			if found == nil || len(best)+len(found) > most {
				return nil
			}
			best = append(best, found...)
		}
	}
	return best
}

func shortest(all []string) int {
	if len(all) == 0 {
		return 0
	}
	return len(slices.MinFunc(all, func(a, b string) int { return len(a) - len(b) }))
}

// tidy makes endings of tails; nil where one of them says nothing.
func tidy(all []string) []string {
	for i, text := range all {
		text = text[strings.LastIndexByte(text, '/')+1:]
		if n := strings.LastIndexFunc(text, func(r rune) bool { return r >= 0x80 || r < 0x20 }); n >= 0 {
			text = strings.TrimLeftFunc(text[n:], func(r rune) bool { return r >= 0x80 || r < 0x20 })
		}
		if text = text[max(0, len(text)-Longest):]; text == "" {
			return nil
		}
		all[i] = text
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// ends are the tails of what an expression fits; whole: there is nothing before them.
type ends struct {
	texts []string
	whole bool
}

var anything = ends{texts: []string{""}}

func tails(re *syntax.Regexp) ends {
	switch re.Op {
	case syntax.OpLiteral:
		return ends{[]string{strings.ToLower(string(re.Rune))}, true}
	case syntax.OpCharClass:
		return ofClass(re.Rune)
	case syntax.OpEmptyMatch, syntax.OpBeginLine, syntax.OpEndLine, syntax.OpBeginText, syntax.OpEndText, syntax.OpWordBoundary, syntax.OpNoWordBoundary:
		return ends{[]string{""}, true}
	case syntax.OpCapture:
		return tails(re.Sub[0])
	case syntax.OpQuest:
		e := tails(re.Sub[0])
		e.texts = append(e.texts, "")
		return e
	case syntax.OpPlus:
		return ends{texts: tails(re.Sub[0]).texts}
	case syntax.OpConcat:
		return ofConcat(re.Sub)
	case syntax.OpAlternate:
		out := ends{whole: true}
		for _, sub := range re.Sub {
			e := tails(sub)
			out.texts, out.whole = append(out.texts, e.texts...), out.whole && e.whole
		}
		return out.bounded()
	}
	return anything
}

// ofClass gives the characters of a small class, which stands as pairs of first and last.
func ofClass(pairs []rune) (out ends) {
	for i := 0; i+1 < len(pairs); i += 2 {
		if int(pairs[i+1]-pairs[i])+len(out.texts) > most/4 {
			return anything
		}
		for r := pairs[i]; r <= pairs[i+1]; r++ {
			out.texts = append(out.texts, strings.ToLower(string(r)))
		}
	}
	out.whole = true
	return out
}

// ofConcat goes from the last part to the first while nothing lies between.
func ofConcat(parts []*syntax.Regexp) ends {
	all := ends{[]string{""}, true}
	for _, part := range slices.Backward(parts) {
		e := tails(part)
		var longer []string
		for _, head := range e.texts {
			for _, tail := range all.texts {
				longer = append(longer, head+tail)
			}
		}
		next := ends{longer, e.whole}.bounded()
		if len(next.texts) == 1 && next.texts[0] == "" && !next.whole { // the part says nothing
			return ends{texts: all.texts}
		}
		if all = next; !all.whole {
			break
		}
	}
	return all
}

// bounded says nothing where there would be too much to say.
func (e ends) bounded() ends {
	slices.Sort(e.texts)
	e.texts = slices.Compact(e.texts)
	size := 0
	for _, text := range e.texts {
		size += len(text)
	}
	if len(e.texts) > most || size > most*Longest {
		return anything
	}
	return e
}
