package zips

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"regexp"
	"unicode/utf8"

	"bagpipe/bags/archive/internal/notes"
	"bagpipe/bags/archive/internal/volume"
	"bagpipe/bags/files"
)

// This file reads a zip's central directory beside the library's own reading of
// it, for what the library does not look at. The rules are:
//
//   - the end record is the last thing in the file, its comment included, and the
//     zeros that fill up what was on tape or disc;
//   - the directory ends where the end record begins: nothing stands between;
//   - there is one disk;
//   - every member's local header stands before the directory and agrees with it
//     in name, method and encryption; no two members share a byte. (Overlapping
//     members are how a 42 KB zip becomes 4.5 PB, and a local header that
//     disagrees shows different files to different programs.)

const (
	eocdLen      = 22
	maxComment   = 1<<16 - 1
	CentralLen   = 46
	LocalLen     = 30
	locatorLen   = 20
	eocd64Len    = 56
	flagEncrypt  = 1 << 0
	flagStrong   = 1 << 6
	flagMasked   = 1 << 13
	flagSizes    = 1 << 3 // sizes and sum stand after the data
	flagUTF8     = 1 << 11
	extraZip64   = 1
	extraPath    = 0x7075 // Info-ZIP: the name in UTF-8
	maxUint32    = 1<<32 - 1
	methodStore  = 0
	methodDefl   = 8
	methodBzip2  = 12
	methodZstd   = 93
	methodXz     = 95
	methodAES    = 99
	encryptFlags = flagEncrypt | flagStrong | flagMasked
)

// An Entry is one member as the central directory has it.
type Entry struct {
	name       string // the bytes as stored
	Text       string // the name in UTF-8, where its code page is known
	unicode    string // the name by the Unicode path field, if it has one that is about this name
	crc        uint32
	size       int64
	flags      uint16
	method     uint16
	compressed int64
	offset     int64
	end        int64 // after the member's data
}

type zipEnd struct {
	count, size, offset, at int64
	record                  int64 // where the end record stands; at is the zip64's, where there is one
	zip64                   bool
}

// counts reports whether the directory may have n members. Without zip64 the field
// has 16 bits, and macOS writes larger archives with what fits.
func (e zipEnd) counts(n int64) bool {
	return n == e.count || !e.zip64 && n&(1<<16-1) == e.count
}

// readZipDirectory reads and checks the whole directory.
func readZipDirectory(r io.ReaderAt, size, most int64, n *notes.Notes) ([]Entry, zipEnd, error) {
	end, err := findZipEnd(r, size, n)
	if err != nil {
		return nil, end, err
	}
	if end.offset < 0 || end.size < 0 || end.offset+end.size != end.at {
		return nil, end, n.Broken("", files.RuleHeaders, "the directory is not where the archive says", nil)
	}
	if end.count > most {
		return nil, end, n.Broken("", files.RuleFiles, fmt.Sprintf("the archive has more than %d members", most), nil)
	}
	entries, err := readCentrals(r, end, most, n)
	if err != nil {
		return nil, end, err
	}
	if !end.counts(int64(len(entries))) {
		return nil, end, n.Broken("", files.RuleHeaders, fmt.Sprintf("the directory has %d members and says %d", len(entries), end.count), nil)
	}
	return entries, end, checkLocals(r, entries, end.offset, n)
}

func readCentrals(r io.ReaderAt, end zipEnd, most int64, n *notes.Notes) ([]Entry, error) {
	b := bufio.NewReaderSize(io.NewSectionReader(r, end.offset, end.size), 64<<10)
	var entries []Entry
	for {
		e, err := readCentral(b)
		if errors.Is(err, io.EOF) {
			return entries, nil
		}
		if err != nil {
			return nil, n.Broken("", files.RuleDamaged, "the directory is damaged after "+fmt.Sprint(len(entries))+" members", err)
		}
		if int64(len(entries)) >= most {
			return nil, n.Broken(e.name, files.RuleFiles, fmt.Sprintf("the archive has more than %d members", most), nil)
		}
		entries = append(entries, e)
	}
}

func findZipEnd(r io.ReaderAt, size int64, n *notes.Notes) (zipEnd, error) {
	length := min(size, eocdLen+maxComment)
	tail := make([]byte, length)
	if _, err := r.ReadAt(tail, size-length); err != nil && !errors.Is(err, io.EOF) {
		return zipEnd{}, err
	}
	for i := len(tail) - eocdLen; i >= 0; i-- {
		if !bytes.HasPrefix(tail[i:], []byte("PK\x05\x06")) {
			continue
		}
		behind := i + eocdLen + int(binary.LittleEndian.Uint16(tail[i+20:]))
		if behind > len(tail) {
			continue // within a comment, or by chance
		}
		if rest := tail[behind:]; !volume.IsZero(rest) {
			return zipEnd{}, n.Broken("", files.RuleTrailing, fmt.Sprintf("%d bytes follow the end of the archive", len(rest)), nil)
		} else if len(rest) > 0 {
			n.Warn("", fmt.Sprintf("%d zeros follow the end of the archive", len(rest)))
		}
		return parseZipEnd(r, tail[i:], size-length+int64(i), n)
	}
	return zipEnd{}, noZipEnd(r, n)
}

// zipPart matches the names of all parts but the last: x.z01, x.zip.001.
var zipPart = regexp.MustCompile(`(?i)\.(z[0-9]{2}|zip\.[0-9]{3})$`)

// noZipEnd says why there is no end record: a first part may also begin with a mark.
func noZipEnd(r io.ReaderAt, n *notes.Notes) error {
	const mark = "PK\x07\x08"
	head := make([]byte, len(mark))
	if _, err := r.ReadAt(head, 0); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if string(head) == mark || zipPart.MatchString(n.Archive) {
		return n.Broken("", files.RuleMultiDisk, "the archive is one part of several", nil)
	}
	return n.Broken("", files.RuleTruncated, "the archive has no directory: its end is missing", nil)
}

func parseZipEnd(r io.ReaderAt, b []byte, at int64, n *notes.Notes) (zipEnd, error) {
	le := binary.LittleEndian
	disk, dirDisk := le.Uint16(b[4:]), le.Uint16(b[6:])
	here, all := le.Uint16(b[8:]), le.Uint16(b[10:])
	e := zipEnd{count: int64(all), size: int64(le.Uint32(b[12:])), offset: int64(le.Uint32(b[16:])), at: at, record: at}
	e64, ok, err := findZip64End(r, at, n)
	if err != nil || ok {
		return e64, err
	}
	if disk != 0 || dirDisk != 0 || here != all {
		return zipEnd{}, n.Broken("", files.RuleMultiDisk, "the archive is one part of several", nil)
	}
	return e, nil
}

func findZip64End(r io.ReaderAt, at int64, n *notes.Notes) (zipEnd, bool, error) {
	le := binary.LittleEndian
	loc := make([]byte, locatorLen)
	if at < locatorLen {
		return zipEnd{}, false, nil
	}
	if _, err := r.ReadAt(loc, at-locatorLen); err != nil {
		return zipEnd{}, false, err
	}
	if !bytes.HasPrefix(loc, []byte("PK\x06\x07")) {
		return zipEnd{}, false, nil
	}
	pos := int64(le.Uint64(loc[8:]))
	if le.Uint32(loc[4:]) != 0 || le.Uint32(loc[16:]) > 1 {
		return zipEnd{}, false, n.Broken("", files.RuleMultiDisk, "the archive is one part of several", nil)
	}
	b := make([]byte, eocd64Len)
	if pos < 0 || pos > at-locatorLen-eocd64Len {
		return zipEnd{}, false, n.Broken("", files.RuleDamaged, "the zip64 end record is not where the archive says", nil)
	}
	if _, err := r.ReadAt(b, pos); err != nil {
		return zipEnd{}, false, err
	}
	if !bytes.HasPrefix(b, []byte("PK\x06\x06")) {
		return zipEnd{}, false, n.Broken("", files.RuleDamaged, "the zip64 end record is damaged", nil)
	}
	if le.Uint32(b[16:]) != 0 || le.Uint32(b[20:]) != 0 || le.Uint64(b[24:]) != le.Uint64(b[32:]) {
		return zipEnd{}, false, n.Broken("", files.RuleMultiDisk, "the archive is one part of several", nil)
	}
	e := zipEnd{count: int64(le.Uint64(b[32:])), size: int64(le.Uint64(b[40:])), offset: int64(le.Uint64(b[48:])), at: pos, record: at, zip64: true}
	if e.count < 0 {
		return zipEnd{}, false, n.Broken("", files.RuleDamaged, "the zip64 end record is damaged", nil)
	}
	return e, true, nil
}

func readCentral(r io.Reader) (Entry, error) {
	le := binary.LittleEndian
	h := make([]byte, CentralLen)
	if _, err := io.ReadFull(r, h); err != nil {
		return Entry{}, err
	}
	if !bytes.HasPrefix(h, []byte("PK\x01\x02")) {
		return Entry{}, errors.New("no directory entry")
	}
	names := make([]byte, int(le.Uint16(h[28:]))+int(le.Uint16(h[30:]))+int(le.Uint16(h[32:])))
	if _, err := io.ReadFull(r, names); err != nil {
		return Entry{}, io.ErrUnexpectedEOF
	}
	n := int(le.Uint16(h[28:]))
	e := Entry{
		name: string(names[:n]), flags: le.Uint16(h[8:]), method: le.Uint16(h[10:]), crc: le.Uint32(h[16:]),
		compressed: int64(le.Uint32(h[20:])), size: int64(le.Uint32(h[24:])), offset: int64(le.Uint32(h[42:])),
	}
	e.Text = e.name
	return e, e.extra(names[n : n+int(le.Uint16(h[30:]))])
}

// extra takes what the extra field says: the values that did not fit elsewhere,
// and the name in UTF-8.
func (e *Entry) extra(extra []byte) error {
	le := binary.LittleEndian
	for len(extra) >= 4 {
		id, n := le.Uint16(extra), int(le.Uint16(extra[2:]))
		if n > len(extra)-4 {
			break
		}
		field := extra[4 : 4+n]
		extra = extra[4+n:]
		switch id {
		case extraZip64:
			if err := e.zip64(field); err != nil {
				return err
			}
		case extraPath:
			// The sum ties it to the name it was made for: a program that renames
			// the member and knows nothing of the field makes it void.
			if len(field) > 5 && field[0] == 1 && le.Uint32(field[1:]) == crc32.ChecksumIEEE([]byte(e.name)) && utf8.Valid(field[5:]) {
				e.unicode = string(field[5:])
			}
		}
	}
	if e.compressed < 0 || e.offset < 0 || e.size < 0 {
		return errors.New("a size is negative")
	}
	return nil
}

func (e *Entry) zip64(field []byte) error {
	for _, v := range []*int64{&e.size, &e.compressed, &e.offset} {
		if *v != maxUint32 {
			continue
		}
		if len(field) < 8 {
			return errors.New("the zip64 field is too short")
		}
		*v = int64(binary.LittleEndian.Uint64(field))
		field = field[8:]
	}
	return nil
}
