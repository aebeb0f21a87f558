package archive

import (
	"encoding/binary"
	"hash/crc32"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"bagpipe/bags/archive/internal/rars"
	"bagpipe/bags/files"
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
	return lzBlockAfter("", text, more)
}

// lzBlockAfter is lzBlock in a solid archive, where there was a text before.
func lzBlockAfter(before, text string, more int) (packed []byte, unpacked string) {
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
	w.put(0b01, 2)                            // of the file, and the next has tables of its own
	w.b = append(w.b, 0, 0, 0, 0, 0, 0, 0, 0) // some readers look ahead
	all := []byte(before + text)
	for range 3 * (more + 1) {
		all = append(all, all[len(all)-4])
	}
	return w.b, string(all[len(before):])
}

// rar4LZ makes a rar 4 of one compressed member.
func rar4LZ(name string, packed []byte, unpacked string) []byte {
	return rar4Whole(rar4Compressed(name, 29, 0, packed, unpacked))
}

func rar4Whole(members ...[]byte) []byte {
	b := append([]byte(rars.Magic4), rar4Block(0x73, 0, make([]byte, 6))...)
	return append(append(b, joined(members...)...), rar4Block(0x7b, 0x4000, nil)...)
}

// rar4Compressed is a member that is compressed by the version.
func rar4Compressed(name string, version byte, flags uint16, packed []byte, unpacked string) []byte {
	member := rar4Packed(rarFile{name: name}, flags, string(packed), unpacked)
	const versionAt, methodNormal = 7 + 4 + 4 + 1 + 4 + 4, 0x33
	member[versionAt], member[versionAt+1] = version, methodNormal
	rar4Seal(member, name)
	return member
}

// rar4Seal writes a member's header's sum.
func rar4Seal(member []byte, name string) {
	sum := crc32.ChecksumIEEE(member[2 : 7+25+len(name)])
	member[0], member[1] = byte(sum), byte(sum>>8)
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
	wantRule(t, err, files.RuleChecksum, "a.txt")
	_, _, err = extract(t, "x.rar", rar4LZ("a.txt", packed, unpacked+"more"), Limits{})
	if err == nil {
		t.Error("a member that ends early was taken")
	}
}

// In a solid archive a member's matches reach back into the members before it.
func TestRar4Solid(t *testing.T) {
	const solid = 0x10
	first, text := lzBlock("Archives are not what they were, were, ", 10)
	second, end := lzBlockAfter(text, "", 2)
	data := rar4Whole(rar4Compressed("a.txt", 29, 0, first, text), rar4Compressed("b.txt", 29, solid, second, end))
	to, x, err := extract(t, "x.rar", data, Limits{})
	if err != nil || x.Files != 2 {
		t.Fatalf("%+v, %v", x, err)
	}
	for name, want := range map[string]string{"a.txt": text, "b.txt": end} {
		if got, err := os.ReadFile(filepath.Join(to, name)); err != nil || string(got) != want {
			t.Errorf("%s: %q, want %q, %v", name, got, want, err)
		}
	}
}

// ppmdNoise is a block of PPMd: whatever bits follow its head mean something, as likely
// as the model has come to think it. So every part of the model is made use of.
func ppmdNoise(order, seed int) []byte {
	const ppmd, newModel = 0x80, 0x20
	return append([]byte{ppmd | newModel | byte(order-1), byte(seed % 3)}, noise(60_000, uint64(seed+1))...)
}

// What libarchive reads in PPMd, by its own decoder, is what is read here.
func TestRar4PPMd(t *testing.T) {
	bsdtar := tool(t, "bsdtar")
	agreed := 0
	for seed := range 20 {
		packed := ppmdNoise(2+seed%15, seed)
		for _, size := range []int{3000, 300, 60} {
			archive := put(t, "x.rar", rar4LZ("a.txt", packed, strings.Repeat("?", size)))
			want, _ := exec.CommandContext(t.Context(), bsdtar, "-xOf", archive).Output() // the sum is wrong
			if len(want) != size {
				continue // the noise says that this is the end, or makes no sense
			}
			to, _, err := extract(t, "x.rar", rar4LZ("a.txt", packed, string(want)), Limits{})
			if err != nil {
				t.Errorf("seed %d: %v", seed, err)
				break
			}
			if got, err := os.ReadFile(filepath.Join(to, "a.txt")); err != nil || string(got) != string(want) {
				t.Errorf("seed %d: %d bytes, want %d, %v", seed, len(got), size, err)
			}
			agreed++
			break
		}
	}
	if agreed < 10 {
		t.Errorf("%d texts of 20 could be compared", agreed)
	}
}

// The same where libarchive is not: the sums are of what it read.
func TestRar4PPMdBySum(t *testing.T) {
	for seed, sum := range map[int]uint32{0: 0x5282c086, 1: 0x2759196a, 7: 0xbe2c2bb5, 11: 0xd607ba7a} {
		member := rar4Compressed("a.txt", 29, 0, ppmdNoise(2+seed%15, seed), strings.Repeat("?", 3000))
		const sumAt = 7 + 4 + 4 + 1
		binary.LittleEndian.PutUint32(member[sumAt:], sum)
		rar4Seal(member, "a.txt")
		if _, _, err := extract(t, "x.rar", rar4Whole(member), Limits{}); err != nil {
			t.Errorf("seed %d: %v", seed, err)
		}
	}
}

// What is not decoded is refused with the member and the version.
func TestRarVersionsThatAreNotRead(t *testing.T) {
	packed, text := lzBlock("text", 1)
	for about, c := range map[string]struct {
		data   []byte
		detail string
	}{
		"1.5":        {rar4Whole(rar4Compressed("a.txt", 15, 0, packed, text)), "compressed by RAR 1.5"},
		"unknown":    {rar4Whole(rar4Compressed("a.txt", 99, 0, packed, text)), "compressed by a version of RAR"},
		"2.9 of 2.0": {rar4Whole(rar4Compressed("0.txt", 29, 0, packed, text), rar4Compressed("a.txt", 20, 0, packed, text)), "compressed by RAR 2.0, and members before it by RAR 2.9"},
	} {
		_, _, err := extract(t, "x.rar", c.data, Limits{})
		wantRule(t, err, files.RuleMethod, "a.txt")
		if !strings.Contains(err.Error(), c.detail) {
			t.Errorf("%s: %v; want %q", about, err, c.detail)
		}
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
