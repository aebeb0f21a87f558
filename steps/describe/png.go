package describe

import (
	"bufio"
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"fmt"
	"io"

	"github.com/bep/imagemeta"
)

const (
	maxXMP     = 10<<20 - 100 // bytes that imagemeta reads, with its container's
	mostChunks = 1 << 20      // of a PNG: libpng writes one every 8 KiB
)

var errLongXMP = fmt.Errorf("longer than the %d bytes that are read; it is left out", maxXMP)

// pngXMP gives the XMP of a PNG, which imagemeta does not read, and the byte of the chunk that holds it; 0: there is none.
func pngXMP(f io.ReaderAt, size int64) (packet []byte, at int64, err error) {
	at = 8
	for range mostChunks {
		var head [8]byte
		if _, err := f.ReadAt(head[:], at); err != nil {
			return nil, 0, nil // the end, or that of a file that was cut off, as whoever draws it sees
		}
		n := int64(binary.BigEndian.Uint32(head[:]))
		if string(head[4:]) == "iTXt" {
			packet, is, err := xmpText(bufio.NewReader(io.NewSectionReader(f, at+8, min(n, size-at-8))))
			if is {
				return packet, at, err
			}
		}
		at += 12 + n
	}
	return nil, at, fmt.Errorf("it is looked for no further: there are more than %d chunks before it", mostChunks)
}

// xmpText reads a text of a PNG, where its keyword is that of XMP (PNG 3rd edition, 11.3.3.4).
func xmpText(r *bufio.Reader) (packet []byte, is bool, err error) {
	const keyword = "XML:com.adobe.xmp\x00"
	var head [len(keyword) + 2]byte
	if _, err := io.ReadFull(r, head[:]); err != nil || string(head[:len(keyword)]) != keyword {
		return nil, false, nil
	}
	for range 2 { // the language, and the keyword in it
		if _, err := r.ReadSlice(0); err != nil {
			return nil, true, fmt.Errorf("the head of its text: %w", err)
		}
	}
	text := io.Reader(r)
	if head[len(keyword)] != 0 {
		if text, err = zlib.NewReader(r); err != nil {
			return nil, true, err
		}
	}
	packet, err = io.ReadAll(io.LimitReader(text, maxXMP+1))
	if err == nil && len(packet) > maxXMP {
		packet, err = nil, errLongXMP
	}
	return packet, true, err
}

// tagsOf reads one source of a picture's tags.
func tagsOf(f io.ReaderAt, size int64, o imagemeta.Options) (imagemeta.DecodeResult, error) {
	o.R = io.NewSectionReader(f, 0, size)
	if o.ImageFormat == imagemeta.PNG && o.Sources == imagemeta.XMP {
		packet, at, err := pngXMP(f, size)
		if err != nil {
			return imagemeta.DecodeResult{}, fmt.Errorf("at byte %d: %w", at, err)
		}
		if packet == nil {
			return imagemeta.DecodeResult{}, nil
		}
		o.R, o.ImageFormat = bytes.NewReader(webpOf(packet)), imagemeta.WebP
	}
	return imagemeta.Decode(o)
}

// webpOf is a WebP of nothing but XMP.
func webpOf(xmp []byte) []byte {
	b := append([]byte("RIFF\x00\x00\x00\x00WEBPVP8X\x0a\x00\x00\x00\x04"), make([]byte, 9)...)
	b = append(binary.LittleEndian.AppendUint32(append(b, "XMP "...), uint32(len(xmp))), xmp...)
	b = append(b, make([]byte, len(xmp)%2)...)
	binary.LittleEndian.PutUint32(b[4:], uint32(len(b)-8))
	return b
}
