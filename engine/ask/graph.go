package ask

import (
	"fmt"
	"slices"
	"strings"

	"bagpipe/engine/state"
)

// Formats of WorkflowGraph.
const (
	Mermaid = "mermaid"
	DOT     = "dot"
)

// WorkflowGraph draws a definition in force: an arrow from each step to those that
// need it, dashed from steps of other workflows and from optional ones, thick to
// the workflow a step starts.
func (df *Definitions) WorkflowGraph(name, format string) (string, error) {
	_, d, err := df.WorkflowText(name)
	if err != nil {
		return "", err
	}
	g := graphOf(d)
	if format == DOT {
		return g.dot(), nil
	}
	return g.mermaid(), nil
}

type graph struct {
	name  string
	nodes []node
	edges []edge
}

// node is a step, a step of another workflow, or another workflow.
type node struct {
	label []string // lines
	kind  string   // first, robot, manual, starts, other
	soft  bool     // its failure does not stop the workflow
}

type edge struct {
	from, to int
	kind     string // needs, soft, starts
}

func graphOf(d *state.Definition) *graph {
	g := &graph{name: d.Name}
	for i := range d.Steps {
		s := &d.Steps[i]
		g.nodes = append(g.nodes, node{label: stepLabel(s), kind: stepKind(s, i), soft: s.Tolerated()})
	}
	other := func(label string) int {
		at := slices.IndexFunc(g.nodes, func(n node) bool { return n.kind == "other" && n.label[0] == label })
		if at < 0 {
			g.nodes = append(g.nodes, node{label: []string{label}, kind: "other"})
			at = len(g.nodes) - 1
		}
		return at
	}
	for i := range d.Steps {
		for _, p := range d.Prerequisites(i) {
			kind := "needs"
			if d.Steps[p].Tolerated() {
				kind = "soft"
			}
			g.edges = append(g.edges, edge{p, i, kind})
		}
		for _, r := range d.Foreign(i) {
			g.edges = append(g.edges, edge{other(r.String()), i, "soft"})
		}
		if next := d.Steps[i].Starts; next != "" {
			g.edges = append(g.edges, edge{i, other(next), "starts"})
		}
	}
	return g
}

func stepKind(s *state.Step, i int) string {
	switch {
	case i == 0:
		return "first"
	case s.Manual:
		return "manual"
	case s.Starts != "":
		return "starts"
	}
	return "robot"
}

// stepLabel is the step's name, its conditions and its milestone.
func stepLabel(s *state.Step) []string {
	label := []string{s.Name}
	for i := range s.When {
		label = append(label, "if "+s.When[i].String())
	}
	if s.OnRequest {
		label = append(label, "on request")
	}
	if s.Milestone != "" {
		label = append(label, "★ "+s.Milestone)
	}
	return label
}

// mermaid writes a flowchart: people's steps are slanted, other workflows rounded.
func (g *graph) mermaid() string {
	var b strings.Builder
	b.WriteString("flowchart TD\n")
	shapes := map[string][2]string{"first": {"([", "])"}, "robot": {"[", "]"}, "manual": {"[/", "/]"}, "starts": {"[[", "]]"}, "other": {"(", ")"}}
	escape := strings.NewReplacer(`"`, "#quot;", "<", "#lt;", ">", "#gt;")
	for i, n := range g.nodes {
		lines := make([]string, len(n.label))
		for j, l := range n.label {
			lines[j] = escape.Replace(l)
		}
		shape := shapes[n.kind]
		fmt.Fprintf(&b, "  n%d%s\"%s\"%s\n", i, shape[0], strings.Join(lines, "<br/>"), shape[1])
	}
	arrows := map[string]string{"needs": "-->", "soft": "-.->", "starts": "==>"}
	for _, e := range g.edges {
		fmt.Fprintf(&b, "  n%d %s n%d\n", e.from, arrows[e.kind], e.to)
	}
	for i, n := range g.nodes {
		if n.soft {
			fmt.Fprintf(&b, "  style n%d stroke-dasharray: 4\n", i)
		}
	}
	return b.String()
}

// dot writes a graph for Graphviz.
func (g *graph) dot() string {
	var b strings.Builder
	fmt.Fprintf(&b, "digraph \"%s\" {\n  rankdir=TB;\n  node [shape=box, fontname=\"Helvetica\"];\n", g.name)
	shapes := map[string]string{"first": "ellipse", "robot": "box", "manual": "parallelogram", "starts": "box3d", "other": "note"}
	escape := strings.NewReplacer(`\`, `\\`, `"`, `\"`)
	for i, n := range g.nodes {
		lines := make([]string, len(n.label))
		for j, l := range n.label {
			lines[j] = escape.Replace(l)
		}
		style := ""
		if n.soft {
			style = ", style=dashed"
		}
		fmt.Fprintf(&b, "  n%d [label=\"%s\", shape=%s%s];\n", i, strings.Join(lines, `\n`), shapes[n.kind], style)
	}
	styles := map[string]string{"needs": "solid", "soft": "dashed", "starts": "bold"}
	for _, e := range g.edges {
		fmt.Fprintf(&b, "  n%d -> n%d [style=%s];\n", e.from, e.to, styles[e.kind])
	}
	b.WriteString("}\n")
	return b.String()
}
