package bags

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// Format is an archive's format.
type Format string

// The formats. None is everything that is not unpacked.
const (
	None    Format = ""
	Zip     Format = "zip"
	Tar     Format = "tar"
	TarGzip Format = "tar.gz"
	TarZstd Format = "tar.zst"
)

const tarBlock = 512

// maxWindow bounds what a zstd stream may ask for: 128 MiB is what
// "zstd --long=27" writes and every zstd reads without being told.
const maxWindow = 128 << 20

// Sniff tells which archive the file at path is. A folder, a link or a special
// file is none and is not opened.
func Sniff(path string) (Format, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return None, fmt.Errorf("recognise %s: %w", path, err)
	}
	if !info.Mode().IsRegular() {
		return None, nil
	}
	f, err := os.Open(path)
	if err != nil {
		return None, fmt.Errorf("recognise %s: %w", path, err)
	}
	defer f.Close()
	src := &source{f: f}
	format := sniff(src, filepath.Base(path))
	if err := src.failure(); err != nil {
		return None, fmt.Errorf("recognise %s: %w", path, err)
	}
	return format, nil
}

func sniff(r io.ReadSeeker, name string) Format {
	head := make([]byte, tarBlock)
	n, _ := io.ReadFull(r, head)
	head = head[:n]
	if _, err := r.Seek(0, io.SeekStart); err != nil {
		return None
	}
	switch {
	case bytes.HasPrefix(head, []byte("PK\x03\x04")), bytes.HasPrefix(head, []byte("PK\x05\x06")),
		bytes.HasPrefix(head, []byte("PK\x07\x08PK\x03\x04")):
		if isDocument(name, head) {
			return None
		}
		return Zip
	case isTarHeader(head):
		return Tar
	case bytes.HasPrefix(head, []byte{0x1f, 0x8b}):
		return sniffGzip(r, name)
	case isZstd(head):
		return sniffZstd(r, name)
	}
	return formatOfName(name)
}

func sniffGzip(r io.Reader, name string) Format {
	z, err := gzip.NewReader(r)
	if err != nil {
		return onlyIf(name, TarGzip)
	}
	defer z.Close()
	if holdsTar(z) {
		return TarGzip
	}
	return onlyIf(name, TarGzip)
}

func sniffZstd(r io.Reader, name string) Format {
	z, err := newZstd(r)
	if err != nil {
		return onlyIf(name, TarZstd)
	}
	defer z.Close()
	if holdsTar(z) {
		return TarZstd
	}
	return onlyIf(name, TarZstd)
}

func newZstd(r io.Reader) (*zstd.Decoder, error) {
	return zstd.NewReader(r, zstd.WithDecoderMaxWindow(maxWindow), zstd.WithDecoderConcurrency(2), zstd.WithDecoderLowmem(true))
}

func holdsTar(r io.Reader) bool {
	block := make([]byte, tarBlock)
	n, _ := io.ReadFull(r, block)
	return isTarHeader(block[:n])
}

// isTarHeader checks a header's sum, which random data passes once in some
// hundred thousand times; the old v7 format has nothing else. Two zero blocks
// are an archive without members only by name.
func isTarHeader(b []byte) bool {
	if len(b) < tarBlock || b[0] == 0 {
		return false
	}
	field := strings.Trim(string(b[148:156]), " \x00")
	want := int64(0)
	for _, c := range []byte(field) {
		if c < '0' || c > '7' {
			return false
		}
		want = want<<3 | int64(c-'0')
	}
	var unsigned, signed int64
	for i, c := range b[:tarBlock] {
		if 148 <= i && i < 156 {
			c = ' '
		}
		unsigned += int64(c)
		signed += int64(int8(c))
	}
	return field != "" && (want == unsigned || want == signed)
}

func isZstd(b []byte) bool {
	if len(b) < 4 {
		return false
	}
	magic := binary.LittleEndian.Uint32(b)
	return magic == 0xfd2fb528 || magic&0xfffffff0 == 0x184d2a50
}

// documentExtensions are the zips that people open rather than unpack.
var documentExtensions = map[string]bool{
	".docx": true, ".docm": true, ".dotx": true, ".xlsx": true, ".xlsm": true, ".xltx": true, ".xlsb": true,
	".pptx": true, ".pptm": true, ".potx": true, ".ppsx": true, ".vsdx": true, ".odt": true, ".ods": true,
	".odp": true, ".odg": true, ".odf": true, ".odb": true, ".ott": true, ".ots": true, ".otp": true,
	".epub": true, ".jar": true, ".war": true, ".ear": true, ".apk": true, ".aab": true, ".xpi": true,
	".whl": true, ".nupkg": true, ".kmz": true, ".cbz": true, ".idml": true, ".sketch": true, ".3mf": true,
	".usdz": true, ".pages": true, ".numbers": true, ".key": true, ".wacz": true, ".siard": true, ".oxps": true,
	".xps": true, ".mpp": true, ".qgz": true, ".fcstd": true, ".kra": true, ".ora": true, ".aip": true,
}

// isDocument decides by the extension, or by the first member's name: OpenDocument
// and EPUB begin with "mimetype", Office Open XML with "[Content_Types].xml".
func isDocument(name string, head []byte) bool {
	if documentExtensions[strings.ToLower(filepath.Ext(name))] {
		return true
	}
	if len(head) < 30 || string(head[:4]) != "PK\x03\x04" {
		return false
	}
	n := int(binary.LittleEndian.Uint16(head[26:]))
	if 30+n > len(head) {
		return false
	}
	first := string(head[30 : 30+n])
	return first == "mimetype" || first == "[Content_Types].xml"
}

// formatOfName is asked only where the bytes say nothing.
func formatOfName(name string) Format {
	lower := strings.ToLower(name)
	for _, e := range []struct {
		suffix string
		format Format
	}{
		{".zip", Zip}, {".tar", Tar}, {".tar.gz", TarGzip}, {".tgz", TarGzip}, {".tar.zst", TarZstd}, {".tzst", TarZstd},
	} {
		if strings.HasSuffix(lower, e.suffix) && len(lower) > len(e.suffix) {
			return e.format
		}
	}
	return None
}

func onlyIf(name string, f Format) Format {
	if formatOfName(name) == f {
		return f
	}
	return None
}
