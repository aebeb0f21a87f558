package raster

import (
	"image"
	"image/color"
	"testing"
)

// The planes of a WebP picture go from 16 to 235, and its colours from 16 to 240.
func TestFromVideo(t *testing.T) {
	for from, want := range map[color.YCbCr]color.YCbCr{{Y: 16, Cb: 128, Cr: 128}: {Y: 0, Cb: 128, Cr: 128}, {Y: 235, Cb: 16, Cr: 240}: {Y: 255, Cb: 1, Cr: 255}, {Y: 0, Cb: 0, Cr: 255}: {Y: 0, Cb: 0, Cr: 255}} {
		of := image.NewYCbCr(image.Rect(0, 0, 1, 1), image.YCbCrSubsampleRatio420)
		of.Y[0], of.Cb[0], of.Cr[0] = from.Y, from.Cb, from.Cr
		if got := FromVideo(of).(*image.YCbCr).YCbCrAt(0, 0); got != want {
			t.Errorf("%v: %v, want %v", from, got, want)
		}
	}
	if lossless := image.NewNRGBA(image.Rect(0, 0, 1, 1)); FromVideo(lossless) != image.Image(lossless) {
		t.Error("a lossless picture was changed")
	}
}
