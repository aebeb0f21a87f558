// Command draw makes the two plates in ../pictures. They are checked in, so that
// their bytes do not depend on the version of Go's encoders.
package main

import (
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"io"
	"math"
	"os"
)

func main() {
	if err := draw(); err != nil {
		fmt.Fprintln(os.Stderr, "draw:", err)
		os.Exit(1)
	}
}

func draw() error {
	return errors.Join(
		write("pictures/Plate 1.png", func(w io.Writer) error { return png.Encode(w, plate(160, 120, 3)) }),
		write("pictures/Plate 2.jpg", func(w io.Writer) error {
			return jpeg.Encode(w, plate(200, 150, 5), &jpeg.Options{Quality: 85})
		}),
	)
}

func write(path string, encode func(io.Writer) error) (err error) {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return encode(f)
}

// plate draws rings of light on a darkened ground, framed.
func plate(w, h, rings int) image.Image {
	m := image.NewRGBA(image.Rect(0, 0, w, h))
	for y := range h {
		for x := range w {
			dx, dy := float64(x-w/2)/float64(h), float64(y-h/2)/float64(h)
			v := 0.5 + 0.5*math.Cos(2*math.Pi*float64(rings)*math.Hypot(dx, dy))
			v *= 1 - 0.6*math.Hypot(dx, dy)
			if x < 4 || y < 4 || x >= w-4 || y >= h-4 {
				v = 0.1
			}
			m.Set(x, y, color.RGBA{R: uint8(230 * v), G: uint8(205 * v), B: uint8(160 * v), A: 255})
		}
	}
	return m
}
