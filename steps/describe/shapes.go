package describe

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"math"

	"bagpipe/steps/space"

	"github.com/paulmach/orb"
)

// Shapes are read here, not by jonas-p/go-shp: it opens files that end with .shp and .dbf in lower case alone, and it wants of
// every shape with heights the measures as well, which the format leaves to the writer and most leave out: of the last one it
// would read beyond the end of the file.

// shape is a record of a shapefile without its heights and measures.
type shape struct {
	at       int64 // its byte
	points   []orb.Point
	starts   []int // of lines among the points
	separate bool  // the points are no lines
}

// lines gives the shape's lines and rings, separate points being lines of one.
func (s shape) lines() (out [][]orb.Point, err error) {
	if s.separate {
		for i := range s.points {
			out = append(out, s.points[i:i+1:i+1])
		}
		return out, nil
	}
	for i, from := range s.starts {
		to := len(s.points)
		if i+1 < len(s.starts) {
			to = s.starts[i+1]
		}
		if from < 0 || from >= to || to > len(s.points) {
			return nil, fmt.Errorf("shapefile: at byte %d: a part from point %d to %d, of %d", s.at, from, to, len(s.points))
		}
		out = append(out, s.points[from:to:to])
	}
	return out, nil
}

// readShapes calls visit with every shape that has points, and gives the kind that the header names and how many records there are.
// Every length is compared with the others and with the file before memory is taken for it.
func readShapes(path string, visit func(shape) error) (kind int32, records int, err error) {
	f, size, err := openFile(path)
	if err != nil {
		return 0, 0, err
	}
	defer f.Close()
	r := bufio.NewReaderSize(f, 1<<16)
	head := make([]byte, 100)
	if _, err := io.ReadFull(r, head); err != nil || binary.BigEndian.Uint32(head) != 9994 {
		return 0, 0, fmt.Errorf("shapefile: at byte 0: no header")
	}
	kind = int32(binary.LittleEndian.Uint32(head[32:]))
	for at := int64(100); at < size; records++ {
		var b [12]byte
		if _, err := io.ReadFull(r, b[:]); err != nil {
			return kind, records, fmt.Errorf("shapefile: at byte %d: half a record", at)
		}
		length := int64(binary.BigEndian.Uint32(b[4:])) * 2
		if length < 4 || length > size-at-8 {
			return kind, records, fmt.Errorf("shapefile: at byte %d: a record of %d bytes, in a file of %d", at, length, size)
		}
		s := shape{at: at}
		used, err := s.read(r, binary.LittleEndian.Uint32(b[8:]), length-4)
		if err != nil {
			return kind, records, fmt.Errorf("shapefile: at byte %d: %w", at, err)
		}
		if _, err := r.Discard(int(length - 4 - used)); err != nil {
			return kind, records, err
		}
		if len(s.points) > 0 {
			if err := visit(s); err != nil {
				return kind, records, err
			}
		}
		at += 8 + length
	}
	return kind, records, nil
}

// read reads the points of a shape of that kind, in as many bytes as it may have.
func (s *shape) read(r io.Reader, kind uint32, length int64) (used int64, err error) {
	head := int64(36) // bounds and the number of points
	switch kind {
	case 0:
		return 0, nil
	case 1, 11, 21:
		s.separate = true
		if length < 16 {
			return 0, fmt.Errorf("a point of %d bytes", length)
		}
		s.points, err = readPoints(r, 1)
		return 16, err
	case 8, 18, 28:
		s.separate = true
	case 3, 5, 13, 15, 23, 25, 31:
		head = 40 // and the number of parts before it
	default:
		return 0, fmt.Errorf("a shape of type %d", kind)
	}
	b := make([]byte, head)
	if length < head {
		return 0, fmt.Errorf("a shape of %d bytes", length)
	}
	if _, err := io.ReadFull(r, b); err != nil {
		return 0, err
	}
	var parts int64
	points, perPart := int64(binary.LittleEndian.Uint32(b[head-4:])), int64(4)
	if !s.separate {
		parts = int64(binary.LittleEndian.Uint32(b[32:]))
	}
	if kind == 31 {
		perPart = 8 // each part has a type, too
	}
	used = head + perPart*parts + 16*points
	if parts > math.MaxInt32 || points > math.MaxInt32 || used > length {
		return 0, fmt.Errorf("%d parts and %d points in %d bytes", parts, points, length)
	}
	starts := make([]byte, perPart*parts)
	if _, err := io.ReadFull(r, starts); err != nil {
		return 0, err
	}
	for i := range parts {
		s.starts = append(s.starts, int(int32(binary.LittleEndian.Uint32(starts[4*i:]))))
	}
	s.points, err = readPoints(r, points)
	return used, err
}

func readPoints(r io.Reader, n int64) ([]orb.Point, error) {
	out := make([]orb.Point, n)
	var b [16]byte
	for i := range out {
		if _, err := io.ReadFull(r, b[:]); err != nil {
			return nil, err
		}
		for k := range out[i] {
			out[i][k] = math.Float64frombits(binary.LittleEndian.Uint64(b[8*k:]))
		}
	}
	return out, nil
}

// Lines calls visit with every line and ring of a shapefile, points being lines of one.
func Lines(path string, visit func(line [][2]float64)) error {
	_, _, err := readShapes(path, func(s shape) error {
		lines, err := s.lines()
		for _, points := range lines {
			line := make([][2]float64, 0, len(points))
			for _, p := range points {
				if space.Placed(p) {
					line = append(line, p)
				}
			}
			if len(line) > 0 {
				visit(line)
			}
		}
		return err
	})
	return err
}
