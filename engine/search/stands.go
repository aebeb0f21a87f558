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

// eachStanding visits, of the documents of a piece that are in a set, the numbers of the word in each.
func eachStanding(b []byte, of *set, visit func(place int, numbers []byte)) error {
	if len(b) < packBytes {
		return errOther
	}
	n := int(binary.LittleEndian.Uint16(b))
	if b = b[packBytes:]; n == 0 {
		return eachOne(b, of, visit)
	}
	if len(b) < 2+8*n+2 {
		return errOther
	}
	first, words := int(binary.LittleEndian.Uint16(b)), b[2:2+8*n]
	b = b[2+8*n:]
	count := int(binary.LittleEndian.Uint16(b))
	if b = b[2:]; len(b) != count+(count+7)/8 || first+n > len(of) {
		return errOther
	}
	numbers, last := b[:count], b[count:]
	var w, ends uint64 // what is left of 64 bits each
	begin, at := 0, 0  // of a document's numbers; bits of last that were begun with
	for i := range n {
		w = binary.LittleEndian.Uint64(words[8*i:])
		for wanted := w & of[first+i]; w != 0; w &= w - 1 {
			for ; ends == 0; at += 64 {
				if len(last) == 0 {
					return errOther
				}
				ends, last = bitsBefore(last)
			}
			end := at - 64 + bits.TrailingZeros64(ends) + 1
			ends &= ends - 1
			if end > count {
				return errOther
			}
			if wanted&(w&-w) != 0 {
				visit((first+i)<<6+bits.TrailingZeros64(w), numbers[begin:end])
			}
			begin = end
		}
	}
	if begin != count || binary.LittleEndian.Uint64(words[8*(n-1):]) == 0 {
		return errOther
	}
	return nil
}

// bitsBefore gives the first 64 bits, or those that there are, and the rest.
func bitsBefore(b []byte) (w uint64, rest []byte) {
	if len(b) >= 8 {
		return binary.LittleEndian.Uint64(b), b[8:]
	}
	for i, v := range b {
		w |= uint64(v) << (8 * i)
	}
	return w, nil
}

// eachOne is eachStanding of a piece without words.
func eachOne(b []byte, of *set, visit func(place int, numbers []byte)) error {
	if len(b)%standBytes != 0 {
		return errOther
	}
	var numbers []byte
	for len(b) > 0 {
		lo, hi := b[1], b[2]
		for numbers = numbers[:0]; len(b) > 0 && b[1] == lo && b[2] == hi; b = b[standBytes:] {
			numbers = append(numbers, b[0])
		}
		if place := int(lo) | int(hi)<<8; of.has(place) {
			visit(place, numbers)
		}
	}
	return nil
}
