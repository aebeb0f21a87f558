package views

import (
	"fmt"
	"image"
	_ "image/gif"  // decodes
	_ "image/jpeg" // decodes
	_ "image/png"  // decodes
	"io"
	"os"

	"bagpipe/steps/raster"

	"github.com/bep/imagemeta"
	_ "golang.org/x/image/webp" // decodes
)

// decodeImage decodes a picture, upright. A TIFF by another name is drawn as one: what decodes TIFFs elsewhere in the program registers
// itself with the standard library, and takes memory for as many bytes as they say they have.
func decodeImage(f *os.File) (image.Image, error) {
	var head [4]byte
	if n, _ := f.ReadAt(head[:], 0); raster.IsTIFF(head[:n]) {
		return drawTIFF(f)
	}
	c, format, err := image.DecodeConfig(f)
	if err != nil {
		return nil, fmt.Errorf("picture: at byte 0: %w", err)
	}
	if err := refuse(c); err != nil {
		return nil, err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	picture, _, err := image.Decode(f)
	if err != nil {
		read, _ := f.Seek(0, io.SeekCurrent) // decoders know no bytes, and read ahead
		return nil, fmt.Errorf("picture: before byte %d: %w", read, err)
	}
	if format == "webp" {
		picture = raster.FromVideo(picture)
	}
	// Turned when it is small.
	return turned(scaled(picture, Browse), orientation(f, format)), nil
}

// orientation is EXIF's, 1 where there is none.
func orientation(f *os.File, format string) (n int) {
	kind, ok := map[string]imagemeta.ImageFormat{"jpeg": imagemeta.JPEG, "png": imagemeta.PNG, "webp": imagemeta.WebP}[format]
	if _, err := f.Seek(0, io.SeekStart); err != nil || !ok {
		return 1
	}
	n = 1
	_, _ = imagemeta.Decode(imagemeta.Options{R: f, ImageFormat: kind, Sources: imagemeta.EXIF,
		ShouldHandleTag: func(t imagemeta.TagInfo) bool { return t.Tag == "Orientation" },
		HandleTag: func(t imagemeta.TagInfo) error {
			if v, ok := t.Value.(uint16); ok {
				n = int(v)
			}
			return nil
		}})
	return n
}

// turned undoes an orientation of EXIF.
func turned(from *image.RGBA, orientation int) image.Image {
	if orientation < 2 || orientation > 8 {
		return from
	}
	w, h := from.Bounds().Dx(), from.Bounds().Dy()
	size := image.Rect(0, 0, w, h)
	if orientation >= 5 {
		size = image.Rect(0, 0, h, w)
	}
	to := image.NewRGBA(size)
	for y := range h {
		for x := range w {
			tx, ty := x, y
			switch orientation {
			case 2:
				tx = w - 1 - x
			case 3:
				tx, ty = w-1-x, h-1-y
			case 4:
				ty = h - 1 - y
			case 5:
				tx, ty = y, x
			case 6:
				tx, ty = h-1-y, x
			case 7:
				tx, ty = h-1-y, w-1-x
			case 8:
				tx, ty = y, w-1-x
			}
			to.SetRGBA(tx, ty, from.RGBAAt(x, y))
		}
	}
	return to
}
