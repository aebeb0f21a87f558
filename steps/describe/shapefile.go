package describe

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"bagpipe/steps/space"

	"github.com/jonas-p/go-shp"
	"github.com/paulmach/orb"
)

var shapeNames = map[int32]string{0: "null", 1: "point", 3: "polyline", 5: "polygon", 8: "multipoint", 11: "pointZ", 13: "polylineZ", 15: "polygonZ",
	18: "multipointZ", 21: "pointM", 23: "polylineM", 25: "polygonM", 28: "multipointM", 31: "multipatch"}

// languages are the code pages of a table's language byte.
var languages = map[byte]string{0x4d: "GBK", 0x7a: "GBK", 0x4f: "Big5", 0x78: "Big5", 0x57: "windows-1252", 0x03: "windows-1252", 0x01: "CP437", 0x02: "CP850", 0xc9: "windows-1251", 0x7b: "Shift_JIS", 0x13: "Shift_JIS", 0x4e: "EUC-KR", 0x79: "EUC-KR"}

// readShapefile reads the geometry of a shapefile, and which fields its table has.
func readShapefile(q Request, facts *Facts) error {
	records, err := checkShapes(q.Path)
	if err != nil {
		return err
	}
	r, err := shp.Open(q.Path)
	if err != nil {
		return err
	}
	defer r.Close()
	e := facts.Entity
	e["format"], e["geometry"], e["records"] = "Shapefile", shapeNames[int32(r.GeometryType)], records
	var west, east heap // of Greenwich
	var sides space.Sides
	for r.Next() {
		_, s := r.Shape()
		b := s.BBox()
		if _, null := s.(*shp.Null); null {
			continue
		}
		points := append(corners(b), vertices(s)...)
		for _, p := range points {
			if p[0] <= 0 {
				west.add(p)
			} else {
				east.add(p)
			}
		}
		for i, starts := 0, parts(s); i < max(len(starts), 1) && len(points) > 0; i++ {
			from, to := 0, len(points)
			if len(starts) > 0 {
				from = int(starts[i])
			}
			if i+1 < len(starts) {
				to = int(starts[i+1])
			}
			if from < 0 || from >= to || to > len(points) {
				continue // Lines tells of it
			}
			sides.Add(orb.MultiPoint(points[from:to]).Bound())
		}
	}
	if err := r.Err(); err != nil {
		return fmt.Errorf("shapefile: %w", err)
	}
	facts.table(q, r)
	crs, err := systemBeside(q)
	switch {
	case err != nil:
		facts.warn("%v", err)
	case crs.WKT == "":
		facts.warn("no .prj: the reference system is unknown")
	}
	all := append(west.around(), east.around()...)
	if crs.Geographic() && sides.Across() {
		for i := range all {
			if all[i][0] <= 0 {
				all[i][0] += 360
			}
		}
	}
	if all = space.Hull(all); len(all) > 0 {
		var warnings []string
		facts.Space, warnings = space.Outline(all, crs, q.Name)
		facts.Warnings = append(facts.Warnings, warnings...)
	}
	return nil
}

// heap is many points, of which those around all are kept.
type heap struct {
	hull   orb.Ring
	points []orb.Point
}

func (h *heap) add(p orb.Point) {
	if h.points = append(h.points, p); len(h.points) > 1<<16 {
		h.around()
	}
}

func (h *heap) around() []orb.Point {
	h.hull = space.Hull(append(h.points, h.hull...))
	h.points = h.points[:0]
	return slices.Clone(h.hull)
}

// corners are those of the bounds of a point, whose vertices are not listed.
func corners(b shp.Box) []orb.Point {
	if b.MinX == b.MaxX && b.MinY == b.MaxY {
		return []orb.Point{{b.MinX, b.MinY}}
	}
	return nil
}

func vertices(s shp.Shape) (out []orb.Point) {
	var points []shp.Point
	switch v := s.(type) {
	case *shp.PolyLine:
		points = v.Points
	case *shp.Polygon:
		points = v.Points
	case *shp.MultiPoint:
		points = v.Points
	case *shp.PolyLineZ:
		points = v.Points
	case *shp.PolygonZ:
		points = v.Points
	case *shp.MultiPointZ:
		points = v.Points
	case *shp.PolyLineM:
		points = v.Points
	case *shp.PolygonM:
		points = v.Points
	case *shp.MultiPointM:
		points = v.Points
	case *shp.MultiPatch:
		points = v.Points
	}
	for _, p := range points {
		out = append(out, orb.Point{p.X, p.Y})
	}
	return out
}

// table says which fields the table has, and in which encoding.
func (facts *Facts) table(q Request, r *shp.Reader) {
	path, ok := q.Beside[".dbf"]
	if !ok {
		facts.warn("no .dbf: there are no attributes")
		return
	}
	head := make([]byte, 32)
	f, size, err := openFile(path)
	if err == nil {
		_, err = io.ReadFull(f, head)
		f.Close()
	}
	if n := int64(binary.LittleEndian.Uint16(head[8:])); err == nil && (n < 33 || n > math.MaxInt16 || n > size) { // the library allocates by it
		err = fmt.Errorf("at byte 8: a header of %d bytes, in a file of %d", n, size)
	}
	if err != nil {
		facts.warn(".dbf: %v", err)
		return
	}
	encoding := languages[head[29]]
	if cpg, ok := q.Beside[".cpg"]; ok {
		if data, err := smallFile(cpg, 100); err == nil {
			encoding = string(data)
		}
	}
	say(facts.Entity, "encoding", encoding)
	names := []any{}
	for _, field := range r.Fields() {
		names = append(names, clean(strings.TrimRight(field.String(), "\x00 ")))
	}
	if len(names) > 0 {
		facts.Entity["fields"] = names[:min(len(names), 100)]
	}
	if n := int(binary.LittleEndian.Uint32(head[4:])); n != facts.Entity["records"] {
		facts.warn("%v records have a geometry, %d have attributes", facts.Entity["records"], n)
	}
}

// checkShapes compares every length that a shapefile gives with the others and with the
// file, as the library allocates what a record asks for, and counts the records.
func checkShapes(path string) (records int, err error) {
	f, size, err := openFile(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	r := bufio.NewReaderSize(f, 1<<16)
	head := make([]byte, 100)
	if _, err := io.ReadFull(r, head); err != nil || binary.BigEndian.Uint32(head) != 9994 {
		return 0, fmt.Errorf("shapefile: at byte 0: no header")
	}
	at := int64(100)
	for at < size {
		var b [12]byte
		if _, err := io.ReadFull(r, b[:]); err != nil {
			return records, fmt.Errorf("shapefile: at byte %d: half a record", at)
		}
		length := int64(binary.BigEndian.Uint32(b[4:])) * 2
		if length < 4 || length > size-at-8 {
			return records, fmt.Errorf("shapefile: at byte %d: a record of %d bytes, in a file of %d", at, length, size)
		}
		used, err := checkShape(r, binary.LittleEndian.Uint32(b[8:]), length-4)
		if err != nil {
			return records, fmt.Errorf("shapefile: at byte %d: %w", at, err)
		}
		if _, err := r.Discard(int(length - 4 - used)); err != nil {
			return records, err
		}
		records++
		at += 8 + length
	}
	return records, nil
}

// checkShape reads as much of a shape as says how large it is.
func checkShape(r *bufio.Reader, kind uint32, length int64) (used int64, err error) {
	var counted, least int64 // where the counts begin, and what the rest takes beside them
	switch kind {
	case 0:
		return 0, nil
	case 1, 21, 11:
		least = map[uint32]int64{1: 16, 21: 24, 11: 32}[kind]
		if length < least-8 {
			return 0, fmt.Errorf("a point of %d bytes", length)
		}
		return 0, nil
	case 3, 5, 13, 15, 23, 25, 31:
		counted = 8
	case 8, 18, 28:
		counted = 4
	default:
		return 0, fmt.Errorf("a shape of type %d", kind)
	}
	b := make([]byte, 32+counted)
	if length < int64(len(b)) {
		return 0, fmt.Errorf("a shape of %d bytes", length)
	}
	if _, err := io.ReadFull(r, b); err != nil {
		return 0, err
	}
	points, parts := int64(binary.LittleEndian.Uint32(b[32:])), int64(0)
	if counted == 8 {
		parts, points = points, int64(binary.LittleEndian.Uint32(b[36:]))
	}
	if need := int64(len(b)) + 4*parts + 16*points; parts > math.MaxInt32 || points > math.MaxInt32 || need > length {
		return 0, fmt.Errorf("%d parts and %d points in %d bytes", parts, points, length)
	}
	return int64(len(b)), nil
}

// Lines calls visit with every line and ring of a shapefile, points being lines of one.
func Lines(path string, visit func(line [][2]float64)) error {
	if _, err := checkShapes(path); err != nil {
		return err
	}
	r, err := shp.Open(path)
	if err != nil {
		return err
	}
	defer r.Close()
	for r.Next() {
		_, s := r.Shape()
		if _, null := s.(*shp.Null); null {
			continue
		}
		points := vertices(s)
		if len(points) == 0 {
			points = corners(s.BBox())
		}
		starts := parts(s)
		for i, from := range starts {
			to := len(points)
			if i+1 < len(starts) {
				to = int(starts[i+1])
			}
			if int(from) < 0 || int(from) >= to || to > len(points) {
				return fmt.Errorf("shapefile: a part from point %d to %d, of %d", from, to, len(points))
			}
			line := make([][2]float64, 0, to-int(from))
			for _, p := range points[from:to] {
				if !math.IsNaN(p[0]+p[1]) && !math.IsInf(p[0]+p[1], 0) {
					line = append(line, p)
				}
			}
			if len(line) > 0 {
				visit(line)
			}
		}
	}
	return r.Err()
}

// parts are the points at which a shape's lines begin; of separate points each.
func parts(s shp.Shape) []int32 {
	switch v := s.(type) {
	case *shp.PolyLine:
		return v.Parts
	case *shp.Polygon:
		return v.Parts
	case *shp.PolyLineZ:
		return v.Parts
	case *shp.PolygonZ:
		return v.Parts
	case *shp.PolyLineM:
		return v.Parts
	case *shp.PolygonM:
		return v.Parts
	case *shp.MultiPatch:
		return v.Parts
	}
	each := make([]int32, max(1, len(vertices(s))))
	for i := range each {
		each[i] = int32(i)
	}
	return each
}
