package raster

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
)

// Error says what is wrong with a file, and where.
type Error struct {
	Offset int64
	Text   string
}

func (e *Error) Error() string { return fmt.Sprintf("TIFF: at byte %d: %s", e.Offset, e.Text) }

// The limits of what is read.
const (
	maxDirectories = 1000
	maxEntries     = 4096
	maxValues      = 16 << 20 // of one field: offsets of the blocks of a very large picture
	maxText        = 1 << 20
)

// File is a TIFF.
type File struct {
	Big   bool // BigTIFF
	Pages []*Page

	r     io.ReaderAt
	size  int64
	order binary.ByteOrder
}

// IsTIFF reports whether a file begins as a TIFF does.
func IsTIFF(head []byte) bool {
	if len(head) < 4 {
		return false
	}
	s := string(head[:4])
	return s == "II*\x00" || s == "MM\x00*" || s == "II+\x00" || s == "MM\x00+"
}

// Open reads the directories of a TIFF of that size.
func Open(r io.ReaderAt, size int64) (*File, error) {
	f := &File{r: r, size: size, order: binary.LittleEndian}
	head, err := f.read(0, min(16, size))
	if err != nil {
		return nil, err
	}
	if !IsTIFF(head) || len(head) < 8 {
		return nil, &Error{0, "no TIFF"}
	}
	if head[0] == 'M' {
		f.order = binary.BigEndian
	}
	next := int64(f.order.Uint32(head[4:]))
	if f.Big = f.order.Uint16(head[2:]) == 43; f.Big {
		if len(head) < 16 || f.order.Uint16(head[4:]) != 8 {
			return nil, &Error{4, "a BigTIFF whose offsets are not of 8 bytes"}
		}
		next = f.offset(head[8:])
	}
	seen := map[int64]bool{}
	for next != 0 {
		switch {
		case seen[next]:
			return nil, &Error{next, "the directories loop"}
		case len(seen) == maxDirectories:
			return nil, &Error{next, fmt.Sprintf("more than %d directories", maxDirectories)}
		}
		seen[next] = true
		p, after, err := f.page(next)
		if err != nil {
			return nil, err
		}
		f.Pages = append(f.Pages, p)
		next = after
	}
	if len(f.Pages) == 0 {
		return nil, &Error{4, "no directory"}
	}
	return f, nil
}

func (f *File) offset(b []byte) int64 {
	v := f.order.Uint64(b)
	if v > math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(v)
}

// read gives n bytes at an offset.
func (f *File) read(at, n int64) ([]byte, error) {
	if at < 0 || n < 0 || at > f.size || n > f.size-at {
		return nil, &Error{at, fmt.Sprintf("%d bytes are said to be here, in a file of %d", n, f.size)}
	}
	b := make([]byte, n)
	if _, err := f.r.ReadAt(b, at); err != nil && (err != io.EOF || n > 0) {
		return nil, fmt.Errorf("TIFF: read at byte %d: %w", at, err)
	}
	return b, nil
}

// field is an entry of a directory. Its values are read when they are asked for.
type field struct {
	kind  uint16
	count int64
	at    int64 // where the values are
}

// kindSizes are the bytes of a value, by the field's type.
var kindSizes = [19]int64{0, 1, 1, 2, 4, 8, 1, 1, 2, 4, 8, 4, 8, 4, 0, 0, 8, 8, 8}

// directory reads the fields at an offset, and where the next directory is.
func (f *File) directory(at int64) (map[uint16]field, int64, error) {
	countSize, entrySize, offsetSize := int64(2), int64(12), int64(4)
	if f.Big {
		countSize, entrySize, offsetSize = 8, 20, 8
	}
	b, err := f.read(at, countSize)
	if err != nil {
		return nil, 0, err
	}
	n := int64(f.order.Uint16(b))
	if f.Big {
		n = f.offset(b)
	}
	if n > maxEntries {
		return nil, 0, &Error{at, fmt.Sprintf("a directory of %d fields", n)}
	}
	if b, err = f.read(at+countSize, n*entrySize); err != nil {
		return nil, 0, err
	}
	fields := make(map[uint16]field, n)
	for i := range n {
		e := b[i*entrySize:]
		v := field{kind: f.order.Uint16(e[2:])}
		valueAt := i*entrySize + 8
		v.count = int64(f.order.Uint32(e[4:]))
		if f.Big {
			v.count = f.offset(e[4:])
			valueAt += 4
		}
		if int(v.kind) >= len(kindSizes) || kindSizes[v.kind] == 0 {
			continue // of a type that readers skip
		}
		v.at = at + countSize + valueAt
		if v.count > offsetSize/kindSizes[v.kind] {
			v.at = int64(f.order.Uint32(b[valueAt:]))
			if f.Big {
				v.at = f.offset(b[valueAt:])
			}
		}
		fields[f.order.Uint16(e)] = v
	}
	next, err := f.read(at+countSize+n*entrySize, offsetSize)
	if err != nil { // the last directory of a file that was cut there
		return fields, 0, nil
	}
	if f.Big {
		return fields, f.offset(next), nil
	}
	return fields, int64(f.order.Uint32(next)), nil
}

// bytes reads the values of a field as they are.
func (f *File) bytes(v field) ([]byte, error) {
	if v.count < 0 || v.count > maxValues {
		return nil, &Error{v.at, fmt.Sprintf("a field of %d values", v.count)}
	}
	return f.read(v.at, v.count*kindSizes[v.kind])
}

// integers reads a field of whole numbers; one that is not there is empty.
func (f *File) integers(v field) ([]int64, error) {
	b, err := f.bytes(v)
	if err != nil || v.count == 0 {
		return nil, err
	}
	out := make([]int64, v.count)
	size := kindSizes[v.kind]
	for i := range out {
		e := b[int64(i)*size:]
		switch size {
		case 1:
			out[i] = int64(e[0])
		case 2:
			out[i] = int64(f.order.Uint16(e))
		case 4:
			out[i] = int64(f.order.Uint32(e))
		default:
			out[i] = f.offset(e)
		}
	}
	return out, nil
}

const kindDouble = 12

// doubles reads a field of doubles.
func (f *File) doubles(v field) ([]float64, error) {
	if v.count == 0 || v.kind != kindDouble {
		return nil, nil
	}
	b, err := f.bytes(v)
	if err != nil {
		return nil, err
	}
	out := make([]float64, v.count)
	for i := range out {
		out[i] = math.Float64frombits(f.order.Uint64(b[8*i:]))
	}
	return out, nil
}

// text reads a field of characters.
func (f *File) text(v field) (string, error) {
	if v.count > maxText {
		return "", &Error{v.at, fmt.Sprintf("a text of %d bytes", v.count)}
	}
	b, err := f.bytes(v)
	for len(b) > 0 && b[len(b)-1] == 0 {
		b = b[:len(b)-1]
	}
	return string(b), err
}
