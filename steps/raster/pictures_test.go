package raster

import (
	"bytes"
	"encoding/binary"
	"image"
	"image/color"
	"io"
	"math"
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

// Values of 16 bits are floating point numbers, or parts of bytes in their order, from the right where the file says so.
func TestValuesThatAreNoWholeBytes(t *testing.T) {
	for b, want := range map[uint16]float32{0: 0, 0x3c00: 1, 0xc000: -2, 0x7bff: 65504, 1: 1.0 / (1 << 24), 0x3555: 0.333251953125, 0xfc00: float32(math.Inf(-1))} {
		if v := half(b); v != want {
			t.Errorf("%04x is %v, want %v", b, v, want)
		}
	}
	if v := half(0x7e00); v == v {
		t.Errorf("%v is a number", v)
	}
	row := []byte{0xab, 0xcd, 0xef, 0x12, 0x34, 0x56}
	for size, want := range map[int][]float32{1: {1, 0, 1, 0}, 4: {0xa, 0xb, 0xc}, 7: {0x55, 0x73, 0x3d}, 12: {0xabc, 0xdef, 0x123}, 24: {0xabcdef, 0x123456}} {
		s := &sampler{f: &File{order: binary.LittleEndian}, p: &Page{Pixels: Pixels{Bits: size, Sample: 1}}}
		value, err := s.valueOf()
		if err != nil {
			t.Fatal(err)
		}
		for i, v := range want {
			if got := value(row, int64(i)); got != v {
				t.Errorf("%d bits: value %d is %v, want %v", size, i, got, v)
			}
		}
	}
	if b, err := io.ReadAll(&fromRight{bytes.NewReader([]byte{1, 0xf0})}); err != nil || !bytes.Equal(b, []byte{0x80, 0x0f}) {
		t.Errorf("%x, %v", b, err)
	}
}
