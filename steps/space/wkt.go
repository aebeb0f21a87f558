package space

import (
	"fmt"
	"strconv"
	"strings"
)

// maxWKT and maxDepth bound the text of a reference system that is read.
const (
	maxWKT   = 64 << 10
	maxDepth = 32
)

// node is NAME["text",number,NAME[…]] of WKT.
type node struct {
	name string
	args []string // texts and numbers
	sub  []*node
}

// ParseWKT reads the text of a reference system: WKT 1 of OGC and of ESRI, and what of
// WKT 2 has the same parts.
func ParseWKT(text string) (CRS, error) {
	text = strings.TrimSpace(strings.TrimPrefix(text, "\ufeff"))
	if len(text) > maxWKT {
		return CRS{}, fmt.Errorf("reference system: at byte %d: longer than %d bytes", maxWKT, maxWKT)
	}
	p := wktParser{text: text}
	root, err := p.node(0)
	if err != nil {
		return CRS{}, fmt.Errorf("reference system: at byte %d: %w", p.at, err)
	}
	c := CRS{WKT: text, Name: root.arg(0), unit: 1}
	for _, s := range root.sub {
		if s.name == "AUTHORITY" || s.name == "ID" {
			if code, err := strconv.Atoi(s.arg(1)); err == nil && strings.EqualFold(s.arg(0), "EPSG") {
				c.Code = code
			}
		}
	}
	if c.Code != 0 {
		if known := FromEPSG(c.Code); known.Known() {
			known.WKT, known.Name = text, c.Name
			return known, nil
		}
	}
	m, ok := root.model()
	if !ok {
		c.geographic = root.geographic() && degrees(root)
		return c, nil
	}
	if c.Code == 0 {
		c.Code = m.code()
		if family, is := modelOf(c.Code); is {
			m.zone = family.zone
		}
	}
	read := m.crs(c.Code)
	read.WKT, read.Name = text, c.Name
	return read, nil
}

type wktParser struct {
	text string
	at   int
}

func (p *wktParser) peek() byte {
	for p.at < len(p.text) && strings.IndexByte(" \t\r\n", p.text[p.at]) >= 0 {
		p.at++
	}
	if p.at == len(p.text) {
		return 0
	}
	return p.text[p.at]
}

// word reads a name or a number.
func (p *wktParser) word() string {
	p.peek()
	from := p.at
	for p.at < len(p.text) && strings.IndexByte("[](),\" \t\r\n", p.text[p.at]) < 0 {
		p.at++
	}
	return p.text[from:p.at]
}

func (p *wktParser) node(depth int) (*node, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("nested deeper than %d", maxDepth)
	}
	n := &node{name: strings.ToUpper(p.word())}
	if c := p.peek(); n.name == "" || c != '[' && c != '(' {
		return nil, fmt.Errorf("expected a name and [")
	}
	for {
		p.at++ // over [ or ,
		if err := p.argument(n, depth); err != nil {
			return nil, err
		}
		switch p.peek() {
		case ',':
		case ']', ')':
			p.at++
			return n, nil
		default:
			return nil, fmt.Errorf("expected , or ]")
		}
	}
}

// argument reads a text, a number or a node into n.
func (p *wktParser) argument(n *node, depth int) error {
	if p.peek() == '"' {
		end := strings.IndexByte(p.text[p.at+1:], '"')
		if end < 0 {
			return fmt.Errorf("a text without an end")
		}
		n.args = append(n.args, p.text[p.at+1:p.at+1+end])
		p.at += end + 2
		return nil
	}
	from := p.at
	word := p.word()
	if c := p.peek(); c != '[' && c != '(' {
		n.args = append(n.args, word)
		return nil
	}
	p.at = from
	sub, err := p.node(depth + 1)
	n.sub = append(n.sub, sub)
	return err
}

func (n *node) arg(i int) string {
	if n == nil || i >= len(n.args) {
		return ""
	}
	return n.args[i]
}

func (n *node) number(i int) float64 {
	f, _ := strconv.ParseFloat(n.arg(i), 64)
	return f
}

// find gives the first node of one of the names, nearest first.
func (n *node) find(names ...string) *node {
	if n == nil {
		return nil
	}
	for _, s := range n.sub {
		for _, name := range names {
			if s.name == name {
				return s
			}
		}
	}
	for _, s := range n.sub {
		if found := s.find(names...); found != nil {
			return found
		}
	}
	return nil
}
