package describe

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"

	"bagpipe/layout"
	"bagpipe/steps/space"

	"github.com/paulmach/orb"
)

var shapeNames = map[int32]string{0: "null", 1: "point", 3: "polyline", 5: "polygon", 8: "multipoint", 11: "pointZ", 13: "polylineZ", 15: "polygonZ",
	18: "multipointZ", 21: "pointM", 23: "polylineM", 25: "polygonM", 28: "multipointM", 31: "multipatch"}

// languages are the code pages of a table's language byte.
var languages = map[byte]string{0x4d: "GBK", 0x7a: "GBK", 0x4f: "Big5", 0x78: "Big5", 0x57: "windows-1252", 0x03: "windows-1252", 0x01: "CP437", 0x02: "CP850", 0xc9: "windows-1251", 0x7b: "Shift_JIS", 0x13: "Shift_JIS", 0x4e: "EUC-KR", 0x79: "EUC-KR"}

// readShapefile reads the geometry of a shapefile, and which fields its table has.
func readShapefile(q Request, facts *Facts) error {
	var west, east heap // of Greenwich
	var sides space.Sides
	var none, wrong misfits
	kind, records, err := readShapes(q.Path, func(s shape) error {
		lines, err := s.lines()
		if err != nil {
			wrong.add(s.at)
		}
		if len(lines) == 0 {
			lines = [][]orb.Point{s.points}
		}
		for _, line := range lines {
			line = slices.DeleteFunc(line, func(p orb.Point) bool {
				nowhere := !space.Placed(p)
				if nowhere {
					none.add(s.at)
				}
				return nowhere
			})
			for _, p := range line {
				if p[0] <= 0 {
					west.add(p)
				} else {
					east.add(p)
				}
			}
			if len(line) > 0 {
				sides.Add(orb.MultiPoint(line).Bound())
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	e := facts.Entity
	e["format"], e["geometry"], e["records"] = "Shapefile", shapeNames[kind], records
	none.warn(facts, "coordinates are no numbers, or of no place; they are left out")
	wrong.warn(facts, "parts begin at points that are not there")
	facts.table(q)
	crs, err := systemBeside(q)
	switch {
	case err != nil:
		facts.warn("%v", err)
	case crs.WKT == "":
		facts.warn("no .prj: the reference system is unknown")
	}
	all := append(west.around(), east.around()...)
	led := crs.Geographic() && sides.Across()
	if led {
		for i := range all {
			if all[i][0] <= 0 {
				all[i][0] += 360
			}
		}
	}
	var warnings []string
	all = space.Hull(all)
	facts.Space, warnings = space.Outline(all, crs, q.Name)
	facts.Warnings = append(facts.Warnings, warnings...)
	if led {
		facts.Space.NativeOnGlobe(all)
	}
	return nil
}

// misfits counts what is wrong with records, and knows the first.
type misfits struct{ n, at int64 }

func (m *misfits) add(at int64) {
	if m.n++; m.n == 1 {
		m.at = at
	}
}

func (m *misfits) warn(facts *Facts, what string) {
	switch {
	case m.n == 1:
		facts.warn("shapefile: at byte %d: %s", m.at, what)
	case m.n > 1:
		facts.warn("shapefile: at byte %d, the first of %d such places: %s", m.at, m.n, what)
	}
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

// table says which fields the table has, and in which encoding.
func (facts *Facts) table(q Request) {
	path, ok := q.Beside[".dbf"]
	if !ok {
		facts.warn("no .dbf: there are no attributes")
		return
	}
	head, err := tableHead(path)
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
	for fields := head[32:]; len(fields) >= 32 && fields[0] != '\r'; fields = fields[32:] {
		name, _, _ := bytes.Cut(fields[:11], []byte{0})
		names = append(names, clean(string(name)))
	}
	if len(names) > 0 {
		facts.Entity["fields"] = names[:min(len(names), 100)]
	}
	if n := int(binary.LittleEndian.Uint32(head[4:])); n != facts.Entity["records"] {
		facts.warn("%v records have a geometry, %d have attributes", facts.Entity["records"], n)
	}
}

// tableHead reads what stands in a table before its rows.
func tableHead(path string) ([]byte, error) {
	f, size, err := openFile(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var lengths [10]byte
	if _, err := f.ReadAt(lengths[:], 0); err != nil {
		return nil, fmt.Errorf("at byte 0: no header, in a file of %s", layout.Count(size, "byte"))
	}
	n := int64(binary.LittleEndian.Uint16(lengths[8:]))
	if n < 33 || n > size {
		return nil, fmt.Errorf("at byte 8: a header of %d bytes, in a file of %d", n, size)
	}
	head := make([]byte, n)
	_, err = f.ReadAt(head, 0)
	return head, err
}
