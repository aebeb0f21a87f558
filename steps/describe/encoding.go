package describe

import (
	"bytes"
	"encoding/binary"
	"encoding/xml"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"unicode/utf16"
	"unicode/utf8"
)

// utf8Of gives XML as UTF-8, and what byte of the file a byte of it was, for UTF-16 is read as well; whether it is that, its
// first two bytes tell, as the standard has it (appendix F). An encoding of 16 bits that a file of UTF-8 declares is none.
func utf8Of(data []byte) (text []byte, byteOf func(int) int, err error) {
	var order binary.ByteOrder = binary.BigEndian
	mark := 0
	switch {
	case bytes.HasPrefix(data, []byte("\xff\xfe")):
		order, mark = binary.LittleEndian, 2
	case bytes.HasPrefix(data, []byte("\xfe\xff")):
		mark = 2
	case bytes.HasPrefix(data, []byte("<\x00")):
		order = binary.LittleEndian
	case bytes.HasPrefix(data, []byte("\x00<")):
	default:
		return undeclared(data), func(at int) int { return at }, nil
	}
	units := make([]uint16, 0, len(data)/2)
	for i := mark; i+1 < len(data); i += 2 {
		units = append(units, order.Uint16(data[i:]))
	}
	if len(data)%2 > 0 {
		return nil, nil, fmt.Errorf("at byte %d: half a character of UTF-16", len(data)-1)
	}
	for i := 0; i < len(units); i++ {
		if utf16.IsSurrogate(rune(units[i])) {
			if i+1 == len(units) || utf16.DecodeRune(rune(units[i]), rune(units[i+1])) == utf8.RuneError {
				return nil, nil, fmt.Errorf("at byte %d: half a character of UTF-16", mark+2*i)
			}
			i++
		}
	}
	text = undeclared([]byte(string(utf16.Decode(units))))
	return text, func(at int) int { return mark + 2*len(utf16.Encode([]rune(string(text[:at])))) }, nil
}

var sixteen = regexp.MustCompile(`^(?:\x{feff})?\s*<\?xml[^>]*?(encoding\s*=\s*["'](?i:utf-16|ucs-2)[^"']*["'])`)

// undeclared blanks what an XML declaration says of 16 bits.
func undeclared(data []byte) []byte {
	if m := sixteen.FindSubmatchIndex(data[:min(len(data), 1000)]); m != nil {
		data = slices.Concat(data[:m[2]], bytes.Repeat([]byte(" "), m[3]-m[2]), data[m[3]:])
	}
	return data
}

// brokenAt gives the byte at which XML of UTF-8 is broken.
func brokenAt(data []byte) (at int, ok bool) {
	d := xml.NewDecoder(bytes.NewReader(data))
	for {
		_, err := d.Token()
		var broken *xml.SyntaxError
		switch {
		case err == nil:
		case !errors.As(err, &broken):
			return 0, false
		case utf8.Valid(data):
			return int(d.InputOffset()), true
		default:
			for at = 0; ; {
				r, n := utf8.DecodeRune(data[at:])
				if r == utf8.RuneError && n == 1 {
					return min(at, int(d.InputOffset())), true
				}
				at += n
			}
		}
	}
}
