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
func inPieces(r *rand.Rand, d *Decoder, stream []byte) (out, after []byte, err error) {
	d.In, d.Pos, d.Out, d.Made = nil, 0, make([]byte, Window+Slack+r.IntN(5000)), 0
	d.Reset()
	given := 0
	for {
		want, err := d.Decode(len(stream) == 0)
		out = append(out, d.Out[given:d.Made]...)
		given = d.Made
		switch {
		case err != nil:
			return out, nil, err
		case want == Nothing:
			return out, append(d.In[d.Pos:], stream...), nil
		case want == Input:
			begin, n := max(0, d.Pos-8), min(len(stream), 1+r.IntN(2*Ahead))
			d.In = append(bytes.Clone(d.In[begin:]), stream[:n]...)
			d.Pos, stream = d.Pos-begin, stream[n:]
		case want == Room:
			keep := min(d.Made, Window)
			moved := make([]byte, len(d.Out))
			copy(moved, d.Out[d.Made-keep:d.Made])
			d.Out, d.Made, given = moved, keep, keep
		}
	}
}

func TestDecodeInPieces(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	decoders := []*Decoder{New(9), New(10), New(11)}
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
		got, _, err := inPieces(rand.New(rand.NewPCG(5, 6)), New(9), stream)
		if (err == nil) != (wantErr == nil) || err == nil && !bytes.Equal(got, want) {
			t.Fatalf("%d bytes, %v; the standard library gives %d, %v", len(got), err, len(want), wantErr)
		}
	})
}
