package describe

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"bagpipe/steps/space"

	"github.com/antchfx/xmlquery"
	"github.com/antchfx/xpath"
	"github.com/paulmach/orb"
)

// parseXML reads an XML file that declares nothing: a document type can make a small file
// large.
func parseXML(path string) (*xmlquery.Node, error) {
	data, err := smallFile(path, maxSideCar)
	if err != nil {
		return nil, err
	}
	data, byteOf, err := utf8Of(data)
	if err != nil {
		return nil, fmt.Errorf("XML: %w", err)
	}
	for at := 0; ; {
		i := bytes.Index(data[at:], []byte("<!"))
		if i < 0 {
			break
		}
		at += i
		switch rest := data[at:]; {
		case bytes.HasPrefix(rest, []byte("<!--")):
			end := bytes.Index(rest, []byte("-->"))
			if end < 0 {
				return nil, fmt.Errorf("XML: at byte %d: a comment without an end", byteOf(at))
			}
			at += end
		case bytes.HasPrefix(rest, []byte("<![CDATA[")):
			end := bytes.Index(rest, []byte("]]>"))
			if end < 0 {
				return nil, fmt.Errorf("XML: at byte %d: CDATA without an end", byteOf(at))
			}
			at += end
		default:
			return nil, fmt.Errorf("XML: at byte %d: a declaration, which is not read", byteOf(at))
		}
	}
	doc, err := xmlquery.Parse(bytes.NewReader(data))
	if err != nil {
		at, ok := brokenAt(data)
		if !ok { // it ended without an element
			at = len(data)
		}
		return nil, fmt.Errorf("XML: at byte %d: %w", byteOf(at), err)
	}
	return doc, nil
}

// texts evaluates an XPath; of elements it gives the texts.
func texts(doc *xmlquery.Node, path string) ([]string, error) {
	e, err := xpath.Compile(path)
	if err != nil {
		return nil, err
	}
	var out []string
	switch v := e.Evaluate(xmlquery.CreateXPathNavigator(doc)).(type) {
	case *xpath.NodeIterator:
		for v.MoveNext() && len(out) < 100 {
			if t := clean(v.Current().Value()); t != "" {
				out = append(out, t)
			}
		}
	case string:
		out = append(out, clean(v))
	case float64:
		out = append(out, strconv.FormatFloat(v, 'g', -1, 64))
	case bool:
		out = append(out, strconv.FormatBool(v))
	}
	return out, nil
}

// allTexts gives the whole texts at all of the paths.
func allTexts(doc *xmlquery.Node, paths ...string) (out []string) {
	for _, p := range paths {
		for _, n := range xmlquery.Find(doc, p) {
			out = append(out, strings.Join(strings.Fields(n.InnerText()), " "))
		}
	}
	return out
}

// first gives the first text at any of the paths.
func first(doc *xmlquery.Node, paths ...string) string {
	for _, p := range paths {
		if all, err := texts(doc, p); err == nil && len(all) > 0 {
			return all[0]
		}
	}
	return ""
}

// readXML reads a side-car: by the dialect of its first element, and by the XPaths that the
// workflow gives.
func readXML(q Request, facts *Facts) error {
	doc, err := parseXML(q.Path)
	if err != nil {
		return err
	}
	root := first(doc, "local-name(/*)")
	facts.Entity["format"] = "XML"
	say(facts.Entity, "root", root)
	for _, d := range dialects {
		if d.fits(root, doc) {
			facts.Entity["format"] = d.name
			facts.by(d, doc, q.Name)
			break
		}
	}
	for key, path := range q.Business {
		all, err := texts(doc, path)
		if err != nil {
			return fmt.Errorf("business: %s: %w", key, err)
		}
		sayAll(facts.Business, key, all)
	}
	return nil
}

func sayAll(to map[string]any, key string, all []string) {
	seen := map[string]bool{}
	all = slices.DeleteFunc(slices.Clone(all), func(t string) bool {
		again := seen[t]
		seen[t] = true
		return again
	})
	switch len(all) {
	case 0:
	case 1:
		say(to, key, all[0])
	default:
		list := make([]any, len(all))
		for i, t := range all {
			list[i] = t
		}
		to[key] = list
	}
}

func (facts *Facts) by(d dialect, doc *xmlquery.Node, name string) {
	for key, path := range d.business {
		all, _ := texts(doc, path)
		sayAll(facts.Business, key, all)
	}
	var starts []string
	for _, path := range d.start {
		starts = append(starts, first(doc, path))
	}
	facts.setFirst(starts, first(doc, d.end...))
	rings := facts.rings(d, doc)
	if len(rings) == 0 {
		return
	}
	var warnings []string
	ring := around(rings)
	facts.Space, warnings = space.Outline(ring, space.FromEPSG(4326), name)
	facts.Warnings = append(facts.Warnings, warnings...)
	own := rings[0].Bound()
	for _, r := range rings {
		own = own.Union(r.Bound())
	}
	if facts.led || own != ring.Bound() {
		facts.Space.NativeOnGlobe(ring)
	}
}

// rings reads the parts of the footprint. Where ISO 19139 has boxes, they count, for what it has of polygons is told in more
// ways than are read.
func (facts *Facts) rings(d dialect, doc *xmlquery.Node) (rings []orb.Ring) {
	parts := []*xmlquery.Node{doc}
	if d.boxes != "" {
		parts = xmlquery.Find(doc, d.boxes)
	}
	for i, part := range parts {
		ring, err := facts.ring(d, part)
		switch {
		case i == maxParts:
			facts.warn("more than %d bounds: the others are left out", maxParts)
			return rings
		case first(part, "."+at("extentTypeCode")) == "false" || first(part, "."+at("extentTypeCode")) == "0":
			facts.warn("bounds of what is not covered are left out")
		case err != nil:
			facts.warn("%v", err)
		default:
			rings = facts.placed(rings, ring)
		}
	}
	if len(rings) == 0 && d.boxes != "" {
		rings = facts.polygons(doc)
	}
	return rings
}

// placed adds a ring; one that is nowhere is told of alone.
func (facts *Facts) placed(rings []orb.Ring, ring orb.Ring) []orb.Ring {
	switch i := slices.IndexFunc(ring, func(p orb.Point) bool { return !space.Placed(p) }); {
	case i >= 0:
		facts.warn("a coordinate of %v, %v is of no place; its bounds are left out", ring[i][0], ring[i][1])
	case len(ring) > 0:
		rings = append(rings, ring)
	}
	return rings
}

const maxParts = 1000

// around is the convex hull of several rings, taken across the antimeridian where that is the shorter way.
func around(rings []orb.Ring) orb.Ring {
	if len(rings) == 1 {
		return rings[0]
	}
	var sides space.Sides
	for _, r := range rings {
		sides.Add(r.Bound())
	}
	var points []orb.Point
	for _, r := range rings {
		by := 0.0
		if b := r.Bound(); sides.Across() {
			by = space.Beside(b).Min[0] - b.Min[0]
		}
		for _, p := range r {
			points = append(points, orb.Point{p[0] + by, p[1]})
		}
	}
	return space.Hull(points)
}

// polygons reads the bounding polygons of ISO 19139, where their reference system tells which coordinate comes first.
func (facts *Facts) polygons(doc *xmlquery.Node) (rings []orb.Ring) {
	for i, p := range xmlquery.Find(doc, at("EX_BoundingPolygon")) {
		if i == maxParts {
			facts.warn("more than %d polygons: the others are left out", maxParts)
			break
		}
		system := first(p, ".//@srsName")
		latFirst := strings.HasPrefix(system, "urn:") || strings.HasPrefix(system, "http://www.opengis.net/def/crs/EPSG/")
		known := strings.HasSuffix(system, "EPSG:4326") || strings.HasSuffix(system, "epsg.xml#4326") || latFirst && (strings.HasSuffix(system, ":4326") || strings.HasSuffix(system, "/4326"))
		if strings.HasSuffix(system, "CRS84") {
			latFirst, known = false, true
		}
		if !known {
			facts.warn("a bounding polygon in the reference system %q is left out", system)
			continue
		}
		exterior := "." + at("exterior")
		if xmlquery.FindOne(p, exterior) == nil {
			exterior = "." + at("outerBoundaryIs") // of GML 2
		}
		text := strings.Join(allTexts(p, exterior+at("posList"), exterior+at("pos"), exterior+at("coordinates")), " ")
		numbers, err := floats(strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' }))
		if err != nil || len(numbers) < 6 || len(numbers)%2 > 0 {
			facts.warn("a bounding polygon is left out: its coordinates are no pairs of numbers")
			continue
		}
		ring := orb.Ring{}
		for ; len(numbers) > 0; numbers = numbers[2:] {
			if p := (orb.Point{numbers[0], numbers[1]}); latFirst {
				ring = append(ring, orb.Point{p[1], p[0]})
			} else {
				ring = append(ring, p)
			}
		}
		if ring[0] != ring[len(ring)-1] {
			ring = append(ring, ring[0])
		}
		rings = facts.placed(rings, facts.corners(ring))
	}
	return rings
}

// corners leads a ring along the short way.
func (facts *Facts) corners(ring orb.Ring) orb.Ring {
	out := space.Around(ring)
	facts.led = facts.led || !slices.Equal(out, ring)
	return out
}

var errBounds = errors.New("the bounds are no numbers")

// ring reads the footprint: bounds, four corners, or a list of latitudes and longitudes.
func (facts *Facts) ring(d dialect, doc *xmlquery.Node) (orb.Ring, error) {
	if text := first(doc, d.list); d.list != "" && text != "" {
		numbers, err := floats(strings.Fields(text))
		if err == nil && len(numbers)%2 > 0 {
			return nil, fmt.Errorf("a list of %d coordinates, which are no pairs; it is left out", len(numbers))
		}
		ring := orb.Ring{}
		for i := 0; i+1 < len(numbers); i += 2 {
			ring = append(ring, orb.Point{numbers[i+1], numbers[i]})
		}
		return facts.corners(ring), err
	}
	var given []string
	for _, path := range d.corners {
		given = append(given, first(doc, path))
	}
	if lacking := slices.Index(given, ""); lacking >= 0 {
		if some := slices.ContainsFunc(given, func(g string) bool { return g != "" }); some {
			return nil, fmt.Errorf("one of the bounds is lacking, at %s; they are left out", strings.TrimPrefix(d.corners[lacking], "."))
		}
		return nil, nil
	}
	v, err := floats(given)
	switch {
	case err != nil || len(v) == 0:
		return nil, err
	case len(v) == 8: // longitude, latitude of four corners
		return facts.corners(orb.Ring{{v[0], v[1]}, {v[2], v[3]}, {v[4], v[5]}, {v[6], v[7]}, {v[0], v[1]}}), nil
	case v[1] > v[3]:
		return nil, fmt.Errorf("the south bound %v is north of the north bound %v; the bounds are left out", v[1], v[3])
	case v[0] > v[2] && v[2] > 0 && v[0] <= 360: // across the antimeridian, and more than half around the earth
		v[0], facts.led = v[0]-360, true
	case v[0] > v[2]:
		v[2], facts.led = v[2]+360, true
	}
	return space.Box(v[0], v[1], v[2], v[3]), nil
}

// decimal reads a number as documents have it: Go's own syntax is wider.
func decimal(text string) (float64, error) {
	if text = strings.TrimSpace(text); strings.ContainsAny(text, "_xXpP") {
		return 0, strconv.ErrSyntax
	}
	return strconv.ParseFloat(text, 64)
}

func floats(all []string) (out []float64, err error) {
	for _, t := range all {
		f, err := decimal(t)
		if err != nil {
			return nil, errBounds
		}
		out = append(out, f)
	}
	return out, nil
}

// CheckXPath refuses what is no XPath.
func CheckXPath(path string) error {
	_, err := xpath.Compile(path)
	return err
}
