package bags

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// noise is bytes that do not compress and differ from file to file.
func noise(n int, seed uint64) []byte {
	b := make([]byte, n)
	x := seed*2654435761 + 1
	for i := range b {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		b[i] = byte(x)
	}
	return b
}

// Peers are run beside, on the same files, and the ratio of their time to ours is
// reported: above 1 is faster than the peer.

// peer times a command's best of three, and is 0 where it is not installed.
func peer(b *testing.B, dir, name string, args ...string) time.Duration {
	b.Helper()
	if _, err := exec.LookPath(name); err != nil {
		return 0
	}
	best := time.Duration(0)
	for range 3 {
		cmd := exec.CommandContext(b.Context(), name, args...)
		cmd.Dir = dir
		start := time.Now()
		if out, err := cmd.CombinedOutput(); err != nil {
			b.Fatalf("%s: %v\n%s", name, err, out)
		}
		if d := time.Since(start); best == 0 || d < best {
			best = d
		}
	}
	return best
}

func report(b *testing.B, name string, peer time.Duration) {
	if peer > 0 {
		b.ReportMetric(peer.Seconds()/(b.Elapsed().Seconds()/float64(b.N)), name)
	}
}

func BenchmarkValidate(b *testing.B) {
	for _, s := range shapes {
		payload := shape(b, s.files, s.size)
		xargs := peer(b, payload, "sh", "-c", "find . -type f -print0 | xargs -0 -P2 -n"+map[bool]string{true: "1", false: "5000"}[s.files < 100]+" sha512sum >/dev/null")
		for _, as := range [][]Algorithm{{SHA512}, {SHA256, SHA512}} {
			b.Run(fmt.Sprintf("%s/%v", s.name, as), func(b *testing.B) {
				dest := filepath.Join(b.TempDir(), "bag")
				if _, err := Create(b.Context(), CreateOptions{Payload: payload, Dest: dest, Link: true, Algorithms: as}); err != nil {
					b.Fatal(err)
				}
				b.SetBytes(int64(s.files * s.size))
				for b.Loop() {
					if r, err := Validate(b.Context(), dest, ValidateOptions{}); err != nil || !r.Valid {
						b.Fatalf("%v, %v", r.Findings, err)
					}
				}
				report(b, "x-xargs-sha512sum", xargs)
			})
		}
	}
}
// text compresses about three to one.
func text(n int, seed uint64) []byte {
	b := noise(n, seed)
	for i := range b {
		b[i] = "aaaaaaeeeeetttinos rhl"[b[i]%22]
	}
	return b
}

func BenchmarkUnzip(b *testing.B) {
	for _, s := range []struct {
		name        string
		files, size int
	}{{"small", 10_000, 8 << 10}, {"large", 4, 64 << 20}} {
		archive := filepath.Join(b.TempDir(), "x.zip")
		f, err := os.Create(archive)
		if err != nil {
			b.Fatal(err)
		}
		w := zip.NewWriter(f)
		for i := range s.files {
			m, err := w.Create(fmt.Sprintf("%03d/%05d.txt", i/200, i))
			if err != nil {
				b.Fatal(err)
			}
			if _, err := m.Write(text(s.size, uint64(i))); err != nil {
				b.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			b.Fatal(err)
		}
		if err := f.Close(); err != nil {
			b.Fatal(err)
		}
		unpacks(b, s.name, archive, "unzip", "-qo", archive)
	}
}

func BenchmarkUntarGzip(b *testing.B) {
	for _, s := range []struct {
		name        string
		files, size int
	}{{"small", 10_000, 8 << 10}, {"large", 4, 64 << 20}} {
		archive := filepath.Join(b.TempDir(), "x.tar.gz")
		f, err := os.Create(archive)
		if err != nil {
			b.Fatal(err)
		}
		z := gzip.NewWriter(f)
		w := tar.NewWriter(z)
		for i := range s.files {
			if err := w.WriteHeader(&tar.Header{Name: fmt.Sprintf("%03d/%05d.txt", i/200, i), Mode: 0o644, Size: int64(s.size)}); err != nil {
				b.Fatal(err)
			}
			if _, err := w.Write(text(s.size, uint64(i))); err != nil {
				b.Fatal(err)
			}
		}
		for _, c := range []interface{ Close() error }{w, z, f} {
			if err := c.Close(); err != nil {
				b.Fatal(err)
			}
		}
		unpacks(b, s.name, archive, "tar", "xzf", archive)
	}
}

func unpacks(b *testing.B, name, archive, tool string, args ...string) {
	b.Run(name, func(b *testing.B) {
		other := peer(b, b.TempDir(), tool, args...)
		outer := b.TempDir()
		n := 0
		for b.Loop() {
			n++
			dir := filepath.Join(outer, fmt.Sprint(n))
			if err := os.Mkdir(dir, 0o755); err != nil {
				b.Fatal(err)
			}
			x, err := Extract(b.Context(), archive, dir, ExtractOptions{})
			if err != nil {
				b.Fatal(err)
			}
			b.SetBytes(x.Bytes)
		}
		report(b, "x-"+tool, other)
	})
}
