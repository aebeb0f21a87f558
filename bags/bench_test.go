package bags

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"bagpipe/bags/files"
)

// The shapes that are measured. Peers are run beside, on the same files, and the
// ratio of their time to ours is reported: above 1 is faster than the peer.
var shapes = []struct {
	name  string
	files int
	size  int
}{
	{"small", 20_000, 4 << 10},
	{"large", 6, 100 << 20},
}

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

func shape(b *testing.B, files, size int) string {
	b.Helper()
	dir := b.TempDir()
	for i := range files {
		sub := filepath.Join(dir, fmt.Sprintf("%03d", i/200))
		if err := os.MkdirAll(sub, 0o755); err != nil {
			b.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(sub, fmt.Sprintf("%05d.bin", i)), noise(size, uint64(i)), 0o644); err != nil {
			b.Fatal(err)
		}
	}
	return dir
}

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
		for _, as := range [][]files.Algorithm{{files.SHA512}, {files.SHA256, files.SHA512}} {
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
