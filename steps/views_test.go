package steps

import (
	"context"
	"image"
	"image/jpeg"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"bagpipe/layout"
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
