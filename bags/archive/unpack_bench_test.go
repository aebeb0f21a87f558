package archive

import (
	"archive/tar"
	"archive/zip"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"
	"golang.org/x/sys/unix"
)

// Unpacking, beside unzip, bsdtar and tar on the same archive, turn by turn. The
// figures are the peer's time for ours, of the best of all turns (x-NAME: above 1
// is faster than the peer), and processor seconds of ours and theirs (cpu-s).

// text compresses about three to one.
func text(n int, seed uint64) []byte {
	b := noise(n, seed)
	for i := range b {
		b[i] = "aaaaaaeeeeetttinos rhl"[b[i]%22]
	}
	return b
}

var unpacked = []struct {
	name        string
	files, size int
}{{"small", 10_000, 8 << 10}, {"large", 4, 64 << 20}}

func BenchmarkUnzip(b *testing.B) {
	for _, s := range unpacked {
		archive := filepath.Join(b.TempDir(), "x.zip")
		writeArchive(b, archive, func(f io.Writer) error {
			w := zip.NewWriter(f)
			for i := range s.files {
				m, err := w.Create(fmt.Sprintf("%03d/%05d.txt", i/200, i))
				if err != nil {
					return err
				}
				if _, err := m.Write(text(s.size, uint64(i))); err != nil {
					return err
				}
			}
			return w.Close()
		})
		besidePeers(b, s.name, archive, [][]string{{"unzip", "-qo", archive}, {"bsdtar", "-xf", archive}})
	}
}

func BenchmarkUntarGzip(b *testing.B) {
	for _, s := range unpacked {
		archive := filepath.Join(b.TempDir(), "x.tar.gz")
		writeArchive(b, archive, func(f io.Writer) error {
			z := gzip.NewWriter(f)
			w := tar.NewWriter(z)
			for i := range s.files {
				if err := w.WriteHeader(&tar.Header{Name: fmt.Sprintf("%03d/%05d.txt", i/200, i), Mode: 0o644, Size: int64(s.size)}); err != nil {
					return err
				}
				if _, err := w.Write(text(s.size, uint64(i))); err != nil {
					return err
				}
			}
			if err := w.Close(); err != nil {
				return err
			}
			return z.Close()
		})
		besidePeers(b, s.name, archive, [][]string{{"bsdtar", "-xf", archive}, {"tar", "-xzf", archive}})
	}
}

func writeArchive(b *testing.B, path string, write func(io.Writer) error) {
	b.Helper()
	f, err := os.Create(path)
	if err != nil {
		b.Fatal(err)
	}
	if err := write(f); err != nil {
		b.Fatal(err)
	}
	if err := f.Close(); err != nil {
		b.Fatal(err)
	}
}

// used is what one turn cost.
type used struct{ wall, cpu time.Duration }

func (u *used) best(v used) {
	if u.wall == 0 || v.wall < u.wall {
		u.wall = v.wall
	}
	if u.cpu == 0 || v.cpu < u.cpu {
		u.cpu = v.cpu
	}
}

func besidePeers(b *testing.B, name, archive string, peers [][]string) {
	b.Run(name, func(b *testing.B) {
		outer := b.TempDir()
		theirs := make([]used, len(peers))
		var ours used
		n := 0
		for b.Loop() {
			n++
			dir := filepath.Join(outer, fmt.Sprint(n))
			b.StopTimer()
			for i, p := range peers {
				if u, ok := peerTurn(b, p); ok {
					theirs[i].best(u)
				}
			}
			if err := os.Mkdir(dir, 0o755); err != nil {
				b.Fatal(err)
			}
			b.StartTimer()
			start, cpu := time.Now(), processTime(b)
			x, err := Extract(b.Context(), archive, dir, ExtractOptions{})
			if err != nil {
				b.Fatal(err)
			}
			ours.best(used{time.Since(start), processTime(b) - cpu})
			b.SetBytes(x.Bytes)
			b.StopTimer()
			if err := os.RemoveAll(dir); err != nil {
				b.Fatal(err)
			}
			b.StartTimer()
		}
		b.ReportMetric(ours.wall.Seconds(), "best-s")
		b.ReportMetric(ours.cpu.Seconds(), "cpu-s")
		for i, p := range peers {
			if theirs[i].wall > 0 {
				b.ReportMetric(theirs[i].wall.Seconds()/ours.wall.Seconds(), "x-"+p[0])
				b.ReportMetric(theirs[i].cpu.Seconds(), "cpu-s-"+p[0])
			}
		}
	})
}

// peerTurn is false where the program is not installed.
func peerTurn(b *testing.B, args []string) (u used, ok bool) {
	b.Helper()
	if _, err := exec.LookPath(args[0]); err != nil {
		return used{}, false
	}
	dir, err := os.MkdirTemp(b.TempDir(), "")
	if err != nil {
		b.Fatal(err)
	}
	defer os.RemoveAll(dir)
	cmd := exec.CommandContext(b.Context(), args[0], args[1:]...)
	cmd.Dir = dir
	start := time.Now()
	if out, err := cmd.CombinedOutput(); err != nil {
		b.Fatalf("%v: %v\n%s", args, err, out)
	}
	return used{time.Since(start), cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()}, true
}

func processTime(b *testing.B) time.Duration {
	var r unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &r); err != nil {
		b.Fatal(err)
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}
