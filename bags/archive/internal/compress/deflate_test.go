package compress

import (
	"bytes"
	stdflate "compress/flate"
	stdgzip "compress/gzip"
	"io"
	"testing"
	"testing/iotest"
	"time"

	"github.com/klauspost/compress/flate"
)

// inflateBoth reads data with this package's decoder and with the standard
// library's.
func inflateBoth(data []byte, slow bool) (ours, theirs []byte, ourErr, theirErr error) {
	ours, ourErr = inflate(data, slow)
	theirs, theirErr = io.ReadAll(io.LimitReader(stdflate.NewReader(bytes.NewReader(data)), most))
	return ours, theirs, ourErr, theirErr
}

const most = 1 << 22 // of what is read

func inflate(data []byte, slow bool) ([]byte, error) {
	var r io.Reader = bytes.NewReader(data)
	if slow {
		r = iotest.OneByteReader(r)
	}
	z := Inflate(r)
	defer z.Close()
	return io.ReadAll(io.LimitReader(z, most))
}

func deflateOf(t testing.TB, data []byte, level int) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := stdflate.NewWriter(&b, level)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestInflate(t *testing.T) {
	mixed := bytes.Join([][]byte{noise(100_000, 1), text(300_000, 2), bytes.Repeat([]byte("abcdefg"), 40_000), make([]byte, 100_000), noise(70_000, 3)}, nil)
	for _, data := range [][]byte{nil, []byte("x"), text(1000, 5), text(1<<20, 6), noise(200_000, 7), bytes.Repeat([]byte("ab"), 1<<19), mixed, append(mixed[50_000:], mixed...)} {
		for _, level := range []int{stdflate.HuffmanOnly, stdflate.NoCompression, 1, 6, 9} {
			if testing.Short() && level > 0 && level != 6 {
				continue
			}
			packed := deflateOf(t, data, level)
			for _, slow := range []bool{false, true} {
				if slow && testing.Short() && len(data) > 900_000 {
					continue
				}
				ours, err := inflate(packed, slow)
				if err != nil || !bytes.Equal(ours, data) {
					t.Fatalf("level %d, %d bytes: %d bytes, %v", level, len(data), len(ours), err)
				}
			}
		}
	}
}

func TestInflateCut(t *testing.T) {
	packed := deflateOf(t, text(5000, 1), 6)
	for n := range packed {
		if _, err := inflate(packed[:n], n%2 == 0); err == nil {
			t.Fatalf("cut at %d of %d: no error", n, len(packed))
		}
	}
}

func TestGunzip(t *testing.T) {
	var b bytes.Buffer
	for i := range 3 {
		w := stdgzip.NewWriter(&b)
		w.Name, w.Comment, w.Extra, w.ModTime = "name", "comment", []byte("extra"), time.Unix(1, 0)
		if _, err := w.Write(text(100_000*i, uint64(i))); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
	z, err := newGunzip(iotest.HalfReader(bytes.NewReader(b.Bytes())))
	if err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(z)
	if err != nil || !bytes.Equal(got, append(text(100_000, 1), text(200_000, 2)...)) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}

func FuzzInflate(f *testing.F) {
	for _, level := range []int{stdflate.HuffmanOnly, stdflate.NoCompression, 1, 9} {
		f.Add(deflateOf(f, append(text(3000, 1), bytes.Repeat([]byte("ab"), 300)...), level))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		ours, theirs, ourErr, theirErr := inflateBoth(data, len(data)%2 == 0)
		if (ourErr == nil) != (theirErr == nil) {
			t.Fatalf("ours: %d bytes, %v; the standard library's: %d bytes, %v", len(ours), ourErr, len(theirs), theirErr)
		}
		if ourErr == nil && !bytes.Equal(ours, theirs) {
			t.Fatal("another content")
		}
	})
}

// The libraries' decoders beside ours, turn by turn.
func BenchmarkInflate(b *testing.B) {
	data := text(16<<20, 1)
	packed := deflateOf(b, data, 6)
	var ours, klaus, std used
	turn := func(u *used, open func() io.ReadCloser) {
		start := time.Now()
		z := open()
		if _, err := io.Copy(io.Discard, z); err != nil {
			b.Fatal(err)
		}
		if err := z.Close(); err != nil {
			b.Fatal(err)
		}
		u.best(used{wall: time.Since(start), cpu: 1})
	}
	for b.Loop() {
		turn(&ours, func() io.ReadCloser { return Inflate(bytes.NewReader(packed)) })
		turn(&klaus, func() io.ReadCloser { return flate.NewReader(bytes.NewReader(packed)) })
		turn(&std, func() io.ReadCloser { return stdflate.NewReader(bytes.NewReader(packed)) })
	}
	b.ReportMetric(float64(len(data))/ours.wall.Seconds()/1e6, "MB/s-ours")
	b.ReportMetric(klaus.wall.Seconds()/ours.wall.Seconds(), "x-klauspost")
	b.ReportMetric(std.wall.Seconds()/ours.wall.Seconds(), "x-std")
}
