package search

import (
	"encoding/binary"
	"math/bits"
	"slices"
)

// The rules are: a phrase is found by the numbers that its words have in a text (row.go). Of a word a part has pieces, each of
// which fits into a page, in the order of the documents. A piece begins with the number of its words of documents, a bit each
// (two bytes, the lower first, as all numbers here). Where there are some, there follow the number of the first of these words, the
// words, how many numbers there are, the numbers of the first document, of the next and so on, and for each number a bit: it is the last of
// its document. A piece without such words has three bytes for each number: it, and the place of the document.
//
// What comes to an index that is not new is written in three bytes each, behind all pieces.

// stand is the place of a document, and the number of a word in its text: in order, as documents are added in it.
type stand uint32

const standBytes = 3

func standOf(place int, number uint8) stand { return stand(place)<<8 | stand(number) }

func (s stand) place() int  { return int(s >> 8) }
func (s stand) number() int { return int(s & 0xff) }

// pieceKey is the key of a word's further piece. The last one has what was written behind the others.
func pieceKey(key string, piece int) string {
	if piece == 0 {
		return key
	}
	return key + "\x00" + string([]byte{byte(piece >> 8), byte(piece)})
}

// packStands packs what fits into a piece, whole documents; rest is what does not.
func packStands(all []stand) (piece []byte, rest []stand) {
	first, fits, dense := all[0].place()>>6, 0, false
	for end := 0; end < len(all); {
		place := all[end].place()
		for end < len(all) && all[end].place() == place {
			end++
		}
		withWords, each := 6+8*(place>>6-first+1)+end+(end+7)/8, packBytes+standBytes*end
		if min(withWords, each) > pieceBytes {
			break
		}
		fits, dense = end, withWords < each
	}
	if all, rest = all[:fits], all[fits:]; dense {
		return packDense(all), rest
	}
	return packOnes(all), rest
}

func packOnes(all []stand) []byte {
	b := make([]byte, packBytes, packBytes+standBytes*len(all))
	for _, s := range all {
		b = append(b, byte(s), byte(s>>8), byte(s>>16))
	}
	return b
}

func packDense(all []stand) []byte {
	first := all[0].place() >> 6
	words := make([]uint64, all[len(all)-1].place()>>6-first+1)
	numbers, last := make([]byte, len(all)), make([]byte, (len(all)+7)/8)
	for i, s := range all {
		words[s.place()>>6-first] |= 1 << (s.place() & 63)
		numbers[i] = byte(s)
		if i+1 == len(all) || all[i+1].place() != s.place() {
			last[i>>3] |= 1 << (i & 7)
		}
	}
	b := binary.LittleEndian.AppendUint16(nil, uint16(len(words)))
	b = binary.LittleEndian.AppendUint16(b, uint16(first))
	for _, w := range words {
		b = binary.LittleEndian.AppendUint64(b, w)
	}
	b = binary.LittleEndian.AppendUint16(b, uint16(len(all)))
	return slices.Concat(b, numbers, last)
}

// appendStands adds what a piece has.
func appendStands(all []stand, b []byte) ([]stand, error) {
	if len(b) < packBytes {
		return nil, errOther
	}
	n := int(binary.LittleEndian.Uint16(b))
	if b = b[packBytes:]; n == 0 {
		if len(b)%standBytes != 0 {
			return nil, errOther
		}
		for ; len(b) >= standBytes; b = b[standBytes:] {
			all = append(all, stand(b[0])|stand(b[1])<<8|stand(b[2])<<16)
		}
		return all, nil
	}
	if len(b) < 2+8*n+2 {
		return nil, errOther
	}
	first, words := int(binary.LittleEndian.Uint16(b)), b[2:2+8*n]
	b = b[2+8*n:]
	count := int(binary.LittleEndian.Uint16(b))
	if b = b[2:]; len(b) != count+(count+7)/8 || first+n > maxPlaces/64 {
		return nil, errOther
	}
	numbers, last := b[:count], b[count:]
	all = slices.Grow(all, count)
	i, w, begins := -1, uint64(0), true
	for k, number := range numbers {
		if begins {
			for w &= w - 1; w == 0; w = binary.LittleEndian.Uint64(words[8*i:]) {
				if i++; i == n {
					return nil, errOther
				}
			}
		}
		all = append(all, standOf((first+i)<<6+bits.TrailingZeros64(w), number))
		begins = last[k>>3]>>(k&7)&1 == 1
	}
	if begins = begins && w&(w-1) == 0; !begins || i != n-1 {
		return nil, errOther
	}
	return all, nil
}
