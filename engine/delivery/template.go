package delivery

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"text/template"
	"text/template/parse"

	"bagpipe/steps/target"
)

// The rules are: a template prints no value that the item has not, where Go's templates would print "<no value>"; the item
// is not delivered so. A template may ask whether a value is there: if and with do, and or takes another. Each round of a range and
// each template in a template costs as many turns as it has nodes, and some, what printf and the like make some for its bytes; these, and
// the text, are bounded, as the engine fills it.

// printed stands behind each value that a template prints, spent at the beginning of all that is done again.
const (
	printed = "printed"
	spent   = "spent"
)

const (
	maxText     = 16 << 20 // bytes
	maxTurns    = 10 << 20 // a second or two
	aRound      = 10       // turns, beside what is done in it
	bytesATurn  = 64
	mostGrowing = 6 // as html does
)

// tooMuch is a template that never ends, or as good as that.
type tooMuch struct{ file, what string }

func (m *tooMuch) Error() string {
	return "template " + m.file + " " + m.what + "; is there a range or a template in it that goes on and on?"
}

// purse bounds what one filling may take.
type purse struct {
	bytes.Buffer
	file  string
	turns int
}

func (p *purse) Write(data []byte) (int, error) {
	if p.Len()+len(data) > maxText {
		return 0, &tooMuch{p.file, fmt.Sprintf("makes more than %d MiB of text", maxText>>20)}
	}
	return p.Buffer.Write(data)
}

func (p *purse) spend(turns int) (string, error) {
	if p.turns += turns; p.turns > maxTurns {
		return "", &tooMuch{p.file, fmt.Sprintf("takes more than %d turns", maxTurns)}
	}
	return "", nil
}

// bounded is a function that makes text of its arguments, each at most times over.
func (p *purse) bounded(times func(args []any) int, do func(args ...any) string) func(args ...any) (string, error) {
	return func(args ...any) (string, error) {
		n := 0
		for _, a := range args {
			if text, is := a.(string); is {
				n += len(text)
			}
		}
		if n*times(args) > maxText*mostGrowing {
			return "", &tooMuch{p.file, fmt.Sprintf("makes more than %d MiB of text", maxText>>20)}
		}
		out := do(args...)
		_, err := p.spend(len(out) / bytesATurn)
		return out, err
	}
}

// funcs are those that make text.
func (p *purse) funcs() template.FuncMap {
	once := func([]any) int { return mostGrowing }
	verbs := func(args []any) int {
		format, _ := args[0].(string)
		return 1 + strings.Count(format, "%")
	}
	format := p.bounded(verbs, func(args ...any) string {
		format, _ := args[0].(string)
		return fmt.Sprintf(format, args[1:]...)
	})
	return template.FuncMap{
		spent:      p.spend,
		"print":    p.bounded(once, fmt.Sprint),
		"println":  p.bounded(once, fmt.Sprintln),
		"printf":   func(text string, args ...any) (string, error) { return format(append([]any{text}, args...)...) },
		"html":     p.bounded(once, template.HTMLEscaper),
		"js":       p.bounded(once, template.JSEscaper),
		"urlquery": p.bounded(once, template.URLQueryEscaper),
	}
}

// lacking is a value that a template prints, and that the item has not.
type lacking struct{ file, value string }

func (l *lacking) Error() string {
	return "template " + l.file + ": the item has nothing for {{" + l.value + "}}"
}

// fill makes the text of a template of values.
func fill(file, text string, values map[string]any) ([]byte, error) {
	t, err := target.ParseTemplate(file, text)
	if err != nil {
		return nil, err
	}
	t.Funcs(template.FuncMap{printed: func(what string, value any) (any, error) {
		if value == nil {
			return nil, &lacking{filepath.Base(file), what}
		}
		return value, nil
	}})
	p := &purse{file: filepath.Base(file)}
	t.Funcs(p.funcs())
	for _, defined := range t.Templates() {
		demand(defined.Root)
		charge(defined.Root)
	}
	err = t.Execute(p, values)
	var much *tooMuch
	if errors.As(err, &much) {
		return nil, much
	}
	if found := nothingAbove.FindStringSubmatch(fmt.Sprint(err)); found != nil {
		err = &lacking{filepath.Base(file), found[1]}
	}
	return p.Bytes(), err
}

// nothingAbove is how text/template says that it was asked for a part of what is not there.
var nothingAbove = regexp.MustCompile(`at <(.*)>: nil pointer evaluating interface \{\}`)

// demand has each value that is printed be there.
func demand(list *parse.ListNode) {
	if list == nil {
		return
	}
	for _, n := range list.Nodes {
		switch n := n.(type) {
		case *parse.ActionNode:
			if len(n.Pipe.Decl) == 0 {
				what := n.Pipe.String()
				n.Pipe.Cmds = append(n.Pipe.Cmds, &parse.CommandNode{NodeType: parse.NodeCommand, Pos: n.Pos, Args: []parse.Node{
					parse.NewIdentifier(printed).SetPos(n.Pos), &parse.StringNode{NodeType: parse.NodeString, Pos: n.Pos, Quoted: strconv.Quote(what), Text: what}}})
			}
		case *parse.IfNode:
			demandBoth(n.BranchNode)
		case *parse.WithNode:
			demandBoth(n.BranchNode)
		case *parse.RangeNode:
			demandBoth(n.BranchNode)
		}
	}
}

func demandBoth(n parse.BranchNode) {
	demand(n.List)
	demand(n.ElseList)
}

// charge has a list, which may be done again and again, cost as many turns as there are nodes in it, without those in a range.
func charge(list *parse.ListNode) {
	if list == nil {
		return
	}
	cost := strconv.Itoa(aRound + nodes(list))
	n, _ := strconv.ParseInt(cost, 10, 64)
	pos := list.Pos
	list.Nodes = append([]parse.Node{&parse.ActionNode{NodeType: parse.NodeAction, Pos: pos, Pipe: &parse.PipeNode{NodeType: parse.NodePipe, Pos: pos, Cmds: []*parse.CommandNode{
		{NodeType: parse.NodeCommand, Pos: pos, Args: []parse.Node{parse.NewIdentifier(spent).SetPos(pos),
			&parse.NumberNode{NodeType: parse.NodeNumber, Pos: pos, IsInt: true, Int64: n, Text: cost}}}}}}}, list.Nodes...)
}

// nodes counts those of a list, and charges the ranges in it.
func nodes(list *parse.ListNode) (n int) {
	if list == nil {
		return 0
	}
	for _, node := range list.Nodes {
		switch n++; node := node.(type) {
		case *parse.ActionNode:
			n += commands(node.Pipe)
		case *parse.IfNode:
			n += commands(node.Pipe) + nodes(node.List) + nodes(node.ElseList)
		case *parse.WithNode:
			n += commands(node.Pipe) + nodes(node.List) + nodes(node.ElseList)
		case *parse.RangeNode:
			n += commands(node.Pipe) + nodes(node.ElseList)
			charge(node.List)
		}
	}
	return n
}

// commands counts what a pipe does, at its length: each has at least so many letters.
func commands(p *parse.PipeNode) int { return len(p.String()) / 4 }
