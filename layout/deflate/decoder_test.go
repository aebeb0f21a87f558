package deflate

import (
	"bytes"
	"compress/flate"
	"errors"
	"io"
	"math/rand/v2"
	"testing"
)

func deflateOf(t testing.TB, data []byte, level int) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := flate.NewWriter(&b, level)
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

// sample gives n bytes: words that repeat, single bytes of very different frequency,
// and runs.
func sample(r *rand.Rand, n int) (out []byte) {
	word := make([]byte, 300)
	for i := range word {
		word[i] = byte(r.ExpFloat64() * 30)
	}
	for len(out) < n {
		switch r.IntN(3) {
		case 0:
			from := r.IntN(len(word))
			out = append(out, word[from:from+r.IntN(len(word)-from)]...)
		case 1:
			out = append(out, byte(r.ExpFloat64()*40))
		default:
			out = append(out, bytes.Repeat([]byte{byte(r.IntN(256))}, r.IntN(9))...)
		}
	}
	return out[:n]
}

// inPieces decodes a stream of which a few bytes come at a time, into a window that is
// moved as it fills; after is what follows the stream.
func inPieces(r *rand.Rand, d *decoder, stream []byte) (out, after []byte, err error) {
	d.in, d.pos, d.out, d.made = nil, 0, make([]byte, window+slack+r.IntN(5000)), 0
	d.reset()
	given := 0
	for {
		want, err := d.decode(len(stream) == 0)
		out = append(out, d.out[given:d.made]...)
		given = d.made
		switch {
		case err != nil:
			return out, nil, err
		case want == wantNothing:
			return out, append(d.in[d.pos:], stream...), nil
		case want == wantInput:
			begin, n := max(0, d.pos-8), min(len(stream), 1+r.IntN(2*ahead))
			d.in = append(bytes.Clone(d.in[begin:]), stream[:n]...)
			d.pos, stream = d.pos-begin, stream[n:]
		case want == wantRoom:
			keep := min(d.made, window)
			moved := make([]byte, len(d.out))
			copy(moved, d.out[d.made-keep:d.made])
			d.out, d.made, given = moved, keep, keep
		}
	}
}

func TestDecodeInPieces(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	decoders := []*decoder{newDecoder(9), newDecoder(10), newDecoder(11)}
	for i := range 90 {
		data := sample(r, r.IntN(1+r.IntN(120_000)))
		for _, level := range []int{flate.HuffmanOnly, 0, 1, 6, 9} {
			stream := deflateOf(t, data, level)
			got, after, err := inPieces(r, decoders[i%3], append(bytes.Clone(stream), "what follows"...))
			if err != nil || !bytes.Equal(got, data) || string(after) != "what follows" {
				t.Fatalf("%d bytes at level %d: %d came back, %q follows: %v", len(data), level, len(got), after, err)
			}
			cut := stream[:r.IntN(len(stream))]
			if _, _, err := inPieces(r, decoders[i%3], cut); !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Fatalf("%d of %d bytes at level %d: %v", len(cut), len(stream), level, err)
			}
		}
	}
}

// What the standard library refuses is refused, and what it takes comes out the same.
func FuzzDecode(f *testing.F) {
	r := rand.New(rand.NewPCG(3, 4))
	for i := range 40 {
		stream := deflateOf(f, sample(r, r.IntN(4000)), i%10)
		f.Add(stream)
		damaged := bytes.Clone(stream)
		damaged[r.IntN(len(damaged))] ^= 1 << r.IntN(8)
		f.Add(damaged)
	}
	f.Add([]byte{3, 0})
	f.Fuzz(func(t *testing.T, stream []byte) {
		const most = 1 << 20
		want, wantErr := io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(stream)), most))
		if len(want) == most {
			return
		}
		got, _, err := inPieces(rand.New(rand.NewPCG(5, 6)), newDecoder(9), stream)
		if (err == nil) != (wantErr == nil) || err == nil && !bytes.Equal(got, want) {
			t.Fatalf("%d bytes, %v; the standard library gives %d, %v", len(got), err, len(want), wantErr)
		}
	})
}
