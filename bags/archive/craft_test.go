package archive

import (
	"encoding/binary"
	"hash/crc32"

	"bagpipe/bags/archive/internal/rars"
	"bagpipe/bags/archive/internal/sevens"
)

// Archives made by hand, byte by byte: no free program writes rar, and no program
// writes what only an attacker would.

// sevenZipOf makes a 7z of a header and what stands before it.
func sevenZipOf(packed, header []byte) []byte {
	le := binary.LittleEndian
	start := le.AppendUint64(nil, uint64(len(packed)))
	start = le.AppendUint64(start, uint64(len(header)))
	start = le.AppendUint32(start, crc32.ChecksumIEEE(header))
	b := append([]byte(sevens.Magic), 0, 4)
	b = le.AppendUint32(b, crc32.ChecksumIEEE(start))
	return append(append(append(b, start...), packed...), header...)
}

// sevenZipHungry says that its own header must be decompressed into 7 GB, by this
// coder with these properties.
func sevenZipHungry(id string, properties ...byte) []byte {
	packed := make([]byte, 8)
	header := []byte{0x17, 0x06, 0, 1, 9, byte(len(packed)), 0, 0x07, 0x0b, 1, 0, 1, 0x20 | byte(len(id))}
	header = append(append(header, id...), byte(len(properties)))
	header = append(header, properties...)
	return sevenZipOf(packed, append(header, 0x0c, 0xf1, 0x00, 0x5a, 0x2c, 0xa1, 0, 0))
}

// rarFile is a member of a crafted rar.
type rarFile struct {
	name   string
	data   string
	folder bool
	flags  uint64 // more of the member's flags
	link   string // a symbolic link's target
}

// rar5Of makes a rar 5 of stored members.
func rar5Of(files ...rarFile) []byte {
	b := []byte(rars.Magic5)
	b = append(b, rar5Block(1, 0, nil, vint(0))...)
	for _, f := range files {
		b = append(b, rar5Packed(f, 0, f.data, f.data)...)
	}
	return append(b, rar5Block(5, 0, nil, vint(0))...)
}

// rar5Parts makes a rar 5 of one member over several parts.
func rar5Parts(name string, pieces ...string) [][]byte {
	whole := ""
	for _, p := range pieces {
		whole += p
	}
	var parts [][]byte
	for i, p := range pieces {
		b := []byte(rars.Magic5)
		if i == 0 {
			b = append(b, rar5Block(1, 0, nil, vint(1))...)
		} else {
			b = append(b, rar5Block(1, 0, nil, append(vint(3), vint(uint64(i))...))...)
		}
		flags, more := uint64(0), uint64(0)
		if i > 0 {
			flags |= 8
		}
		if i < len(pieces)-1 {
			flags, more = flags|16, 1
		}
		b = append(b, rar5Packed(rarFile{name: name}, flags, p, whole)...)
		parts = append(parts, append(b, rar5Block(5, 0, nil, vint(more))...))
	}
	return parts
}

func rar5Packed(f rarFile, block uint64, data, whole string) []byte {
	flags := uint64(4) | f.flags
	if f.folder {
		flags |= 1
	}
	mode := uint64(0o100644)
	if f.folder {
		mode = 0o040755
	}
	h := append(vint(flags), vint(uint64(len(whole)))...)
	h = append(h, vint(mode)...)
	h = binary.LittleEndian.AppendUint32(h, crc32.ChecksumIEEE([]byte(whole)))
	h = append(h, vint(0)...) // stored
	h = append(h, vint(1)...) // Unix
	h = append(append(h, vint(uint64(len(f.name)))...), f.name...)
	if f.link != "" {
		link := append([]byte{5, 1, 0}, vint(uint64(len(f.link)))...)
		link = append(link, f.link...)
		extra := append(vint(uint64(len(link))), link...)
		return rar5Extra(2, block, []byte(data), h, extra)
	}
	return rar5Block(2, block, []byte(data), h)
}

func rar5Block(kind, flags uint64, data, fields []byte) []byte {
	return rar5Extra(kind, flags, data, fields, nil)
}

func rar5Extra(kind, flags uint64, data, fields, extra []byte) []byte {
	if data != nil {
		flags |= 2
	}
	if extra != nil {
		flags |= 1
	}
	h := append(vint(kind), vint(flags)...)
	if extra != nil {
		h = append(h, vint(uint64(len(extra)))...)
	}
	if data != nil {
		h = append(h, vint(uint64(len(data)))...)
	}
	h = append(append(h, fields...), extra...)
	h = append(vint(uint64(len(h))), h...)
	b := binary.LittleEndian.AppendUint32(nil, crc32.ChecksumIEEE(h))
	return append(append(b, h...), data...)
}

func vint(n uint64) []byte { return binary.AppendUvarint(nil, n) }

// rar4Of makes a rar of version 4 of stored members.
func rar4Of(files ...rarFile) []byte {
	b := append([]byte(rars.Magic4), rar4Block(0x73, 0, make([]byte, 6))...)
	for _, f := range files {
		b = append(b, rar4Packed(f, uint16(f.flags), f.data, f.data)...)
	}
	return append(b, rar4Block(0x7b, 0x4000, nil)...)
}

// rar4Parts makes a rar 4 of one member over several parts.
func rar4Parts(name string, newNames bool, pieces ...string) [][]byte {
	whole := ""
	for _, p := range pieces {
		whole += p
	}
	var parts [][]byte
	for i, p := range pieces {
		main := uint16(1)
		if newNames {
			main |= 0x10
		}
		if i == 0 {
			main |= 0x100
		}
		flags, end := uint16(0), uint16(0x4000)
		if i > 0 {
			flags |= 1
		}
		if i < len(pieces)-1 {
			flags, end = flags|2, end|1
		}
		b := append([]byte(rars.Magic4), rar4Block(0x73, main, make([]byte, 6))...)
		b = append(b, rar4Packed(rarFile{name: name}, flags, p, whole)...)
		parts = append(parts, append(b, rar4Block(0x7b, end, nil)...))
	}
	return parts
}

func rar4Packed(f rarFile, flags uint16, data, whole string) []byte {
	le := binary.LittleEndian
	attr := uint32(0o100644)
	if f.folder {
		flags, attr = flags|0xe0, 0o040755
	}
	sum := whole
	if flags&2 != 0 {
		sum = data // of the piece, until the last
	}
	h := le.AppendUint32(nil, uint32(len(data)))
	h = le.AppendUint32(h, uint32(len(whole)))
	h = append(h, 3) // Unix
	h = le.AppendUint32(h, crc32.ChecksumIEEE([]byte(sum)))
	h = le.AppendUint32(h, 0x4e645428) // 2019-03-04 10:33:16
	h = append(h, 29, 0x30)            // RAR 2.9, stored
	h = le.AppendUint16(h, uint16(len(f.name)))
	h = le.AppendUint32(h, attr)
	h = append(h, f.name...)
	return append(rar4Block(0x74, flags|0x8000, h), data...)
}

func rar4Block(kind byte, flags uint16, body []byte) []byte {
	le := binary.LittleEndian
	h := []byte{kind}
	h = le.AppendUint16(h, flags)
	h = le.AppendUint16(h, uint16(7+len(body)))
	h = append(h, body...)
	return append(le.AppendUint16(nil, uint16(crc32.ChecksumIEEE(h))), h...)
}
