package odb

import (
	"encoding/binary"
)

// adlerWords is how many words adler sums before sums of 16 bits could run over:
// before the last of n words the sum of sums is at most 255*n*(n-1)/2.
const adlerWords = 23

// adler is the check sum of zlib streams (RFC 1950, 9), in two thirds of the time of
// hash/adler32: eight bytes at once, those of odd and of even places in four sums of
// 16 bits each. Of a word the i-th byte counts 8-i times, and every byte of the words
// before it eight times more.
func adler(data []byte) uint32 {
	const mod, even = 65521, 0x00ff00ff00ff00ff
	a, b := uint64(1), uint64(0)
	for len(data) >= 8 {
		n := min(len(data)/8, adlerWords)
		var x, y, sumX, sumY uint64
		for i := range n {
			w := binary.LittleEndian.Uint64(data[8*i:])
			sumX += x
			sumY += y
			x += w & even
			y += w >> 8 & even
		}
		b += 8*uint64(n)*a + 8*(lanes(sumX)+lanes(sumY)) + weighed(x, 8) + weighed(y, 7)
		a = (a + lanes(x) + lanes(y)) % mod
		b %= mod
		data = data[8*n:]
	}
	for _, c := range data {
		a += uint64(c)
		b += a
	}
	return uint32(b%mod<<16 | a%mod)
}

// lanes adds the four sums.
func lanes(w uint64) uint64 { return w&0xffff + w>>16&0xffff + w>>32&0xffff + w>>48 }

// weighed adds the four sums, the first first times, the others two less each.
func weighed(w, first uint64) uint64 {
	return first*(w&0xffff) + (first-2)*(w>>16&0xffff) + (first-4)*(w>>32&0xffff) + (first-6)*(w>>48)
}
