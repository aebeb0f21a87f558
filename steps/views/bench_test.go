package views

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// BenchmarkHundredMegapixels draws both pictures of a GeoTIFF of 10,000 × 10,000 pixels of 16
// bits. The peer is gdal_translate -outsize, where it is; x-peer is how many times its time
// this takes, peak-MB the most memory that this process held.
func BenchmarkHundredMegapixels(b *testing.B) {
	path := filepath.Join(b.TempDir(), "large.tif")
	f, err := os.Create(path)
	if err != nil {
		b.Fatal(err)
	}
	w := bufio.NewWriterSize(f, 1<<20)
	writeTIFF(w, 10000, 10000, 16, "0", func(x, y int) uint16 { return uint16(x*7 + y*3) })
	if err := w.Flush(); err != nil {
		b.Fatal(err)
	}
	if err := f.Close(); err != nil {
		b.Fatal(err)
	}
	b.ResetTimer()
	for b.Loop() {
		if _, err := Draw(Request{Path: path, Name: "large.tif"}); err != nil {
			b.Fatal(err)
		}
	}
	b.StopTimer()
	b.ReportMetric(peak(b), "peak-MB")
	if gdal, err := exec.LookPath("gdal_translate"); err == nil {
		start := time.Now()
		out, err := exec.Command(gdal, "-q", "-of", "JPEG", "-ot", "Byte", "-scale", "-outsize", "1024", "1024", path, filepath.Join(b.TempDir(), "o.jpg")).CombinedOutput()
		if err != nil {
			b.Fatalf("%v: %s", err, out)
		}
		b.ReportMetric(float64(b.Elapsed())/float64(b.N)/float64(time.Since(start)), "x-peer")
	}
}

func peak(b *testing.B) float64 {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		b.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(status), "VmHWM:")
	kb, err := strconv.Atoi(strings.Fields(rest)[0])
	if err != nil {
		b.Fatal(err)
	}
	return float64(kb) / 1024
}
