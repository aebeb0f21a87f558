package admin

import (
	"context"
	"encoding/xml"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"bagpipe/cmd/bagpipe/internal/screen"
	"bagpipe/engine"
	"bagpipe/layout"
)

// Quality shows what the checks of an item found.
type Quality struct {
	Item string `arg:"" help:"Identifier, the beginning of one, or label."`
	XML  bool   `name:"xml" xor:"form" help:"Print XML, a node for each level."`
	JSON bool   `name:"json" xor:"form" help:"Print JSON, as quality.json."`
}

// Run prints it.
func (c *Quality) Run(ctx context.Context, on *screen.Screen, open Open) error {
	return open.with(ctx, func(e *engine.Engine) error {
		id, err := e.Ask.Resolve(ctx, c.Item)
		if err != nil {
			return err
		}
		q, err := e.Ask.Quality(id)
		switch {
		case err != nil:
			return err
		case c.JSON:
			return on.JSON(q)
		case c.XML:
			return qualityXML(on.Out, q)
		}
		t := screen.NewTable("level", "result", "check", "text")
		t.Row("", q.Result, "", "")
		for _, level := range slices.Sorted(maps.Keys(q.Levels)) {
			if q.Levels[level] == layout.QualityNone {
				continue
			}
			t.Row(level, q.Levels[level], "", "")
			for _, name := range checksOf(q, level) {
				t.Row("", q.Checks[name].Result, name, q.Checks[name].Text)
			}
		}
		if q.More > 0 {
			on.Talk("%s not listed; all count, and the worst are listed", screen.CountVerb(q.More, "check is", "checks are"))
		}
		return t.Print(on.Out)
	})
}

func checksOf(q *layout.Quality, level string) (names []string) {
	for _, name := range slices.Sorted(maps.Keys(q.Checks)) {
		if q.Checks[name].Level == level {
			names = append(names, name)
		}
	}
	return names
}

// qualityNode is a level, or a check, in XML.
type qualityNode struct {
	XMLName xml.Name
	Attrs   []xml.Attr `xml:",any,attr"`
	Text    string     `xml:",chardata"`
	Nodes   []*qualityNode
}

func attr(name, value string) xml.Attr { return xml.Attr{Name: xml.Name{Local: name}, Value: value} }

// qualityXML prints the levels as nodes within nodes.
func qualityXML(w io.Writer, q *layout.Quality) error {
	root := &qualityNode{XMLName: xml.Name{Local: "quality"}, Attrs: []xml.Attr{attr("item", string(q.Item)), attr("version", fmt.Sprint(q.Version)), attr("result", q.Result)}}
	nodes := map[string]*qualityNode{"": root}
	for _, level := range slices.Sorted(maps.Keys(q.Levels)) {
		above, name := "", level
		if i := strings.LastIndexByte(level, '.'); i >= 0 {
			above, name = level[:i], level[i+1:]
		}
		n := &qualityNode{XMLName: xml.Name{Local: name}, Attrs: []xml.Attr{attr("result", q.Levels[level])}}
		if nodes[above] == nil {
			return fmt.Errorf("level %s stands below none", level)
		}
		nodes[level], nodes[above].Nodes = n, append(nodes[above].Nodes, n)
		for _, id := range checksOf(q, level) {
			c := q.Checks[id]
			n.Nodes = append(n.Nodes, &qualityNode{XMLName: xml.Name{Local: "check"}, Attrs: []xml.Attr{attr("id", id), attr("result", c.Result)}, Text: c.Text})
		}
	}
	data, err := xml.MarshalIndent(root, "", "  ")
	if err != nil {
		return err
	}
	_, err = io.WriteString(w, xml.Header+string(data)+"\n")
	return err
}
