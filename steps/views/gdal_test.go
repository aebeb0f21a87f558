package views

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TIFFs of each kind of value, compression and prediction are drawn as what they were made from; of others the reason is told.
func TestDrawnWhateverTheKindOfTIFF(t *testing.T) {
	if _, err := exec.LookPath("gdal_translate"); err != nil {
		t.Skip("gdal_translate is not installed; testdata/tools.sh installs it where it can")
	}
	const width, height = 300, 200
	dir := t.TempDir()
	of := image.NewNRGBA(image.Rect(0, 0, width, height))
	for y := range height {
		for x := range width {
			c := color.NRGBA{uint8(x * 255 / width), uint8(y * 255 / height), uint8(127 + 120*math.Cos(float64(x+y)/50)), 255}
			if x < 30 { // so that the 2nd percentile is black
				c = color.NRGBA{A: 255}
			} else if x >= width-30 {
				c = color.NRGBA{255, 255, 255, 255}
			}
			of.Set(x, y, c)
		}
	}
	var b bytes.Buffer
	if err := png.Encode(&b, of); err != nil {
		t.Fatal(err)
	}
	source := filepath.Join(dir, "of.png")
	if err := os.WriteFile(source, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	const rgb, grey = "-b 1 -b 2 -b 3 -co PHOTOMETRIC=RGB ", "-b 2 "
	bits := func(n int) string { return fmt.Sprintf(grey+"-scale 0 255 0 %d -co NBITS=%d ", 1<<n-1, n) }
	for args, says := range map[string]string{
		rgb + "-co COMPRESS=LZW -co PREDICTOR=2 -co TILED=YES":                                       "",
		rgb + "-co COMPRESS=PACKBITS -co INTERLEAVE=BAND":                                            "",
		rgb + "-ot UInt16 -scale 0 255 0 65535 -co COMPRESS=ZSTD -co PREDICTOR=2 -co ENDIANNESS=BIG": "",
		rgb + "-ot Float32 -scale 0 255 0 1 -co NBITS=16 -co COMPRESS=DEFLATE -co PREDICTOR=3":       "",
		rgb + "-ot Float64 -co COMPRESS=LZW -co PREDICTOR=2":                                         "",
		rgb + "-ot Float64 -co COMPRESS=LZW -co PREDICTOR=3 -co BIGTIFF=YES":                         "",
		rgb + "-ot UInt64":                                                  "",
		bits(7) + "-co COMPRESS=LZW -co TILED=YES":                          "",
		bits(12) + "-ot UInt16":                                             "",
		bits(1) + "-co COMPRESS=CCITTFAX4":                                  "",
		bits(1) + "-co COMPRESS=CCITTFAX4 -co TILED=YES":                    "",
		bits(1) + "-co COMPRESS=CCITTFAX4 -co PHOTOMETRIC=MINISWHITE":       "",
		bits(1) + "-co COMPRESS=CCITTFAX3":                                  "compression CCITT group 3 is not read",
		rgb + "-co COMPRESS=LERC":                                           "compression LERC is not read",
		rgb + "-ot CFloat32":                                                "values of type complexfloat64 are not read",
		"-b 1 -b 2 -b 3 -co PHOTOMETRIC=CIELAB":                             "colours of CIELab, compressed by none, are not read",
		"-b 1 -b 2 -b 3 -b 1 -colorinterp_4 undefined -co PHOTOMETRIC=CMYK": "",
	} {
		path := filepath.Join(dir, "a.tif")
		out, err := exec.Command("gdal_translate", append(append([]string{"-q"}, strings.Fields(args)...), source, path)...).CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v: %s", args, err, out)
		}
		a, err := Draw(Request{Path: path, Name: "a.tif"})
		if says != "" || err != nil {
			if err == nil || says == "" || !strings.HasPrefix(err.Error(), "TIFF: ") || !strings.Contains(err.Error(), says) {
				t.Errorf("%s: %v, want %q", args, err, says)
			}
			continue
		}
		picture, err := jpeg.Decode(bytes.NewReader(a.Browse))
		if err != nil || picture.Bounds() != of.Bounds() {
			t.Fatalf("%s: %v", args, err)
		}
		sum := 0.0
		for y := range height {
			for x := range width {
				is, want := color.NRGBAModel.Convert(picture.At(x, y)).(color.NRGBA), of.NRGBAAt(x, y)
				switch {
				case strings.Contains(args, "CMYK"):
					want.R, want.G, want.B = color.CMYKToRGB(want.R, want.G, want.B, want.R)
				case strings.Contains(args, "NBITS=1 "):
					want.G = want.G / 128 * 255
					if strings.Contains(args, "MINISWHITE") {
						want.G = 255 - want.G
					}
					fallthrough
				case strings.HasPrefix(args, grey):
					want.R, want.B = want.G, want.G
				}
				for _, d := range [][2]uint8{{is.R, want.R}, {is.G, want.G}, {is.B, want.B}} {
					sum += math.Abs(float64(d[0]) - float64(d[1]))
				}
			}
		}
		if mean := sum / (width * height * 3); mean > 2.5 {
			t.Errorf("%s: %.2f off, of 255", args, mean)
		}
	}
}
