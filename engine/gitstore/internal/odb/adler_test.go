package odb

import (
	"bytes"
	"hash/adler32"
	"math/rand/v2"
	"testing"
)

func TestAdler(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 9))
	for n := range 3000 {
		data := bytes.Repeat([]byte{0xff}, n)
		if got, want := adler(data), adler32.Checksum(data); got != want {
			t.Fatalf("%d of the largest bytes: %x, want %x", n, got, want)
		}
		for i := range data {
			data[i] = byte(r.Uint32())
		}
		if got, want := adler(data), adler32.Checksum(data); got != want {
			t.Fatalf("%d bytes: %x, want %x", n, got, want)
		}
	}
}

func BenchmarkAdler(b *testing.B) {
	data := make([]byte, 2000)
	for name, sum := range map[string]func([]byte) uint32{"own": adler, "library": adler32.Checksum} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(data)))
			for b.Loop() {
				sum(data)
			}
		})
	}
}
