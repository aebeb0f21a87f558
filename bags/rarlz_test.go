package bags

import (
	"hash/crc32"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Compressed rars of version 4. No free program makes them, but the format is known
// well enough for one block by hand: Huffman tables, literals, a match, and the match
// again and again.

// bitWriter writes the highest bit first.
type bitWriter struct {
	b []byte
	n int
}

func (w *bitWriter) put(v, bits int) {
	for i := bits - 1; i >= 0; i-- {
		if w.n%8 == 0 {
			w.b = append(w.b, 0)
		}
		w.b[len(w.b)-1] |= byte(v>>i&1) << (7 - w.n%8)
		w.n++
	}
}

// The code that all blocks here are written in: 2 bits for "as before", 3 for the end
// and for a match of 3 bytes, 9 for a literal.
const (
	lzEnd, lzAgain, lzMatch     = 256, 258, 271
	lzMain, lzOffsets, lzLows   = 299, 60, 17
	lzLengths                   = 28
	lzAgainCode, lzAgainBits    = 0b00, 2
	lzEndCode, lzMatchCode      = 0b010, 0b011
	lzLiteralCode, lzLiteralLen = 0b1_0000_0000, 9
)

// lzBlock packs a text of at least 4 letters, its last 4 repeated for more bytes.
func lzBlock(text string, more int) (packed []byte, unpacked string) {
	w := &bitWriter{}
	w.put(0, 2) // LZ, and tables of its own
	used := map[int]int{0: 0, 1: 1, 2: 2, 3: 3, 9: 4, 16: 5, 18: 6, 19: 7}
	for i := range 20 {
		length := 0
		if _, ok := used[i]; ok {
			length = 3
		}
		w.put(length, 4)
	}
	lengths := make([]int, lzMain+lzOffsets+lzLows+lzLengths)
	for i := range 256 {
		lengths[i] = lzLiteralLen
	}
	lengths[lzEnd], lengths[lzMatch], lengths[lzAgain] = 3, 3, 2
	for _, table := range []struct{ at, one, two int }{{lzMain, 0, 3}, {lzMain + lzOffsets, 0, 1}, {lzMain + lzOffsets + lzLows, 0, 1}} {
		lengths[table.at+table.one], lengths[table.at+table.two] = 1, 1
	}
	for _, l := range lengths {
		w.put(used[l], 3)
	}
	for i := range len(text) {
		w.put(lzLiteralCode|int(text[i]), lzLiteralLen)
	}
	w.put(lzMatchCode, 3)
	w.put(1, 1) // the second offset: 4
	for range more {
		w.put(lzAgainCode, lzAgainBits)
	}
	w.put(lzEndCode, 3)
	w.put(0, 2)                               // of the file
	w.b = append(w.b, 0, 0, 0, 0, 0, 0, 0, 0) // some readers look ahead
	all := []byte(text)
	for range 3 * (more + 1) {
		all = append(all, all[len(all)-4])
	}
	return w.b, string(all)
}

// rar4LZ makes a rar 4 of one compressed member.
func rar4LZ(name string, packed []byte, unpacked string) []byte {
	b := append([]byte(rar4Magic), rar4Block(0x73, 0, make([]byte, 6))...)
	member := rar4Packed(rarFile{name: name}, 0, string(packed), unpacked)
	const method, methodNormal = 7 + 4 + 4 + 1 + 4 + 4 + 1, 0x33
	member[method] = methodNormal
	size := 7 + 25 + len(name)
	sum := crc32.ChecksumIEEE(member[2:size])
	member[0], member[1] = byte(sum), byte(sum>>8)
	return append(append(b, member...), rar4Block(0x7b, 0x4000, nil)...)
}

func TestRar4Compressed(t *testing.T) {
	packed, unpacked := lzBlock("Archives are not what they were, were, ", 1000)
	data := rar4LZ("a.txt", packed, unpacked)
	to, x, err := extract(t, "x.rar", data, Limits{})
	if err != nil || x.Files != 1 || len(x.Warnings) > 0 {
		t.Fatalf("%+v, %v", x, err)
	}
	if got, err := os.ReadFile(filepath.Join(to, "a.txt")); err != nil || string(got) != unpacked {
		t.Errorf("%d bytes, want %d, %v", len(got), len(unpacked), err)
	}
	_, _, err = extract(t, "x.rar", rar4LZ("a.txt", packed, strings.Replace(unpacked, "A", "B", 1)), Limits{})
	wantRule(t, err, RuleChecksum, "a.txt")
	_, _, err = extract(t, "x.rar", rar4LZ("a.txt", packed, unpacked+"more"), Limits{})
	if err == nil {
		t.Error("a member that ends early was taken")
	}
}

// Another's reader agrees that this is what is compressed there.
func TestCraftedRar4CompressedIsRar(t *testing.T) {
	bsdtar := tool(t, "bsdtar")
	packed, unpacked := lzBlock("Archives are not what they were, were, ", 1000)
	dir := t.TempDir()
	runIn(t, dir, bsdtar, "-xf", put(t, "x.rar", rar4LZ("a.txt", packed, unpacked)))
	if got, err := os.ReadFile(filepath.Join(dir, "a.txt")); err != nil || string(got) != unpacked {
		t.Errorf("%d bytes, want %d, %v", len(got), len(unpacked), err)
	}
}
