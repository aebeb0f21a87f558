package feed

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"slices"

	"bagpipe/layout/disk"
)

// errDamaged is a file that is to be built anew.
var errDamaged = errors.New("the feeds' files are damaged")

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// frames is one file of frames; at is how far it was read, turn the highest that wrote one.
type frames struct {
	path string
	at   int64
	turn int
}

const frameHead = 8

// read gives the frames that were added since, but those of a turn that was over. A last one
// that is not whole is cut off: its writer was killed, and holds no lock any more.
func (j *frames) read(each func(d *decoder)) (err error) {
	file, err := disk.OpenFile(j.path, os.O_RDWR, 0)
	if errors.Is(err, os.ErrNotExist) && j.at == 0 {
		return nil
	}
	if errors.Is(err, os.ErrPermission) { // who may not read them must not build them anew
		return err
	}
	if err != nil {
		return errors.Join(errDamaged, err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	info, err := file.Stat()
	if err != nil || info.Size() < j.at {
		return errors.Join(errDamaged, err)
	}
	data := make([]byte, info.Size()-j.at)
	if n, err := file.ReadAt(data, j.at); err != nil && err != io.EOF {
		return err
	} else {
		data = data[:n]
	}
	for len(data) > 0 {
		if len(data) < frameHead || int64(binary.LittleEndian.Uint32(data)) > int64(len(data)-frameHead) {
			return file.Truncate(j.at)
		}
		size := frameHead + int(binary.LittleEndian.Uint32(data))
		payload := data[frameHead:size]
		d := decoder{rest: payload}
		if turn := d.number(); turn >= j.turn {
			j.turn = turn
			each(&d)
		}
		if d.bad || crc32.Checksum(payload, castagnoli) != binary.LittleEndian.Uint32(data[4:]) {
			return fmt.Errorf("%s at byte %d: %w", j.path, j.at, errDamaged)
		}
		j.at, data = j.at+int64(size), data[size:]
	}
	return nil
}

// add appends a frame. A crash before it returns leaves a part of it, which the next read cuts
// off.
func (j *frames) add(payload []byte) error {
	var head [frameHead]byte
	binary.LittleEndian.PutUint32(head[:], uint32(len(payload)))
	binary.LittleEndian.PutUint32(head[4:], crc32.Checksum(payload, castagnoli))
	data := append(head[:], payload...)
	at, err := appendTo(j.path, data)
	if err == nil {
		j.at = at + int64(len(data))
	}
	return err
}

// appendTo appends to a file, and gives where what it wrote begins.
func appendTo(path string, data []byte) (at int64, err error) {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o666)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if _, err := file.Write(data); err != nil {
		return 0, err
	}
	end, err := file.Seek(0, io.SeekCurrent)
	return end - int64(len(data)), err
}

// decoder reads a payload; bad: it does not hold what was asked.
type decoder struct {
	rest []byte
	bad  bool
}

func (d *decoder) number() int {
	n, used := binary.Uvarint(d.rest)
	return int(d.took(int64(n), used))
}

func (d *decoder) signed() int64 {
	n, used := binary.Varint(d.rest)
	return d.took(n, used)
}

func (d *decoder) took(n int64, used int) int64 {
	if used <= 0 {
		d.rest, d.bad = nil, true
		return 0
	}
	d.rest = d.rest[used:]
	return n
}

func (d *decoder) text() []byte {
	n := d.number()
	if n < 0 || n > len(d.rest) {
		d.rest, d.bad = nil, true
		return nil
	}
	text := d.rest[:n]
	d.rest = d.rest[n:]
	return text
}

func appendText[S string | []byte](b []byte, text S) []byte {
	return append(binary.AppendUvarint(b, uint64(len(text))), text...)
}

// span is where something stands in a file of bodies or texts, its sum in it.
type span struct {
	at   int64
	size int
}

const sumSize = 4

// appendSummed appends data with its sum.
func appendSummed(b, data []byte) []byte {
	return append(binary.LittleEndian.AppendUint32(b, crc32.Checksum(data, castagnoli)), data...)
}

// singles reads bodies or texts one by one; ahead is how many bytes it reads at once.
type singles struct {
	path  string
	ahead int
	file  *os.File
	from  int64
	got   []byte
}

// at gives what stands in a span, with its sum if whole is set; it is good until the next call.
func (s *singles) at(where span, whole bool) (data []byte, err error) {
	if s.file == nil {
		if s.file, err = disk.Open(s.path); err != nil {
			return nil, errors.Join(errDamaged, err)
		}
	}
	if where.at < s.from || where.at+int64(where.size) > s.from+int64(len(s.got)) {
		s.from, s.got = where.at, slices.Grow(s.got[:0], max(where.size, s.ahead))[:max(where.size, s.ahead)]
		n, err := s.file.ReadAt(s.got, where.at)
		if s.got = s.got[:n]; err != nil && err != io.EOF {
			return nil, err
		}
	}
	data = s.got[where.at-s.from:]
	if where.size < sumSize || where.size > len(data) || binary.LittleEndian.Uint32(data) != crc32.Checksum(data[sumSize:where.size], castagnoli) {
		return nil, fmt.Errorf("%s at byte %d: %w", s.path, where.at, errDamaged)
	}
	if whole {
		return data[:where.size], nil
	}
	return data[sumSize:where.size], nil
}

func (s *singles) close() {
	if s.file != nil {
		s.file.Close() //nolint:errcheck // opened for reading
	}
}
