package zips

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"unicode/utf8"

	"bagpipe/bags/archive/internal/codepage"
	"bagpipe/bags/archive/internal/notes"
	"bagpipe/bags/files"
)

// checkLocals compares every member's own header with the directory, and finds
// members that share bytes and bytes that belong to no member.
func checkLocals(r io.ReaderAt, entries []Entry, dirAt int64, n *notes.Notes) error {
	for i := range entries {
		if err := checkLocal(r, &entries[i], dirAt, n); err != nil {
			return err
		}
	}
	byOffset := make([]*Entry, len(entries))
	for i := range entries {
		byOffset[i] = &entries[i]
	}
	slices.SortStableFunc(byOffset, func(a, b *Entry) int { return cmp.Compare(a.offset, b.offset) })
	end := int64(0)
	for _, e := range byOffset {
		if e.offset < end {
			return n.Broken(e.name, files.RuleOverlap, "its data overlaps another member's", nil)
		}
		if err := checkGap(r, end, e.offset, n); err != nil {
			return err
		}
		end = e.end
	}
	return checkGap(r, end, dirAt, n)
}

// checkGap looks at bytes between members. A header there is a member that
// programs find who read from the front, and others do not.
func checkGap(r io.ReaderAt, from, to int64, n *notes.Notes) error {
	if from >= to {
		return nil
	}
	head := make([]byte, min(to-from, 4))
	if _, err := r.ReadAt(head, from); err != nil {
		return err
	}
	if bytes.Equal(head, []byte("PK\x03\x04")) {
		return n.Broken("", files.RuleHeaders, fmt.Sprintf("a member at byte %d is not in the directory", from), nil)
	}
	n.Warn("", fmt.Sprintf("%d bytes at byte %d belong to no member", to-from, from))
	return nil
}

func checkLocal(r io.ReaderAt, e *Entry, dirAt int64, n *notes.Notes) error {
	le := binary.LittleEndian
	h := make([]byte, LocalLen+len(e.name))
	if e.offset > dirAt-int64(len(h)) {
		return n.Broken(e.name, files.RuleHeaders, "its header is not where the directory says", nil)
	}
	if _, err := r.ReadAt(h, e.offset); err != nil {
		return err
	}
	if !bytes.HasPrefix(h, []byte("PK\x03\x04")) {
		return n.Broken(e.name, files.RuleHeaders, "its header is not where the directory says", nil)
	}
	length := int(le.Uint16(h[26:]))
	if length != len(e.name) || string(h[LocalLen:]) != e.name {
		return n.Broken(e.name, files.RuleHeaders, "its name in the directory is another one", nil)
	}
	flags := le.Uint16(h[6:])
	if le.Uint16(h[8:]) != e.method || (flags^e.flags)&flagEncrypt != 0 {
		return n.Broken(e.name, files.RuleHeaders, "its header and the directory disagree about its method", nil)
	}
	extra := int64(le.Uint16(h[28:]))
	start := e.offset + LocalLen + int64(length) + extra
	if e.compressed > dirAt-start {
		return n.Broken(e.name, files.RuleTruncated, "its data ends beyond the archive's", nil)
	}
	e.end = start + e.compressed
	if flags&flagSizes == 0 {
		return checkSizes(h, e, n)
	}
	return skipDescriptor(r, e, dirAt)
}

// checkSizes compares what the member's header says with the directory. Values
// that did not fit stand in the extra field, which is not compared.
func checkSizes(h []byte, e *Entry, n *notes.Notes) error {
	if e.flags&flagMasked != 0 {
		return nil // the header is blanked on purpose; the member is refused for that
	}
	le := binary.LittleEndian
	same := func(here uint32, there int64) bool { return here == maxUint32 || int64(here) == there }
	if le.Uint32(h[14:]) != e.crc || !same(le.Uint32(h[18:]), e.compressed) || !same(le.Uint32(h[22:]), e.size) {
		return n.Broken(e.name, files.RuleHeaders, "its header and the directory disagree about its size or check sum", nil)
	}
	return nil
}

// skipDescriptor moves the member's end behind its data descriptor: sum and sizes,
// of 32 or 64 bits, with or without a mark. Its sum is compared when the data
// is read.
func skipDescriptor(r io.ReaderAt, e *Entry, dirAt int64) error {
	le := binary.LittleEndian
	b := make([]byte, min(24, dirAt-e.end))
	if _, err := r.ReadAt(b, e.end); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	mark := 0
	if bytes.HasPrefix(b, []byte("PK\x07\x08")) {
		mark = 4
	}
	rest := b[mark:]
	switch {
	case len(rest) >= 20 && le.Uint32(rest) == e.crc && int64(le.Uint64(rest[4:])) == e.compressed && int64(le.Uint64(rest[12:])) == e.size:
		e.end += int64(mark + 20)
	case len(rest) >= 12 && le.Uint32(rest) == e.crc && le.Uint32(rest[4:]) == uint32(e.compressed) && le.Uint32(rest[8:]) == uint32(e.size):
		e.end += int64(mark + 12)
	}
	return nil
}

// decodeNames gives every member its name in UTF-8.
func decodeNames(entries []Entry, asked string, n *notes.Notes) error {
	var unknown []string
	for i := range entries {
		if e := &entries[i]; e.unicode == "" && e.flags&flagUTF8 == 0 {
			unknown = append(unknown, e.name)
		}
	}
	page, note, err := codepage.New(asked, unknown)
	if err != nil {
		return err
	}
	if note != "" {
		n.Warn("", note)
	}
	for i := range entries {
		e := &entries[i]
		switch {
		case e.unicode != "" && asked != codepage.Raw:
			e.Text = e.unicode
		case e.flags&flagUTF8 == 0:
			e.Text = page.Decode(e.name)
		case !utf8.ValidString(e.name):
			n.Warn(e.name, "the name is said to be UTF-8 and is not: kept as it is")
		}
	}
	return nil
}
