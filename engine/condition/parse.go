package condition

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"bagpipe/layout"
)

// maxText bounds a condition; maxDepth how deep it is nested.
const (
	maxText  = 4096
	maxDepth = 50
)

// Parse reads a condition as people write it; its errors are *Error.
func Parse(text string) (*Where, error) {
	p := &parser{text: text}
	p.next()
	root, err := p.or(0)
	if err == nil && p.token != "" {
		err = p.errorf("expected and, or, or the end, not %s", p.token)
	}
	if err != nil {
		return nil, err
	}
	slices.Sort(p.paths)
	return &Where{root: root, paths: slices.Compact(p.paths)}, nil
}

// parser reads a condition token by token.
type parser struct {
	text   string
	at     int    // behind the token
	from   int    // where it begins
	token  string // "" at the end
	quoted bool
	paths  []string
	bad    error // of the token
}

func (p *parser) errorf(format string, args ...any) error {
	return &Error{Column: p.from + 1, Text: fmt.Sprintf(format, args...)}
}

// next reads a token: a word, a text in quotes, an operator or a sign.
func (p *parser) next() {
	for p.at < len(p.text) && strings.IndexByte(" \t\n\r", p.text[p.at]) >= 0 {
		p.at++
	}
	p.from, p.quoted, p.token = p.at, false, ""
	if p.at == len(p.text) {
		return
	}
	c := p.text[p.at]
	switch {
	case c == '"' || c == '\'':
		p.quote(c)
	case strings.IndexByte("(),~", c) >= 0:
		p.at++
	case strings.IndexByte("=<>!", c) >= 0:
		for p.at < len(p.text) && strings.IndexByte("=<>!", p.text[p.at]) >= 0 {
			p.at++
		}
	default:
		for p.at < len(p.text) && strings.IndexByte(" \t\n\r(),~=<>!\"'", p.text[p.at]) < 0 {
			p.at++
		}
	}
	if !p.quoted {
		p.token = p.text[p.from:p.at]
	}
}

func (p *parser) quote(mark byte) {
	p.quoted = true
	end := strings.IndexByte(p.text[p.at+1:], mark)
	if end < 0 {
		p.bad, p.token, p.at = p.errorf("expected %c at the end of the text", mark), "\x00", len(p.text)
		return
	}
	p.token, p.at = p.text[p.at+1:p.at+1+end], p.at+end+2
}

func (p *parser) is(word string) bool { return p.token == word && !p.quoted }

func (p *parser) or(depth int) (node, error) {
	return p.list(depth, "or", p.and, func(c []node) node { return some(c) })
}

func (p *parser) and(depth int) (node, error) {
	return p.list(depth, "and", p.one, func(c []node) node { return every(c) })
}

// list reads one or more, with a word between them.
func (p *parser) list(depth int, word string, read func(int) (node, error), join func([]node) node) (node, error) {
	if len(p.text) > maxText || depth > maxDepth {
		return nil, p.errorf("expected a condition of at most %d characters and %d levels", maxText, maxDepth)
	}
	first, err := read(depth + 1)
	if err != nil {
		return nil, err
	}
	all := []node{first}
	for p.is(word) {
		p.next()
		more, err := read(depth + 1)
		if err != nil {
			return nil, err
		}
		all = append(all, more)
	}
	if len(all) == 1 {
		return first, nil
	}
	return join(all), nil
}

func (p *parser) one(depth int) (node, error) {
	switch {
	case depth > maxDepth:
		return nil, p.errorf("is nested too deep")
	case p.is("not"):
		p.next()
		c, err := p.one(depth + 1)
		return not{c}, err
	case p.is("("):
		p.next()
		c, err := p.or(depth + 1)
		if err != nil {
			return nil, err
		}
		if !p.is(")") {
			return nil, p.errorf("expected ) here")
		}
		p.next()
		return c, nil
	}
	return p.comparison()
}

var operators = []string{"=", "==", "!=", "<", "<=", ">", ">=", "~"}

func (p *parser) comparison() (node, error) {
	if p.bad != nil {
		return nil, p.bad
	}
	if p.quoted || checkForm(p.token) != nil {
		return nil, p.errorf("expected a path such as metadata.year, not %q", p.token)
	}
	written := p.token
	at, to, err := lead(written)
	if err != nil {
		return nil, p.errorf("%v", err)
	}
	c := &comparison{path: at, op: "exists"}
	p.paths = append(p.paths, at)
	p.next()
	switch {
	case p.is("exists"):
		p.next()
		return c, nil
	case p.is("in"):
		c.op = "in"
		p.next()
		return c, p.values(c, written, to)
	case p.quoted || !slices.Contains(operators, p.token):
		if p.token != "" && !p.is(")") && !p.is("and") && !p.is("or") {
			return nil, p.errorf("expected one of %s in exists, not %q", strings.Join(operators, " "), p.token)
		}
		return c, nil
	}
	c.op = strings.Replace(p.token, "==", "=", 1)
	p.next()
	v, err := p.compared(written, c.op, to)
	if err != nil {
		return nil, err
	}
	if c.op == "~" {
		if !layout.ValidPattern(v.text) {
			return nil, p.errorf("expected a pattern such as *.tif, not %q", v.text)
		}
	}
	c.values = []value{v}
	return c, nil
}

// values reads (V, V …).
func (p *parser) values(c *comparison, path string, to kind) error {
	if !p.is("(") {
		return p.errorf("expected ( and values, as in (map, letter)")
	}
	for {
		p.next()
		v, err := p.compared(path, c.op, to)
		if err != nil {
			return err
		}
		c.values = append(c.values, v)
		if p.is(")") {
			p.next()
			return nil
		}
		if !p.is(",") {
			return p.errorf("expected , or ) here")
		}
	}
}

// compared reads what a path is compared with.
func (p *parser) compared(path, op string, to kind) (value, error) {
	from := p.from
	v, err := p.value()
	if err != nil {
		return v, err
	}
	if err := to.check(path, op, v); err != nil {
		return v, &Error{Column: from + 1, Text: err.Error()}
	}
	return v, nil
}

func (p *parser) value() (v value, err error) {
	if p.bad != nil {
		return v, p.bad
	}
	if !p.quoted && (p.token == "" || strings.IndexByte("(),~=<>!", p.token[0]) >= 0) {
		return v, p.errorf("expected a value: a number, a text, a date, or now-30d")
	}
	v.text = p.token
	if p.quoted {
		p.next()
		return v, nil
	}
	switch rest, isNow := strings.CutPrefix(p.token, "now"); {
	case isNow && (rest == "" || rest[0] == '+' || rest[0] == '-'):
		v.isTime, v.isNow = true, true
		if v.shift, err = parseShift(rest); err != nil {
			return v, p.errorf("%v", err)
		}
	case p.token == "true" || p.token == "false":
		v.isBool = true
	default:
		if n, err := strconv.ParseFloat(p.token, 64); err == nil {
			v.number, v.isNumber = n, true
			v.at, _ = parseTime(p.token)
		} else if t, ok := parseTime(p.token); ok {
			v.at, v.isTime = t, true
		}
	}
	p.next()
	return v, nil
}

// parseShift reads +12h, -30d, or nothing.
func parseShift(s string) (time.Duration, error) {
	if s == "" {
		return 0, nil
	}
	units := map[byte]time.Duration{'s': time.Second, 'm': time.Minute, 'h': time.Hour, 'd': 24 * time.Hour, 'w': 7 * 24 * time.Hour, 'y': 365 * 24 * time.Hour}
	unit := units[s[len(s)-1]]
	n, err := strconv.Atoi(s[:len(s)-1])
	if err != nil || unit == 0 || n > 100_000 || n < -100_000 {
		return 0, fmt.Errorf("expected a time such as now-30d or now+12h, not now%s", s)
	}
	return time.Duration(n) * unit, nil
}
