package rars

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
)

// The blocks that rars are made of, as far as survey_parts.go asks.

const (
	Magic4 = "Rar!\x1a\x07\x00"
	Magic5 = "Rar!\x1a\x07\x01\x00"
)

// maxRarHeader is the limit of the format (2 MiB).
const maxRarHeader = 2 << 20

// rarBlock is one block, of either version.
type rarBlock struct {
	kind      rarKind
	data      int64  // bytes that follow the header
	name      string // of a member
	raw       bool   // the name is in no known encoding
	continued bool   // the member began in the part before
	more      bool   // an end block: another part follows
	old       bool   // a main block: parts are named x.rar, x.r00
	modern    bool   // a member packed by RAR 3 or later
	noSum     bool   // a member without a check sum that is compared
	packed    string // a member that is compressed: the version that its method is of
}

type rarKind int

const (
	rarOther rarKind = iota
	rarMain
	rarMember
	rarEnd
	rarEncrypted // everything after it is
)

// readRar4 reads a block of RAR 1.5 to 4.
func readRar4(r *bufio.Reader) (b rarBlock, err error) {
	le := binary.LittleEndian
	head, err := r.Peek(7)
	if len(head) == 0 && errors.Is(err, io.EOF) {
		return b, io.EOF
	}
	if err != nil {
		return b, io.ErrUnexpectedEOF
	}
	kind, flags, size := head[2], le.Uint16(head[3:]), int(le.Uint16(head[5:]))
	if size < 7 {
		return b, errors.New("a header of no size")
	}
	h := make([]byte, size)
	if _, err := io.ReadFull(r, h); err != nil {
		return b, io.ErrUnexpectedEOF
	}
	// Before RAR 3 a comment stood within the header, outside of its sum; the sums
	// of other old blocks were made in other ways.
	comment := kind == 0x73 && flags&2 != 0 || kind == 0x74 && flags&8 != 0
	if summed := kind == 0x73 || kind == 0x74 || kind == 0x7a || kind == 0x7b; summed && !comment && uint16(crc32.ChecksumIEEE(h[2:])) != le.Uint16(h) {
		return b, errRarSum
	}
	body := h[7:]
	if flags&0x8000 != 0 || kind == 0x74 || kind == 0x7a {
		if len(body) < 4 {
			return b, errors.New("a header without its size")
		}
		b.data = int64(le.Uint32(body))
	}
	switch kind {
	case 0x73:
		b.kind, b.old = rarMain, flags&0x10 == 0
		if flags&0x80 != 0 {
			b.kind = rarEncrypted
		}
	case 0x74:
		return rar4Member(b, body, flags)
	case 0x7b:
		b.kind, b.more = rarEnd, flags&1 != 0
	}
	return b, nil
}

const rar4Stored = 0x30

// rar4Version names the version that a method is of, by the number in the header.
func rar4Version(n byte) string {
	switch n {
	case 26: // of 20, for files of 4 GiB and more
		n = 20
	case 36: // of 29
		n = 29
	}
	return fmt.Sprintf("RAR %d.%d", n/10, n%10)
}

func rar4Member(b rarBlock, body []byte, flags uint16) (rarBlock, error) {
	le := binary.LittleEndian
	if len(body) < 25 {
		return b, errors.New("a member's header is too short")
	}
	b.kind, b.continued, b.modern = rarMember, flags&1 != 0, body[17] >= 29
	if body[18] != rar4Stored {
		b.packed = rar4Version(body[17])
	}
	n, rest := int(le.Uint16(body[19:])), body[25:]
	if flags&0x100 != 0 {
		if len(rest) < 8 {
			return b, errors.New("a member's header is too short")
		}
		b.data |= int64(le.Uint32(rest)) << 32
		rest = rest[8:]
	}
	if n > len(rest) {
		return b, errors.New("a member's name is too long")
	}
	name, _, unicode := bytes.Cut(rest[:n], []byte{0})
	b.name, b.raw = string(name), flags&0x200 == 0 || !unicode
	return b, nil
}

// readRar5 reads a block of RAR 5 and later.
func readRar5(r *bufio.Reader) (b rarBlock, err error) {
	head, err := r.Peek(7)
	if len(head) == 0 && errors.Is(err, io.EOF) {
		return b, io.EOF
	}
	if err != nil {
		return b, io.ErrUnexpectedEOF
	}
	size, n := binary.Uvarint(head[4:])
	if n <= 0 || size == 0 || size > maxRarHeader {
		return b, errors.New("a header of an impossible size")
	}
	h := make([]byte, 4+uint64(n)+size)
	if _, err := io.ReadFull(r, h); err != nil {
		return b, io.ErrUnexpectedEOF
	}
	if crc32.ChecksumIEEE(h[4:]) != binary.LittleEndian.Uint32(h) {
		return b, errRarSum
	}
	f := &vints{b: h[4+n:]}
	kind, flags := f.next(), f.next()
	extra := uint64(0)
	if flags&1 != 0 {
		extra = f.next()
	}
	if flags&2 != 0 {
		b.data = int64(f.next())
	}
	switch kind {
	case 1:
		b.kind = rarMain
	case 2:
		b.kind, b.continued = rarMember, flags&8 != 0
		b.rar5Member(f, extra)
	case 4:
		b.kind = rarEncrypted
	case 5:
		b.kind, b.more = rarEnd, f.next()&1 != 0
	}
	if f.bad {
		return b, errors.New("a header is cut short")
	}
	return b, nil
}

func (b *rarBlock) rar5Member(f *vints, extra uint64) {
	flags := f.next()
	f.next() // unpacked size
	f.next() // attributes
	if flags&2 != 0 {
		f.skip(4) // time
	}
	if flags&4 != 0 {
		f.skip(4) // CRC-32
	}
	if method := f.next(); method>>7&7 != 0 {
		b.packed = "RAR 5"
		if method&0x3f != 0 && method&(1<<20) == 0 {
			b.packed = "RAR 7"
		}
	}
	f.next() // system
	name := f.take(f.next())
	b.name = string(name)
	b.noSum = flags&4 == 0 && flags&1 == 0 && extra > 0 && b.data > 0
}

// vints reads the variable-length numbers of a RAR 5 header.
type vints struct {
	b   []byte
	bad bool
}

func (v *vints) next() uint64 {
	n, size := binary.Uvarint(v.b)
	if size <= 0 {
		v.bad, v.b = true, nil
		return 0
	}
	v.b = v.b[size:]
	return n
}

func (v *vints) take(n uint64) []byte {
	if n > uint64(len(v.b)) {
		v.bad, v.b = true, nil
		return nil
	}
	part := v.b[:n]
	v.b = v.b[n:]
	return part
}

func (v *vints) skip(n uint64) { v.take(n) }
