package steps

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"image"
	"image/jpeg"
	"image/png"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"bagpipe/layout"
	"bagpipe/steps/space"
	"bagpipe/testdata/sample"
)

func drawing(t *testing.T) (*Call, string) {
	t.Helper()
	c := &Call{Item: "3fa9c0d2e1b7a45", Step: "views"}
	c.Content, c.Scratch = t.TempDir(), t.TempDir()
	f, err := os.Create(filepath.Join(c.Content, "map.png"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := png.Encode(f, image.NewGray(image.Rect(0, 0, 2000, 500))); err != nil {
		t.Fatal(err)
	}
	return c, c.Content
}

func size(t *testing.T, path string) image.Point {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	c, err := jpeg.DecodeConfig(f)
	if err != nil {
		t.Fatal(err)
	}
	return image.Pt(c.Width, c.Height)
}

// A broken preview does not keep the picture itself from being drawn.
func TestViews(t *testing.T) {
	c, dir := drawing(t)
	if err := os.WriteFile(filepath.Join(dir, "preview.jpg"), []byte("no picture"), 0o600); err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	c.Log = &log
	res, err := drawViews(context.Background(), c)
	if err != nil || len(res.Outputs) != 1 || res.Outputs[0].To != "derived/views" || !strings.Contains(log.String(), "preview.jpg: picture: ") {
		t.Fatalf("%+v, %v, %s", res, err, log.String())
	}
	if got := size(t, filepath.Join(c.Scratch, "views", "browse.jpg")); got != image.Pt(1024, 256) {
		t.Errorf("browse %v", got)
	}
	if got := size(t, filepath.Join(c.Scratch, "views", "thumb.jpg")); got != image.Pt(256, 64) {
		t.Errorf("thumb %v", got)
	}
}

// A preview that came along is drawn before the picture itself, however small it is.
func TestViewsOfAPreview(t *testing.T) {
	c, dir := drawing(t)
	f, err := os.Create(filepath.Join(dir, "map_thumb.png"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := png.Encode(f, image.NewGray(image.Rect(0, 0, 40, 40))); err != nil {
		t.Fatal(err)
	}
	if res, err := drawViews(t.Context(), c); err != nil || !strings.Contains(res.Message, "map_thumb.png") {
		t.Fatalf("%+v, %v", res, err)
	}
	if got := size(t, filepath.Join(c.Scratch, "views", "browse.jpg")); got.X != got.Y {
		t.Errorf("browse %v", got)
	}
}

func TestViewsElsewhere(t *testing.T) {
	c, _ := drawing(t)
	c.Views = t.TempDir()
	for range 2 { // again gives the same
		if res, err := drawViews(context.Background(), c); err != nil || len(res.Outputs) != 0 {
			t.Fatalf("%+v, %v", res, err)
		}
		size(t, filepath.Join(c.Views, strings.TrimPrefix(layout.ItemDir(c.Item), "items/"), "thumb.jpg"))
	}
}

// Content of which nothing can be drawn has no pictures, least of all those of what was there before.
func TestViewsOfWhatWasThereBefore(t *testing.T) {
	c, dir := drawing(t)
	c.Views, c.Dir = t.TempDir(), t.TempDir()
	if res, err := drawViews(t.Context(), c); err != nil || len(res.Remove) != 0 {
		t.Fatalf("%+v, %v", res, err)
	}
	if err := os.MkdirAll(filepath.Join(c.Dir, "derived", "views"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "map.png"), []byte("no picture"), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		res, err := drawViews(t.Context(), c)
		if err != nil || res.Status != Skipped || len(res.Remove) != 1 || res.Remove[0] != "derived/views" {
			t.Fatalf("%+v, %v", res, err)
		}
		if left, err := os.ReadDir(viewsDir(c)); err != nil || len(left) != 0 {
			t.Errorf("%v are left, %v", left, err)
		}
	}
}

// A PDF and a video are drawn by programs; where these are not there, it is told, and nothing is drawn.
func TestViewsByPrograms(t *testing.T) {
	for name, program := range map[string]string{"page.pdf": "pdftoppm", "film.mp4": "ffmpeg", "film.mkv": "ffmpeg", "film.avi": "ffmpeg", "film.webm": "ffmpeg"} {
		path, err := exec.LookPath(program)
		if err != nil {
			t.Logf("%s is not installed; testdata/tools.sh installs it where it can", program)
			continue
		}
		c := &Call{Item: "3fa9c0d2e1b7a45", Step: "views"}
		c.Content, c.Scratch = t.TempDir(), t.TempDir()
		file := filepath.Join(c.Content, name)
		if program == "ffmpeg" {
			if out, err := exec.Command(path, "-v", "error", "-f", "lavfi", "-i", "testsrc=duration=1:size=640x320:rate=5", "-deadline", "realtime", "-pix_fmt", "yuv420p", file).CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
		} else if err := os.WriteFile(file, pagePDF(), 0o600); err != nil {
			t.Fatal(err)
		}
		res, err := drawViews(t.Context(), c)
		if err != nil || len(res.Outputs) != 1 {
			t.Fatalf("%s: %+v, %v", name, res, err)
		}
		thumb := size(t, filepath.Join(c.Scratch, "views", "thumb.jpg"))
		browse := size(t, filepath.Join(c.Scratch, "views", "browse.jpg"))
		if thumb != image.Pt(256, 128) || browse.X != 2*browse.Y || browse.X > 1024 {
			t.Errorf("%s: a thumb of %v and a browse of %v", name, thumb, browse)
		}
		t.Run(name+" without "+program, func(t *testing.T) {
			t.Setenv("PATH", t.TempDir())
			var log bytes.Buffer
			c.Scratch, c.Log = t.TempDir(), &log
			if res, err := drawViews(t.Context(), c); err != nil || res.Status != Skipped || !strings.Contains(log.String(), "the program "+program+" is not there") {
				t.Errorf("%s: %+v, %v, %s", name, res, err, log.String())
			}
		})
	}
}

// pagePDF is a PDF of one page of 400 × 200 points, with a black square.
func pagePDF() []byte {
	draw := "50 50 100 100 re f"
	return sample.PDF("", "<</Type/Catalog/Pages 2 0 R>>", "<</Type/Pages/Kids[3 0 R]/Count 1>>",
		"<</Type/Page/Parent 2 0 R/MediaBox[0 0 400 200]/Resources<<>>/Contents 4 0 R>>", fmt.Sprintf("<</Length %d>>\nstream\n%s\nendstream", len(draw), draw))
}

// A .prj beside shapes decides how they are drawn, whatever the case of its name; what is guessed is told.
func TestViewsOfShapesByTheirSystem(t *testing.T) {
	shapes := func(x float64) []byte {
		var b []byte
		for _, v := range []float64{x, 0} {
			b = binary.LittleEndian.AppendUint64(b, math.Float64bits(v))
		}
		return append(binary.LittleEndian.AppendUint32(binary.BigEndian.AppendUint32([]byte{0, 0, 0, 1}, 10), 1), b...)
	}
	for prj, says := range map[string]string{"": "warning: a.shp: no .prj: the shapes are taken for degrees", space.FromEPSG(32633).WKT: ""} {
		dir := t.TempDir()
		data := append(append([]byte{0, 0, 0x27, 0x0a}, make([]byte, 96)...), append(shapes(-179), shapes(179)...)...)
		if err := os.WriteFile(filepath.Join(dir, "a.shp"), data, 0o600); err != nil {
			t.Fatal(err)
		}
		if prj != "" {
			if err := os.WriteFile(filepath.Join(dir, "A.PRJ"), []byte(prj), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		var log strings.Builder
		call := &Call{Item: "3fa9c0d2e1b7a45", Step: "views"}
		call.Content, call.Scratch, call.Log = dir, t.TempDir(), &log
		if _, err := drawViews(t.Context(), call); err != nil || says == "" && log.Len() > 0 || !strings.Contains(log.String(), says) {
			t.Errorf("%.20q: %v, says %q", prj, err, log.String())
		}
	}
}
