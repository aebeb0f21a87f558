package delivery

import (
	"bytes"
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
	"text/template"
	"text/template/parse"

	"bagpipe/steps/target"
)

// The rules are: a template prints no value that the item has not, where Go's templates would print "<no value>"; the item
// is not delivered so. A template may ask whether a value is there: if and with do, and or takes another.

// printed stands behind each value that a template prints.
const printed = "printed"

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
	for _, defined := range t.Templates() {
		demand(defined.Root)
	}
	var out bytes.Buffer
	err = t.Execute(&out, values)
	if found := nothingAbove.FindStringSubmatch(fmt.Sprint(err)); found != nil {
		err = &lacking{filepath.Base(file), found[1]}
	}
	return out.Bytes(), err
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
