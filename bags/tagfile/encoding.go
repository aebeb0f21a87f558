package tagfile

import (
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/ianaindex"
	"golang.org/x/text/encoding/unicode/utf32"
	"golang.org/x/text/transform"
)

// EncodingOf gives the decoder for a name in bagit.txt; nil is UTF-8. ok is false for a
// name that nobody registered, and for the few registered ones without a decoder (UTF-7,
// ISO-10646-UCS-2 …).
func EncodingOf(name string) (enc encoding.Encoding, ok bool) {
	switch strings.ToUpper(name) { // two that are not registered mean one thing only
	case "UTF-8", "UTF8":
		return nil, true
	case "US-ASCII", "ASCII":
		return Ascii{}, true
	}
	if enc := utf32Of(name); enc != nil {
		return enc, true
	}
	enc, err := ianaindex.IANA.Encoding(name)
	if err != nil || enc == nil {
		return nil, false
	}
	return enc, true
}

// utf32Of gives the encodings that the index leaves out.
func utf32Of(name string) encoding.Encoding {
	switch strings.ToUpper(name) {
	case "UTF-32":
		return utf32.UTF32(utf32.BigEndian, utf32.UseBOM)
	case "UTF-32BE":
		return utf32.UTF32(utf32.BigEndian, utf32.IgnoreBOM)
	case "UTF-32LE":
		return utf32.UTF32(utf32.LittleEndian, utf32.IgnoreBOM)
	}
	return nil
}

// Ascii refuses the bytes that UTF-8 has beyond it.
type Ascii struct{ transform.NopResetter }

func (a Ascii) NewDecoder() *encoding.Decoder { return &encoding.Decoder{Transformer: a} }
func (a Ascii) NewEncoder() *encoding.Encoder { return &encoding.Encoder{Transformer: a} }

// Transform copies up to the first byte that is none.
func (Ascii) Transform(dst, src []byte, _ bool) (int, int, error) {
	for i, c := range src {
		if i == len(dst) {
			return i, i, transform.ErrShortDst
		}
		if c >= utf8.RuneSelf {
			return i, i, errNotText
		}
		dst[i] = c
	}
	return len(src), len(src), nil
}
