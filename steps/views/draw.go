package views

import (
	"bytes"
	"encoding/json"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"os"

	"bagpipe/layout"
	"bagpipe/steps/decoder"
	"bagpipe/steps/describe"

	"golang.org/x/image/draw"
)

// The longer sides of the two pictures, in pixels.
const (
	Thumb  = 256
	Browse = 1024
)

// Request names a file to draw and, of shapes, the .prj beside it; "": there is none.
type Request struct {
	Path string `json:"path"`
	Name string `json:"name"`
	Prj  string `json:"prj,omitempty"`
}

// Answer holds two JPEGs, and what is doubtful about them.
type Answer struct {
	Thumb    []byte   `json:"thumb"`
	Browse   []byte   `json:"browse"`
	Warnings []string `json:"warnings,omitempty"`
}

// Draws reports whether files of that name can be drawn.
func Draws(name string) bool {
	switch describe.KindOf(name) {
	case describe.Raster, describe.Vector, describe.Image:
		return true
	}
	return false
}

// Draw draws a file.
func Draw(q Request) (*Answer, error) {
	picture, warnings, err := pictureOf(q)
	if err != nil {
		return nil, err
	}
	a, err := encode(picture)
	if err == nil {
		a.Warnings = warnings
	}
	return a, err
}

// pictureOf draws a file at the size of the larger picture, or larger.
func pictureOf(q Request) (picture image.Image, warnings []string, err error) {
	f, err := os.Open(q.Path)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	switch describe.KindOf(q.Name) {
	case describe.Raster:
		picture, err = drawTIFF(f)
	case describe.Vector:
		picture, warnings, err = drawShapes(q)
	case describe.Image:
		picture, err = decodeImage(f)
	default:
		err = fmt.Errorf("%s is of no kind that is drawn", q.Name)
	}
	return picture, warnings, err
}

// encode scales a picture down to the two sizes.
func encode(picture image.Image) (*Answer, error) {
	browse := scaled(picture, Browse)
	a := &Answer{}
	for _, to := range []struct {
		at      *[]byte
		picture image.Image
	}{{&a.Browse, browse}, {&a.Thumb, scaled(browse, Thumb)}} {
		var b bytes.Buffer
		if err := jpeg.Encode(&b, to.picture, &jpeg.Options{Quality: 85}); err != nil {
			return nil, err
		}
		*to.at = b.Bytes()
	}
	return a, nil
}

// fit gives the size of a picture of w × h whose longer side is at most most.
func fit(w, h, most int64) (int, int) {
	if longer := max(w, h); longer > most {
		w, h = max(1, (w*most+longer/2)/longer), max(1, (h*most+longer/2)/longer)
	}
	return int(w), int(h)
}

// scaled is a picture on white, whose longer side is at most most.
func scaled(from image.Image, most int64) *image.RGBA {
	b := from.Bounds()
	w, h := fit(int64(b.Dx()), int64(b.Dy()), most)
	to := image.NewRGBA(image.Rect(0, 0, w, h))
	draw.Draw(to, to.Bounds(), image.NewUniform(color.White), image.Point{}, draw.Src)
	if w == b.Dx() && h == b.Dy() {
		draw.Draw(to, to.Bounds(), from, b.Min, draw.Over)
		return to
	}
	draw.BiLinear.Scale(to, to.Bounds(), from, b, draw.Over, nil)
	return to
}

// NewWork makes the work of a decoding process; it takes a Request and gives an Answer.
func NewWork() (decoder.Work, error) {
	return func(request json.RawMessage) (any, error) {
		var q Request
		err := json.Unmarshal(request, &q)
		if err == nil {
			q.Path, err = layout.DecodePath(q.Path)
		}
		if err == nil {
			q.Prj, err = layout.DecodePath(q.Prj)
		}
		if err != nil {
			return nil, err
		}
		return Draw(q)
	}, nil
}
