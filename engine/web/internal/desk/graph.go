package desk

import (
	"fmt"
	"html/template"
	"strings"

	"bagpipe/engine/ask"
	"bagpipe/engine/state"
	"bagpipe/layout"
)

// Graph is a workflow drawn from top to bottom: a step stands below those that it needs.
type Graph struct {
	name  string
	boxes []box
	lines []line
	wide  int // boxes in the widest row
	deep  int // rows
}

type box struct {
	name, kind, counts string
	row, at, of        int // the row, the place in it, and how many boxes it has
	soft               bool
}

type line struct {
	from, to int
	soft     bool
}

// GraphOf lays a definition out. counts, when there are any, stand in the boxes.
func GraphOf(d *state.Definition, counts *ask.Grid) *Graph {
	g := &Graph{name: d.Name}
	for i := range d.Steps {
		s := &d.Steps[i]
		b := box{name: s.Name, kind: kindOf(s, i), soft: s.Tolerated()}
		for _, p := range d.Prerequisites(i) {
			g.lines = append(g.lines, line{p, i, d.Steps[p].Tolerated()})
			if p < i { // definitions list a step after those that it needs; another order is drawn as it comes
				b.row = max(b.row, g.boxes[p].row+1)
			}
		}
		b.counts = countsOf(counts, layout.Name(s.Name))
		g.boxes = append(g.boxes, b)
	}
	rows := map[int]int{}
	for i := range g.boxes {
		b := &g.boxes[i]
		b.at = rows[b.row]
		rows[b.row]++
		g.deep = max(g.deep, b.row+1)
	}
	for i := range g.boxes {
		g.boxes[i].of = rows[g.boxes[i].row]
		g.wide = max(g.wide, g.boxes[i].of)
	}
	return g
}

// GraphRow is one step of a graph as its table tells it.
type GraphRow struct {
	Step  layout.Name
	Kind  string   // what does the step
	Needs []string // the steps right above it
	Soft  bool     // it may fail
}

// Rows tell in words what SVG draws, in the order of the definition.
func (g *Graph) Rows() []GraphRow {
	rows := make([]GraphRow, len(g.boxes))
	for i, b := range g.boxes {
		rows[i] = GraphRow{Step: layout.Name(b.name), Kind: b.kind, Soft: b.soft}
	}
	for _, l := range g.lines {
		rows[l.to].Needs = append(rows[l.to].Needs, g.boxes[l.from].name)
	}
	return rows
}

func kindOf(s *state.Step, i int) string {
	switch {
	case i == 0:
		return "completed by the start"
	case s.Manual:
		return "a person"
	case s.Starts != "":
		return "starts " + s.Starts
	case s.Robot != "":
		return s.Robot
	}
	return "a command"
}

// countsOf words how many items stand where at a step.
func countsOf(grid *ask.Grid, step layout.Name) string {
	if grid == nil {
		return ""
	}
	var words []string
	for _, row := range grid.Steps {
		if row.Step != step {
			continue
		}
		for _, c := range []struct {
			n    int
			word string
		}{{row.Ready, "ready"}, {row.Manual, "for people"}, {row.Counts[state.InProgress], "in progress"}, {row.Counts[state.Failed], "failed"},
			{row.Counts[state.Completed] + row.Counts[state.Skipped], "done"}} {
			if c.n > 0 {
				words = append(words, fmt.Sprintf("%d %s", c.n, c.word))
			}
		}
	}
	return strings.Join(words, ", ")
}

// Sizes of the drawing, in its own units.
const (
	boxWidth, boxHeight = 250, 62
	gapX, gapY          = 24, 34
)

func (g *Graph) place(b box) (x, y int) {
	width := g.wide*(boxWidth+gapX) - gapX
	own := b.of*(boxWidth+gapX) - gapX
	return 2 + (width-own)/2 + b.at*(boxWidth+gapX), 2 + b.row*(boxHeight+gapY)
}

// SVG draws the graph, in the colour of the text around it.
func (g *Graph) SVG(alone bool) template.HTML {
	var w strings.Builder
	text := template.HTMLEscapeString
	width, height := g.wide*(boxWidth+gapX)-gapX+4, g.deep*(boxHeight+gapY)-gapY+4
	space := ""
	if alone {
		space = ` xmlns="http://www.w3.org/2000/svg"`
	}
	fmt.Fprintf(&w, `<svg%s viewBox="0 0 %d %d" width="%d" height="%d" role="img" aria-label="%s" font-family="sans-serif" font-size="13" fill="currentColor">`,
		space, width, height, width, height, text("The steps of "+g.name+", each below those that it needs"))
	for _, l := range g.lines {
		x1, y1 := g.place(g.boxes[l.from])
		x2, y2 := g.place(g.boxes[l.to])
		dash := ""
		if l.soft {
			dash = ` stroke-dasharray="4 3"`
		}
		fmt.Fprintf(&w, `<path d="M%d %d C%d %d %d %d %d %d" fill="none" stroke="currentColor" opacity=".6"%s/>`,
			x1+boxWidth/2, y1+boxHeight, x1+boxWidth/2, y1+boxHeight+gapY/2, x2+boxWidth/2, y2-gapY/2, x2+boxWidth/2, y2, dash)
	}
	for _, b := range g.boxes {
		x, y := g.place(b)
		dash := ""
		if b.soft {
			dash = ` stroke-dasharray="4 3"`
		}
		fmt.Fprintf(&w, `<rect class="box" x="%d" y="%d" width="%d" height="%d" rx="6" fill="none" stroke="currentColor"%s/>`, x, y, boxWidth, boxHeight, dash)
		fmt.Fprintf(&w, `<text x="%d" y="%d" font-weight="600">%s</text><text x="%d" y="%d" opacity=".8">%s</text><text x="%d" y="%d">%s</text>`,
			x+10, y+20, text(b.name), x+10, y+37, text(b.kind), x+10, y+54, text(b.counts))
	}
	w.WriteString("</svg>")
	return template.HTML(w.String()) // every text in it was escaped
}
