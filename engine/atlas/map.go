package atlas

import (
	"bufio"
	"cmp"
	"context"
	"encoding/xml"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"

	"bagpipe/engine/gitstore"
	"bagpipe/engine/ledger"
	"bagpipe/engine/query"
	"bagpipe/layout"

	"github.com/paulmach/orb"
	"github.com/paulmach/orb/project"
)

// shape is a footprint on a map.
type shape struct {
	id    layout.ItemID
	title string
	at    orb.Geometry
}

// Drawn counts what is on a map.
type Drawn struct {
	Items   int `json:"items"`
	Without int `json:"without"` // that fit, and of which nobody knows where they lie
}

// Map draws the footprints of the items that fit, on a graticule, as SVG: longitudes and
// latitudes by one measure. What is drawn is box, or what the footprints need. The same records
// give the same bytes.
func Map(ctx context.Context, l *ledger.Ledger, w io.Writer, box *query.Box, fits func(layout.ItemID) bool) (d Drawn, err error) {
	v, err := l.Store.Tip()
	if err != nil {
		return d, err
	}
	var mu sync.Mutex // guards shapes and d
	var shapes []shape
	err = v.Folders(ctx, gitstore.Hash{}, layout.ItemsDir, ledger.ItemDepth, func(f gitstore.Folder) error {
		id, rest, ok := layout.ItemOfPath(f.Path)
		if !ok || rest != "" || !fits(id) {
			return nil
		}
		manifest, err := f.ReadFile(layout.ManifestJSON)
		if err != nil || manifest == nil {
			return err
		}
		m, err := layout.DecodeManifest(manifest)
		if err != nil {
			return nil // status tells of records that cannot be read
		}
		g := query.Footprint(manifest)
		mu.Lock()
		defer mu.Unlock()
		switch {
		case g == nil:
			d.Without++
		case box == nil || meets(*box, g.Bound()):
			d.Items++
			shapes = append(shapes, shape{id, string(m.Collection) + "/" + m.Label, g})
		}
		return nil
	})
	if err != nil {
		return d, err
	}
	slices.SortFunc(shapes, func(a, b shape) int { return cmp.Compare(a.id, b.id) })
	if across(box, shapes) {
		for i := range shapes {
			shapes[i].at = beside(shapes[i].at)
		}
	}
	return d, draw(w, window(box, shapes), shapes)
}

func meets(box query.Box, b orb.Bound) bool {
	return box.Meets(query.Box{b.Left(), b.Bottom(), b.Right(), b.Top()})
}

// across reports whether the map goes over the antimeridian: what is asked for does, or what is drawn is narrower so.
func across(box *query.Box, shapes []shape) bool {
	if box != nil {
		return box[0] > box[2]
	}
	width := func(b orb.Bound) float64 { return b.Right() - b.Left() }
	var plain, over orb.Bound
	for i, s := range shapes {
		for k, g := range parts(s.at) {
			b, moved := g.Bound(), beside(g).Bound()
			if width(b) >= 180 {
				return false
			}
			if i+k == 0 {
				plain, over = b, moved
			}
			plain, over = plain.Union(b), over.Union(moved)
		}
	}
	return len(shapes) > 0 && width(over) < math.Min(width(plain), 180)
}

// parts are the polygons of a footprint that is cut at the antimeridian; any other is one.
func parts(g orb.Geometry) (all []orb.Geometry) {
	if many, ok := g.(orb.MultiPolygon); ok {
		for _, p := range many {
			all = append(all, p)
		}
		return all
	}
	return []orb.Geometry{g}
}

// beside puts the western parts of a footprint east of the antimeridian.
func beside(g orb.Geometry) orb.Geometry {
	if many, ok := g.(orb.MultiPolygon); ok {
		var out orb.MultiPolygon
		for _, p := range many {
			out = append(out, beside(p).(orb.Polygon))
		}
		return out
	}
	if g.Bound().Center()[0] >= 0 {
		return g
	}
	return project.Geometry(orb.Clone(g), func(p orb.Point) orb.Point { return orb.Point{p[0] + 360, p[1]} })
}

// window is the part of the Earth that is drawn, by a twentieth larger than what is on it.
func window(box *query.Box, shapes []shape) orb.Bound {
	world := orb.Bound{Min: orb.Point{-180, -90}, Max: orb.Point{180, 90}}
	switch {
	case box != nil && box[0] <= box[2]:
		return orb.Bound{Min: orb.Point{box[0], box[1]}, Max: orb.Point{math.Max(box[2], box[0]+1e-6), math.Max(box[3], box[1]+1e-6)}}
	case box != nil:
		return orb.Bound{Min: orb.Point{box[0], box[1]}, Max: orb.Point{box[2] + 360, math.Max(box[3], box[1]+1e-6)}}
	case len(shapes) == 0:
		return world
	}
	b := shapes[0].at.Bound()
	for _, s := range shapes {
		b = b.Union(s.at.Bound())
	}
	margin := math.Max(math.Max(b.Right()-b.Left(), b.Top()-b.Bottom())/20, 0.01)
	right := 180.0
	if b.Right() > right {
		right += 360
	}
	b = b.Pad(margin)
	return orb.Bound{Min: orb.Point{math.Max(b.Left(), -180), math.Max(b.Bottom(), -90)}, Max: orb.Point{math.Min(b.Right(), right), math.Min(b.Top(), 90)}}
}

// wide is how many units a map is wide.
const wide = 1440

// sheet is a map under way.
type sheet struct {
	w      *bufio.Writer
	window orb.Bound
	per    float64 // units a degree
}

func draw(w io.Writer, window orb.Bound, shapes []shape) error {
	s := &sheet{bufio.NewWriter(w), window, wide / (window.Right() - window.Left())}
	high := (window.Top() - window.Bottom()) * s.per
	fmt.Fprintf(s.w, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %s" role="img" aria-label="Footprints of %s">
<style>.sea{fill:#f4f8fb}.grid{stroke:#b8c6d1;stroke-width:1;fill:none}.grid text{fill:#5a6b78;stroke:none;font:14px sans-serif}.item{fill:#c4552d;fill-opacity:.25;stroke:#8a3312;stroke-width:1.5}</style>
<rect class="sea" width="%d" height="%s"/>
`, wide, number(high), layout.Count(len(shapes), "item"), wide, number(high))
	s.graticule(high)
	for _, one := range shapes {
		fmt.Fprintf(s.w, `<g class="item" id="i%s"><title>`, one.id)
		if err := xml.EscapeText(s.w, []byte(one.title)); err != nil {
			return err
		}
		fmt.Fprintf(s.w, "</title>%s</g>\n", s.shape(one.at))
	}
	fmt.Fprintln(s.w, "</svg>")
	return s.w.Flush()
}

// graticule draws lines of longitude and latitude, at most a dozen each way.
func (s *sheet) graticule(high float64) {
	side := math.Max(s.window.Right()-s.window.Left(), s.window.Top()-s.window.Bottom())
	step := 1e-6
	for _, n := range []float64{30, 15, 10, 5, 2, 1, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.001, 0.0001, 0.00001} {
		if side/n <= 12 {
			step = n
			continue
		}
		break
	}
	fmt.Fprintln(s.w, `<g class="grid">`)
	for k := math.Ceil(s.window.Left() / step); k*step <= s.window.Right(); k++ {
		x := s.x(k * step)
		fmt.Fprintf(s.w, `<path d="M%s 0V%s"/><text x="%s" y="%s">%s</text>`+"\n", number(x), number(high), number(x+3), number(high-4), degrees(k*step, "E", "W"))
	}
	for k := math.Ceil(s.window.Bottom() / step); k*step <= s.window.Top(); k++ {
		y := s.y(k * step)
		fmt.Fprintf(s.w, `<path d="M0 %sH%d"/><text x="3" y="%s">%s</text>`+"\n", number(y), wide, number(y-3), degrees(k*step, "N", "S"))
	}
	fmt.Fprintln(s.w, `</g>`)
}

func degrees(v float64, plus, minus string) string {
	if v > 180 { // beyond the antimeridian
		v -= 360
	}
	text := strconv.FormatFloat(math.Round(math.Abs(v)*1e6)/1e6, 'f', -1, 64) + "°"
	switch {
	case text == "0°":
		return text
	case v < 0:
		return text + minus
	}
	return text + plus
}

func (s *sheet) x(lon float64) float64 { return (lon - s.window.Left()) * s.per }
func (s *sheet) y(lat float64) float64 { return (s.window.Top() - lat) * s.per }

// number is a length as SVG has it, to a hundredth.
func number(v float64) string { return strconv.FormatFloat(math.Round(v*100)/100+0, 'f', -1, 64) }

// shape is the outline of a footprint; one too small to be seen is a dot.
func (s *sheet) shape(g orb.Geometry) string {
	b := g.Bound()
	if math.Max(b.Right()-b.Left(), b.Top()-b.Bottom())*s.per < 4 {
		return fmt.Sprintf(`<circle cx="%s" cy="%s" r="3"/>`, number(s.x(b.Center()[0])), number(s.y(b.Center()[1])))
	}
	var d strings.Builder
	switch g := g.(type) {
	case orb.LineString:
		s.path(&d, g, "")
	case orb.Polygon:
		s.rings(&d, g)
	case orb.MultiPolygon:
		for _, p := range g {
			s.rings(&d, p)
		}
	}
	return `<path fill-rule="evenodd" d="` + d.String() + `"/>`
}

func (s *sheet) rings(d *strings.Builder, p orb.Polygon) {
	for _, r := range p {
		s.path(d, orb.LineString(r[:len(r)-1]), "Z")
	}
}

func (s *sheet) path(d *strings.Builder, line orb.LineString, end string) {
	for i, p := range line {
		verb := "L"
		if i == 0 {
			verb = "M"
		}
		d.WriteString(verb + number(s.x(p[0])) + " " + number(s.y(p[1])))
	}
	d.WriteString(end)
}
