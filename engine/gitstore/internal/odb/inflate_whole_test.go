package odb

import (
	"bytes"
	"compress/flate"
	"compress/zlib"
	"fmt"
	"io"
	"math/rand/v2"
	"testing"
)

// packed are bytes as a zlib stream at a level.
func packed(t testing.TB, data []byte, level int) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := zlib.NewWriterLevel(&b, level)
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

// textLike gives n bytes of which many repeat.
func textLike(r *rand.Rand, n int) []byte {
	words := make([][]byte, 1+r.IntN(40))
	for i := range words {
		words[i] = make([]byte, 1+r.IntN(60))
		for k := range words[i] {
			words[i][k] = byte(r.IntN(1 + r.IntN(256)))
		}
	}
	out := []byte{}
	for len(out) < n {
		out = append(out, words[r.IntN(len(words))]...)
	}
	return out[:n]
}

// Of a stream that is whole the short way gives what was packed, by whichever writer.
func TestInflateWhole(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	buf := make([]byte, 0, 5000)
	levels := []int{flate.HuffmanOnly, 0, 1, 6, 9}
	rounds := 2000
	if testing.Short() {
		rounds = 250
	}
	for i := range rounds {
		data := textLike(r, r.IntN(1+r.IntN(9000)))
		if i%5 == 0 { // nothing repeats: the longest codes
			for k := range data {
				data[k] = byte(int(r.ExpFloat64()*20) & 0xff)
			}
		}
		streams := map[string][]byte{"own": deflaters.Get().(*deflater).append(nil, data), "stored": appendStored(nil, data)}
		level := levels[i/5%len(levels)] // with data of either kind
		streams[fmt.Sprint(level)] = packed(t, data, level)
		for name, stream := range streams {
			if got, ok := inflateWhole(nil, len(data), append(stream, "what follows"...)); !ok || !bytes.Equal(got, data) {
				t.Fatalf("%d bytes packed by %s do not come back", len(data), name)
			}
			if got, ok := inflateWhole(buf, len(data), stream); !ok || !bytes.Equal(got, data) {
				t.Fatalf("%d bytes packed by %s at the very end do not come back", len(data), name)
			}
			for _, size := range []int{len(data) + 1, max(0, len(data)-1), len(data) / 2} {
				if _, ok := inflateWhole(buf, size, stream); ok && size != len(data) {
					t.Fatal("a stream of another length was taken")
				}
			}
			cut := r.IntN(len(stream))
			if _, ok := inflateWhole(buf, len(data), stream[:cut]); ok {
				t.Fatalf("%d of %d bytes were taken for a whole stream", cut, len(stream))
			}
		}
	}
}

// Whatever the short way takes, the standard library reads the same of.
func FuzzInflateWhole(f *testing.F) {
	r := rand.New(rand.NewPCG(3, 4))
	for i := range 40 {
		data := textLike(r, r.IntN(3000))
		stream := packed(f, data, i%10)
		f.Add(stream, len(data))
		if len(stream) > 10 {
			stream[2+r.IntN(len(stream)-2)] ^= 1 << r.IntN(8)
			f.Add(stream, len(data))
		}
	}
	f.Fuzz(func(t *testing.T, stream []byte, n int) {
		if n < 0 || n > 1<<20 {
			return
		}
		got, ok := inflateWhole(nil, n, stream)
		if !ok {
			return
		}
		z, err := zlib.NewReader(bytes.NewReader(stream))
		if err != nil {
			t.Fatalf("taken, and zlib says: %v", err)
		}
		want, err := io.ReadAll(z)
		if err != nil || !bytes.Equal(got, want) {
			t.Fatalf("taken as %d bytes, and zlib gives %d: %v", len(got), len(want), err)
		}
	})
}

func BenchmarkInflate(b *testing.B) {
	data := []byte{}
	for i := range 8 {
		data = fmt.Appendf(data, "        \"step-%d\": {\n          \"attempts\": {\n            \"1-5c1e9a70\": {\n              \"claimed\": \"2026-01-01T08:%02d:07Z\",\n              \"elapsed\": 1.%03d,\n              \"state\": \"completed\"\n            }\n          }\n        },\n", i, 7*i, 137*i)
	}
	stream := deflaters.Get().(*deflater).append(nil, data)
	var dst []byte
	b.Run("whole", func(b *testing.B) {
		b.SetBytes(int64(len(data)))
		for b.Loop() {
			var ok bool
			if dst, ok = inflateWhole(dst, len(data), stream); !ok {
				b.Fatal("refused")
			}
		}
	})
	b.Run("general", func(b *testing.B) {
		b.SetBytes(int64(len(data)))
		for b.Loop() {
			in := inflaters.Get().(*inflater)
			in.src.Reset(stream)
			if _, err := in.read(&in.src, len(data)); err != nil {
				b.Fatal(err)
			}
			inflaters.Put(in)
		}
	})
}

// A stored stream is given as it stands, and whatever byte of it is another, none but its own bytes are.
func TestStoredStream(t *testing.T) {
	for _, size := range []int{0, 1, 300, maxStored, maxStored + 1} {
		data := bytes.Repeat([]byte("tree"), size/4+1)[:size]
		stream := append(appendStored(nil, data), "what follows"...)
		out, used, ok := storedStream(size, stream)
		if ok != (size <= maxStored) || ok && (!bytes.Equal(out, data) || used != len(stream)-len("what follows")) {
			t.Errorf("%d bytes: %d used, %v", size, used, ok)
		}
		for at := 0; at < min(used, 320); at++ {
			bad := bytes.Clone(stream)
			bad[at] ^= 0x10
			if out, _, ok := storedStream(size, bad); ok && !bytes.Equal(out, data) {
				t.Errorf("%d bytes, byte %d is another: they are taken", size, at)
			}
		}
		if _, _, ok := storedStream(size, stream[:max(used-1, 0)]); ok {
			t.Errorf("%d bytes: a stream that is cut off is taken", size)
		}
	}
}
