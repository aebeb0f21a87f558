package raster

import (
	"cmp"
	"fmt"
	"math"
	"strings"
)

// Geo is what the GeoTIFF fields of a page say.
type Geo struct {
	// Affine leads from column and row, counted from the outer corner of the first pixel,
	// to coordinates: x = a[0] + column·a[1] + row·a[2], y = a[3] + column·a[4] + row·a[5].
	// nil: there is none.
	Affine *[6]float64
	Code   int    // of EPSG; 0: none is given
	Name   string // as the file gives it
	Point  bool   // positions are those of the pixels' centres
	Keys   map[int]int
}

const (
	tagScale, tagTies, tagMatrix            = 33550, 33922, 34264
	tagGeoKeys, tagGeoDoubles, tagGeoTexts  = 34735, 34736, 34737
	keyModel, keyRaster, keyCitation        = 1024, 1025, 1026
	keyGeographic, keyGeoName, keyProjected = 2048, 2049, 3072
	keyProjectedName                        = 3073
	modelProjected, modelGeographic         = 1, 2
	userDefined                             = 32767
)

// geo reads the GeoTIFF fields; beside an error it gives what it could read.
func (f *File) geo(fields map[uint16]field) (*Geo, error) {
	keys, keysErr := f.integers(fields[tagGeoKeys])
	g := &Geo{Keys: map[int]int{}}
	texts, textsErr := f.text(fields[tagGeoTexts])
	names := map[int]string{}
	for i := 4; i+3 < len(keys); i += 4 {
		key, where, count, value := int(keys[i]), keys[i+1], keys[i+2], keys[i+3]
		switch {
		case where == 0:
			g.Keys[key] = int(value)
		case where == tagGeoTexts && value+count <= int64(len(texts)):
			names[key] = strings.TrimRight(texts[value:value+count], "|\x00 ")
		}
	}
	g.Point = g.Keys[keyRaster] == 2
	err := cmp.Or(keysErr, textsErr, g.place(f, fields))
	if err == nil && g.Affine == nil && len(keys) == 0 {
		return nil, nil
	}
	switch model := g.Keys[keyModel]; {
	case model == modelGeographic || model == 0 && g.Keys[keyProjected] == 0:
		g.Code, g.Name = g.Keys[keyGeographic], names[keyGeoName]
	case model <= modelProjected:
		g.Code, g.Name = g.Keys[keyProjected], names[keyProjectedName]
	default: // geocentric, or of the writer's own: the geographic system is but what it is made from
		g.Name = names[keyProjectedName]
	}
	if g.Code == userDefined || g.Code < 1024 {
		g.Code = 0
	}
	if g.Name == "" {
		g.Name = names[keyCitation]
	}
	return g, err
}

// place reads where the pixels are.
func (g *Geo) place(f *File, fields map[uint16]field) error {
	matrix, err := f.doubles(fields[tagMatrix])
	if err != nil {
		return err
	}
	scale, err := f.doubles(fields[tagScale])
	if err != nil {
		return err
	}
	ties, err := f.doubles(fields[tagTies])
	if err != nil {
		return err
	}
	var a [6]float64
	at := fields[tagTies].at
	switch {
	case len(matrix) == 16:
		at = fields[tagMatrix].at
		a = [6]float64{matrix[3], matrix[0], matrix[1], matrix[7], matrix[4], matrix[5]}
	case len(scale) >= 2 && len(ties) >= 6:
		a = [6]float64{ties[3] - ties[0]*scale[0], scale[0], 0, ties[4] + ties[1]*scale[1], 0, -scale[1]}
	case len(matrix)+len(scale)+len(ties) == 0:
		return nil
	default:
		return &Error{at, fmt.Sprintf("%d numbers of tie points, %d of a scale and %d of a matrix, which place no pixel", len(ties), len(scale), len(matrix))}
	}
	for _, v := range a {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return &Error{at, fmt.Sprintf("a position that is no number: %v", a)}
		}
	}
	if g.Point {
		a[0] -= a[1]/2 + a[2]/2
		a[3] -= a[4]/2 + a[5]/2
	}
	g.Affine = &a
	return nil
}

// Corners are the outer corners of a page in its coordinates, in a ring.
func Corners(a [6]float64, width, height int64) [5][2]float64 {
	at := func(c, r int64) [2]float64 {
		x, y := float64(c), float64(r)
		return [2]float64{a[0] + x*a[1] + y*a[2], a[3] + x*a[4] + y*a[5]}
	}
	return [5][2]float64{at(0, 0), at(0, height), at(width, height), at(width, 0), at(0, 0)}
}
