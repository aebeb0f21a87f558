package bags

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
)

// This file walks over a rar's blocks beside the library's own reading, for what
// the library does not tell. The rules are:
//
//   - the archive ends with its end block, and the file with the archive, zeros
//     aside; rars from before RAR 3 have no end block;
//   - a part that is not the last is followed by the next, and the first part is
//     the first;
//   - the names that are not Unicode are collected, for their code page.

const (
	rar4Magic = "Rar!\x1a\x07\x00"
	rar5Magic = "Rar!\x1a\x07\x01\x00"
)

// maxRarHeader is what the format allows (2 MiB).
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
}

type rarKind int

const (
	rarOther rarKind = iota
	rarMain
	rarMember
	rarEnd
	rarEncrypted // everything after it is
)

// surveyRar checks the frame of every part, opens the further ones, and gives the
// names that are in no known encoding.
func surveyRar(v *volumes, s *sink) (stored []string, err error) {
	old := false
	for i := 0; ; i++ {
		part, err := surveyRarPart(v.volume(i), i, s)
		if err != nil {
			return nil, err
		}
		stored = append(stored, part.raw...)
		old = old || part.old
		if !part.more {
			return stored, nil
		}
		next, err := nextRarVolume(v.base[i], old)
		if err != nil {
			return nil, s.broken("", RuleMultiDisk, "the archive is one part of several, and "+err.Error(), nil)
		}
		err = v.open(next)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, s.broken("", RuleMultiDisk, fmt.Sprintf("the archive is one part of several, and the next, %s, is not there", next), nil)
		}
		if err != nil {
			return nil, err
		}
	}
}

type rarPart struct {
	old, more bool
	raw       []string
}

func surveyRarPart(r *io.SectionReader, number int, s *sink) (p rarPart, err error) {
	b := bufio.NewReaderSize(r, 4<<10)
	read := readRar5
	head, _ := b.Peek(len(rar5Magic))
	switch {
	case string(head) == rar5Magic:
		_, _ = b.Discard(len(rar5Magic)) // was peeked at
	case bytes.HasPrefix(head, []byte(rar4Magic)):
		_, _ = b.Discard(len(rar4Magic))
		read = readRar4
	default:
		return p, s.broken("", RuleDamaged, "no rar header", nil)
	}
	last, members, modern := "", 0, string(head) == rar5Magic
	for {
		block, err := read(b)
		pos, _ := r.Seek(0, io.SeekCurrent) // cannot fail
		at := pos - int64(b.Buffered())
		if errors.Is(err, io.EOF) {
			if modern {
				return p, s.broken(last, RuleTruncated, "the archive stops after this member, without an end block", nil)
			}
			s.warn(last, "the archive stops after this member, without an end block: it may have been cut there")
			return p, nil
		}
		if err != nil {
			return p, s.rarDamage(last, err)
		}
		if block.data < 0 || block.data > r.Size()-at {
			return p, s.broken(firstName(block.name, last), RuleTruncated, "its data ends beyond the archive's", nil)
		}
		switch block.kind {
		case rarEncrypted:
			return p, s.broken("", RuleEncrypted, "the archive's list of members is encrypted (AES)", nil)
		case rarMain:
			p.old = block.old
		case rarMember:
			members++
			if members == 1 && number == 0 && block.continued {
				return p, s.broken("", RuleMultiDisk, "the archive is one part of several, and not the first", nil)
			}
			last, modern = block.name, modern || block.modern
			if block.raw {
				p.raw = append(p.raw, block.name)
			}
			if block.noSum {
				s.warn(block.name, "has no check sum that could be compared (BLAKE2)")
			}
		case rarEnd:
			p.more = block.more
			return p, s.rarEnd(r, at+block.data)
		}
		if int64(members) > s.limits.Files {
			return p, s.broken("", RuleFiles, fmt.Sprintf("the archive has more than %d members", s.limits.Files), nil)
		}
		if _, err := r.Seek(at+block.data, io.SeekStart); err != nil {
			return p, err
		}
		b.Reset(r)
	}
}

// rarEnd looks at what follows the end block: parts of one size are filled up with
// zeros, and so is what was on tape.
func (s *sink) rarEnd(r *io.SectionReader, at int64) error {
	if zeros, err := onlyZeros(io.NewSectionReader(r, at, r.Size()-at)); zeros || err != nil {
		return err
	}
	return s.broken("", RuleTrailing, fmt.Sprintf("%d bytes follow the end of the archive", r.Size()-at), nil)
}

func firstName(names ...string) string {
	for _, n := range names {
		if n != "" {
			return n
		}
	}
	return ""
}

var errRarSum = errors.New("a header does not match its check sum")

func (s *sink) rarDamage(last string, err error) error {
	switch {
	case errors.Is(err, errRarSum):
		return s.broken(last, RuleChecksum, "the header after this member does not match its check sum", err)
	case errors.Is(err, io.ErrUnexpectedEOF):
		return s.broken(last, RuleTruncated, "the archive ends within the header after this member", err)
	}
	return s.broken(last, RuleDamaged, "the header after this member is damaged", err)
}

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

func rar4Member(b rarBlock, body []byte, flags uint16) (rarBlock, error) {
	le := binary.LittleEndian
	if len(body) < 25 {
		return b, errors.New("a member's header is too short")
	}
	b.kind, b.continued, b.modern = rarMember, flags&1 != 0, body[17] >= 29
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
	f.next() // method
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
