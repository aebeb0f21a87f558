package views

import (
	"errors"
	"fmt"
	"image"
	"image/color"
	"math"

	"bagpipe/steps/describe"
	"bagpipe/steps/space"

	"github.com/paulmach/orb"
	"golang.org/x/image/draw"
)

// drawShapes draws the outlines of a shapefile, north up. Degrees on both sides of the antimeridian are drawn across it where that
// is the narrower way. Whether they are degrees the .prj says; without one that can be read they are what looks like degrees.
func drawShapes(q Request) (_ image.Image, warnings []string, err error) {
	path := q.Path
	west, south, east, north := math.Inf(1), math.Inf(1), math.Inf(-1), math.Inf(-1)
	var sides space.Sides
	err = describe.Lines(path, func(line [][2]float64) {
		for _, p := range line {
			west, south, east, north = math.Min(west, p[0]), math.Min(south, p[1]), math.Max(east, p[0]), math.Max(north, p[1])
		}
		sides.Add(bound(line))
	})
	if err != nil {
		return nil, nil, err
	}
	degrees := west >= -180 && east <= 180 && south >= -90 && north <= 90
	if degrees && sides.Across() {
		var guess string
		if degrees, guess = inDegrees(q.Prj); guess != "" {
			warnings = append(warnings, guess)
		}
	}
	lines := func(visit func(line [][2]float64)) error { return describe.Lines(path, visit) }
	if degrees && sides.Across() {
		west, east = sides.WestEast()
		lines = func(visit func(line [][2]float64)) error {
			return describe.Lines(path, func(line [][2]float64) {
				by := space.Beside(bound(line)).Min[0] - bound(line).Min[0]
				for i := range line {
					line[i][0] += by
				}
				visit(line)
			})
		}
	}
	if !(west <= east && south <= north) || math.IsInf(east-west, 0) || math.IsInf(north-south, 0) {
		return nil, nil, errors.New("shapefile: there is nothing to draw")
	}
	const margin = 8
	size := math.Max(math.Max(east-west, north-south), 1e-9)
	scale := (Browse - 2*margin - 1) / size
	w, h := int((east-west)*scale)+2*margin+1, int((north-south)*scale)+2*margin+1
	out := image.NewRGBA(image.Rect(0, 0, w, h))
	draw.Draw(out, out.Bounds(), image.NewUniform(color.White), image.Point{}, draw.Src)
	at := func(p [2]float64) (int, int) {
		return margin + int((p[0]-west)*scale), margin + int((north-p[1])*scale)
	}
	err = lines(func(line [][2]float64) {
		x0, y0 := at(line[0])
		if len(line) == 1 {
			draw.Draw(out, image.Rect(x0-2, y0-2, x0+3, y0+3), image.NewUniform(ink), image.Point{}, draw.Src)
		}
		for _, p := range line[1:] {
			x, y := at(p)
			stroke(out, x0, y0, x, y)
			x0, y0 = x, y
		}
	})
	return out, warnings, err
}

// inDegrees reports whether the .prj of shapes that may be degrees says so, or warns that this is a guess.
func inDegrees(prj string) (is bool, guess string) {
	if prj == "" {
		return true, "no .prj: the shapes are taken for degrees, and drawn across the antimeridian"
	}
	crs, err := describe.System(prj)
	if err != nil {
		return true, fmt.Sprintf("%v: the shapes are taken for degrees, and drawn across the antimeridian", err)
	}
	return crs.Geographic(), ""
}

func bound(line [][2]float64) orb.Bound {
	b := orb.Bound{Min: line[0], Max: line[0]}
	for _, p := range line {
		b = b.Extend(p)
	}
	return b
}

var ink = color.RGBA{0x20, 0x4a, 0x87, 0xff}

// stroke draws a line by Bresenham's steps.
func stroke(to *image.RGBA, x0, y0, x1, y1 int) {
	dx, dy := abs(x1-x0), -abs(y1-y0)
	sx, sy := sign(x1-x0), sign(y1-y0)
	for e := dx + dy; ; {
		to.SetRGBA(x0, y0, ink)
		if x0 == x1 && y0 == y1 {
			return
		}
		e2 := 2 * e
		if e2 >= dy {
			e, x0 = e+dy, x0+sx
		}
		if e2 <= dx {
			e, y0 = e+dx, y0+sy
		}
	}
}

func abs(n int) int { return max(n, -n) }

func sign(n int) int {
	switch {
	case n < 0:
		return -1
	case n > 0:
		return 1
	}
	return 0
}
